//! What a scenario must satisfy before a engine is built from it: whatever passes here runs without
//! a panic and without standing still. Locks, schedulers and affinities check what is theirs.

use overspin_host::Refused;
use overspin_scenario::{
    Again, Align, Costs, Dbench, Distribution, Domain, Host, KernelLock, MS, NS, Noise, Picos, SEC,
    Scenario, Step, US, Workload,
};
use overspin_sched::{DomainParams, Schedulers, Topology};

/// Longest time anywhere: 1,000 hours. Sums of a few of them fit 64 bits.
const LONGEST: Picos = 1_000 * 3_600 * SEC;
/// Longest cost of one action of the machine or the kernel.
const LONGEST_COST: Picos = SEC;
/// Longest window before a preemption: others wait for so long.
const LONGEST_WINDOW: Picos = 10 * MS;
/// Tasks that may exist at a time, idle tasks of vCPUs included. Each has a stack of two mappings,
/// and Linux gives a process 65,530 (`vm.max_map_count`).
const MOST_TASKS: u64 = 30_000;
/// Pages of all files of a dbench, each of which takes some bytes here.
const MOST_PAGES: u64 = 100_000_000;
/// Most ticks a second.
const MOST_HZ: u32 = 10_000;

fn bad<T>(what: String) -> Result<T, Refused> {
    Err(Refused::Invalid(what))
}

fn at_most(what: &str, times: &[(&str, Picos)], most: Picos) -> Result<(), Refused> {
    match times.iter().find(|(_, time)| *time > most) {
        Some((key, time)) => {
            bad(format!("{what}: {key} is {} s; at most {} s are possible", time / SEC, most / SEC))
        }
        None => Ok(()),
    }
}

/// Checks a scenario; `all` is the same with the domains of its host's noise.
pub(crate) fn check(
    scenario: &Scenario,
    all: &Scenario,
    schedulers: &Schedulers,
) -> Result<(), Refused> {
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
        return bad(format!("an event comes after {} s; too late", e.at / SEC));
    }
    for d in &scenario.domains {
        domain(d, host, schedulers)?;
    }
    let tasks = |domains: &[Domain]| domains.iter().map(most_tasks).sum::<u64>();
    let own_domains = scenario.domains.len();
    let (own, noise) = (tasks(&scenario.domains), tasks(&all.domains[own_domains..]));
    if own + noise > MOST_TASKS {
        let of_noise = if own > MOST_TASKS || noise == 0 {
            String::new()
        } else {
            format!(
                "; {noise} of them are the host's noise, which can be on fewer pCPUs or on none"
            )
        };
        return bad(format!(
            "{} vCPUs and tasks are too many: at most {MOST_TASKS}{of_noise}",
            own + noise
        ));
    }
    // Otherwise the run itself creates what would be created, and says what is wrong.
    if scenario.events.is_empty() {
        Ok(())
    } else {
        overspin_host::admin::rehearse(all, own_domains, schedulers)
    }
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
    // With these at 0 an endless loop would use no time.
    if costs.cache_hit == 0 || costs.spin_iteration == 0 {
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
        ("hypercall", costs.hypercall),
        ("pause_loop_exit", costs.pause_loop_exit),
        ("yield_to", costs.yield_to),
        ("ipi", costs.ipi),
        ("interrupt", costs.interrupt),
        ("migration", costs.migration),
    ];
    at_most("costs", &all, LONGEST_COST)
}

/// Whether what `align` waits for exists.
fn ticks(
    name: &str,
    align: Align,
    d: &Domain,
    host: &Host,
    schedulers: &Schedulers,
) -> Result<(), Refused> {
    if align == Align::GuestTick && d.kernel.hz == 0 {
        return bad(format!(
            "{name}: align = \"guest-tick\", and its kernel does not tick: set kernel.hz, or another align"
        ));
    }
    let pool = (d.pool as usize).checked_sub(1).and_then(|i| host.pools.get(i));
    let scheduler = pool.map_or(&host.scheduler, |pool| &pool.scheduler);
    // A scheduler that does not exist is complained about where it is made.
    if align == Align::HostTick && schedulers.find(scheduler).is_ok_and(|s| !s.ticks) {
        let with: Vec<_> = schedulers.iter().filter(|s| s.ticks).map(|s| s.name).collect();
        return bad(format!(
            "{name}: align = \"host-tick\", and scheduler `{scheduler}` does not tick; these do: {}",
            with.join(", ")
        ));
    }
    Ok(())
}

