/*
 * What an uncontended pair of lock and unlock costs: instructions by single steps, and time. It calls the locks as
 * kernel/overspin.h does, on the processor itself. `cost NAME` prints both; NAME is a lock, `stock` (the kernel's queue without
 * our choice in front of it), `dispatch` (that queue behind the choice) or `empty` (the loop alone).
 *
 * What the kernel supplies is here as short as there, but that interrupts stay on.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void overspin_lock(const uint32_t *word);
void overspin_unlock(const uint32_t *word);
bool overspin_choose(const char *name, unsigned long length, unsigned long cpus, uint32_t budget);

#define SUPPLIED __attribute__((noinline, used))
static volatile uint32_t cpu, level;
SUPPLIED uint32_t overspin_cpu(void) { return cpu; }
SUPPLIED uint32_t overspin_level(void) { return level; }
SUPPLIED unsigned long overspin_irq_save(void)
{
	unsigned long flags;

	asm volatile("pushf; pop %0" : "=rm"(flags) : : "memory");
	return flags;
}
SUPPLIED void overspin_irq_restore(unsigned long flags) { asm volatile("" : : "r"(flags) : "memory"); }
SUPPLIED bool overspin_irqs_were_on(unsigned long flags) { return flags & 0x200; }
SUPPLIED bool overspin_can_block(void) { return level == 0; }
SUPPLIED bool overspin_preempted(uint32_t other) { (void)other; return false; }
SUPPLIED uint64_t overspin_clock(void) { return 0; }
SUPPLIED void overspin_sleep(uint8_t *latch) { (void)latch; }
SUPPLIED void overspin_wake(uint32_t other) { (void)other; }

static bool chosen __attribute__((aligned(64)));
static uint32_t word __attribute__((aligned(64)));

static inline void queue_lock(uint32_t *lock)
{
	uint32_t free = 0;

	/* Nobody contends, so there is no slow path. */
	if (!__atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		__builtin_trap();
}

static inline void queue_unlock(uint32_t *lock)
{
	__atomic_store_n((uint8_t *)lock, 0, __ATOMIC_RELEASE);
}

#define FUNCTION static __attribute__((noinline))
FUNCTION void stock_lock(uint32_t *lock) { queue_lock(lock); }
FUNCTION void stock_unlock(uint32_t *lock) { queue_unlock(lock); }
FUNCTION void chosen_lock(uint32_t *lock)
{
	if (__builtin_expect(*(volatile bool *)&chosen, 1))
		overspin_lock(lock);
	else
		queue_lock(lock);
}
FUNCTION void chosen_unlock(uint32_t *lock)
{
	if (__builtin_expect(*(volatile bool *)&chosen, 1))
		overspin_unlock(lock);
	else
		queue_unlock(lock);
}
FUNCTION void nothing(uint32_t *lock) { asm volatile("" : : "r"(lock) : "memory"); }

static void (*lock)(uint32_t *) = chosen_lock, (*unlock)(uint32_t *) = chosen_unlock;

FUNCTION void pairs(unsigned long count)
{
	void (*volatile const to_lock)(uint32_t *) = lock, (*volatile const to_unlock)(uint32_t *) = unlock;

	while (count--) {
		to_lock(&word);
		to_unlock(&word);
	}
}

static long steps(unsigned long count)
{
	pid_t child = fork();
	long all = 0;
	int status;

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		pairs(count);
		_exit(0);
	}
	waitpid(child, &status, 0);
	while (WIFSTOPPED(status)) {
		ptrace(PTRACE_SINGLESTEP, child, 0, 0);
		waitpid(child, &status, 0);
		all++;
	}
	return all;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const unsigned long steps_of = 200, many = 2000000;
	const char *name = argc > 1 ? argv[1] : "stock";
	double best = 1e9;

	if (!strcmp(name, "stock")) {
		lock = stock_lock;
		unlock = stock_unlock;
	} else if (!strcmp(name, "empty")) {
		lock = unlock = nothing;
	} else if (strcmp(name, "dispatch")) {
		chosen = overspin_choose(name, strlen(name), 4, 0);
		if (!chosen) {
			fprintf(stderr, "no lock %s\n", name);
			return 1;
		}
	}
	/* The rest of the process counts in both. */
	printf("%.2f", (steps(2 * steps_of) - steps(steps_of)) / (double)steps_of);
	for (int i = 0; i < 15; i++) {
		double began = seconds();

		pairs(many);
		best = seconds() - began < best ? seconds() - began : best;
	}
	printf(" %.2f\n", best / many * 1e9);
	return 0;
}
