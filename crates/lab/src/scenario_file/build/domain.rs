//! A domain: its vCPUs, its kernel, its workload.

use super::Result;
use super::pools::{can_run, pool_of, scheduler_of};
use crate::scenario_file::keys::{ALIGNMENTS, DISTRIBUTIONS, PLACEMENTS, WORKLOAD_KINDS};
use crate::scenario_file::params;
use crate::scenario_file::quantity::{parse_cpus, parse_time};
use crate::scenario_file::reader::Reader;
use crate::scenario_file::tree::{Node, Value};
use crate::schedbench::WorkerArgs;
use overspin_locks::CapacityError;
use overspin_scenario::{
    Align, BurnWait, Count, Dbench, Disk, Distribution, Domain, Host, Kernbench, Kernel,
    KernelLock, LockLoop, Pft, Pgbench, Phase, Phases, Ping, Placement, Schedbench, Sections, Step,
    Workload,
};
use overspin_sched::{DomainParams, SchedError};
use std::collections::BTreeSet;

/// The `index`-th domain on a host.
pub(super) fn domain(r: &Reader<'_>, index: usize, host: &Host) -> Result<Domain> {
    let vcpus = r.u32("vcpus")?;
    let lock = r.lock("lock")?;
    if let Err(CapacityError { max, .. }) = lock.check_capacity(vcpus as usize) {
        return Err(r.error(
            "vcpus",
            format!("`{}`: the lock `{}` serves at most {max} CPUs", r.full("vcpus"), lock.name),
            format!("use {max} vCPUs or fewer, or another lock (`overspin list locks`)"),
        ));
    }
    let (weight, cap) = (r.u32("weight")?, r.u32("cap")?);
    // Its range depends on the number of vCPUs, so that the list of keys does not have all of it.
    if let Err(SchedError::Param { legal, .. }) = (DomainParams { weight, cap }).check(Some(vcpus))
    {
        return Err(r.error(
            "cap",
            format!("`{}`: {cap} is more than {vcpus} vCPUs can use", r.full("cap")),
            format!("a whole number from {legal}"),
        ));
    }
    let kernel = match r.table("kernel")? {
        Some(k) => kernel(&k)?,
        None => Kernel::default(),
    };
    let spin_budget = match r.integer("spin_budget")? {
        Some(_) => Some(r.u32("spin_budget")?),
        None => None,
    };
    let pool = pool_of(r, host)?;
    let affinity = affinity(r, vcpus, host.pcpus())?;
    can_run(r, host, pool, &affinity)?;
    Ok(Domain {
        name: r.text("name")?.unwrap_or_else(|| format!("domain{index}")),
        vcpus,
        weight,
        cap,
        params: params::of_domain(r, scheduler_of(host, pool))?,
        pool,
        affinity,
        lock: lock.name.into(),
        spin_budget,
        nopvspin: r.boolean("nopvspin")?,
        kernel,
        workload: workload(r)?,
    })
}

/// The list of pCPUs that `node`, in the value of `key`, is.
pub(super) fn cpu_list(r: &Reader<'_>, key: &str, node: &Node, pcpus: u32) -> Result<Vec<u32>> {
    let (full, last) = (r.full(key), pcpus - 1);
    let bad = |at, reason: String| {
        let help = format!("pCPUs are numbered 0 to {last}; write a list such as \"0-{last}\"");
        r.error_at(at, key, format!("`{full}`: {reason}"), help)
    };
    match &node.value {
        Value::Text(text) => parse_cpus(text, pcpus).map_err(|reason| bad(&node.at, reason)),
        Value::Array(items) if !items.is_empty() => {
            let mut cpus = Vec::new();
            for item in items {
                let Value::Integer(value) = item.value else {
                    return Err(bad(&item.at, format!("{} is not a pCPU", item.value.kind())));
                };
                let cpu = value.and_then(|v| u32::try_from(v).ok()).filter(|v| *v < pcpus);
                cpus.push(cpu.ok_or_else(|| bad(&item.at, "there is no such pCPU".into()))?);
            }
            cpus.sort_unstable();
            cpus.dedup();
            Ok(cpus)
        }
        Value::Array(_) => Err(bad(&node.at, "this needs at least one pCPU".into())),
        _ => Err(r.wrong_type(key, node)),
    }
}

