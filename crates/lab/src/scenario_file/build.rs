//! From tables to a [`Scenario`]: one function for each table, and the rules that tie keys
//! together.

use super::ScenarioError;
use super::keys::{ROOT, WORKLOAD_KINDS};
use super::quantity::parse_cpus;
use super::reader::Reader;
use super::tree::{Document, Node, Value};
use crate::names;
use overspin_scenario::{
    BurnWait, Costs, Domain, Host, Kernbench, Kernel, KernelLock, LockLoop, Scenario, SchedParams,
    Workload,
};
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, ScenarioError>;

/// Most pCPUs of a host, and most vCPUs of a scenario.
const MOST_CPUS: u64 = 65_536;

/// Reads the scenario at `node`, whose keys are called `path…` in messages.
pub(crate) fn scenario(
    document: &Document,
    node: &Node,
    path: &str,
    default_name: &str,
) -> Result<Scenario> {
    let root = Reader::open(document, node, path.to_owned(), &ROOT)?;
    let host_table = root.table("host")?;
    let host = match &host_table {
        Some(reader) => host(reader)?,
        None => return Err(root.error("host", "there is no [host]", "add a [host] table")),
    };
    let pcpus = host.pcpus();
    let mut domains: Vec<Domain> = Vec::new();
    let mut names = BTreeSet::new();
    let mut vcpus = 0;
    for (i, reader) in root.tables("domain")?.iter().enumerate() {
        let domain = domain(reader, i, pcpus)?;
        if !names.insert(domain.name.clone()) {
            return Err(reader.error(
                "name",
                format!("a domain before this one is called `{}` too", domain.name),
                "give each domain a name of its own",
            ));
        }
        vcpus += u64::from(domain.vcpus);
        if vcpus > MOST_CPUS {
            return Err(reader.error(
                "vcpus",
                format!("the domains have more than {MOST_CPUS} vCPUs together"),
                "use fewer or smaller domains",
            ));
        }
        domains.push(domain);
    }
    Ok(Scenario {
        name: root.text("name")?.unwrap_or_else(|| default_name.to_owned()),
        description: root.text("description")?.unwrap_or_default(),
        seed: root.u64("seed")?,
        limit: root.some_time("limit")?,
        host,
        domains,
    })
}

fn host(r: &Reader<'_>) -> Result<Host> {
    let (sockets, cores, threads) = (r.u32("sockets")?, r.u32("cores")?, r.u32("threads")?);
    let pcpus = u64::from(sockets) * u64::from(cores) * u64::from(threads);
    if pcpus > MOST_CPUS {
        return Err(r.error(
            "cores",
            format!(
                "{sockets} sockets x {cores} cores x {threads} threads are {pcpus} pCPUs, too many"
            ),
            format!("a host has at most {MOST_CPUS} pCPUs"),
        ));
    }
    let schedulers: Vec<&'static str> = names::schedulers().iter().map(|s| s.name).collect();
    Ok(Host {
        sockets,
        cores,
        threads,
        smt_permille: r.u32("smt_permille")?,
        scheduler: r.name("scheduler", &schedulers)?,
        params: r
            .table("scheduler_params")?
            .as_ref()
            .map_or_else(|| Ok(SchedParams::default()), params)?,
        costs: r.table("costs")?.as_ref().map_or_else(|| Ok(Costs::default()), costs)?,
    })
}

fn params(r: &Reader<'_>) -> Result<SchedParams> {
    let params = SchedParams {
        tslice: r.time("tslice")?,
        ratelimit: r.time("ratelimit")?,
        migration_delay: r.time("migration_delay")?,
    };
    if let (Some(slice), Some(limit)) = (params.tslice, params.ratelimit)
        && limit > slice
    {
        return Err(r.error(
            "ratelimit",
            format!("`{}` is longer than `tslice`", r.full("ratelimit")),
            "a vCPU is switched at the end of its slice at the latest: choose a ratelimit within it",
        ));
    }
    Ok(params)
}

fn costs(r: &Reader<'_>) -> Result<Costs> {
    Ok(Costs {
        cache_hit: r.some_time("cache_hit")?,
        atomic: r.some_time("atomic")?,
        same_core: r.some_time("same_core")?,
        cross_core: r.some_time("cross_core")?,
        cross_socket: r.some_time("cross_socket")?,
        spin_iteration: r.some_time("spin_iteration")?,
        fence: r.some_time("fence")?,
        context_switch: r.some_time("context_switch")?,
        hypercall: r.some_time("hypercall")?,
        ipi: r.some_time("ipi")?,
        interrupt: r.some_time("interrupt")?,
        migration: r.some_time("migration")?,
    })
}

