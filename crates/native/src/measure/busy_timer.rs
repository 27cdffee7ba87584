//! A timer whose end a busy thread notices at once, without sleeping for it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A timer that a thread asks whether it has ended.
#[derive(Debug)]
pub(crate) struct BusyTimer {
    fd: OwnedFd,
}

impl BusyTimer {
    /// A timer that is not set.
    ///
    /// # Errors
    /// If the system has none left.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else has it.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Sets the timer, and asks it over and over until it has ended; by how much that was later than it should, in
    /// nanoseconds. A question takes some 0.2 us.
    ///
    /// # Errors
    /// If the timer cannot be set.
    pub(crate) fn lateness(&self, after: Duration) -> io::Result<f64> {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let once = libc::timespec {
            tv_sec: after.as_secs() as libc::time_t,
            tv_nsec: after.subsec_nanos() as libc::c_long,
        };
        let setting = libc::itimerspec { it_interval: zero, it_value: once };
        let fd = self.fd.as_raw_fd();
        let began = Instant::now();
        // SAFETY: the descriptor is ours, and the pointer is to a local variable.
        if unsafe { libc::timerfd_settime(fd, 0, &raw const setting, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut ends = 0_u64;
        // SAFETY: the descriptor is ours, and the buffer has the eight bytes that the call may write.
        while unsafe { libc::read(fd, (&raw mut ends).cast(), size_of::<u64>()) } < 0 {
            let error = io::Error::last_os_error();
            if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                return Err(error);
            }
        }
        Ok(began.elapsed().saturating_sub(after).as_nanos() as f64)
    }
}
