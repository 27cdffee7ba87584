//! A domain: its vCPUs and its kernel.

use super::Result;
use super::pools::{can_run, pool_of, scheduler_of};
use super::workload::{self, workloads};
use crate::params;
use crate::reader::Reader;
use crate::tree::Value;
use overspin_locks::CapacityError;
use overspin_scenario::{Domain, Host};
use overspin_sched::{DomainParams, SchedError};

/// The `index`-th domain on a host.
pub(super) fn domain(r: &Reader<'_>, index: usize, host: &Host) -> Result<Domain> {
    let r = &r.on(host.pcpus());
    let mut fields = r.tree(&["scheduler_params", "pool", "affinity", "workload"])?;
    fields.entry("name").or_insert_with(|| format!("domain{index}").into());
    fields.insert("workload".into(), Vec::<()>::new().into());
    let domain: Domain = r.fields(fields)?;
    domain.kernel.agrees().map_err(|fault| {
        r.error_within(&format!("kernel.{}", fault.key), fault.message, fault.help)
    })?;
    let vcpus = domain.vcpus;
    let lock = r.lock("lock")?;
    if let Err(CapacityError { max, .. }) = lock.check_capacity(vcpus as usize) {
        return Err(r.error(
            "vcpus",
            format!("`{}`: the lock `{}` serves at most {max} CPUs", r.full("vcpus"), lock.name),
            format!("use {max} vCPUs or fewer, or another lock (`overspin list locks`)"),
        ));
    }
    let (weight, cap) = (domain.weight, domain.cap);
    // The range depends on the number of vCPUs, so the list of keys does not have all of it.
    if let Err(SchedError::Param { legal, .. }) = (DomainParams { weight, cap }).check(Some(vcpus))
    {
        return Err(r.error(
            "cap",
            format!("`{}`: {cap} is more than {vcpus} vCPUs can use", r.full("cap")),
            format!("a whole number from {legal}"),
        ));
    }
    if !domain.weights.is_empty() && domain.weights.len() != vcpus as usize {
        return Err(r.error(
            "weights",
            format!(
                "`{}` has {} weights for {vcpus} vCPUs",
                r.full("weights"),
                domain.weights.len()
            ),
            "give one weight for each vCPU, or `weight` for all of them",
        ));
    }
    for weight in &domain.weights {
        if let Err(SchedError::Param { legal, .. }) =
            (DomainParams { weight: *weight, cap: 0 }).check(None)
        {
            return Err(r.error(
                "weights",
                format!("`{}`: {weight} is no weight", r.full("weights")),
                format!("whole numbers from {legal}"),
            ));
        }
    }
    let pool = pool_of(r, host)?;
    let affinity = affinity(r, vcpus)?;
    can_run(r, host, pool, &affinity)?;
    let params = params::of_domain(r, scheduler_of(host, pool))?;
    let domain = Domain { params, pool, affinity, workload: workloads(r)?, ..domain };
    workload::check(r, &domain)?;
    Ok(domain)
}

/// The affinities of `vcpus` vCPUs; empty if `r` does not state any.
pub(super) fn affinity(r: &Reader<'_>, vcpus: u32) -> Result<Vec<Vec<u32>>> {
    let Some(node) = r.node("affinity") else { return Ok(Vec::new()) };
    let one = |node| r.cpu_list("affinity", node);
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
