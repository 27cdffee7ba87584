//! Checks a scenario before an engine is built from it. A scenario that passes runs without a panic and
//! without standing still. Locks, schedulers and affinities do their own checks elsewhere.

use crate::Simulator;
use overspin_host::Refused;
use overspin_scenario::{Domain, Fault, Host, LONGEST, Picos, Scenario};
use overspin_sched::Schedulers;
use overspin_workload::{Loads, Ticks};

/// The maximum number of tasks at a time, including the idle tasks of vCPUs. Each has a stack of two
/// mappings, and Linux allows a process 65,530 mappings (`vm.max_map_count`).
const MOST_TASKS: u64 = 30_000;

fn bad<T>(what: String) -> Result<T, Refused> {
    Err(Refused::Invalid(what))
}

/// A fault of `whose` values.
fn refused(whose: &str) -> impl Fn(Fault) -> Refused {
    move |fault| Refused::Invalid(format!("{whose}: {fault}"))
}

fn at_most(what: &str, time: Picos) -> Result<(), Refused> {
    if time > LONGEST {
        return bad(format!("{what} is {time}; the maximum is {LONGEST}"));
    }
    Ok(())
}

/// Checks a scenario; `all` is the same scenario with the domains of its host's noise added. Returns the
/// loads that the workloads of all domains place on them.
pub(crate) fn check(
    scenario: &Scenario,
    all: &Scenario,
    simulator: &Simulator,
) -> Result<Vec<Loads>, Refused> {
    // Files refuse a limit of 0, which might be taken for none. Here it is a run of nothing.
    at_most("scenario: limit", scenario.limit)?;
    let host = &scenario.host;
    host.check().map_err(refused("host"))?;
    if scenario.domains.is_empty() {
        return bad("there is no domain".into());
    }
    scenario.events.iter().try_for_each(|e| at_most("an event", e.at))?;
    overspin_host::guest_type::check(scenario, &simulator.schedulers)
        .map_err(|(i, fault)| refused(&format!("domain `{}`", scenario.domains[i].name))(fault))?;
    let loads = all.domains.iter().map(|d| domain(d, host, simulator));
    let loads: Vec<Loads> = loads.collect::<Result<_, _>>()?;
    // The idle task of each vCPU counts too.
    let tasks: Vec<u64> = all
        .domains
        .iter()
        .zip(&loads)
        .map(|(d, loads)| u64::from(d.vcpus) + loads.most_tasks(d.vcpus))
        .collect();
    let own_domains = scenario.domains.len();
    let (own, noise) = tasks.split_at(own_domains);
    let (own, noise) = (own.iter().sum::<u64>(), noise.iter().sum::<u64>());
    if own + noise > MOST_TASKS {
        let of_noise = if own > MOST_TASKS || noise == 0 {
            String::new()
        } else {
            format!(
                "; {noise} of them are the host's noise: put it on fewer pCPUs, or leave it out"
            )
        };
        return bad(format!(
            "there are {} vCPUs and tasks; the maximum is {MOST_TASKS}{of_noise}",
            own + noise
        ));
    }
    // Without events a rehearsal is not needed: the run itself creates pools and domains, and reports errors.
    if !scenario.events.is_empty() {
        overspin_host::admin::rehearse(all, own_domains, &simulator.schedulers)?;
    }
    Ok(loads)
}

/// Checks that the ticks that a workload waits for exist.
fn ticks(
    name: &str,
    of: Ticks,
    d: &Domain,
    host: &Host,
    schedulers: &Schedulers,
) -> Result<(), Refused> {
    if of == Ticks::Guest && d.kernel.hz == 0 {
        return bad(format!(
            "{name}: its workload waits for kernel ticks, but its kernel does not tick: set kernel.hz"
        ));
    }
    let scheduler = host.scheduler_of(d);
    // The code that makes the scheduler reports one that does not exist.
    if of == Ticks::Host && schedulers.find(scheduler).is_ok_and(|s| !s.ticks) {
        let with: Vec<_> = schedulers.iter().filter(|s| s.ticks).map(|s| s.name).collect();
        return bad(format!(
            "{name}: its workload waits for host ticks, but scheduler `{scheduler}` does not tick; these do: {}",
            with.join(", ")
        ));
    }
    Ok(())
}

fn domain(d: &Domain, host: &Host, simulator: &Simulator) -> Result<Loads, Refused> {
    let name = format!("domain `{}`", d.name);
    d.check().map_err(refused(&name))?;
    let loads = Loads::of(d, &simulator.workloads).map_err(refused(&name))?;
    let tasks = loads.most_tasks(d.vcpus);
    if loads.locks_in_user_mode() && d.kernel.hz == 0 && tasks > u64::from(d.vcpus) {
        return bad(format!(
            "{name}: with `kernel.hz` = 0 a task that spins in user mode never leaves its vCPU to the holder, and there are \
             {tasks} tasks for {} vCPUs; set `kernel.hz`, use fewer threads, or `mode = \"kernel\"`",
            d.vcpus
        ));
    }
    for of in loads.ticks() {
        ticks(&name, of, d, host, &simulator.schedulers)?;
    }
    Ok(loads)
}
