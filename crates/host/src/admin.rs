//! The actions of an administrator: creating pools and domains, and carrying out the events of the
//! scenario, all through the hypervisor's own operations.
//!
//! To check whether the events are possible, [`rehearse`] carries them out, in order, on a machine on
//! which nothing runs. So only the hypervisor decides what is refused, and why. On the running machine an
//! event can be refused for one more reason: an object that it concerns is still moving to another pool.
//! The outcome reports that.

use crate::time::nanos;
use crate::world::Refused;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{Change, ChangeOutcome, Domain, Host, Picos, Scenario, Setting, Settings};
use overspin_sched::{
    Action, Affinity, DomainId, DomainParams, Nanos, ParamValue, Params, PcpuId, PoolId, Pools,
    SchedError, Schedulers, Topology, VcpuId, Whose,
};

/// Converts the parameters of a scenario for a scheduler: times become whole nanoseconds.
#[must_use]
pub fn scheduler_params(settings: &Settings) -> Params {
    settings.iter().fold(Params::default(), |params, (key, setting)| {
        let value = match setting {
            Setting::Time(time) => ParamValue::Time(nanos(*time)),
            Setting::Number(n) => ParamValue::Number(*n),
            Setting::Flag(on) => ParamValue::Flag(*on),
            Setting::Word(word) => ParamValue::Word(word.clone()),
        };
        params.with(key, value)
    })
}

// The crate of the keys does not know the schedulers, whose limits these are.
const _: () = {
    use overspin_scenario::keys::{CAP, Kind, WEIGHT};
    const fn ends_at(kind: Kind, most: u32) -> bool {
        matches!(kind, Kind::Integer { max, .. } if max == most as u64)
    }
    assert!(ends_at(WEIGHT, DomainParams::MAX_WEIGHT) && ends_at(CAP, DomainParams::MAX_CAP));
    assert!(Host::MOST_PCPUS == Topology::MAX_PCPUS);
};

fn invalid(error: SchedError) -> Refused {
    Refused::Invalid(error.to_string())
}

/// Creates the hypervisor of a scenario; [`start`] creates its other pools.
pub fn hypervisor(scenario: &Scenario, schedulers: &Schedulers) -> Result<Pools, Refused> {
    let host = &scenario.host;
    let topology = Topology {
        sockets: host.sockets,
        cores_per_socket: host.cores,
        threads_per_core: host.threads,
    };
    let scheduler = schedulers.make(&host.scheduler, &scheduler_params(&host.params));
    Ok(Pools::new(topology, scheduler.map_err(invalid)?))
}

/// Starts the scheduler of the host, and creates the other pools.
pub fn start(
    scenario: &Scenario,
    schedulers: &Schedulers,
    h: &mut Pools,
    out: &mut Vec<Action>,
) -> Result<(), Refused> {
    h.start(Nanos::ZERO, out);
    for pool in &scenario.host.pools {
        let named = |e: SchedError| Refused::Invalid(format!("pool `{}`: {e}", pool.name));
        let scheduler = schedulers.make(&pool.scheduler, &scheduler_params(&pool.params));
        let id = h.create_pool(Nanos::ZERO, scheduler.map_err(named)?, out);
        for pcpu in &pool.cpus {
            if h.pcpus_of(PoolId(0)).all(|p| p.0 != *pcpu) {
                let what = format!(
                    "pool `{}`: pCPU {pcpu} is not free: pool 0 does not own it",
                    pool.name
                );
                return Err(Refused::Invalid(what));
            }
            h.move_pcpu(Nanos::ZERO, PcpuId(*pcpu), id, out).map_err(named)?;
        }
    }
    Ok(())
}

fn affinity_of(pcpus: Option<&Vec<u32>>) -> Affinity {
    match pcpus {
        Some(list) if !list.is_empty() => Affinity::hard(list.iter().copied()),
        _ => Affinity::any(),
    }
}

