//! Makes a machine from a scenario.

use crate::clock::Clock;
use crate::core::{Core, Domain, Pcpu, Vcpu};
use crate::doorbell::Doorbell;
use crate::image::{Image, Sizes};
use crate::job::Job;
use crate::pcpu::{Machine, allowed_cpus};
use crate::program::Program;
use crate::tracing::Tracing;
use crate::vcpu::{KvmVcpu, machine};
use crate::{Hv, kvm_run, rate, world};
use kvm_ioctls::{Kvm, VmFd};
use overspin_host::admin::{self, Administrator};
use overspin_host::{Interest, Refused, nanos};
use overspin_locks::find;
use overspin_scenario::{Picos, Scenario};
use overspin_sched::Nanos;
use overspin_workload::{Loads, Random};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Time between the starts of vCPUs that start in a row.
const BOOT_DISTANCE: Picos = Picos::us(10);
/// See [`more_tasks`].
const TASKS: u32 = 4096;
/// Purposes of random numbers, apart from those of tasks.
const STARTS: u64 = 1 << 40;
const HOMES: u64 = 1 << 41;

/// The machine of a run, before it begins.
pub(crate) struct BootedMachine {
    pub machine: Machine,
    /// Virtual machines live as long as their vCPUs.
    pub vms: Vec<VmFd>,
    pub loads: Vec<Loads>,
}

fn lacks(cause: impl Into<String>, remedy: &str) -> Refused {
    Refused::Machine { cause: cause.into(), remedy: remedy.into() }
}

/// Opens KVM.
pub(crate) fn kvm() -> Result<Kvm, Refused> {
    let remedy = "load the kernel's KVM module, and let this user write to /dev/kvm (group `kvm`); \
                  in a virtual machine, its host has to allow nested virtualisation; \
                  `--world threads` needs neither";
    Kvm::new().map_err(|error| lacks(format!("/dev/kvm cannot be used: {error}"), remedy))
}

/// The CPUs for `pcpus` pCPUs.
fn cpus(pcpus: u32) -> Result<Vec<u32>, Refused> {
    let allowed = allowed_cpus();
    if allowed.len() < pcpus as usize {
        let cause = format!(
            "the scenario has {pcpus} pCPUs, and this process may run on {} CPUs",
            allowed.len()
        );
        return Err(lacks(
            cause,
            "give the scenario fewer pCPUs (`-s host.cores=...`), or run it on a larger machine",
        ));
    }
    Ok(allowed[..pcpus as usize].to_vec())
}

/// Makes everything that the run needs.
pub(crate) fn make(
    hv: &Hv,
    scenario: &Scenario,
    seed: u64,
    interest: Interest,
) -> Result<BootedMachine, Refused> {
    let program = Program::parse(&hv.image)
        .map_err(|what| Refused::Invalid(format!("the guest program: {what}")))?;
    make_with(hv, &program, scenario, seed, interest)
}

/// [`make`], with this program in all guests.
pub(crate) fn make_with(
    hv: &Hv,
    program: &Program,
    scenario: &Scenario,
    seed: u64,
    interest: Interest,
) -> Result<BootedMachine, Refused> {
    let (mut core, loads) = core(hv, program, scenario, seed, interest)?;
    let kvm = kvm()?;
    let cpus = cpus(scenario.host.pcpus())?;
    kvm_run::install_handler();
    let (mut vms, mut vcpus, mut images) = (Vec::new(), Vec::new(), Vec::new());
    let none = |what: String| lacks(what, "see `overspin doctor`");
    for domain in &core.domains {
        let vm = machine(&kvm, &domain.image).map_err(none)?;
        for index in 0..domain.vcpus {
            vcpus.push(KvmVcpu::new(&kvm, &vm, &domain.image, index).map_err(none)?);
            images.push((Arc::clone(&domain.image), index));
        }
        vms.push(vm);
    }
    // Time begins when everything is there.
    core.set_clock(Clock::start(vcpus.first().and_then(KvmVcpu::khz)));
    let bells = cpus.iter().map(|_| Doorbell::default()).collect();
    let vcpus = vcpus.into_iter().map(Mutex::new).collect();
    Ok(BootedMachine {
        machine: Machine { core: Mutex::new(core), bells, vcpus, images, cpus },
        vms,
        loads,
    })
}

