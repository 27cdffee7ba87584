//! Worlds: things that run scenarios, such as the simulator, threads and micro-hypervisors.

use crate::attribution::Attribution;
use crate::moment::{Interest, Moment, Observer, Timed};
use crate::sense::Sensible;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use overspin_scenario::{Outcome, Picos, Scenario, Stopped, Unhonoured};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The lock does not exist.
    #[error("domain `{domain}`: no lock is called `{lock}`; locks are: {known}")]
    UnknownLock {
        /// Name of the domain.
        domain: String,
        /// The requested lock.
        lock: String,
        /// The names of all locks.
        known: String,
    },
    /// An event of the scenario cannot be carried out.
    #[error("event {index}: {cause}")]
    Event {
        /// Its index in the scenario.
        index: usize,
        /// The cause.
        cause: String,
    },
    /// This machine lacks what the world needs to run the scenario.
    #[error("{cause}")]
    Machine {
        /// What is missing.
        cause: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// Any other request of the scenario that cannot be met.
    #[error("{0}")]
    Invalid(String),
}

/// Decides whether a run stops before its end. A world asks at least every 100 ms of real time.
pub trait Cancel {
    /// Returns the reason to stop, if the run should stop. `now` is the progress of the run in the world's
    /// time.
    fn asked(&self, now: Picos) -> Option<Stopped>;
}

/// Never stops the run.
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
    /// Its name on the command line and in records.
    fn name(&self) -> &'static str;

    /// Whether equal scenarios and seeds give equal outcomes, bit for bit.
    ///
    /// The runs of any other world are measurements of this machine. They are made one at a time, because
    /// they would disturb each other, and no run can be repeated to look at it again.
    fn is_deterministic(&self) -> bool {
        false
    }

    /// Checks whether it can run `scenario`. Returns the keys that it cannot honour and would ignore.
    ///
    /// # Errors
    /// If the scenario asks for what does not exist or cannot be.
    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused>;

    /// Runs a scenario to its end or its limit, or until it is cancelled.
    ///
    /// The outcome lacks what only observers know, and has 0 or empty values there: the causes of waits,
    /// and, if no observer has [`Interest::HASH`], the trace hash. [`run`] provides both.
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

/// The observer of [`run`]: attribution, and an interest in the hash.
#[derive(Debug)]
struct Complete<'a> {
    scenario: &'a Scenario,
    /// Created with the first moments: by then the world has accepted the scenario.
    attribution: Option<Attribution>,
    /// Whether the world tells where vCPUs run.
    scheduling: bool,
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
        self.scheduling |= moments.iter().any(|m| matches!(m.moment, Moment::Switch { .. }));
        self.attribution().observe(moments);
    }
}

/// Runs a scenario in `world` and returns a complete outcome; `observer` also receives the moments. In a
/// deterministic world, equal arguments give equal outcomes, bit for bit. Any other world may tell what cannot be, which no
/// observer receives.
///
/// # Errors
/// The errors of [`World::run`].
pub fn run(
    world: &dyn World,
    scenario: &Scenario,
    seed: u64,
    observer: &mut dyn Observer,
    cancel: &dyn Cancel,
) -> Result<Outcome, Refused> {
    scenario.agrees().map_err(|fault| Refused::Invalid(fault.to_string()))?;
    let mut observers = (Complete { scenario, attribution: None, scheduling: false }, observer);
    let mut outcome = if world.is_deterministic() {
        world.run(scenario, seed, &mut observers, cancel)
    } else {
        world.run(scenario, seed, &mut Sensible::new(&mut observers), cancel)
    }?;
    // Causes are what absent vCPUs did. A real machine does not always tell who is absent.
    if outcome.measurement.is_none() || observers.0.scheduling {
        observers.0.attribution().complete(&mut outcome);
    }
    Ok(outcome)
}
