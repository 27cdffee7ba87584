//! Checks a scenario before an engine is built from it. A scenario that passes runs without a panic and
//! without standing still. Locks, schedulers and affinities do their own checks elsewhere.

use crate::Simulator;
use overspin_host::Refused;
use overspin_scenario::{Costs, Domain, Host, LONGEST, MS, NS, Noise, Picos, SEC, Scenario, US};
use overspin_sched::{DomainParams, Schedulers, Topology};
use overspin_workload::{Loads, Ticks};

/// The longest cost of one action of the machine or the kernel.
const LONGEST_COST: Picos = SEC;
/// The longest window before a preemption; other vCPUs wait during the window.
const LONGEST_WINDOW: Picos = Picos::ms(10);
/// The maximum number of tasks at a time, including the idle tasks of vCPUs. Each has a stack of two
/// mappings, and Linux allows a process 65,530 mappings (`vm.max_map_count`).
const MOST_TASKS: u64 = 30_000;
/// The maximum number of ticks per second.
const MOST_HZ: u32 = 10_000;

fn bad<T>(what: String) -> Result<T, Refused> {
    Err(Refused::Invalid(what))
}

fn at_most(what: &str, times: &[(&str, Picos)], most: Picos) -> Result<(), Refused> {
    match times.iter().find(|(_, time)| *time > most) {
        Some((key, time)) => bad(format!("{what}: {key} is {time}; the maximum is {most}")),
        None => Ok(()),
    }
}

/// Checks a scenario; `all` is the same scenario with the domains of its host's noise added. Returns the
/// loads that the workloads of all domains place on them.
pub(crate) fn check(
    scenario: &Scenario,
    all: &Scenario,
    simulator: &Simulator,
) -> Result<Vec<Loads>, Refused> {
    at_most("scenario", &[("limit", scenario.limit)], LONGEST)?;
    let host = &scenario.host;
    let topology = Topology {
        sockets: host.sockets,
        cores_per_socket: host.cores,
        threads_per_core: host.threads,
    };
    topology.check().map_err(|e| Refused::Invalid(e.to_string()))?;
    if !(1..=1000).contains(&host.smt_permille) {
        return bad(format!("smt_permille is {}; it must be 1 to 1000", host.smt_permille));
    }
    if let Some(governor) = &host.governor {
        if !(1..=1000).contains(&governor.quiet_permille) {
            let quiet = governor.quiet_permille;
            return bad(format!("governor: quiet_permille is {quiet}; it must be 1 to 1000"));
        }
        if !(100 * US..=SEC).contains(&governor.interval) {
            return bad("governor: the interval must be 100 us to 1 s".into());
        }
    }
    options(host)?;
    costs(&host.costs)?;
    if scenario.domains.is_empty() {
        return bad("there is no domain".into());
    }
    if let Some(e) = scenario.events.iter().find(|e| e.at > LONGEST) {
        return bad(format!("an event is at {}; the maximum is {LONGEST}", e.at));
    }
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

fn options(host: &Host) -> Result<(), Refused> {
    if let Some(ple) = &host.pause_loop_exiting {
        if ple.window < NS || ple.window > ple.max || ple.grow == 0 {
            return bad(
                "pause_loop_exiting: window must be 1 ns to max, and grow at least 1".into()
            );
        }
        at_most("pause_loop_exiting", &[("max", ple.max), ("gap", ple.gap)], 10 * SEC)?;
    }
    if let Some(polling) = &host.halt_polling {
        if polling.start < NS || polling.start > polling.max || polling.grow == 0 {
            return bad("halt_polling: start must be 1 ns to max, and grow at least 1".into());
        }
        at_most("halt_polling", &[("max", polling.max)], SEC)?;
    }
    if let Some(n) = &host.preemption_notification {
        if !(US..=LONGEST_WINDOW).contains(&n.window) || n.strikes == 0 {
            return bad(
                "preemption_notification: window must be 1 us to 10 ms, and strikes at least 1"
                    .into(),
            );
        }
        at_most("preemption_notification", &[("back_off", n.back_off)], LONGEST)?;
    }
    at_most("host", &[("stagger", host.stagger)], LONGEST)?;
    host.noise.as_ref().map_or(Ok(()), |n| noise(n, host.pcpus()))
}

fn noise(n: &Noise, pcpus: u32) -> Result<(), Refused> {
    if n.every < US || n.length < NS {
        return bad("noise: every must be at least 1 us, and length at least 1 ns".into());
    }
    // A draw of 64 bits is at most 45 times the mean.
    at_most("noise", &[("every", n.every), ("length", n.length)], LONGEST / 45)?;
    if let Some(p) = n.cpus.iter().find(|p| **p >= pcpus) {
        return bad(format!("noise: there is no pCPU {p}: the host has pCPUs 0 to {}", pcpus - 1));
    }
    let weight = DomainParams { weight: n.weight, cap: 0 };
    weight.check(None).map_err(|e| Refused::Invalid(format!("noise: {e}")))
}

fn costs(costs: &Costs) -> Result<(), Refused> {
    // With these costs at 0, an endless loop would use no simulated time.
    if costs.cache_hit == Picos::ZERO || costs.spin_iteration == Picos::ZERO {
        return bad("costs: cache_hit and spin_iteration must be at least 1 ps".into());
    }
    let all = [
        ("cache_hit", costs.cache_hit),
        ("atomic", costs.atomic),
        ("same_core", costs.same_core),
        ("cross_core", costs.cross_core),
        ("cross_socket", costs.cross_socket),
        ("spin_iteration", costs.spin_iteration),
        ("fence", costs.fence),
        ("context_switch", costs.context_switch),
        ("preemption", costs.preemption),
        ("hypercall", costs.hypercall),
        ("pause_loop_exit", costs.pause_loop_exit),
        ("yield_to", costs.yield_to),
        ("ipi", costs.ipi),
        ("timer", costs.timer),
        ("interrupt", costs.interrupt),
        ("migration", costs.migration),
    ];
    at_most("costs", &all, LONGEST_COST)
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
    let pool = (d.pool as usize).checked_sub(1).and_then(|i| host.pools.get(i));
    let scheduler = pool.map_or(&host.scheduler, |pool| &pool.scheduler);
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
    if d.vcpus == 0 {
        return bad(format!("{name} has no vCPU"));
    }
    let kernel = &d.kernel;
    if kernel.hz > MOST_HZ {
        return bad(format!("{name}: hz is {}; the maximum is {MOST_HZ}", kernel.hz));
    }
    let work = [("task_switch", kernel.task_switch), ("tick_work", kernel.tick_work)];
    at_most(&name, &work, LONGEST_COST)?;
    if kernel.vmstat.is_some_and(|interval| !(MS..=LONGEST).contains(&interval)) {
        return bad(format!("{name}: the interval of vmstat must be 1 ms to 1000 h"));
    }
    let limits = [("wakeup_granularity", kernel.wakeup_granularity), ("slice", kernel.slice)];
    at_most(&name, &limits, 10 * SEC)?;
    let loads =
        Loads::of(d, &simulator.workloads).map_err(|e| Refused::Invalid(format!("{name}: {e}")))?;
    for of in loads.ticks() {
        ticks(&name, of, d, host, &simulator.schedulers)?;
    }
    Ok(loads)
}
