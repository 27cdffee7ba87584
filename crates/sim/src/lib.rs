//! The simulated world: an execution-driven, deterministic discrete-event simulation of hosts,
//! hypervisor scheduling, and guests that run real lock code and real workload code.
//!
//! Start reading at `world.rs` (time and run-ahead), then `memory.rs` (what a cache line costs),
//! `host.rs` (pCPUs and the engine loop) and `guest/` (the kernel in the guest).
//!
//! This crate needs `unsafe` for three things: following the pointer to the world of the running
//! simulation, calling the condition of a suspended spinner on its own stack, and placing values
//! in the simulated memory.

mod cell;
mod events;
mod guest;
mod host;
mod memory;
mod world;

pub use cell::{SimCell, SimPlatform, SimSlots};

use guest::Guest;
use host::{Pcpu, Stop};
use memory::Memory;
use overspin_scenario::{
    DomainOutcome, Ending, NS, Outcome, PcpuOutcome, Picos, Scenario, TaskOutcome, TraceSink,
    VcpuOutcome,
};
use overspin_sched::{
    Affinity, DomainParams, Hypervisor, Nanos, ParamValue, Params, Topology, VcpuId,
};
use std::cell::{Cell, OnceCell, RefCell};
use world::{Entered, Vcpu, World};

/// Time between two vCPUs that come up, so that a scheduling pass fits in between.
const BOOT_DISTANCE: Picos = 10 * overspin_scenario::US;

/// Version of the model. It changes whenever a change alters simulated results.
pub const MODEL_VERSION: u32 = 1;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The lock does not exist.
    #[error("domain `{domain}`: no lock is called `{lock}`; locks are: {known}")]
    UnknownLock {
        /// Domain.
        domain: String,
        /// Asked for.
        lock: String,
        /// What there is.
        known: String,
    },
    /// Anything else that a scenario asks for and cannot have.
    #[error("{0}")]
    Invalid(String),
}

/// What a caller wants besides the outcome.
#[derive(Default)]
pub struct Options<'a> {
    /// Receives scheduling and lock events.
    pub trace: Option<&'a mut dyn TraceSink>,
    /// Called now and then with the simulated time.
    pub progress: Option<&'a mut dyn FnMut(Picos)>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("trace", &self.trace.is_some()).finish_non_exhaustive()
    }
}

/// Names of all locks, for messages.
fn lock_names() -> String {
    overspin_locks::infos().iter().map(|i| i.name).collect::<Vec<_>>().join(", ")
}

