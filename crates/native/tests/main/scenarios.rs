//! Scenarios for the tests of worlds on this machine.

use overspin_scenario::{Domain, Host, Parameters, Picos, Scenario, Workload, Workloads};
use overspin_workload::{Kinds, LockLoop};

/// A workload with its defaults, and these keys.
pub fn work<P: Parameters>(keys: &str) -> Workload {
    let info = *Kinds::builtin().find(P::KIND).unwrap();
    let mut tree = info.keys.defaults();
    tree.extend(serde_json::from_str::<overspin_scenario::Tree>(keys).unwrap());
    info.lower(tree).unwrap()
}

pub fn domain(name: &str, vcpus: u32, lock: &str, workload: Workload) -> Domain {
    Domain::new(name, vcpus, lock, Workloads(vec![workload]))
}

/// All of it counts.
pub fn scenario(cores: u32, limit: Picos, domains: Vec<Domain>) -> Scenario {
    let host = Host { cores, ..Host::default() }.undisturbed();
    Scenario { warmup: Some(Picos::ZERO), ..Scenario::new("test", host, domains, limit) }
}

pub fn contended() -> Workload {
    work::<LockLoop>(r#"{"section": 2000000, "outside": 10000000, "irqs_off": false}"#)
}
