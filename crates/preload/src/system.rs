//! What this library asks of the system for itself, so that the program does not notice.
//!
//! - **`errno`** stays as it was: pthread functions leave it alone, and callers count on that.
//! - **No cancellation point**: `pthread_mutex_lock` is none. `write` and `nanosleep` of the C library are, so
//!   messages and pauses are plain system calls.

use std::ffi::c_int;
use std::fmt;
use std::time::Duration;

/// Puts `errno` back to what it was, when it is dropped.
pub(crate) struct KeepErrno(c_int);

impl KeepErrno {
    #[inline]
    pub(crate) fn new() -> Self {
        // SAFETY: it points to this thread's own `errno`.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeepErrno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// A line on standard error. If nobody can read it, there is nobody to tell.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let line = format!("overspin: {line}\n");
    let (start, length) = (line.as_ptr(), line.len());
    // SAFETY: the line lives until the end of the call.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, start, length) };
}

/// Sleeps for `time` or less.
pub(crate) fn pause(time: Duration) {
    let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    // It is less than a thousand million, which all integers of C hold.
    let time = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos() as _ };
    // SAFETY: `time` lives until the end of the call, and what is left of it is not asked for.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null::<()>()) };
}
