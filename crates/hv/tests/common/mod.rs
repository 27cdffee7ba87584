//! Scenarios for tests, and the reason to skip.
#![allow(dead_code, reason = "each test file uses some of these")]

use overspin_host::Refused;
use overspin_hv::Hv;
use overspin_scenario::{
    Domain, Host, Kernel, Outcome, Parameters, Picos, Scenario, Settings, Workloads,
};
use overspin_workload::Kinds;

/// A scenario of `limit` on `pcpus` pCPUs under `scheduler`.
pub fn scenario(pcpus: u32, scheduler: &str, limit: Picos, domains: Vec<Domain>) -> Scenario {
    Scenario {
        name: "test".into(),
        description: String::new(),
        host: Host {
            cores: pcpus,
            scheduler: scheduler.into(),
            stagger: Picos::ZERO,
            ..Host::default()
        },
        domains,
        events: Vec::new(),
        limit,
        to_the_limit: false,
        seed: 1,
    }
}

/// A domain with this workload.
pub fn domain<P: Parameters>(name: &str, vcpus: u32, lock: &str, workload: P) -> Domain {
    Domain {
        name: name.into(),
        vcpus,
        weight: 256,
        cap: 0,
        params: Settings::new(),
        pool: 0,
        affinity: Vec::new(),
        lock: lock.into(),
        spin_budget: None,
        nopvspin: false,
        kernel: Kernel::default(),
        workload: Workloads::from(workload),
    }
}

/// Parameters with these keys; the others have their defaults. Times are in picoseconds.
pub fn with<P: Parameters>(keys: &str) -> P {
    let mut tree = Kinds::builtin().find(P::KIND).unwrap().keys.defaults();
    let given: serde_json::Value = serde_json::from_str(keys).unwrap();
    tree.extend(given.as_object().unwrap().clone());
    serde_json::from_value(tree.into()).unwrap()
}

/// The outcome, or the reason why this machine cannot have one.
pub fn run(hv: &Hv, scenario: &Scenario) -> Option<Outcome> {
    match overspin_host::run(hv, scenario, scenario.seed, &mut (), &()) {
        Ok(outcome) => Some(outcome),
        Err(Refused::Machine { cause, .. }) => {
            println!("skipped: {cause}");
            None
        }
        Err(refused) => panic!("{refused}"),
    }
}
