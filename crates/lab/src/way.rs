//! How runs are made: in which world, and when one stops before its end: after so much real time, or when a
//! signal has come.

use crate::catalog::{AnyWorld, catalog};
use overspin_host::{Observer, Refused};
use overspin_scenario::{Ending, Outcome, Picos, Scenario, Stopped};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Until when to go on; by default to the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until {
    /// The moment after which no run goes on.
    pub deadline: Option<Instant>,
    /// Set by whoever wants all runs to stop.
    pub interrupted: Option<&'static AtomicBool>,
}

impl Until {
    /// Why to stop now, if there is a reason.
    #[must_use]
    pub fn over(&self) -> Option<Stopped> {
        // A flag by itself: no other memory depends on it.
        if self.interrupted.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            Some(Stopped::Interrupted)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Stopped::MaxWall)
        } else {
            None
        }
    }
}

/// Where runs take place, and until when.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Where.
    pub world: AnyWorld,
    /// Until when.
    pub until: Until,
}

impl Default for Way {
    /// In the simulator, to the end.
    fn default() -> Self {
        Self { world: catalog().simulator(), until: Until::default() }
    }
}

impl Way {
    /// Runs a scenario this way; tells `progress` the world's time now and then. A run that would only
    /// begin when it is to stop is one of no time at all.
    ///
    /// # Errors
    /// If the world refuses the scenario.
    pub fn run(
        self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        progress: &dyn Fn(Picos),
    ) -> Result<Outcome, Refused> {
        if let Some(by) = self.until.over() {
            let nothing = Scenario { limit: Picos::ZERO, ..scenario.clone() };
            let outcome = overspin_host::run(self.world, &nothing, seed, &mut (), &())?;
            return Ok(Outcome { ending: Ending::Stopped { by }, ..outcome });
        }
        let cancel = |at| {
            progress(at);
            self.until.over()
        };
        overspin_host::run(self.world, scenario, seed, observer, &cancel)
    }
}