fn domain(d: &Domain, host: &Host, schedulers: &Schedulers) -> Result<(), Refused> {
    let name = format!("domain `{}`", d.name);
    if d.vcpus == 0 {
        return bad(format!("{name} has no vCPU"));
    }
    let kernel = &d.kernel;
    if kernel.hz > MOST_HZ {
        return bad(format!("{name}: hz is {}; at most {MOST_HZ} are possible", kernel.hz));
    }
    let work = [("task_switch", kernel.task_switch), ("tick_work", kernel.tick_work)];
    at_most(&name, &work, LONGEST_COST)?;
    if kernel.vmstat.is_some_and(|interval| !(MS..=LONGEST).contains(&interval)) {
        return bad(format!(
            "{name}: vmstat may print at most once in 1 ms, and must once in 1000 h"
        ));
    }
    let limits = [("wakeup_granularity", kernel.wakeup_granularity), ("slice", kernel.slice)];
    at_most(&name, &limits, 10 * SEC)?;
    match &d.workload {
        Workload::LockLoop(w) => {
            at_most(&name, &[("section", w.section), ("outside", w.outside)], LONGEST)
        }
        Workload::BurnWait(w) => {
            if w.burn == 0 && w.wait == 0 {
                return bad(format!("{name}: burn and wait are both 0: time would stand still"));
            }
            // A draw of 64 bits is at most 45 times the mean.
            let most = |d| if d == Distribution::Exponential { LONGEST / 45 } else { LONGEST };
            at_most(&name, &[("burn", w.burn)], most(w.burn_distribution))?;
            at_most(&name, &[("wait", w.wait)], most(w.wait_distribution))
        }
        Workload::Kernbench(w) => {
            at_most(&name, &[("user", w.user), ("system", w.system)], LONGEST)?;
            locks(&name, &w.locks)
        }
        Workload::Count(w) => {
            at_most(&name, &[("to times step", w.to.saturating_mul(w.step))], LONGEST)
        }
        Workload::Pft(w) => {
            let times = [("touch", w.touch), ("fault", w.fault), ("fork", w.fork)];
            at_most(&name, &times, SEC)?;
            locks(&name, &w.locks)
        }
        Workload::Ping(w) => {
            at_most(&name, &[("round_trip", w.round_trip), ("work", w.work)], SEC)?;
            if w.rate > 0 && w.work == 0 && (w.interval().unwrap_or(w.round_trip) == 0) {
                return bad(format!("{name}: answers take no time: time would stand still"));
            }
            Ok(())
        }
        Workload::Pgbench(w) => {
            let times = [("server", w.server), ("client", w.client), ("system", w.system)];
            at_most(&name, &times, LONGEST)?;
            if w.server == 0 && w.client == 0 && w.system == 0 {
                return bad(format!("{name}: a transaction takes no time: time would stand still"));
            }
            if w.clients == 0 {
                return bad(format!("{name}: no client: nobody asks the server anything"));
            }
            locks(&name, &w.locks)
        }
        Workload::Phases(w) => {
            at_most(&name, &[("start", w.start)], LONGEST)?;
            let steps = || w.phases.iter().filter(|p| p.times > 0).flat_map(|p| &p.steps);
            for step in steps() {
                if let Step::Run(time) | Step::Sleep(time) | Step::Timer(time) = *step {
                    at_most(&name, &[("a step", time)], LONGEST)?;
                }
            }
            let passes =
                |step: &Step| matches!(step, Step::Run(1..) | Step::Sleep(1..) | Step::Timer(1..));
            if !steps().any(passes) {
                return bad(format!("{name}: no step takes time: time would stand still"));
            }
            ticks(&name, w.align, d, host, schedulers)
        }
        Workload::Dbench(w) => dbench(&name, w),
        Workload::Schedbench(w) => {
            if w.report_interval == 0 {
                return bad(format!("{name}: the report interval is 0: time would stand still"));
            }
            for item in &w.items {
                let (Again::After(wait) | Again::Every(wait)) = item.again;
                at_most(&name, &[("burn", item.burn), ("wait", wait)], LONGEST)?;
                // A deadline in the past would have the item due for ever without a sleep, which
                // is a hog; without work as well, time would stand still.
                if item.burn == 0 {
                    return bad(format!("{name}: an item burns nothing: time would stand still"));
                }
            }
            Ok(())
        }
    }
}

fn locks(domain: &str, locks: &[KernelLock]) -> Result<(), Refused> {
    for lock in locks {
        at_most(domain, &[("hold", lock.hold), ("every", lock.every)], SEC)?;
        // A task would take the lock again and again and get nowhere.
        if lock.every == 0 {
            return bad(format!("{domain}: lock `{}`: every must be at least 1 ps", lock.name));
        }
    }
    Ok(())
}

fn dbench(name: &str, w: &Dbench) -> Result<(), Refused> {
    let times = [
        ("user", w.user),
        ("copy", w.copy),
        ("directory", w.sections.directory),
        ("block", w.sections.block),
        ("name", w.sections.name),
        ("pagecache", w.sections.pagecache),
        ("pagemap_lru", w.sections.pagemap_lru),
        ("lru_list", w.sections.lru_list),
        ("kmap", w.sections.kmap),
        ("seek", w.disk.seek),
        ("page", w.disk.page),
    ];
    at_most(name, &times, SEC)?;
    let pages = u128::from(w.clients) * u128::from(w.files) * u128::from(w.pages);
    if pages > MOST_PAGES.into() {
        return bad(format!("{name}: {pages} pages in all; at most {MOST_PAGES} are possible"));
    }
    if w.disk.request == 0 || w.disk.page == 0 {
        return bad(format!("{name}: the disk would write nothing, or write it in no time"));
    }
    Ok(())
}

/// Tasks of a domain that may exist at a time.
fn most_tasks(d: &Domain) -> u64 {
    let started = match &d.workload {
        Workload::LockLoop(w) if w.threads > 0 => w.threads.into(),
        Workload::BurnWait(w) if w.threads > 0 => w.threads.into(),
        Workload::Phases(w) if w.threads > 0 => w.threads.into(),
        Workload::LockLoop(_)
        | Workload::BurnWait(_)
        | Workload::Schedbench(_)
        | Workload::Phases(_) => d.vcpus.into(),
        Workload::Dbench(w) => 1 + u64::from(w.clients),
        // `make`, and for each unit under way a driver, a compiler and an assembler.
        Workload::Kernbench(w) => 1 + 3 * u64::from(w.jobs.min(w.units)),
        Workload::Count(_) | Workload::Ping(_) => 1,
        Workload::Pft(w) => 1 + u64::from(w.processes),
        // Threads of pgbench, and a process of the server for each client.
        Workload::Pgbench(w) => u64::from(w.clients) + u64::from(w.workers.min(w.clients)),
    };
    u64::from(d.vcpus) + started
}
