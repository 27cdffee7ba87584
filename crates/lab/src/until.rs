//! When to stop a run before its end: after so much real time, or when a signal has come.

use crate::catalog::catalog;
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

    /// Runs a scenario until then; tells `progress` the simulated time now and then. A run that would only
    /// begin afterwards is one of no time at all.
    ///
    /// # Errors
    /// If the simulator refuses the scenario.
    pub fn simulate(
        self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        progress: &dyn Fn(Picos),
    ) -> Result<Outcome, Refused> {
        let world = catalog().simulator();
        if let Some(by) = self.over() {
            let nothing = Scenario { limit: 0, ..scenario.clone() };
            let outcome = overspin_host::run(world, &nothing, seed, &mut (), &())?;
            return Ok(Outcome { ending: Ending::Stopped { by }, ..outcome });
        }
        let cancel = |at| {
            progress(at);
            self.over()
        };
        overspin_host::run(world, scenario, seed, observer, &cancel)
    }
}
