//! How to make runs: the world, and when to stop early, after some real time or at a signal.

use crate::catalog::{AnyWorld, catalog};
use crate::load;
use overspin_host::{Observer, Refused};
use overspin_record::InWorld;
use overspin_scenario::{
    Disturbance, Ending, Measurement, Outcome, Picos, Scenario, Stopped, Unhonoured,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How often a measured run is made at most, if others disturb it.
pub const TRIES: u32 = 3;

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
            let nothing = Scenario { limit: Picos::ZERO, warmup: None, ..scenario.clone() };
            let outcome = overspin_host::run(self.world, &nothing, seed, &mut (), &())?;
            return Ok(Outcome { ending: Ending::Stopped { by }, ..outcome });
        }
        let cancel = |at| {
            progress(at);
            self.until.over()
        };
        let mut make = || overspin_host::run(self.world, scenario, seed, observer, &cancel);
        if self.world.is_deterministic() { make() } else { load::watched(scenario, make) }
    }

    /// As [`run`](Self::run), for figures that nobody watches while they come: a measured run that others disturbed, or that
    /// cannot be right, is made again, at most [`TRIES`] times in all. The best of them counts.
    ///
    /// # Errors
    /// If the world refuses the scenario.
    pub fn run_quietly(self, scenario: &Scenario, seed: u64) -> Result<Outcome, Refused> {
        /// The less, the better.
        fn doubt(outcome: &Outcome) -> (bool, bool, f64) {
            let of = outcome.measurement.as_ref();
            let others = of.and_then(|m| m.disturbance).map_or(0.0, Disturbance::sum);
            (!outcome.ending.is_sound(), of.is_some_and(|m| m.impossible.is_some()), others)
        }
        let mut best = self.run(scenario, seed, &mut (), &|_| {})?;
        for _ in 1..TRIES {
            let is_disturbed = best.measurement.as_ref().is_some_and(Measurement::is_disturbed);
            if !is_disturbed || self.until.over().is_some() {
                break;
            }
            let again = self.run(scenario, seed, &mut (), &|_| {})?;
            if doubt(&again) < doubt(&best) {
                best = again;
            }
        }
        Ok(best)
    }
}