fn domain(r: &Reader<'_>, index: usize, pcpus: u32) -> Result<Domain> {
    let vcpus = r.u32("vcpus")?;
    let locks = names::locks();
    let known: Vec<&'static str> = locks.iter().map(|l| l.name).collect();
    let lock = r.name("lock", &known)?;
    if let Some(info) = locks.iter().find(|l| l.name == lock)
        && vcpus > info.max_cpus
    {
        return Err(r.error(
            "vcpus",
            format!(
                "`{}`: the lock `{lock}` serves at most {} CPUs",
                r.full("vcpus"),
                info.max_cpus
            ),
            format!(
                "use {} vCPUs or fewer, or another lock (`overspin list locks`)",
                info.max_cpus
            ),
        ));
    }
    let cap = r.u32("cap")?;
    if u64::from(cap) > 100 * u64::from(vcpus) {
        return Err(r.error(
            "cap",
            format!("`{}`: {cap} is more than {vcpus} vCPUs can use", r.full("cap")),
            format!(
                "a whole number from 0 (no cap) to {} (100 for each vCPU)",
                100 * u64::from(vcpus)
            ),
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
    Ok(Domain {
        name: r.text("name")?.unwrap_or_else(|| format!("domain{index}")),
        vcpus,
        weight: r.u32("weight")?,
        cap,
        affinity: affinity(r, vcpus, pcpus)?,
        lock,
        spin_budget,
        kernel,
        workload: workload(r)?,
    })
}

fn affinity(r: &Reader<'_>, vcpus: u32, pcpus: u32) -> Result<Vec<Vec<u32>>> {
    let Some(node) = r.node("affinity") else { return Ok(Vec::new()) };
    let full = r.full("affinity");
    let last = pcpus - 1;
    let one = |node: &Node| -> Result<Vec<u32>> {
        let bad = |at, reason: String| {
            let help = format!("pCPUs are numbered 0 to {last}; write a list such as \"0-{last}\"");
            r.error_at(at, "affinity", format!("`{full}`: {reason}"), help)
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
            Value::Array(_) => Err(bad(&node.at, "a vCPU needs at least one pCPU".into())),
            _ => Err(r.wrong_type("affinity", node)),
        }
    };
    match &node.value {
        Value::Array(items) => {
            if items.len() != vcpus as usize {
                return Err(r.error(
                    "affinity",
                    format!("`{full}` has {} lists for {vcpus} vCPUs", items.len()),
                    "give one list for each vCPU, or a single text such as \"0-3\" for all of them",
                ));
            }
            items.iter().map(one).collect()
        }
        _ => Ok(vec![one(node)?; vcpus as usize]),
    }
}

fn kernel(r: &Reader<'_>) -> Result<Kernel> {
    Ok(Kernel {
        hz: r.u32("hz")?,
        task_switch: r.some_time("task_switch")?,
        tick_work: r.some_time("tick_work")?,
        wakeup_granularity: r.some_time("wakeup_granularity")?,
        slice: r.some_time("slice")?,
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
        }),
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

#[cfg(test)]
mod tests {
    use super::super::keys::{Absent, COSTS, KERNEL, Key, PARAMS};
    use super::super::reader::legal;
    use super::*;

    /// Defaults stand in words in the key list and in code in the types: they must be the same.
    #[test]
    fn documented_defaults_are_the_types_defaults() {
        let document = Document::parse("defaults", "").unwrap();
        let open =
            |section| Reader::open(&document, &document.root, String::new(), section).unwrap();
        assert_eq!(costs(&open(&COSTS)).unwrap(), Costs::default());
        assert_eq!(kernel(&open(&KERNEL)).unwrap(), Kernel::default());
        assert_eq!(params(&open(&PARAMS)).unwrap(), SchedParams::default());
    }

    #[test]
    fn every_default_is_legal() {
        for section in super::super::keys::SECTIONS {
            for key in section.keys {
                let Key { absent: Absent::Is(default), name, .. } = key else { continue };
                let value =
                    if default.parse::<u64>().is_ok() || matches!(*default, "true" | "false") {
                        (*default).to_owned()
                    } else {
                        format!("{default:?}")
                    };
                let document = Document::parse("default", &format!("{name} = {value}")).unwrap();
                let r = Reader::open(&document, &document.root, String::new(), section).unwrap();
                let fine = match key.kind {
                    super::super::keys::Kind::Time { .. } => r.time(name).is_ok(),
                    super::super::keys::Kind::Integer { .. } => r.integer(name).is_ok(),
                    super::super::keys::Kind::Boolean => r.boolean(name).is_ok(),
                    _ => r.text(name).is_ok(),
                };
                assert!(fine, "{} {name} = {value}: {}", section.heading, legal(key));
            }
        }
    }
}
