//! System calls that this library makes for itself, without effects that the program could notice.
//!
//! - **`errno`** stays unchanged: pthread functions do not set it, and callers rely on that.
//! - **No cancellation point**: `pthread_mutex_lock` is not one. The C library's `write` and `nanosleep` are,
//!   so messages and pauses are plain system calls.

use std::ffi::c_int;
use std::fmt;
use std::time::Duration;

/// Restores `errno` when it is dropped.
pub(crate) struct KeepErrno {
    /// This thread's `errno`. The compiler cannot know that the place stays the same, and would ask twice.
    place: *mut c_int,
    value: c_int,
}

impl KeepErrno {
    #[inline]
    pub(crate) fn new() -> Self {
        // SAFETY: the C library always knows the place.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: it is this thread's own, and stays until the thread ends.
        Self { place, value: unsafe { *place } }
    }
}

impl Drop for KeepErrno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as in `new`. A pointer keeps this value in its thread.
        unsafe { *self.place = self.value };
    }
}

/// Prints a line on standard error. Errors are ignored, because there is no other place to report them.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let line = format!("overspin: {line}\n");
    let (start, length) = (line.as_ptr(), line.len());
    // SAFETY: the line lives until the end of the call.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, start, length) };
}

/// Sleeps for `time` or less.
pub(crate) fn pause(time: Duration) {
    let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    // The value is below a thousand million, which all integers of C hold.
    let time = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos() as _ };
    // SAFETY: `time` lives until the end of the call, and the remaining time is not requested.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null::<()>()) };
}