/// Creates a domain and its vCPUs, which are down.
pub fn create(h: &mut Pools, domain: &Domain, out: &mut Vec<Action>) -> Result<(), Refused> {
    let named = |e: SchedError| Refused::Invalid(format!("domain `{}`: {e}", domain.name));
    let params = DomainParams { weight: domain.weight, cap: domain.cap };
    let pool = PoolId(domain.pool);
    if h.hypervisor(pool).is_some() && h.pcpus_of(pool).next().is_none() {
        return Err(named(SchedError::PoolWithoutPcpus(pool)));
    }
    let id = h.create_domain(pool, params).map_err(named)?;
    let own = scheduler_params(&domain.params);
    h.on_domain(id, out, |h, d, out| h.configure(Nanos::ZERO, Whose::Domain(d), &own, out))
        .map_err(named)?;
    for i in 0..domain.vcpus {
        let affinity = affinity_of(domain.affinity.get(i as usize));
        let v = h.create_vcpu(Nanos::ZERO, id, affinity, out).map_err(named)?;
        if let Some(weight) = domain.weights.get(i as usize) {
            h.on_vcpu(v, out, |h, v, out| h.set_weight(Nanos::ZERO, v, *weight, out))
                .map_err(named)?;
        }
    }
    // The number of vCPUs limits the cap, and is known only now.
    params.check(Some(domain.vcpus)).map_err(named)
}

/// The administrator of a running host, with a record of what it has done so far.
#[derive(Clone, Debug)]
pub struct Administrator {
    /// Domains from this index on are the host's noise.
    own_domains: usize,
    /// Current weights and caps: the hypervisor sets both at once.
    params: Vec<DomainParams>,
    done: Vec<ChangeOutcome>,
}

impl Administrator {
    /// The administrator of a host that runs `scenario`, whose domains from `own_domains` on are the
    /// host's noise.
    #[must_use]
    pub fn new(scenario: &Scenario, own_domains: usize) -> Self {
        let params = |d: &Domain| DomainParams { weight: d.weight, cap: d.cap };
        let params = scenario.domains.iter().map(params).collect();
        Self { own_domains, params, done: Vec::new() }
    }

    /// The changes made so far, in order.
    #[must_use]
    pub fn done(&self) -> &[ChangeOutcome] {
        &self.done
    }

    /// Carries out an event of the scenario at `at`, and records the result in [`done`](Self::done).
    pub fn carry_out(
        &mut self,
        scenario: &Scenario,
        event: usize,
        h: &mut Pools,
        at: Picos,
        out: &mut Vec<Action>,
    ) {
        let change = &scenario.events[event].change;
        let refused = self.apply(scenario, h, nanos(at), change, out).err();
        let refused = refused.map(|e| e.to_string());
        self.done.push(ChangeOutcome { at, change: change.clone(), refused });
    }

    /// Carries out a change.
    fn apply(
        &mut self,
        scenario: &Scenario,
        h: &mut Pools,
        now: Nanos,
        change: &Change,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        // The vCPUs concerned, numbered over all domains.
        let vcpus = |domain: u32, vcpu: Option<u32>| {
            let counts = scenario.domains.iter().map(|d| d.vcpus);
            let first: u32 = counts.clone().take(domain as usize).sum();
            let count = scenario.domains.get(domain as usize).map_or(0, |d| d.vcpus);
            match vcpu {
                _ if count == 0 => Err(SchedError::UnknownDomain(DomainId(domain))),
                Some(v) if v >= count => Err(SchedError::UnknownVcpu(VcpuId(v))),
                Some(v) => Ok(first + v..first + v + 1),
                None => Ok(first..first + count),
            }
        };
        let set = |params: &mut [DomainParams],
                   h: &mut Pools,
                   domain: u32,
                   new: DomainParams,
                   out: &mut Vec<Action>| {
            let d = DomainId(domain);
            if h.pool_of_domain(d).1.is_some() {
                return Err(SchedError::DomainMoves(d));
            }
            h.on_domain(d, out, |h, d, out| h.set_domain(now, d, new, out))?;
            params[domain as usize] = new;
            Ok(())
        };
        match change {
            Change::Weight { domain, weight } => {
                vcpus(*domain, None)?;
                let new = DomainParams { weight: *weight, ..self.params[*domain as usize] };
                set(&mut self.params, h, *domain, new, out)
            }
            Change::Cap { domain, cap } => {
                vcpus(*domain, None)?;
                let new = DomainParams { cap: *cap, ..self.params[*domain as usize] };
                set(&mut self.params, h, *domain, new, out)
            }
            Change::Affinity { domain, vcpu, affinity } => {
                let vcpus = vcpus(*domain, *vcpu)?;
                if h.pool_of_domain(DomainId(*domain)).1.is_some() {
                    return Err(SchedError::DomainMoves(DomainId(*domain)));
                }
                for (v, list) in vcpus.zip(affinity) {
                    let affinity = affinity_of(Some(list));
                    h.on_vcpu(VcpuId(v), out, |h, v, out| h.set_affinity(now, v, affinity, out))?;
                }
                Ok(())
            }
            Change::Pause { domain, vcpu } => {
                let range = vcpus(*domain, *vcpu)?;
                match vcpu {
                    Some(_) => {
                        h.on_vcpu(VcpuId(range.start), out, |h, v, out| h.pause(now, v, out))
                    }
                    None => {
                        h.on_domain(DomainId(*domain), out, |h, d, out| {
                            h.pause_domain(now, d, out)
                        });
                    }
                }
                Ok(())
            }
            Change::Unpause { domain, vcpu } => {
                let range = vcpus(*domain, *vcpu)?;
                match vcpu {
                    Some(_) => {
                        h.on_vcpu(VcpuId(range.start), out, |h, v, out| h.unpause(now, v, out))
                    }
                    None => {
                        h.on_domain(DomainId(*domain), out, |h, d, out| {
                            h.unpause_domain(now, d, out)
                        });
                    }
                }
                Ok(())
            }
            Change::MoveDomain { domain, pool } => {
                vcpus(*domain, None)?;
                let (d, pool) = (DomainId(*domain), PoolId(*pool));
                let stays = h.pool_of_domain(d) == (pool, None);
                h.move_domain(now, d, pool, out)?;
                if !stays {
                    self.params[*domain as usize] = DomainParams::default();
                }
                Ok(())
            }
            Change::MovePcpu { pcpu, pool } => {
                free_noise_of(scenario, self.own_domains, h, now, *pcpu, out)?;
                h.move_pcpu(now, PcpuId(*pcpu), PoolId(*pool), out)
            }
        }
    }
}