/// Runs a scenario to its end or its limit. Time and memory grow with the events of the run; equal
/// arguments give equal outcomes, bit for bit.
///
/// # Errors
/// If the scenario asks for what does not exist or cannot be.
pub fn run(scenario: &Scenario, seed: u64, mut options: Options<'_>) -> Result<Outcome, SimError> {
    let world = build(scenario, seed)?;
    if let Some(sink) = options.trace.take() {
        let sink: *mut (dyn TraceSink + '_) = sink;
        // SAFETY: only the lifetime changes. `options` is borrowed for this whole call, and the
        // world, which holds the pointer, is dropped before it returns.
        let sink: *mut (dyn TraceSink + 'static) = unsafe { std::mem::transmute(sink) };
        world.trace.set(Some(sink));
    }
    let _entered = Entered::new(&world);
    start(&world)?;
    let stop = world.run(&mut options.progress);
    Ok(outcome(&world, stop))
}

fn check(scenario: &Scenario) -> Result<(), SimError> {
    let bad = |what: String| Err(SimError::Invalid(what));
    if scenario.host.pcpus() == 0 {
        return bad("the host has no pCPU: sockets, cores and threads must be at least 1".into());
    }
    if scenario.domains.is_empty() {
        return bad("there is no domain".into());
    }
    for d in &scenario.domains {
        if d.vcpus == 0 {
            return bad(format!("domain `{}` has no vCPU", d.name));
        }
        let busy = match &d.workload {
            overspin_scenario::Workload::BurnWait(w) => w.burn > 0 || w.wait > 0,
            _ => true,
        };
        if !busy {
            return bad(format!(
                "domain `{}`: burn and wait are both 0: time would stand still",
                d.name
            ));
        }
    }
    Ok(())
}

fn nanos(time: Picos) -> Nanos {
    Nanos::try_from(time / NS).unwrap_or(Nanos::MAX)
}

fn build(scenario: &Scenario, seed: u64) -> Result<World, SimError> {
    check(scenario)?;
    let host = &scenario.host;
    let mut params = Params::default();
    let times = [
        ("tslice", host.params.tslice),
        ("ratelimit", host.params.ratelimit),
        ("migration_delay", host.params.migration_delay),
    ];
    for (key, time) in times {
        if let Some(time) = time {
            params.set(key, ParamValue::Time(nanos(time)));
        }
    }
    let topology = Topology {
        sockets: host.sockets,
        cores_per_socket: host.cores,
        threads_per_core: host.threads,
    };
    let scheduler = overspin_sched::make(&host.scheduler, &params)
        .map_err(|e| SimError::Invalid(e.to_string()))?;
    let pcpus = host.pcpus();
    let vcpus: Vec<Vcpu> = scenario
        .domains
        .iter()
        .enumerate()
        .flat_map(|(d, domain)| (0..domain.vcpus).map(move |i| (d as u32, i)))
        .enumerate()
        .map(|(id, (guest, index))| Vcpu::new(id as u32, guest, index))
        .collect();
    // Room for each lock's line, and for the per-CPU records of the lock algorithms.
    let named: usize =
        scenario.domains.iter().map(|d| overspin_workload::lock_names(&d.workload).len()).sum();
    let lines = 4096 + 2 * named + 32 * vcpus.len();
    Ok(World {
        now: Cell::new(0),
        horizon: Cell::new(0),
        current: Cell::new(0),
        yielder: Cell::new(std::ptr::null()),
        memory: Memory::new(host, lines),
        events: RefCell::default(),
        processed: Cell::new(0),
        run_ahead: Cell::new(0),
        hash: Cell::new(seed),
        progress: Cell::new(0),
        scenario: scenario.clone(),
        hypervisor: RefCell::new(Hypervisor::new(topology, scheduler)),
        actions: RefCell::default(),
        timers: (0..=2 * pcpus).map(|_| events::Timer::new()).collect(),
        pcpus: (0..pcpus).map(|_| Pcpu::new()).collect(),
        vcpus,
        guests: OnceCell::new(),
        stacks: RefCell::default(),
        seed,
        unfinished: Cell::new(0),
        trace: Cell::new(None),
    })
}

/// Creates the domains, boots the guests, and arms the first events.
fn start(world: &World) -> Result<(), SimError> {
    let scenario = &world.scenario;
    let invalid = |e: overspin_sched::SchedError| SimError::Invalid(e.to_string());
    let mut guests = Vec::new();
    let mut first = 0;
    for (id, domain) in scenario.domains.iter().enumerate() {
        guests.push(Guest::new(world, id as u32, first, domain)?);
        first += domain.vcpus;
    }
    world.guests.set(guests).expect("a world starts once");
    let guests = world.guests.get().expect("just set");
    world.hypervisor(0, |h, now, out| h.start(now, out));
    for guest in guests {
        let domain = &guest.domain;
        let params = DomainParams { weight: domain.weight, cap: domain.cap };
        let id = world.hypervisor.borrow_mut().create_domain(params).map_err(invalid)?;
        for i in 0..domain.vcpus {
            let hard: Option<Vec<u32>> = domain.affinity.get(i as usize).cloned();
            let affinity = match hard {
                Some(list) if !list.is_empty() => Affinity::hard(list),
                _ => Affinity::any(),
            };
            world
                .hypervisor(0, |h, now, out| h.create_vcpu(now, id, affinity, out))
                .map_err(invalid)?;
        }
        guest.boot(world);
    }
    let endless = |g: &&Guest| g.domain.workload.is_endless();
    let finite = guests.iter().filter(|g| !endless(g)).count() as u32;
    // With nothing that ends, the run goes to its limit.
    world.unfinished.set(if finite == 0 { 1 } else { finite });
    world.push(scenario.limit, events::Event::Limit);
    // One after another, as guests boot. All at one instant, the scheduler would place every vCPU
    // as if the host were empty, and pile them up.
    for v in &world.vcpus {
        world.push(Picos::from(v.id) * BOOT_DISTANCE, events::Event::Boot { vcpu: v.id });
    }
    Ok(())
}

fn outcome(world: &World, stop: Stop) -> Outcome {
    let now = world.now.get();
    let guests = world.guests.get().expect("the run has begun");
    Outcome {
        seed: world.seed,
        ending: match stop {
            Stop::Finished => Ending::Finished,
            Stop::Limit => Ending::Limit,
            Stop::Deadlock => {
                Ending::Deadlock { waits: guests.iter().flat_map(|g| g.waits(world)).collect() }
            }
        },
        elapsed: now,
        events: world.processed.get(),
        run_ahead: world.run_ahead.get(),
        trace_hash: world.hash.get(),
        pcpus: world
            .pcpus
            .iter()
            .map(|p| {
                let since = p.busy_since.get();
                let running = if since == Picos::MAX { 0 } else { now - since };
                let occupied = p.busy.get() + running;
                PcpuOutcome {
                    busy: occupied.saturating_sub(p.switch_time.get()),
                    switching: p.switch_time.get(),
                    idle: now - occupied,
                    switches: p.switches.get(),
                }
            })
            .collect(),
        domains: guests.iter().map(|g| domain_outcome(world, g)).collect(),
    }
}

fn domain_outcome(world: &World, guest: &Guest) -> DomainOutcome {
    let hypervisor = world.hypervisor.borrow();
    let range = guest.first as usize..(guest.first + guest.vcpus) as usize;
    DomainOutcome {
        name: guest.domain.name.clone(),
        finished: guest.finished.get(),
        vcpus: world.vcpus[range]
            .iter()
            .map(|v| {
                let t = hypervisor.run_times(VcpuId(v.id), world.nanos());
                let picos = |ns: Nanos| ns.max(0) as Picos * NS;
                VcpuOutcome {
                    running: picos(t.running),
                    runnable: picos(t.runnable),
                    blocked: picos(t.blocked),
                    offline: picos(t.offline),
                    spinning: v.spinning.get(),
                    dispatches: v.dispatches.get(),
                    migrations: v.migrations.get(),
                    ticks: v.ticks.get(),
                }
            })
            .collect(),
        locks: guest.lock_outcomes(),
        tasks: guest
            .tasks
            .borrow()
            .iter()
            .map(|t| TaskOutcome {
                name: t.name.clone(),
                cpu: t.cpu.get(),
                user_ticks: t.user_ticks.get(),
                system_ticks: t.system_ticks.get(),
                sleeps: t.sleeps.get(),
                preemptions: t.preemptions.get(),
                items: t.items.get(),
                ended: t.ended.get(),
            })
            .collect(),
    }
}
