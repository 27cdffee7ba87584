//! How one pCPU makes another look again: a signal if it runs a vCPU, a wake-up if it sleeps.
//!
//! ```text
//!   pCPU:    state = Guest or Parked;  rung?  no -> enters or sleeps
//!   other:   rung = true;              state? Guest -> signal, Parked -> unpark
//! ```
//!
//! Both sides write one word and then read the other, in one total order (`SeqCst`). So either the pCPU sees the
//! bell, or the other sees where it is. A signal that comes before the vCPU is entered is not lost (see `kvm_run`),
//! and neither is an unpark before the sleep.

use crate::kvm_run;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::Thread;
use std::time::Duration;

const HOST: u32 = 0;
const GUEST: u32 = 1;
const PARKED: u32 = 2;

/// The bell of one pCPU.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    state: AtomicU32,
    rung: AtomicBool,
    owner: OnceLock<(Thread, libc::pid_t)>,
}

impl Doorbell {
    /// The calling thread is the pCPU from now on.
    pub(crate) fn own(&self) {
        // SAFETY: the call has no conditions.
        let id = unsafe { libc::gettid() };
        let _ = self.owner.set((std::thread::current(), id));
    }

    /// Makes the pCPU look again.
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        let state = self.state.load(Ordering::SeqCst);
        let Some((thread, id)) = self.owner.get() else { return };
        match state {
            GUEST => {
                // SAFETY: the thread lives as long as the bell has an owner that may be in its guest: the threads of a
                // run end before its bells. A stale number could only reach a thread of this process, whose handler
                // does nothing then.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), *id, kvm_run::signal()) };
            }
            PARKED => thread.unpark(),
            _ => {}
        }
    }

    /// Calls `enter`, unless the bell was rung; a ring during the call ends it.
    pub(crate) fn in_guest<R>(&self, enter: impl FnOnce() -> R) -> Option<R> {
        self.state.store(GUEST, Ordering::SeqCst);
        let result = (!self.rung.swap(false, Ordering::SeqCst)).then(enter);
        self.state.store(HOST, Ordering::SeqCst);
        result
    }

    /// Sleeps until the bell is rung, for at most `limit`.
    pub(crate) fn sleep(&self, limit: Duration) {
        self.state.store(PARKED, Ordering::SeqCst);
        if !self.rung.swap(false, Ordering::SeqCst) {
            std::thread::park_timeout(limit);
        }
        self.state.store(HOST, Ordering::SeqCst);
    }
}
