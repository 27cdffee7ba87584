//! What worlds ignore of scenarios: a row for each key.

use alloc::vec::Vec;
use overspin_scenario::{GuestType, Scenario, Settings, Unhonoured};

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
    /// What a hypervisor does when a vCPU spins.
    pub const PAUSE_LOOPS: Self = Self::new(
        "host.pause_loop_exiting and host.directed_yield",
        |s| s.host.pause_loop_exiting.is_some() || s.host.directed_yield,
        "KVM and the processor decide",
    );
    /// What a directed yield costs, in a world whose host does none.
    pub const DEBOOSTER: Self = Self::new(
        "host.scheduler_params.debooster",
        |s| {
            let given = |params: &Settings| params.contains_key("debooster");
            given(&s.host.params) || s.host.pools.iter().any(|pool| given(&pool.params))
        },
        "no vCPU yields to another one",
    );
    /// Paravirtual guests, where KVM runs them.
    pub const PV: Self = Self::new(
        "domain.type",
        |s| s.domains.iter().any(|d| d.guest_type == Some(GuestType::Pv)),
        "KVM virtualises by hardware: all guests are `hvm`",
    );
    /// Parameters of a domain, where the machine's kernel schedules.
    pub const PARAMS: Self = Self::new(
        "domain.params",
        |s| s.domains.iter().any(|d| !d.params.is_empty()),
        "they are another scheduler's",
    );
    /// Weights of single vCPUs, under a scheduler that has none.
    pub const WEIGHTS: Self = Self::new(
        "domain.weights",
        gives_weights_to_others,
        "its scheduler gives each vCPU of a domain the domain's weight",
    );

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

/// Whether a domain has weights of its vCPUs under a built-in scheduler without such weights.
fn gives_weights_to_others(scenario: &Scenario) -> bool {
    scenario.domains.iter().filter(|d| !d.weights.is_empty()).any(|d| {
        overspin_sched::find(scenario.host.scheduler_of(d)).is_ok_and(|info| !info.vcpu_weights)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use overspin_scenario::{Domain, Host, Picos, Workloads};

    #[test]
    fn weights_of_vcpus_are_for_schedulers_that_have_them() {
        let ignored = |scheduler: &str, weights| {
            let host = Host { scheduler: scheduler.into(), ..Host::default() };
            let domain = Domain { weights, ..Domain::new("d", 2, "ticket", Workloads(vec![])) };
            let scenario = Scenario::new("s", host, vec![domain], Picos::sec(1));
            Ignored::of(&[Ignored::WEIGHTS], &scenario).len()
        };
        assert_eq!(ignored("credit2", vec![256, 84]), 1);
        assert_eq!(ignored("credit2", vec![]), 0);
        assert_eq!(ignored("eevdf-6.18", vec![256, 84]), 0);
    }
}
