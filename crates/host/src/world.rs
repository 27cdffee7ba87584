//! A world: something that runs scenarios. The simulator is one; threads and micro-hypervisors are others.

use crate::attribution::Attribution;
use crate::moment::{Interest, Observer, Timed};
use alloc::string::String;
use alloc::vec::Vec;
use overspin_scenario::{Outcome, Picos, Scenario, Stopped};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The lock does not exist.
    #[error("domain `{domain}`: no lock is called `{lock}`; locks are: {known}")]
    UnknownLock {
        /// Domain.
        domain: String,
        /// Asked for.
        lock: String,
        /// What there is.
        known: String,
    },
    /// An event of the scenario is not possible.
    #[error("event {index}: {cause}")]
    Event {
        /// Its index in the scenario.
        index: usize,
        /// Why.
        cause: String,
    },
    /// Anything else that a scenario asks for and cannot have.
    #[error("{0}")]
    Invalid(String),
}

/// A key of a scenario that a world cannot honour, and runs without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhonoured {
    /// The key, as scenario files write it.
    pub key: String,
    /// Why not.
    pub reason: String,
}

/// Whether a run is to stop before its end. A world asks at least every 100 ms of real time.
pub trait Cancel {
    /// What stops the run, if it is to stop; `now` is how far the run has come, in the world's time.
    fn asked(&self, now: Picos) -> Option<Stopped>;
}

/// Never: the run goes to its end.
impl Cancel for () {
    fn asked(&self, _: Picos) -> Option<Stopped> {
        None
    }
}

impl<F: Fn(Picos) -> Option<Stopped>> Cancel for F {
    fn asked(&self, now: Picos) -> Option<Stopped> {
        self(now)
    }
}

/// Something that runs scenarios.
pub trait World: core::fmt::Debug {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Whether it can run `scenario`: the keys that it cannot honour, if what is left can be run.
    ///
    /// # Errors
    /// If the scenario asks for what does not exist or cannot be.
    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused>;

    /// Runs a scenario to its end or its limit, or until it is cancelled.
    ///
    /// What only observers know is missing in the outcome, and 0 or empty there: what waits were spent on,
    /// and, if nobody has [`Interest::HASH`], the trace hash. [`run`] has both.
    ///
    /// # Errors
    /// If the scenario asks for what does not exist or cannot be.
    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused>;
}

/// What [`run`] listens with: attribution, and a wish for the hash.
#[derive(Debug)]
struct Complete<'a> {
    scenario: &'a Scenario,
    /// Made with the first moments: by then the world has found that the scenario is not absurd.
    attribution: Option<Attribution>,
}

impl Complete<'_> {
    fn attribution(&mut self) -> &mut Attribution {
        self.attribution.get_or_insert_with(|| Attribution::new(self.scenario))
    }
}

impl Observer for Complete<'_> {
    fn interest(&self) -> Interest {
        Attribution::INTEREST.and(Interest::HASH)
    }

    fn observe(&mut self, moments: &[Timed]) {
        self.attribution().observe(moments);
    }
}

/// Runs a scenario in `world`, with all that an outcome tells; `observer` is told the moments, too. Equal
/// arguments give equal outcomes, bit for bit, in a world that is deterministic.
///
/// # Errors
/// As [`World::run`].
pub fn run(
    world: &dyn World,
    scenario: &Scenario,
    seed: u64,
    observer: &mut dyn Observer,
    cancel: &dyn Cancel,
) -> Result<Outcome, Refused> {
    let mut observers = (Complete { scenario, attribution: None }, observer);
    let mut outcome = world.run(scenario, seed, &mut observers, cancel)?;
    observers.0.attribution().complete(&mut outcome);
    Ok(outcome)
}
