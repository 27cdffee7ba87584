//! What worlds ignore of scenarios: a row for each key.

use alloc::vec::Vec;
use overspin_scenario::{Scenario, Unhonoured};

/// A key that a world ignores.
#[derive(Clone, Copy, Debug)]
pub struct Ignored {
    key: &'static str,
    given: fn(&Scenario) -> bool,
    reason: &'static str,
}

impl Ignored {
    /// The machine and its costs.
    pub const MACHINE: Self =
        Self::always("host.machine and host.costs", "operations take the time that they take here");
    /// Which CPUs share a core.
    pub const THREADS: Self =
        Self::new("host.threads", |s| s.host.threads > 1, "which CPUs share a core is not chosen");
    /// The host's noise.
    pub const NOISE: Self =
        Self::new("host.noise", |s| s.host.noise.is_some(), "this machine has its own noise");
    /// The governor of idle CPUs.
    pub const GOVERNOR: Self =
        Self::new("host.governor", |s| s.host.governor.is_some(), "this machine has its own");

    /// A key that is ignored, for this reason, where a scenario gives it.
    #[must_use]
    pub const fn new(
        key: &'static str,
        given: fn(&Scenario) -> bool,
        reason: &'static str,
    ) -> Self {
        Self { key, given, reason }
    }

    /// A key that each scenario has, if only by its default.
    #[must_use]
    pub const fn always(key: &'static str, reason: &'static str) -> Self {
        Self::new(key, |_| true, reason)
    }

    /// Halt polling.
    #[must_use]
    pub const fn halt_polling(reason: &'static str) -> Self {
        Self::new("host.halt_polling", |s| s.host.halt_polling.is_some(), reason)
    }

    /// Those of a world's keys that `scenario` gives.
    #[must_use]
    pub fn of(all: &[Self], scenario: &Scenario) -> Vec<Unhonoured> {
        let given = all.iter().filter(|ignored| (ignored.given)(scenario));
        given.map(|i| Unhonoured { key: i.key.into(), reason: i.reason.into() }).collect()
    }
}
