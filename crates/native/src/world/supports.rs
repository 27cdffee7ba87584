//! What this world can run, and the keys that it ignores.

use overspin_host::{Ignored, Refused, Unhonoured};
use overspin_scenario::{CAPPED_VCPUS, Domain, Scenario, Value, Workload};
use overspin_workload::{Loads, LockLoop, Mode};

use super::control_group::{ControlGroup, Share};
use super::kernel::{LAST_NICE, own_nice, steps};
use super::{ThreadsWorld, weights};
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
        if let Some(why) = domain.kernel.only_simulated() {
            return Err(invalid(why.into()));
        }
        if let Some(needs) = loads.only_simulated() {
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

/// The keys that have no effect here.
pub(super) const IGNORED: [Ignored; 14] = [
    Ignored::always("host.scheduler", "the kernel of this machine schedules"),
    Ignored::MACHINE,
    Ignored::THREADS,
    Ignored::NOISE,
    Ignored::GOVERNOR,
    Ignored::new(
        "host.pause_loop_exiting",
        |s| s.host.pause_loop_exiting.is_some(),
        "threads do not exit",
    ),
    Ignored::new(
        "domain.type",
        |s| any(s, |d| d.guest_type.is_some()),
        "no hypervisor runs these threads",
    ),
    Ignored::halt_polling("threads sleep by futex"),
    Ignored::new(
        "host.preemption_notification",
        |s| s.host.preemption_notification.is_some(),
        "the kernel does not ask",
    ),
    Ignored::new("event", |s| !s.events.is_empty(), "nobody administers threads"),
    // One of them has an effect here.
    Ignored::new(
        "domain.params",
        |s| any(s, |d| d.params.keys().any(|key| key != CAPPED_VCPUS)),
        "they are another scheduler's",
    ),
    Ignored::always("domain.kernel", "tasks are threads of this machine's kernel"),
    Ignored::new(
        "domain.workload.mode",
        |s| any(s, |d| d.workload.0.iter().any(|w| is_preempted(w, d.vcpus))),
        "the kernel preempts threads that hold or want a lock, as in a program (`mode = \"user\"`)",
    ),
    Ignored::new(
        "domain.workload.irqs_off",
        |s| {
            any(s, |d| {
                let all = d.workload.0.iter().flat_map(|w| &w.parameters);
                all.into_iter().any(|(key, value)| turns_irqs_off(key, value))
            })
        },
        "threads have no interrupts to switch off",
    ),
];

/// The caps, if this system gives a domain no quota, with the reason.
#[must_use]
pub fn refused_caps(scenario: &Scenario) -> Option<Unhonoured> {
    let capped = scenario.domains.iter().find(|d| d.cap > 0)?;
    let why = ControlGroup::new(Share { cap: capped.cap, weight: None }).err()?;
    let reason = format!("the kernel gives no quota to a control group of ours ({why})");
    Some(Unhonoured { key: "domain.cap".into(), reason })
}

/// The weights of domains that are weighed against each other, if there are too few nice values for them beyond that of the
/// calling thread, with the reason.
#[must_use]
pub fn narrowed_weights(domains: &[Domain]) -> Option<Unhonoured> {
    let (lightest, heaviest) = (weights(domains).min()?, weights(domains).max()?);
    let (own, steps) = (own_nice(), steps(lightest, heaviest));
    if own + steps <= LAST_NICE {
        return None;
    }
    let most = 1.25_f64.powi(LAST_NICE - own);
    let mut reason = format!(
        "weights are nice values, and from this process's, {own}, to the last, {LAST_NICE}, they reach a ratio of \
         {most:.1}; {heaviest} to {lightest} is more"
    );
    if own > 0 && steps <= LAST_NICE {
        reason += &format!(": start it with a nice value of {} or less", LAST_NICE - steps);
    }
    Some(Unhonoured { key: "domain.weight".into(), reason })
}

fn any(scenario: &Scenario, of: fn(&Domain) -> bool) -> bool {
    scenario.domains.iter().any(of)
}

/// Whether a workload has locks of a kernel and more threads than vCPUs.
fn is_preempted(workload: &Workload, vcpus: u32) -> bool {
    let loops = workload.get::<LockLoop>();
    loops.is_some_and(|w| w.mode == Mode::Kernel && w.threads > vcpus)
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