/// The affinities of so many vCPUs; empty if `r` says nothing about them.
pub(super) fn affinity(r: &Reader<'_>, vcpus: u32, pcpus: u32) -> Result<Vec<Vec<u32>>> {
    let Some(node) = r.node("affinity") else { return Ok(Vec::new()) };
    let one = |node: &Node| cpu_list(r, "affinity", node, pcpus);
    match &node.value {
        Value::Array(items) => {
            if items.len() != vcpus as usize {
                return Err(r.error(
                    "affinity",
                    format!("`{}` has {} lists for {vcpus} vCPUs", r.full("affinity"), items.len()),
                    "give one list for each vCPU, or a single text such as \"0-3\" for all of them",
                ));
            }
            items.iter().map(one).collect()
        }
        _ => Ok(vec![one(node)?; vcpus as usize]),
    }
}

pub(super) fn kernel(r: &Reader<'_>) -> Result<Kernel> {
    Ok(Kernel {
        hz: r.u32("hz")?,
        task_switch: r.some_time("task_switch")?,
        tick_work: r.some_time("tick_work")?,
        wakeup_granularity: r.some_time("wakeup_granularity")?,
        slice: r.some_time("slice")?,
        vmstat: r.time("vmstat")?,
    })
}

fn workload(domain: &Reader<'_>) -> Result<Workload> {
    let (r, kind) = domain.one_of("workload", WORKLOAD_KINDS)?;
    Ok(match kind.as_str() {
        "lock-loop" => Workload::LockLoop(LockLoop {
            threads: r.u32("threads")?,
            section: r.some_time("section")?,
            outside: r.some_time("outside")?,
            fixed: r.boolean("fixed")?,
            irqs_off: r.boolean("irqs_off")?,
            count: r.u64("count")?,
        }),
        "burn-wait" => Workload::BurnWait(BurnWait {
            threads: r.u32("threads")?,
            burn: r.some_time("burn")?,
            wait: r.some_time("wait")?,
            count: r.u64("count")?,
            burn_distribution: distribution(&r, "burn_distribution")?,
            wait_distribution: distribution(&r, "wait_distribution")?,
        }),
        "phases" => Workload::Phases(Phases {
            threads: r.u32("threads")?,
            phases: phases(&r)?,
            count: r.u64("count")?,
            start: r.some_time("start")?,
            align: match r.name("align", ALIGNMENTS)?.as_str() {
                "guest-tick" => Align::GuestTick,
                "host-tick" => Align::HostTick,
                _ => Align::None,
            },
        }),
        "pgbench" => Workload::Pgbench(Pgbench {
            clients: r.u32("clients")?,
            workers: r.u32("workers")?,
            transactions: r.u64("transactions")?,
            server: r.some_time("server")?,
            client: r.some_time("client")?,
            system: r.some_time("system")?,
            locks: kernel_locks(&r)?,
        }),
        "schedbench" => Workload::Schedbench(schedbench_worker(&r)?),
        "count" => Workload::Count(Count { to: r.u64("to")?, step: r.some_time("step")? }),
        "pft" => Workload::Pft(Pft {
            processes: r.u32("processes")?,
            pages: r.u64("pages")?,
            touch: r.some_time("touch")?,
            fault: r.some_time("fault")?,
            fork: r.some_time("fork")?,
            locks: kernel_locks(&r)?,
        }),
        "ping" => Workload::Ping(Ping {
            rate: r.u32("rate")?,
            resolution: r.some_time("resolution")?,
            round_trip: r.some_time("round_trip")?,
            work: r.some_time("work")?,
        }),
        "dbench" => Workload::Dbench(dbench(&r)?),
        _ => Workload::Kernbench(Kernbench {
            jobs: r.u32("jobs")?,
            units: r.u32("units")?,
            user: r.some_time("user")?,
            system: r.some_time("system")?,
            pipe_sleeps: r.u32("pipe_sleeps")?,
            locks: kernel_locks(&r)?,
        }),
    })
}

fn distribution(r: &Reader<'_>, key: &str) -> Result<Distribution> {
    Ok(match r.name(key, DISTRIBUTIONS)?.as_str() {
        "exponential" => Distribution::Exponential,
        _ => Distribution::Fixed,
    })
}

