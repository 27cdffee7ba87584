//! The system calls to sleep on a word and to wake who sleeps on it.

use std::ptr;
use std::sync::atomic::AtomicU32;

/// Sleeps while `word` holds `value`; may return for no reason. The kernel looks and goes to sleep in
/// one step with respect to [`wake`].
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = ptr::null::<libc::timespec>();
    // SAFETY: `word` is borrowed, thus readable throughout; no timeout is a null pointer. Errors are
    // "the value is another" and "a signal came", and both are reasons to return.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
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