/// Lets the host's threads on `pcpu` run anywhere in their pool, as a kernel does before a CPU goes away.
fn free_noise_of(
    scenario: &Scenario,
    own_domains: usize,
    h: &mut Pools,
    now: Nanos,
    pcpu: u32,
    out: &mut Vec<Action>,
) -> Result<(), SchedError> {
    let affinities = scenario.domains.iter().enumerate().flat_map(|(d, domain)| {
        let of = move |i| (d, domain.affinity.get(i as usize));
        (0..domain.vcpus).map(of)
    });
    for (v, (domain, affinity)) in (0..).map(VcpuId).zip(affinities) {
        if domain >= own_domains && affinity.is_some_and(|list| list.contains(&pcpu)) {
            let anywhere = Affinity::any();
            h.on_vcpu(v, out, |h, v, out| h.set_affinity(now, v, anywhere, out))?;
        }
    }
    Ok(())
}

/// Checks pools, domains and events, and reports the first one that is not possible. Domains from
/// `own_domains` on are the host's noise.
pub fn rehearse(
    scenario: &Scenario,
    own_domains: usize,
    schedulers: &Schedulers,
) -> Result<(), Refused> {
    let mut h = hypervisor(scenario, schedulers)?;
    let out = &mut Vec::new();
    start(scenario, schedulers, &mut h, out)?;
    for domain in &scenario.domains {
        create(&mut h, domain, out)?;
    }
    let mut administrator = Administrator::new(scenario, own_domains);
    let mut pauses = vec![0_u32; scenario.domains.iter().map(|d| 1 + d.vcpus as usize).sum()];
    for index in in_time_order(scenario) {
        let event = &scenario.events[index];
        let refused = |cause: String| Refused::Event { index, cause };
        let done = administrator.apply(scenario, &mut h, nanos(event.at), &event.change, out);
        done.map_err(|e| refused(e.to_string()))?;
        paired(scenario, &mut pauses, &event.change).map_err(refused)?;
        out.clear();
    }
    Ok(())
}

/// Counts pauses. The hypervisor ignores an unpause without a pause; in a scenario that is a mistake.
fn paired(scenario: &Scenario, pauses: &mut [u32], change: &Change) -> Result<(), String> {
    let slot = |domain: u32, vcpu: Option<u32>| {
        let before = scenario.domains.iter().take(domain as usize);
        let first: usize = before.map(|d| 1 + d.vcpus as usize).sum();
        first + vcpu.map_or(0, |v| 1 + v as usize)
    };
    match change {
        Change::Pause { domain, vcpu } => pauses[slot(*domain, *vcpu)] += 1,
        Change::Unpause { domain, vcpu } => {
            let count = &mut pauses[slot(*domain, *vcpu)];
            *count = count.checked_sub(1).ok_or("it is not paused at that time")?;
        }
        _ => {}
    }
    Ok(())
}

/// The events in order of time; events at the same time are in the order of the scenario.
#[must_use]
pub fn in_time_order(scenario: &Scenario) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scenario.events.len()).collect();
    order.sort_by_key(|i| scenario.events[*i].at);
    order
}
