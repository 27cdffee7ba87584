//! A domain: its vCPUs and its kernel.

use super::Result;
use super::pools::{can_run, pool_of, scheduler_of};
use super::workload::{self, workloads};
use crate::params;
use crate::quantity::parse_cpus;
use crate::reader::Reader;
use crate::tree::{Node, Value};
use overspin_locks::CapacityError;
use overspin_scenario::{Domain, Host, Kernel};
use overspin_sched::{DomainParams, SchedError};

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
    // The range depends on the number of vCPUs, so the list of keys does not have all of it.
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
    let domain = Domain {
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
        workload: workloads(r)?,
    };
    workload::check(r, &domain)?;
    Ok(domain)
}

/// Reads the list of pCPUs in `node`, which is in the value of `key`.
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

/// The affinities of `vcpus` vCPUs; empty if `r` does not state any.
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
