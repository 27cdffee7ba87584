//! A machine on bare x86-64, in ring 0.

use crate::Machine;
use core::arch::asm;

/// The bit of the flags register that is set while interrupts are on.
const INTERRUPTS_ON: u64 = 1 << 9;

/// Bare x86-64. The kernel stores each CPU's number in the word at `gs:0` before that CPU takes its first lock.
#[derive(Clone, Copy, Debug)]
pub struct X86_64;

// SAFETY: the numbers are the kernel's, which stores a different one for each CPU. With interrupts off, only
// non-maskable interrupts and exceptions come between, and their handlers take no locks.
unsafe impl Machine for X86_64 {
    #[inline(always)]
    fn cpu() -> usize {
        let cpu: usize;
        // SAFETY: reads the word that the kernel has stored.
        unsafe {
            asm!("mov {}, gs:[0]", out(reg) cpu, options(nostack, preserves_flags, readonly));
        }
        cpu
    }

    #[inline(always)]
    fn irq_save() -> bool {
        let flags: u64;
        // No `nomem`: the compiler must not move accesses of the section to before this.
        // SAFETY: ring 0 may do so. The stack is as before at the end.
        unsafe { asm!("pushfq", "pop {}", "cli", out(reg) flags) };
        flags & INTERRUPTS_ON != 0
    }

    #[inline(always)]
    fn irq_restore(on: bool) {
        if on {
            // SAFETY: they were on before the section, so the kernel is ready for them.
            unsafe { asm!("sti", options(nostack)) };
        }
    }
}
