//! The end of a process: what it recorded, counted and was told.
//!
//! Shells end by `_exit`, which calls no handlers. So for the first process of a run that is an end, too. For others it is not:
//! most of them are children that could not become another program.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::{placed, record, stats, tally};

unsafe extern "C" {
    /// What `at_quick_exit` calls, which is no function of the shared C library.
    fn __cxa_at_quick_exit(function: extern "C" fn(*mut c_void), library: *const c_void) -> c_int;
}

/// Has the C library call this file when the process ends by `exit`, by returning from `main`, or by `quick_exit`.
pub(crate) fn start() {
    // SAFETY: the functions live as long as the process: the library is never unloaded. If a call fails, nothing is told.
    unsafe {
        libc::atexit(end);
        __cxa_at_quick_exit(quick_end, ptr::null());
    }
}

extern "C" fn quick_end(_: *mut c_void) {
    end();
}

extern "C" fn end() {
    let Some(kind) = placed::kind() else { return };
    record::write();
    let counts = stats::are_on();
    if counts {
        stats::print();
    } else if !tally::took()
        && let Some(tally) = tally::tally()
    {
        // Told by the first process.
        tally.counts_idle();
    }
    if tally::is_first()
        && let Some(tally) = tally::tally()
    {
        tally.sum_up(kind.name, counts);
    }
}

/// Ends the process without calling handlers.
fn leave(status: c_int) -> ! {
    static HAS_ENDED: AtomicBool = AtomicBool::new(false);
    if tally::is_first() && !HAS_ENDED.swap(true, Relaxed) {
        end();
    }
    // SAFETY: it has no preconditions.
    unsafe { libc::syscall(libc::SYS_exit_group, status) };
    unreachable!("the process has ended")
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    leave(status)
}

/// The C library's function of that name.
///
/// # Safety
/// The rules of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    leave(status)
}
