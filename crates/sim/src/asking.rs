//! Asks the caller whether the run should stop: every [`ASK_EVERY`] steps, in the main loop and where guest
//! code runs ahead.
//!
//! `timeline.rs` describes the leash, which limits how far guest code runs ahead.

use crate::engine::Engine;
use overspin_host::Cancel;
use overspin_scenario::{Picos, Stopped};
use std::cell::Cell;

/// Steps between two questions to the caller: some milliseconds of real time. A step is an event, or an
/// operation that ran ahead without one, because these take real time too.
const ASK_EVERY: u64 = 1 << 16;

/// The caller's wish to stop.
pub(crate) struct Asking {
    /// A raw pointer, because the caller's `Cancel` outlives the engine but is not `'static`.
    cancel: Cell<Option<*const dyn Cancel>>,
    /// The number of steps, from the start of the run, at which the caller is asked next.
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

    /// Asks `cancel` from now on.
    ///
    /// # Safety
    /// `cancel` must live as long as `self`.
    pub(crate) unsafe fn begin(&self, cancel: &dyn Cancel) {
        let cancel: *const (dyn Cancel + '_) = cancel;
        // SAFETY: only the lifetime changes; the caller promises that `cancel` lives long enough.
        let cancel: *const (dyn Cancel + 'static) = unsafe { std::mem::transmute(cancel) };
        self.cancel.set(Some(cancel));
    }

    /// The reason why the caller has stopped the run, if it has.
    #[inline(always)]
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.stopped.get()
    }

    fn ask(&self, now: Picos) {
        let Some(cancel) = self.cancel.get() else { return };
        // SAFETY: the caller of `begin` promised that `cancel` lives as long as `self`.
        self.stopped.set(unsafe { &*cancel }.asked(now));
    }
}

impl Engine {
    #[inline(always)]
    fn steps(&self) -> u64 {
        self.time.processed() + self.time.run_ahead()
    }

    /// Asks the caller whether to stop, if enough steps have passed. Returns whether that stops the run.
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

    /// Lengthens the leash for an operation of the current vCPU that ends at `end`. Returns `true` if only
    /// the leash kept it from running ahead, and `false` if it must wait for an event or the run must stop.
    #[inline(always)]
    pub(crate) fn lengthen_leash(&self, end: Picos) -> bool {
        // Where events are close together the leash never matters.
        self.time.is_leashed() && self.lengthen(end)
    }

    #[inline(never)]
    fn lengthen(&self, end: Picos) -> bool {
        if !self.time.is_on_the_leash(end) || self.ask_now_and_then() {
            return false;
        }
        self.time.lengthen_leash(end);
        true
    }
}
