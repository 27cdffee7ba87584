//! The time of the run: the clock, the pending events, and how far guest code may run ahead.
//!
//! # Run-ahead
//! The *horizon* is the time of the next pending event. Nothing can interfere with an operation that ends
//! before the horizon: the clock moves, and no event is needed. Guest code on a single vCPU may thus run ahead
//! for a second of simulated time, which may be many seconds of real time. So it runs on a leash: the horizon
//! is never farther away than [`LEASH`]. When an operation reaches the leash's end, the engine checks
//! whether the run is to stop (`asking.rs`). The leash does not change the order of events.
//!
//! # Postponed operations
//! A vCPU that yields or exits asks for a scheduling pass at the same instant. The pass will most likely take
//! back the operation that the vCPU begins before it. So an operation that begins while another event is due
//! at the same instant is postponed. It enters the queue when no event is due at that instant any more, unless
//! it was taken back by then. It has the turn that it would have had at once (see `EventQueue::turn`), and no
//! vCPU runs ahead meanwhile. So the order of events is the same.

use crate::events::Event;
use crate::queue::EventQueue;
use overspin_scenario::{MS, Picos};
use std::cell::{Cell, RefCell};

/// Simulated time for which guest code runs ahead before the engine checks whether the run is to stop.
const LEASH: Picos = MS;

/// An operation's event that is not in the queue yet.
#[derive(Debug)]
struct Postponed {
    at: Picos,
    turn: u64,
    event: Event,
}

/// The time of the run. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    now: Cell<Picos>,
    /// Operations that end before this time run ahead.
    horizon: Cell<Picos>,
    /// The horizon is the end of the leash and no event.
    leashed: Cell<bool>,
    /// The turn of the current event among those due at its instant.
    turn: Cell<u64>,
    any_postponed: Cell<bool>,
    processed: Cell<u64>,
    run_ahead: Cell<u64>,
    postponed: RefCell<Vec<Postponed>>,
    pub events: RefCell<EventQueue>,
}

impl Timeline {
    #[inline(always)]
    pub(crate) fn now(&self) -> Picos {
        self.now.get()
    }

    /// The turn of the current event among those due at its instant.
    pub(crate) fn turn(&self) -> u64 {
        self.turn.get()
    }

    /// Number of events that were processed.
    pub(crate) fn processed(&self) -> u64 {
        self.processed.get()
    }

    /// Number of operations that ran ahead.
    pub(crate) fn run_ahead(&self) -> u64 {
        self.run_ahead.get()
    }

    /// Whether an operation that ends at `end` may run ahead.
    #[inline(always)]
    pub(crate) fn is_free_until(&self, end: Picos) -> bool {
        end < self.horizon.get()
    }

    /// Advances the clock to `end`, the end of an operation that runs ahead.
    #[inline(always)]
    pub(crate) fn run_ahead_to(&self, end: Picos) {
        self.now.set(end);
        self.run_ahead.set(self.run_ahead.get() + 1);
    }

    #[inline(always)]
    pub(crate) fn push(&self, at: Picos, event: Event) {
        self.events.borrow_mut().push(at, event);
        self.run_ahead_at_most_to(at);
    }

    /// Takes the turn that `event` would have if it were pushed now, for
    /// [`push_in_turn`](Self::push_in_turn).
    pub(crate) fn take_turn(&self, event: Event) -> u64 {
        self.events.borrow_mut().turn(event)
    }

    pub(crate) fn push_in_turn(&self, at: Picos, turn: u64, event: Event) {
        self.events.borrow_mut().push_in_turn(at, turn, event);
        self.run_ahead_at_most_to(at);
    }

    /// Pushes or postpones the event of an operation, which may be taken back before it comes.
    #[inline(always)]
    pub(crate) fn push_operation(&self, at: Picos, event: Event) {
        if self.now.get() < self.horizon.get() || at == self.now.get() {
            self.push(at, event);
        } else {
            self.postpone(at, event);
        }
    }

    #[inline(never)]
    fn postpone(&self, at: Picos, event: Event) {
        let turn = self.take_turn(event);
        self.postponed.borrow_mut().push(Postponed { at, turn, event });
        self.any_postponed.set(true);
    }

    /// Puts the postponed operations that are still wanted into the queue, if no more events are due now.
    #[inline(always)]
    pub(crate) fn push_postponed(&self, still_wanted: impl Fn(Event) -> bool) {
        if self.any_postponed.get() {
            self.push_all_postponed(still_wanted);
        }
    }

    #[inline(never)]
    fn push_all_postponed(&self, still_wanted: impl Fn(Event) -> bool) {
        let mut events = self.events.borrow_mut();
        if events.next_time() <= self.now.get() {
            return;
        }
        self.any_postponed.set(false);
        for Postponed { at, turn, event } in self.postponed.borrow_mut().drain(..) {
            if still_wanted(event) {
                events.push_in_turn(at, turn, event);
            }
        }
    }

    /// Whether `event`, if pushed to be due now, would come before any other event.
    pub(crate) fn would_be_next(&self, event: Event) -> bool {
        self.events.borrow().would_be_next(self.now.get(), event)
    }

    /// Goes on to the next event; `None` if there is none.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<(Picos, Event)> {
        let mut events = self.events.borrow_mut();
        let (at, turn, event) = events.pop()?;
        debug_assert!(at >= self.now.get(), "time runs forward");
        self.turn.set(turn);
        let next = if self.any_postponed.get() { at } else { events.next_time() };
        self.set_horizon(next, at.saturating_add(LEASH));
        self.now.set(at);
        self.processed.set(self.processed.get() + 1);
        Some((at, event))
    }

    /// Whether an operation that ends at `end` could run ahead if the leash were longer.
    pub(crate) fn is_on_the_leash(&self, end: Picos) -> bool {
        !self.any_postponed.get() && end < self.events.borrow().next_time()
    }

    /// Moves the horizon to one [`LEASH`] after `end`, or to the next event if that is earlier.
    pub(crate) fn lengthen_leash(&self, end: Picos) {
        let next = self.events.borrow().next_time();
        self.set_horizon(next, end.saturating_add(LEASH));
    }

    /// Whether operations could run ahead farther than the horizon.
    #[inline(always)]
    pub(crate) fn is_leashed(&self) -> bool {
        self.leashed.get()
    }

    /// Lets no operation run ahead any more: the main loop looks at what has happened after the current event.
    pub(crate) fn stop_running_ahead(&self) {
        self.set_horizon(self.now.get(), Picos::MAX);
    }

    /// An event is pending at `at`.
    #[inline(always)]
    fn run_ahead_at_most_to(&self, at: Picos) {
        if at < self.horizon.get() {
            self.set_horizon(at, Picos::MAX);
        }
    }

    /// The horizon is the next event or the end of the leash, whichever comes first.
    #[inline(always)]
    fn set_horizon(&self, next: Picos, leash: Picos) {
        self.horizon.set(next.min(leash));
        self.leashed.set(leash < next);
    }
}
