//! A loop that uses the CPU.

/// Multiplies `iterations` times, each time the last product. Host and guest execute the same instructions, so the host
/// can measure how long they take.
///
/// The loop waits for products. A loop that only counts is limited by the branches that a core takes in a cycle, and
/// takes twice as long while a sibling thread runs. Two vCPUs of a virtual machine may be such siblings, and the
/// machine does not tell.
#[inline]
pub fn burn(iterations: u64) {
    if iterations == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it changes two registers and the flags. The loop is aligned, so that its speed does not depend on the
    // code around it.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2: imul {1}, {1}, 0x1b873593",
            "dec {0}",
            "jnz 2b",
            inout(reg) iterations => _,
            inout(reg) 1_u64 => _,
            options(nomem, nostack),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for i in 0..iterations {
        core::hint::black_box(i);
    }
}
