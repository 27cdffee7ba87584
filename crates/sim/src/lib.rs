//! The simulated world.

use overspin_scenario::{Outcome, Picos, Scenario, TraceSink};

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
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
    /// Anything else that a scenario asks for and cannot have.
    #[error("{0}")]
    Invalid(String),
}

/// What a caller wants besides the outcome.
#[derive(Default)]
pub struct Options<'a> {
    /// Receives scheduling and lock events.
    pub trace: Option<&'a mut dyn TraceSink>,
    /// Called now and then with the simulated time.
    pub progress: Option<&'a mut dyn FnMut(Picos)>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("trace", &self.trace.is_some()).finish_non_exhaustive()
    }
}

/// Runs a scenario to its end or its limit.
///
/// # Errors
/// If the scenario asks for what does not exist or cannot be.
pub fn run(scenario: &Scenario, seed: u64, options: Options<'_>) -> Result<Outcome, SimError> {
    let _ = (scenario, seed, options);
    Err(SimError::Invalid("not built yet".into()))
}
