//! A loop that uses the CPU.

/// Decrements a counter `iterations` times. Host and guest execute the same instructions, so the host can measure
/// how long they take.
#[inline]
pub fn burn(iterations: u64) {
    if iterations == 0 {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it changes a register and the flags. The loop is aligned, so that its speed does not depend on the
    // code around it.
    unsafe {
        core::arch::asm!(
            ".p2align 6",
            "2: dec {0}",
            "jnz 2b",
            inout(reg) iterations => _,
            options(nomem, nostack),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for i in 0..iterations {
        core::hint::black_box(i);
    }
}
