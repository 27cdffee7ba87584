//! Whether the run is to stop: asked after so many steps, in the main loop and where guest code runs ahead.
//!
//! See `timeline.rs` for the leash on which that runs.

use crate::engine::Engine;
use overspin_host::Cancel;
use overspin_scenario::{Picos, Stopped};
use std::cell::Cell;

/// Events, and operations that needed none, after which the caller is asked: short operations that run
/// ahead take their time, too. Some milliseconds of real time.
const ASK_EVERY: u64 = 1 << 16;

/// The caller's wish to stop.
pub(crate) struct Asking {
    /// Raw, because the caller's lives longer than the engine, but not for `'static`.
    cancel: Cell<Option<*const dyn Cancel>>,
    /// Number of steps after which the caller is asked again.
    next: Cell<u64>,
    stopped: Cell<Option<Stopped>>,
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").field("stopped", &self.stopped.get()).finish_non_exhaustive()
    }
}

impl Asking {
    pub(crate) fn new() -> Self {
        Self { cancel: Cell::new(None), next: Cell::new(ASK_EVERY), stopped: Cell::new(None) }
    }

    /// From now on `cancel` is asked.
    ///
    /// # Safety
    /// It must last as long as this.
    pub(crate) unsafe fn begin(&self, cancel: &dyn Cancel) {
        let cancel: *const (dyn Cancel + '_) = cancel;
        // SAFETY: only the lifetime changes; the caller promises that it lasts.
        let cancel: *const (dyn Cancel + 'static) = unsafe { std::mem::transmute(cancel) };
        self.cancel.set(Some(cancel));
    }

    /// What has stopped the run.
    #[inline(always)]
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.stopped.get()
    }

    fn ask(&self, now: Picos) {
        let Some(cancel) = self.cancel.get() else { return };
        // SAFETY: `begin` was promised that it lasts.
        self.stopped.set(unsafe { &*cancel }.asked(now));
    }
}

impl Engine {
    #[inline(always)]
    fn steps(&self) -> u64 {
        self.time.processed() + self.time.run_ahead()
    }

    /// Asks the caller whether to stop, if it is time to. Returns whether that stops the run.
    #[inline(always)]
    pub(crate) fn ask_now_and_then(&self) -> bool {
        self.steps() >= self.end.asking.next.get() && self.ask()
    }

    #[cold]
    #[inline(never)]
    fn ask(&self) -> bool {
        self.end.asking.next.set(self.steps() + ASK_EVERY);
        self.telling.on_callers_stack(&self.code.yielder, || {
            self.telling.flush();
            self.end.asking.ask(self.now());
        });
        self.end.asking.stopped().is_some()
    }

    /// An operation of the current vCPU that ends at `end` is to wait for the next event. Returns whether it
    /// need not, since it was only the leash that was too short.
    #[inline(never)]
    pub(crate) fn lengthen_leash(&self, end: Picos) -> bool {
        if !self.time.is_on_the_leash(end) || self.ask_now_and_then() {
            return false;
        }
        self.time.lengthen_leash(end);
        true
    }
}
