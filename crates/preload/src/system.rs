//! System calls that this library makes for itself, without effects that the program could notice.
//!
//! - **`errno`** stays unchanged: pthread functions do not set it, and callers rely on that.
//! - **No cancellation point**: `pthread_mutex_lock` is not one. The C library's `write` and `nanosleep` are,
//!   so messages and pauses are plain system calls.

use std::ffi::c_int;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU64};
use std::time::Duration;

use overspin_native::preload::HIGH;

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

/// Standard error as it was when the library was loaded. Many programs close theirs before the end handlers are through.
struct Screen {
    /// The number of a duplicate; negative without one.
    fd: AtomicI32,
    /// What is open there. The program may have closed it and opened something else.
    device: AtomicU64,
    inode: AtomicU64,
}

static SCREEN: Screen =
    Screen { fd: AtomicI32::new(-1), device: AtomicU64::new(0), inode: AtomicU64::new(0) };

/// Device and inode of an open file.
fn identity(fd: c_int) -> Option<(u64, u64)> {
    let mut about = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the call writes `about` if it returns 0.
    unsafe {
        (libc::fstat(fd, about.as_mut_ptr()) == 0).then(|| {
            let about = about.assume_init();
            (about.st_dev, about.st_ino)
        })
    }
}

impl Screen {
    /// The duplicate, as long as the program has left it open.
    fn get(&self) -> Option<c_int> {
        let fd = self.fd.load(Relaxed);
        let known = (self.device.load(Relaxed), self.inode.load(Relaxed));
        (fd >= 0 && identity(fd) == Some(known)).then_some(fd)
    }
}

/// Keeps standard error for [`say`]. Programs that this process becomes do not inherit it.
pub(crate) fn keep_standard_error() {
    let Some((device, inode)) = identity(libc::STDERR_FILENO) else { return };
    SCREEN.device.store(device, Relaxed);
    SCREEN.inode.store(inode, Relaxed);
    // SAFETY: the number is that of an open file. If the call fails, `say` takes standard error itself.
    let fd = unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, HIGH) };
    SCREEN.fd.store(fd, Relaxed);
}

/// In the child of a fork, which may be a daemon: a reader of standard error must not wait for its end.
pub(crate) fn let_standard_error_go() {
    if let Some(fd) = SCREEN.get() {
        // SAFETY: it is this library's own.
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }
    SCREEN.fd.store(-1, Relaxed);
}

/// Prints a line on standard error. Errors are ignored, because there is no other place to report them.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let _errno = KeepErrno::new();
    let line = format!("overspin: {line}\n");
    let (start, length) = (line.as_ptr(), line.len());
    let fd = SCREEN.get().unwrap_or(libc::STDERR_FILENO);
    // SAFETY: the line lives until the end of the call.
    unsafe { libc::syscall(libc::SYS_write, fd, start, length) };
}

/// Sleeps for `time` or less.
pub(crate) fn pause(time: Duration) {
    let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    // The value is below a thousand million, which all integers of C hold.
    let time = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos() as _ };
    // SAFETY: `time` lives until the end of the call, and the remaining time is not requested.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null::<()>()) };
}
