//! When to stop a run before its end: after so much real time, or when a signal has come.

use overspin_scenario::{Ending, Outcome, Picos, Scenario, Stopped, TraceSink};
use overspin_sim::{Options, SimError};
use std::ops::ControlFlow;
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
        trace: Option<&mut dyn TraceSink>,
        progress: &mut dyn FnMut(Picos),
    ) -> Result<Outcome, SimError> {
        if let Some(by) = self.over() {
            let nothing = Scenario { limit: 0, ..scenario.clone() };
            let outcome = overspin_sim::run(&nothing, seed, Options::default())?;
            return Ok(Outcome { ending: Ending::Stopped { by }, ..outcome });
        }
        let mut tell = |at| {
            progress(at);
            self.over().map_or(ControlFlow::Continue(()), ControlFlow::Break)
        };
        // A coercion, to the shorter lifetime of `tell`.
        let trace = trace.map(|sink| sink as &mut dyn TraceSink);
        overspin_sim::run(scenario, seed, Options { trace, progress: Some(&mut tell) })
    }
}
