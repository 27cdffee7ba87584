//! What this world can run, and the keys that it ignores.

use overspin_host::{Refused, Unhonoured};
use overspin_scenario::{Domain, Scenario, Value};
use overspin_workload::Loads;

use super::ThreadsWorld;
use crate::MAX_THREADS;

/// Numbers of threads that are left to the rest of the process.
const SPARE: u64 = 16;

/// The loads of all domains.
///
/// # Errors
/// If a domain asks for what threads cannot do.
pub(super) fn check(scenario: &Scenario, world: &ThreadsWorld) -> Result<Vec<Loads>, Refused> {
    let mut all = Vec::new();
    let mut tasks = 0;
    if scenario.domains.is_empty() {
        return Err(Refused::Invalid("there is no domain".into()));
    }
    for domain in &scenario.domains {
        let invalid = |what: String| Refused::Invalid(format!("domain `{}`: {what}", domain.name));
        let known = world.lock(&domain.lock).ok_or_else(|| Refused::UnknownLock {
            domain: domain.name.clone(),
            lock: domain.lock.clone(),
            known: world.lock_names(),
        })?;
        let loads = Loads::of(domain, &world.workloads).map_err(|e| invalid(e.to_string()))?;
        let needs = match () {
            () if loads.ticks().next().is_some() => "waits for ticks of a kernel or a hypervisor",
            () if loads.has_devices() => "is interrupted by a device",
            () if loads.disk().is_some() => "writes to a disk of its own kernel",
            () => "",
        };
        if !needs.is_empty() {
            let kinds: Vec<&str> = domain.workload.0.iter().map(|w| w.kind.as_str()).collect();
            let kinds = kinds.join(", ");
            return Err(invalid(format!(
                "the workload ({kinds}) {needs}, which threads cannot have; run it in the world `sim`"
            )));
        }
        tasks += loads.most_tasks(domain.vcpus);
        let most = (MAX_THREADS as u64).min(known.info.max_cpus.into()) - SPARE;
        if tasks > most {
            let lock = known.info.name;
            return Err(invalid(format!(
                "{tasks} tasks are too many: with lock `{lock}` at most {most} threads are possible"
            )));
        }
        all.push(loads);
    }
    Ok(all)
}

/// The keys of `scenario` that have no effect here.
pub(super) fn unhonoured(scenario: &Scenario) -> Vec<Unhonoured> {
    let host = &scenario.host;
    let mut all = Vec::new();
    let mut ignored = |given: bool, key: &str, reason: &str| {
        if given {
            all.push(Unhonoured { key: key.into(), reason: reason.into() });
        }
    };
    ignored(true, "host.scheduler", "the kernel of this machine schedules");
    ignored(true, "host.machine and host.costs", "operations take the time that they take here");
    ignored(host.threads > 1, "host.threads", "which CPUs share a core is not chosen");
    ignored(host.noise.is_some(), "host.noise", "this machine has its own noise");
    ignored(host.governor.is_some(), "host.governor", "this machine has its own");
    ignored(host.pause_loop_exiting.is_some(), "host.pause_loop_exiting", "threads do not exit");
    ignored(host.halt_polling.is_some(), "host.halt_polling", "threads sleep by futex");
    ignored(
        host.preemption_notification.is_some(),
        "host.preemption_notification",
        "the kernel does not ask",
    );
    ignored(!scenario.events.is_empty(), "event", "nobody administers threads");
    let any = |of: fn(&Domain) -> bool| scenario.domains.iter().any(of);
    ignored(any(|d| d.cap > 0), "domain.cap", "it would need a cgroup of its own");
    ignored(any(|d| !d.params.is_empty()), "domain.params", "they are another scheduler's");
    ignored(true, "domain.kernel", "tasks are threads of this machine's kernel");
    let irqs_off = |d: &Domain| {
        d.workload.0.iter().any(|w| w.parameters.iter().any(|(key, v)| turns_irqs_off(key, v)))
    };
    ignored(any(irqs_off), "domain.workload.irqs_off", "threads have no interrupts to switch off");
    all
}

/// Whether a parameter of a workload, or one inside it, switches interrupts off.
fn turns_irqs_off(key: &str, value: &Value) -> bool {
    match value {
        Value::Bool(on) => *on && key == "irqs_off",
        Value::Array(all) => all.iter().any(|v| turns_irqs_off(key, v)),
        Value::Object(tree) => tree.iter().any(|(key, v)| turns_irqs_off(key, v)),
        _ => false,
    }
}
