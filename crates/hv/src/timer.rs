//! A timer of one thread, which stops the vCPU that the thread runs.

use crate::kvm_run;
use overspin_sched::Nanos;
use std::io;

/// A one-shot timer that sends [`kvm_run::signal`] to the thread that made it.
#[derive(Debug)]
pub(crate) struct ThreadTimer {
    id: libc::timer_t,
    /// The time for which it is set.
    set: Option<Nanos>,
}

impl ThreadTimer {
    /// A timer of the calling thread.
    ///
    /// # Errors
    /// If the system has no timers left.
    pub(crate) fn new() -> io::Result<Self> {
        let mut id: libc::timer_t = std::ptr::null_mut();
        // SAFETY: all bytes zero is a value of the structure, and both pointers are to local variables.
        let result = unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = kvm_run::signal();
            event.sigev_notify_thread_id = libc::gettid();
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut id)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { id, set: None })
    }

    /// Makes it expire at `at` at the latest. It may expire earlier, when it was set before: a vCPU that leaves once
    /// too often in a slice costs less than a system call at each switch.
    pub(crate) fn set(&mut self, now: Nanos, at: Option<Nanos>) {
        // A timer that has expired is not set any more. It may have expired somewhat early, by this clock.
        if kvm_run::take_came() {
            self.set = None;
        }
        let Some(at) = at else { return };
        if self.set.is_some_and(|set| set <= at) {
            return;
        }
        self.set = Some(at);
        // At least 1 ns: 0 would stop it.
        let left = (at.0 - now.0).max(1);
        let setting = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: left / 1_000_000_000,
                tv_nsec: left % 1_000_000_000,
            },
        };
        // SAFETY: the timer is ours, and the pointer is to a local variable.
        unsafe { libc::timer_settime(self.id, 0, &raw const setting, std::ptr::null_mut()) };
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours.
        unsafe { libc::timer_delete(self.id) };
    }
}
