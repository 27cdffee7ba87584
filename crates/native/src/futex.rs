//! The system calls to sleep on a word and to wake who sleeps on it.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `value`; may return for no reason. The kernel looks and goes to sleep in
/// one step with respect to [`wake`].
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let _ = sleep(word, value, ptr::null());
}

/// As [`wait`], but no longer than `limit`; true if that is why it returns.
pub(crate) fn wait_for(word: &AtomicU32, value: u32, limit: Duration) -> bool {
    let seconds = libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX);
    // It is less than a thousand million, which all integers of C hold.
    let limit = libc::timespec { tv_sec: seconds, tv_nsec: limit.subsec_nanos() as _ };
    sleep(word, value, &raw const limit) != 0
        && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
}

fn sleep(word: &AtomicU32, value: u32, limit: *const libc::timespec) -> libc::c_long {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: `word` is borrowed, thus readable throughout; the limit is a null pointer, which is none, or
    // points to a value of the caller's. Errors are "the value is another", "a signal came" and "time is
    // up", and all are reasons to return.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, limit) }
}

/// Wakes up to `count` threads that sleep at `address`, the longest sleeper first among threads of equal
/// priority; returns how many.
pub(crate) fn wake(address: *const AtomicU32, count: i32) -> usize {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel hashes the address of a private futex and never reads what is there, so that it
    // may even be gone.
    let woken = unsafe { libc::syscall(libc::SYS_futex, address, operation, count) };
    usize::try_from(woken).unwrap_or(0)
}
