//! How to make runs: the world, and when to stop early, after some real time or at a signal.

use crate::catalog::{AnyWorld, catalog};
use overspin_host::{Observer, Refused};
use overspin_record::InWorld;
use overspin_scenario::{Ending, Outcome, Picos, Scenario, Stopped, Unhonoured};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// When to stop; by default at the end of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Until {
    /// The moment after which no run continues.
    pub deadline: Option<Instant>,
    /// Set by a caller that wants all runs to stop.
    pub interrupted: Option<&'static AtomicBool>,
}

impl Until {
    /// The reason to stop now, if there is one.
    #[must_use]
    pub fn over(&self) -> Option<Stopped> {
        // The flag stands alone: no other memory depends on it.
        if self.interrupted.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            Some(Stopped::Interrupted)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Stopped::MaxWall)
        } else {
            None
        }
    }
}

/// The world of runs, and when to stop them.
#[derive(Clone, Copy, Debug)]
pub struct Runner {
    /// The world.
    pub world: AnyWorld,
    /// When to stop.
    pub until: Until,
}

impl Default for Runner {
    /// In the simulator, to the end.
    fn default() -> Self {
        Self { world: catalog().simulator(), until: Until::default() }
    }
}

impl Runner {
    /// What a record of runs of `scenarios` says about the world. A scenario that the world refuses adds
    /// nothing: its run says why.
    #[must_use]
    pub fn in_world<'a>(&self, scenarios: impl IntoIterator<Item = &'a Scenario>) -> InWorld {
        if self.world.is_deterministic() {
            return InWorld::default();
        }
        let mut unhonoured: Vec<Unhonoured> = Vec::new();
        for scenario in scenarios {
            for key in self.world.supports(scenario).unwrap_or_default() {
                if !unhonoured.iter().any(|known| known.key == key.key) {
                    unhonoured.push(key);
                }
            }
        }
        InWorld { name: Some(self.world.name().into()), unhonoured }
    }

    /// The number of runs to make at a time, if `asked` are wanted (0: one for each CPU). Runs on a real machine
    /// would disturb each other.
    #[must_use]
    pub fn at_a_time(&self, asked: usize) -> usize {
        if self.world.is_deterministic() { asked } else { 1 }
    }

    /// Runs a scenario this way; tells `progress` the world's time now and then. If it is already time to
    /// stop, the run has length zero.
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
