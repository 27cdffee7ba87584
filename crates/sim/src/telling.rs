//! Tells the observer what happens: a buffer of moments, and the way to the caller's stack.
//!
//! The simulator keeps moments in a buffer and tells the observer many at a time. To keep one costs some
//! nanoseconds, and the observer's code and data come into the processor's cache once for hundreds of them.
//!
//! Most moments happen in guest code, on the 64 KiB stack of a coroutine. That small stack must not limit
//! observers. So the observer always runs on the stack of the thread that called `run`.

use crate::engine::TaskYielder;
use overspin_host::{Interest, Moment, Observer, Timed, TraceHash};
use overspin_scenario::Picos;
use std::cell::Cell;

/// Number of moments that the buffer holds: 16 KiB, half of a first-level cache.
const KEPT: usize = 512;

const NOTHING: Timed = Timed { at: Picos::ZERO, moment: Moment::Change { event: 0 } };

/// The observer of a run, and the moments that it has not been told yet.
pub(crate) struct Telling {
    interest: Cell<Interest>,
    /// A raw pointer, because the caller's observer outlives the engine but is not `'static`.
    observer: Cell<Option<*mut dyn Observer>>,
    kept: Box<[Cell<Timed>]>,
    count: Cell<usize>,
    hash: Cell<TraceHash>,
    /// Guest code runs, on a coroutine's stack.
    in_guest: Cell<bool>,
}

impl std::fmt::Debug for Telling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telling").field("interest", &self.interest.get()).finish_non_exhaustive()
    }
}

/// Moves a closure to the parent stack of a coroutine, which belongs to the same thread.
struct SameThread<F>(F);

// SAFETY: only `on_callers_stack` makes one, for `Yielder::on_parent_stack`, which runs it on another stack of
// this thread. `on_parent_stack` requires `Send` to keep yielders off that stack; the closure contains none.
unsafe impl<F> Send for SameThread<F> {}

impl<F: FnOnce()> SameThread<F> {
    fn call(self) {
        (self.0)();
    }
}

impl Telling {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            interest: Cell::new(Interest::NOTHING),
            observer: Cell::new(None),
            kept: (0..KEPT).map(|_| Cell::new(NOTHING)).collect(),
            count: Cell::new(0),
            hash: Cell::new(TraceHash::new(seed)),
            in_guest: Cell::new(false),
        }
    }

    /// Tells `observer` what happens, from now on.
    ///
    /// # Safety
    /// Until `self` is dropped or [`Telling::end`] is called, `observer` must stay alive and no other code may
    /// use it.
    pub(crate) unsafe fn begin(&self, observer: &mut dyn Observer) {
        self.interest.set(observer.interest());
        let observer: *mut (dyn Observer + '_) = observer;
        // SAFETY: only the lifetime changes; the caller promises that `observer` lives long enough.
        let observer: *mut (dyn Observer + 'static) = unsafe { std::mem::transmute(observer) };
        self.observer.set(Some(observer));
    }

    /// Tells the observer the remaining moments, and nothing after that.
    pub(crate) fn end(&self) {
        self.flush();
        self.interest.set(Interest::NOTHING);
        self.observer.set(None);
    }

    /// Whether the observer wants to know of scheduling. If not, callers can skip the work that only such a
    /// moment needs.
    pub(crate) fn of_scheduling(&self) -> bool {
        self.interest.get().meets(Interest::SCHEDULING)
    }

    /// Records that guest code begins or ends to run.
    #[inline(always)]
    pub(crate) fn in_guest(&self, in_guest: bool) {
        self.in_guest.set(in_guest);
    }

    /// The trace hash so far; 0 if the observer does not want it.
    pub(crate) fn hash(&self) -> u64 {
        if self.interest.get().meets(Interest::HASH) { self.hash.get().value() } else { 0 }
    }

    #[inline(always)]
    pub(crate) fn tell(&self, at: Picos, moment: Moment, yielder: &Cell<*const TaskYielder>) {
        // Known at compile time where this is inlined, like the kind of moment.
        let concerns = moment.concerns();
        let interest = self.interest.get();
        if !interest.meets(concerns) {
            return;
        }
        if concerns.meets(Interest::HASH) && interest.meets(Interest::HASH) {
            let mut hash = self.hash.get();
            hash.record(at, &moment);
            self.hash.set(hash);
            if !interest.meets(concerns.without(Interest::HASH)) {
                return;
            }
        }
        self.keep(Timed { at, moment }, yielder);
    }

    /// Keeps a moment in the buffer. This is inlined where the moment happens, so that its parts are written
    /// to the buffer one by one. A call would write them to the stack and read them from there as a whole; the
    /// processor would wait until all of them have left its store buffer. Measured, that wait was a tenth of
    /// the time of a contended lock operation.
    #[inline(always)]
    fn keep(&self, timed: Timed, yielder: &Cell<*const TaskYielder>) {
        let count = self.count.get();
        self.kept[count].set(timed);
        self.count.set(count + 1);
        if count + 1 == KEPT {
            self.full(yielder);
        }
    }

    #[cold]
    #[inline(never)]
    fn full(&self, yielder: &Cell<*const TaskYielder>) {
        self.on_callers_stack(yielder, || self.flush());
    }

    /// Calls `what`, which is not the simulator's own code, on the stack of the thread that called `run`.
    pub(crate) fn on_callers_stack(&self, yielder: &Cell<*const TaskYielder>, what: impl FnOnce()) {
        if !self.in_guest.get() {
            return what();
        }
        let what = SameThread(what);
        // SAFETY: guest code runs, and the pointer was set to its coroutine's yielder when that was resumed.
        let yielder = unsafe { &*yielder.get() };
        yielder.on_parent_stack(move || what.call());
    }

    /// Tells the observer the moments in the buffer. Must not be called on a coroutine's stack.
    pub(crate) fn flush(&self) {
        let count = self.count.replace(0);
        let Some(observer) = self.observer.get().filter(|_| count > 0) else { return };
        let kept: &[Cell<Timed>] = &self.kept[..count];
        // SAFETY: a `Cell<T>` has the layout of `T`. No code writes the buffer while the observer reads it:
        // the engine waits for the observer, which cannot call back into the engine. The caller of `begin`
        // promised that no other code uses the observer.
        unsafe {
            let moments = std::slice::from_raw_parts(kept.as_ptr().cast::<Timed>(), count);
            (*observer).observe(moments);
        }
    }
}
