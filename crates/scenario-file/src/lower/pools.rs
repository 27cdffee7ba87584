//! Pools: pCPUs with their own scheduler, and the domains in them.

use super::Result;
use crate::params;
use crate::reader::Reader;
use overspin_scenario::{Host, Pool};
use overspin_sched::suggestion;

/// The name of the host's own pool.
const OWN: &str = "host";

/// Reads the pools of a host.
pub(super) fn pools(host: &Reader<'_>) -> Result<Vec<Pool>> {
    let mut pools: Vec<Pool> = Vec::new();
    for r in host.tables("pool")? {
        let pool = pool(&r)?;
        if pool.name == OWN || pools.iter().any(|p| p.name == pool.name) {
            return Err(r.error(
                "name",
                format!("there is already a pool called `{}`", pool.name),
                format!("give each pool its own name; `{OWN}` is the host's own pool"),
            ));
        }
        let taken = |cpu: &&u32| pools.iter().any(|p| p.cpus.contains(cpu));
        if let Some(cpu) = pool.cpus.iter().find(taken) {
            return Err(r.error(
                "cpus",
                format!("pCPU {cpu} is already in an earlier pool"),
                "a pCPU can be in only one pool",
            ));
        }
        pools.push(pool);
    }
    Ok(pools)
}

fn pool(r: &Reader<'_>) -> Result<Pool> {
    let pool: Pool = r.fields(r.tree(&["scheduler_params"])?)?;
    if pool.cpus.contains(&0) {
        return Err(r.error(
            "cpus",
            "pCPU 0, the boot pCPU, stays in the host's own pool",
            "leave it out; the host's own pool has all pCPUs that are in no other pool",
        ));
    }
    Ok(Pool { params: params::of_scheduler(r, &pool.scheduler)?, ..pool })
}

/// The pool that the key `pool` of `r` names; the host's own if it names none.
pub(super) fn pool_of(r: &Reader<'_>, host: &Host) -> Result<u32> {
    // As data, a pool is a number, and so is the default.
    let name = if r.node("pool").is_some() { r.some("pool")? } else { OWN.to_owned() };
    if name == OWN {
        return Ok(0);
    }
    if let Some(i) = host.pools.iter().position(|p| p.name == name) {
        return Ok(i as u32 + 1);
    }
    let known: Vec<&str> =
        std::iter::once(OWN).chain(host.pools.iter().map(|p| &*p.name)).collect();
    Err(r.error(
        "pool",
        format!("`{}`: there is no pool `{name}`", r.full("pool")),
        suggestion(&name, "pools are", &known),
    ))
}

/// The scheduler of pool number `pool`.
pub(super) fn scheduler_of(host: &Host, pool: u32) -> &str {
    match pool.checked_sub(1) {
        Some(i) => &host.pools[i as usize].scheduler,
        None => &host.scheduler,
    }
}

/// Whether pCPU `cpu` is in pool `pool` at the start.
fn contains(host: &Host, pool: u32, cpu: u32) -> bool {
    match pool.checked_sub(1) {
        Some(i) => host.pools[i as usize].cpus.contains(&cpu),
        None => !host.pools.iter().any(|p| p.cpus.contains(&cpu)),
    }
}

/// Checks that every vCPU of a domain with this affinity can run somewhere in its pool.
pub(super) fn can_run(r: &Reader<'_>, host: &Host, pool: u32, affinity: &[Vec<u32>]) -> Result<()> {
    if !(0..host.pcpus()).any(|cpu| contains(host, pool, cpu)) {
        return Err(r.error(
            "pool",
            format!("`{}`: this pool has no pCPU at the start", r.full("pool")),
            "give it a pCPU, or let the domain start elsewhere and move it with an [[event]]",
        ));
    }
    let nowhere = |list: &&Vec<u32>| !list.iter().any(|cpu| contains(host, pool, *cpu));
    match affinity.iter().position(|list| nowhere(&list)) {
        Some(v) => Err(r.error(
            "affinity",
            format!("`{}`: vCPU {v} may run on no pCPU of its pool", r.full("affinity")),
            "an affinity needs at least one pCPU of the domain's pool",
        )),
        None => Ok(()),
    }
}
