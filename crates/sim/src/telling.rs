//! What happens, on its way to the observer.
//!
//! Moments are kept in a buffer and told many at a time: to keep one costs some nanoseconds where it
//! happens, and the observer's code and data come into the processor's cache once for hundreds of them.
//!
//! Most moments happen in guest code, on the 64 KiB stack of a coroutine, which must not limit what an
//! observer may do. So the observer always runs on the stack of the thread that called `run`.

use crate::engine::TaskYielder;
use overspin_host::{Interest, Moment, Observer, Timed, TraceHash};
use overspin_scenario::Picos;
use std::cell::Cell;

/// Moments that are kept: 16 KiB of them, half of a first-level cache.
const KEPT: usize = 512;

const NOTHING: Timed = Timed { at: Picos::ZERO, moment: Moment::Change { event: 0 } };

/// The observer of a run, and the moments that it has not been told yet.
pub(crate) struct Telling {
    interest: Cell<Interest>,
    /// Raw, because the caller's observer outlives the engine but not `'static`.
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

/// Moves a closure over to the stack below the coroutine's, which is one of the same thread.
struct SameThread<F>(F);

// SAFETY: only `on_callers_stack` makes one, for `Yielder::on_parent_stack`, which runs it on another stack of
// this thread. The bound is there to keep a yielder from getting to that stack; none is in it.
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

    /// From now on `observer` is told what happens.
    ///
    /// # Safety
    /// It must not be used by anybody else, nor end, before this does or [`Telling::end`] is called.
    pub(crate) unsafe fn begin(&self, observer: &mut dyn Observer) {
        self.interest.set(observer.interest());
        let observer: *mut (dyn Observer + '_) = observer;
        // SAFETY: only the lifetime changes; the caller promises that it lasts.
        let observer: *mut (dyn Observer + 'static) = unsafe { std::mem::transmute(observer) };
        self.observer.set(Some(observer));
    }

    /// Tells what is left; nothing is told after it.
    pub(crate) fn end(&self) {
        self.flush();
        self.interest.set(Interest::NOTHING);
        self.observer.set(None);
    }

    /// Whether anybody is told of scheduling: what it takes to know more of it need not be done otherwise.
    pub(crate) fn of_scheduling(&self) -> bool {
        self.interest.get().meets(Interest::SCHEDULING)
    }

    /// Guest code begins or ends to run.
    #[inline(always)]
    pub(crate) fn in_guest(&self, in_guest: bool) {
        self.in_guest.set(in_guest);
    }

    /// The trace hash so far, 0 if nobody wants it.
    pub(crate) fn hash(&self) -> u64 {
        if self.interest.get().meets(Interest::HASH) { self.hash.get().value() } else { 0 }
    }

    #[inline(always)]
    pub(crate) fn tell(&self, at: Picos, moment: Moment, yielder: &Cell<*const TaskYielder>) {
        // Known where this is inlined, as the kind of moment is.
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

    /// Where the moment happens, so that its parts are written where they belong, one by one. A call would have
    /// them written to the stack and read from there as a whole, for which the processor has to wait until all
    /// of them have left its store buffer: a tenth of the time of a contended lock operation.
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

    /// Does `what`, which is not the simulator's own code, on the stack of the thread that called `run`.
    pub(crate) fn on_callers_stack(&self, yielder: &Cell<*const TaskYielder>, what: impl FnOnce()) {
        if !self.in_guest.get() {
            return what();
        }
        let what = SameThread(what);
        // SAFETY: guest code runs, and the yielder of its coroutine was set when it was resumed.
        let yielder = unsafe { &*yielder.get() };
        yielder.on_parent_stack(move || what.call());
    }

    /// Tells the observer what is kept. Not from guest code.
    pub(crate) fn flush(&self) {
        let count = self.count.replace(0);
        let Some(observer) = self.observer.get().filter(|_| count > 0) else { return };
        let kept: &[Cell<Timed>] = &self.kept[..count];
        // SAFETY: a `Cell<T>` has the layout of `T`, and nobody writes the buffer while the observer
        // reads it: the engine waits for it, and it cannot call back into the engine. `begin` has the
        // observer for us alone.
        unsafe {
            let moments = std::slice::from_raw_parts(kept.as_ptr().cast::<Timed>(), count);
            (*observer).observe(moments);
        }
    }
}
