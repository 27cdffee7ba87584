//! What counts: the end of the warm-up, and the curve of the work done.

use crate::engine::Engine;
use crate::events::Event;
use crate::guest::Guest;
use crate::main_loop::Stop;
use crate::outcome;
use overspin_host::{Curve, Moment};
use overspin_scenario::{Outcome, Picos};
use std::cell::RefCell;

/// The state of counting.
pub(crate) struct Counting {
    curve: RefCell<Curve>,
    /// The outcome at the end of the warm-up, once that is over.
    before: RefCell<Option<Outcome>>,
}

impl Counting {
    pub(crate) fn new(domains: usize) -> Self {
        Self { curve: RefCell::new(Curve::new(domains)), before: RefCell::new(None) }
    }
}

impl Engine {
    /// Arms the first look at the curve, and the end of the warm-up; `endless`: no work of this run has an end.
    pub(crate) fn start_counting(&self, endless: bool) {
        let warmup = self.scenario.warmup(endless);
        if warmup > Picos::ZERO {
            self.push(warmup, Event::Counts);
        }
        self.push(self.counting.curve.borrow().due(), Event::Look);
    }

    /// Takes the items of all domains, and arms the next look.
    pub(crate) fn look(&self) {
        let mut curve = self.counting.curve.borrow_mut();
        let guests = self.guests.get().expect("the run has begun").iter();
        let items = |g: &Guest| g.tasks.borrow().iter().map(|task| task.items.get()).sum();
        curve.look(self.now(), guests.filter(|g| !g.is_noise).map(items).collect());
        self.push(curve.due(), Event::Look);
    }

    /// The warm-up is over.
    pub(crate) fn count_from_here(&self) {
        for guest in self.guests.get().expect("the run has begun") {
            guest.count_from_here();
        }
        self.tell(Moment::Counts);
        *self.counting.before.borrow_mut() = Some(outcome::outcome(self, Stop::Limit));
    }

    /// The outcome of what counts, without the parts that only observers know (see `overspin_host::run`).
    pub(crate) fn outcome(&self, stop: Stop) -> Outcome {
        let mut outcome = outcome::outcome(self, stop);
        if let Some(before) = self.counting.before.borrow().as_ref() {
            outcome = outcome.since(before);
        }
        self.counting.curve.replace(Curve::new(0)).complete(&mut outcome);
        outcome
    }
}