/// Makes the state of the hypervisor and the memory of its domains. This needs no KVM.
pub(crate) fn core(
    hv: &Hv,
    program: &Program,
    scenario: &Scenario,
    seed: u64,
    interest: Interest,
) -> Result<(Core, Vec<Loads>), Refused> {
    let loads = hv.loads(scenario)?;
    let rate = rate::per_2_20_ns();
    let plan = boot_plan(scenario, seed);
    let all_up = plan.iter().copied().max().unwrap_or(Nanos::ZERO);
    let mut vcpus = Vec::with_capacity(plan.len());
    let mut domains = Vec::with_capacity(loads.len());
    for (d, (domain, load)) in scenario.domains.iter().zip(&loads).enumerate() {
        let first = vcpus.len() as u32;
        vcpus.extend((0..domain.vcpus).map(|index| {
            let number = first + index;
            let home = number % scenario.host.pcpus();
            let first_home = (scenario.host.stagger > Picos::ZERO).then(|| {
                let stream = HOMES ^ (d as u64) << 20 ^ u64::from(index);
                Random::new(seed ^ Random::new(stream).bits()).bits()
            });
            Vcpu { first_home, ..Vcpu::new(d as u32, index, home, plan[number as usize]) }
        }));
        let image = image(program, scenario, (d, load), seed, rate)?;
        let info = image.info();
        let traces = interest.meets(Interest::WAITS.and(Interest::LOCKS));
        info.traces.store(u32::from(traces), Ordering::Relaxed);
        info.all_up.store(all_up.0.unsigned_abs(), Ordering::Relaxed);
        domains.push(Domain {
            first,
            vcpus: domain.vcpus,
            finite: !load.is_endless(),
            started: Nanos::ZERO,
            finished: None,
            fault: None,
            console: String::new(),
            reports: vec![Vec::new(); image.sizes.tasks as usize],
            image: Arc::new(image),
        });
    }
    let mut actions = Vec::new();
    let mut pools = admin::hypervisor(scenario, &hv.schedulers)?;
    admin::start(scenario, &hv.schedulers, &mut pools, &mut actions)?;
    for domain in &scenario.domains {
        admin::create(&mut pools, domain, &mut actions)?;
    }
    let finite = domains.iter().filter(|d| d.finite).count() as u32;
    let mut core = Core {
        scenario: Arc::new(scenario.clone()),
        clock: Clock::start(None),
        rate,
        pools,
        administrator: Administrator::new(scenario, scenario.domains.len()),
        events: VecDeque::from(admin::in_time_order(scenario)),
        pcpus: (0..scenario.host.pcpus()).map(|_| Pcpu::default()).collect(),
        vcpus,
        domains,
        accounting: None,
        actions,
        to_ring: Vec::new(),
        tracing: Tracing::new(interest),
        // If no workload ends, the run goes to its limit.
        unfinished: if finite == 0 { 1 } else { finite + u32::from(scenario.to_the_limit) },
        ended: false,
    };
    // Carries out the actions of the start.
    core.hypervisor(None, |_, _| {});
    Ok((core, loads))
}

/// The memory of domain `d`, with its job.
fn image(
    program: &Program,
    scenario: &Scenario,
    (d, load): (usize, &Loads),
    seed: u64,
    rate: u64,
) -> Result<Image, Refused> {
    let domain = &scenario.domains[d];
    let sizes = Sizes {
        vcpus: domain.vcpus,
        locks: load.lock_names().len() as u32,
        lockers: world::lockers(load, domain.vcpus),
        tasks: load.start(domain.vcpus).len() as u32 + more_tasks(load, domain.vcpus),
        // `Hv::loads` has refused more.
        live: load.most_tasks(domain.vcpus) as u32,
        touches: load.touches_memory(),
    };
    let job = Job {
        domain: domain.clone(),
        seed: Random::new(seed ^ Random::new(d as u64).bits()).bits(),
        staggered: scenario.host.stagger > Picos::ZERO,
        shares: world::shares(load, domain.vcpus),
        lock: find(&domain.lock).map_or("", |info| info.name).into(),
    };
    let argument = serde_json::to_vec(&job)
        .map_err(|error| Refused::Invalid(format!("domain `{}`: {error}", domain.name)))?;
    let image = Image::new(program, sizes, &argument).map_err(|what| {
        lacks(format!("domain `{}`: {what}", domain.name), "give it fewer vCPUs")
    })?;
    image.info().burn_rate.store(rate, Ordering::Relaxed);
    Ok(image)
}

/// Tasks that are started later and of which the outcome tells. All that come after them are one line.
fn more_tasks(load: &Loads, vcpus: u32) -> u32 {
    if load.starts_tasks(vcpus) { TASKS } else { 0 }
}

/// When each vCPU comes up, at the earliest: as in the simulator, domains begin at random offsets, and the vCPUs of
/// a domain at random offsets after its first. Without offsets they come up in a row.
fn boot_plan(scenario: &Scenario, seed: u64) -> Vec<Nanos> {
    let stagger = scenario.host.stagger;
    let numbered = || {
        scenario
            .domains
            .iter()
            .enumerate()
            .flat_map(|(d, domain)| (0..domain.vcpus).map(move |i| (d, i)))
    };
    if stagger == Picos::ZERO {
        return (0..numbered().count() as u64).map(|i| nanos(BOOT_DISTANCE * i)).collect();
    }
    let offset = |d: usize, i: u32| {
        let stream = STARTS | (d as u64) << 20 | u64::from(i);
        Random::new(seed ^ Random::new(stream).bits()).time_below(stagger)
    };
    let first = (0..scenario.domains.len()).map(|d| offset(d, 0)).min().unwrap_or_default();
    numbered()
        .map(|(d, i)| {
            let after = if i == 0 { Picos::ZERO } else { offset(d, i) };
            nanos(offset(d, 0) - first + after)
        })
        .collect()
}
