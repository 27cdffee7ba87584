//! Scenarios made here, for guest programs of a few instructions and for fuzzing: no file states them.

use overspin_scenario::{Domain, Host, Picos, Scenario, Workload, Workloads};

/// A workload of this kind with all defaults. Small guest programs do not look at it.
#[cfg(kvm)]
pub(crate) fn workload(kind: &str) -> Workload {
    let kinds = overspin_workload::Kinds::builtin();
    let load = kinds.find(kind).expect("it is a workload of this project");
    load.lower(load.keys.defaults()).expect("its defaults are legal")
}

/// A domain without weights, caps and affinity.
pub(crate) fn guest(name: &str, vcpus: u32, workload: Workload) -> Domain {
    Domain::new(name, vcpus, "ticket", Workloads(vec![workload]))
}

/// A host of these pCPUs on which everything begins, and counts, at once.
pub(crate) fn scenario(pcpus: u32, domains: Vec<Domain>, limit: Picos) -> Scenario {
    let host = Host { cores: pcpus, scheduler: "rr".into(), ..Host::default() }.undisturbed();
    let all = Scenario::new("alone", host, domains, limit);
    Scenario { warmup: Some(Picos::ZERO), ..all }
}
