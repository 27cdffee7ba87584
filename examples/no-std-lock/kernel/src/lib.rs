//! Locks as a static library for a kernel in C, which declares
//!
//! ```c
//! bool boot(size_t cpus);    // once, by the first CPU, before the others start; false: too many CPUs
//! uint64_t count(void);      // on any CPU, also in interrupt handlers; before boot() it returns 0
//! ```
//!
//! Before, each CPU stores its number in the word at `gs:0`. Build it in this folder, once the target is installed
//! (`rustup target add x86_64-unknown-none`):
//!
//! ```text
//! cargo build --release --target x86_64-unknown-none
//! ```
//!
//! Code for that target uses no vector registers, and nothing below the stack pointer, where interrupt handlers write.
#![no_std]

use core::hint::spin_loop;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicPtr, Ordering};
use no_std_lock::{McsLock, McsNodes, TicketLock, TicketNodes, X86_64, keep};

/// What all CPUs share.
struct System {
    /// Counts, in order of arrival.
    total: McsLock<'static, X86_64, u64>,
    /// The CPU time stamp of the last count.
    last: TicketLock<'static, X86_64, u64>,
}

static SYSTEM: AtomicPtr<System> = AtomicPtr::new(core::ptr::null_mut());

/// Makes the locks. See the [module](self).
#[unsafe(no_mangle)]
pub extern "C" fn boot(cpus: usize) -> bool {
    let (Ok(nodes), Ok(tickets)) = (McsNodes::new(cpus), TicketNodes::new(cpus)) else {
        return false;
    };
    let total = McsLock::new(keep(nodes), 0);
    let last = TicketLock::new(keep(tickets), 0);
    let system = keep(System { total, last });
    // Release: the locks are made before another CPU finds them.
    SYSTEM.store(core::ptr::from_ref(system).cast_mut(), Ordering::Release);
    true
}

/// Counts. See the [module](self).
#[unsafe(no_mangle)]
pub extern "C" fn count() -> u64 {
    // SAFETY: null, or what `boot` has stored: a value that is kept for ever and never changed.
    let Some(system) = (unsafe { SYSTEM.load(Ordering::Acquire).as_ref() }) else { return 0 };
    let mut total = system.total.lock();
    *total += 1;
    // SAFETY: every x86-64 CPU has a time stamp.
    *system.last.lock() = unsafe { core::arch::x86_64::_rdtsc() };
    *total
}

#[panic_handler]
fn halt(_: &PanicInfo<'_>) -> ! {
    loop {
        spin_loop();
    }
}
