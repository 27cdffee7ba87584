// SPDX-License-Identifier: GPL-2.0
/*
 * What the locks of Overspin need from the kernel, and the choice at boot. The locks are in overspin_locks.o, which is made of
 * Rust: crates/linux/locks.
 */
#include <linux/export.h>
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/sched/clock.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <asm/apic.h>
#include <asm/cmdline.h>
#include <asm/nmi.h>
#include <asm/paravirt.h>
#include <asm/setup.h>

bool overspin_chosen __read_mostly;
EXPORT_SYMBOL(overspin_chosen);
EXPORT_SYMBOL(overspin_lock);
EXPORT_SYMBOL(overspin_trylock);
EXPORT_SYMBOL(overspin_unlock);
EXPORT_SYMBOL(overspin_is_locked);
EXPORT_SYMBOL(overspin_is_contended);

u32 overspin_cpu(void);
u32 overspin_level(void);
unsigned long overspin_irq_save(void);
void overspin_irq_restore(unsigned long flags);
bool overspin_irqs_were_on(unsigned long flags);
bool overspin_can_block(void);
bool overspin_preempted(u32 cpu);
u64 overspin_clock(void);
void overspin_sleep(u8 *latch);
void overspin_wake(u32 cpu);

u32 overspin_cpu(void)
{
	return raw_smp_processor_id();
}

u32 overspin_level(void)
{
	return interrupt_context_level();
}

unsigned long overspin_irq_save(void)
{
	return arch_local_irq_save();
}

void overspin_irq_restore(unsigned long flags)
{
	arch_local_irq_restore(flags);
}

bool overspin_irqs_were_on(unsigned long flags)
{
	return !arch_irqs_disabled_flags(flags);
}

/*
 * How waiters sleep. Under KVM and Xen as those of the kernel's own paravirtual lock, from the moment at which that is set up.
 * Elsewhere by HLT, which an NMI ends even with interrupts off, from the end of the boot: all CPUs are there, and nobody else
 * sends NMIs.
 */
static bool overspin_nmi __read_mostly;

bool overspin_can_block(void)
{
	return overspin_nmi || (void *)pv_ops.lock.wait != (void *)paravirt_nop;
}

bool overspin_preempted(u32 cpu)
{
	return vcpu_is_preempted(cpu);
}

u64 overspin_clock(void)
{
	return sched_clock();
}

extern const u8 overspin_window[], overspin_window_end[];

/*
 * Returns at once if the latch is set, or while this CPU cannot be woken yet. An NMI between the look at the latch and HLT
 * would be lost: overspin_woken skips HLT then.
 */
noinline void overspin_sleep(u8 *latch)
{
	if (!overspin_nmi) {
		pv_wait(latch, 0);
		return;
	}
	asm volatile("overspin_window:\n\t"
		     "cmpb $0, (%0)\n\t"
		     "jne overspin_window_end\n\t"
		     "hlt\n"
		     "overspin_window_end:"
		     : : "r" (latch) : "memory", "cc");
}

static int overspin_woken(unsigned int type, struct pt_regs *regs)
{
	if (regs->ip >= (unsigned long)overspin_window && regs->ip < (unsigned long)overspin_window_end)
		regs->ip = (unsigned long)overspin_window_end;
	return NMI_HANDLED;
}

void overspin_wake(u32 cpu)
{
	if (overspin_nmi)
		apic->send_IPI(cpu, NMI_VECTOR);
	else
		pv_kick(cpu);
}

static int __init overspin_wakes(void)
{
	if (overspin_chosen && !overspin_can_block() &&
	    !register_nmi_handler(NMI_LOCAL, overspin_woken, 0, "overspin"))
		overspin_nmi = true;
	return 0;
}
late_initcall(overspin_wakes);

static u32 __init number(const char *option)
{
	char text[16];
	u32 value = 0;

	if (cmdline_find_option(boot_command_line, option, text, sizeof(text)) > 0 && kstrtou32(text, 0, &value))
		pr_warn("overspin: %s=%s is no number\n", option, text);
	return value;
}

void __init overspin_boot(void)
{
	char name[32];
	unsigned long flags;
	bool chosen;
	int length = cmdline_find_option(boot_command_line, "overspin_lock", name, sizeof(name));

	if (length <= 0 || !strcmp(name, "stock")) {
		pr_info("overspin: spinlocks are stock\n");
		return;
	}
	if (length >= sizeof(name))
		panic("overspin: no lock has so long a name");
	/* No handler may find one half of the change. */
	local_irq_save(flags);
	chosen = overspin_choose(name, length, num_possible_cpus(), number("overspin_budget"));
	overspin_chosen = chosen;
	local_irq_restore(flags);
	if (!chosen)
		panic("overspin: no lock %s for %u CPUs", name, num_possible_cpus());
	pr_info("overspin: spinlocks are %s\n", name);
}
