//! Scenarios for tests, and the reason to skip.

use overspin_host::Refused;
use overspin_hv::Hv;
use overspin_scenario::{Domain, Host, Outcome, Parameters, Picos, Scenario, Workloads};
use overspin_workload::Kinds;
use std::sync::{Mutex, PoisonError};

/// A scenario of `limit` on `pcpus` pCPUs under `scheduler`, all of which counts.
pub fn scenario(pcpus: u32, scheduler: &str, limit: Picos, domains: Vec<Domain>) -> Scenario {
    let host =
        Host { cores: pcpus, scheduler: scheduler.into(), stagger: Picos::ZERO, ..Host::default() };
    Scenario { warmup: Some(Picos::ZERO), ..Scenario::new("test", host, domains, limit) }
}

/// A domain with this workload.
pub fn domain<P: Parameters>(name: &str, vcpus: u32, lock: &str, workload: P) -> Domain {
    Domain::new(name, vcpus, lock, Workloads::from(workload))
}

/// Parameters with these keys; the others have their defaults. Times are in picoseconds.
pub fn with<P: Parameters>(keys: &str) -> P {
    let mut tree = Kinds::builtin().find(P::KIND).unwrap().keys.defaults();
    let given: serde_json::Value = serde_json::from_str(keys).unwrap();
    tree.extend(given.as_object().unwrap().clone());
    serde_json::from_value(tree.into()).unwrap()
}

/// The outcome, or the reason why this machine cannot have one. Runs of one process come one after another, because they
/// use the same CPUs.
pub fn run(hv: &Hv, scenario: &Scenario) -> Option<Outcome> {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match overspin_host::run(hv, scenario, scenario.seed, &mut (), &()) {
        Ok(outcome) => Some(outcome),
        Err(Refused::Machine { cause, .. }) => {
            overspin_testing::skip(&cause.to_string());
            None
        }
        Err(refused) => panic!("{refused}"),
    }
}