fn phases(r: &Reader<'_>) -> Result<Vec<Phase>> {
    let one = |text: &String| {
        phase(text).map_err(|message| {
            let message = format!("`{}`: \"{text}\": {message}", r.full("phases"));
            r.error("phases", message, "for example \"run 10ms, sleep 5ms\" or \"5 x run 1ms\"")
        })
    };
    r.texts("phases")?.iter().map(one).collect()
}

/// A phase: `[N x] STEP TIME, STEP TIME, ...`.
fn phase(text: &str) -> std::result::Result<Phase, String> {
    let (times, steps) = match text.split_once(" x ") {
        Some((times, steps)) => {
            let times = times.trim();
            let n = times.parse::<u32>().ok().filter(|n| *n > 0);
            (n.ok_or(format!("`{times}` is no number of times"))?, steps)
        }
        None => (1, text),
    };
    let step = |text: &str| {
        let text = text.trim();
        if text == "yield" {
            return Ok(Step::Yield);
        }
        let (what, time) = text.split_once(' ').ok_or(format!("`{text}` has no time"))?;
        let time = parse_time(time)?;
        match what {
            "run" => Ok(Step::Run(time)),
            "sleep" => Ok(Step::Sleep(time)),
            "timer" if time > 0 => Ok(Step::Timer(time)),
            "timer" => Err("a timer needs a period".to_owned()),
            _ => Err(format!("`{what}` is no step; steps are run, sleep, timer, yield")),
        }
    };
    Ok(Phase { times, steps: steps.split(',').map(step).collect::<std::result::Result<_, _>>()? })
}

fn schedbench_worker(r: &Reader<'_>) -> Result<Schedbench> {
    let text = r.text("worker")?.unwrap_or_default();
    let args: Vec<&str> = text.split_whitespace().collect();
    let worker = WorkerArgs::parse(&args).map_err(|e| {
        let message = format!("`{}`: {}", r.full("worker"), e.message);
        r.error("worker", message, "for example \"burnwait 70 200000 10 300000\"")
    })?;
    let rate = r.u32("rate")?;
    Ok(Schedbench { report_interval: r.some_time("report_interval")?, ..worker.workload(rate) })
}

fn dbench(r: &Reader<'_>) -> Result<Dbench> {
    Ok(Dbench {
        clients: r.u32("clients")?,
        files: r.u32("files")?,
        pages: r.u32("pages")?,
        operations: r.u32("operations")?,
        user: r.some_time("user")?,
        copy: r.some_time("copy")?,
        dirty_limit: r.u32("dirty_limit")?,
        placement: match r.name("placement", PLACEMENTS)?.as_str() {
            "aligned" => Placement::Aligned,
            _ => Placement::Linked,
        },
        sections: match r.table("sections")? {
            Some(s) => Sections {
                directory: s.some_time("directory")?,
                block: s.some_time("block")?,
                name: s.some_time("name")?,
                pagecache: s.some_time("pagecache")?,
                pagemap_lru: s.some_time("pagemap_lru")?,
                lru_list: s.some_time("lru_list")?,
                kmap: s.some_time("kmap")?,
            },
            None => Sections::default(),
        },
        disk: match r.table("disk")? {
            Some(d) => Disk {
                seek: d.some_time("seek")?,
                page: d.some_time("page")?,
                request: d.u32("request")?,
            },
            None => Disk::default(),
        },
    })
}

fn kernel_locks(workload: &Reader<'_>) -> Result<Vec<KernelLock>> {
    let mut names = BTreeSet::new();
    let mut locks = Vec::new();
    for r in workload.tables("locks")? {
        let name = r.text("name")?.unwrap_or_default();
        if !names.insert(name.clone()) {
            return Err(r.error(
                "name",
                format!("a lock before this one is called `{name}` too"),
                "give each lock a name of its own",
            ));
        }
        let lock = KernelLock {
            name,
            hold: r.some_time("hold")?,
            every: r.some_time("every")?,
            irqs_off: r.boolean("irqs_off")?,
        };
        locks.push(lock);
    }
    Ok(locks)
}
