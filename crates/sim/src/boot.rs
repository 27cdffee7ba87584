//! Builds an engine from a scenario, up to the point where the run begins.

use crate::Simulator;
use crate::asking::Asking;
use crate::costs::Costs;
use crate::counting::Counting;
use crate::directed_yield::HOST_LINES;
use crate::engine::{Code, End, Engine, HypervisorState, Machine};
use crate::events;
use crate::guest::Guest;
use crate::host::Pcpu;
use crate::memory::{LINE, Memory};
use crate::prefetch::Prefetch;
use crate::speed::Socket;
use crate::telling::Telling;
use crate::timeline::Timeline;
use crate::vcpu::Vcpu;
use overspin_host::Refused;
use overspin_host::admin::{self, Administrator};
use overspin_scenario::{Domain, GuestType, Picos, Scenario};
use overspin_workload::{LayoutOf, Loads, with_noise};
use std::cell::{Cell, OnceCell, RefCell};

/// Time between the boots of two vCPUs, so that a scheduling pass fits in between.
const BOOT_DISTANCE: Picos = Picos::us(10);

/// Builds the engine, and the loads that the workloads of all domains place on them.
pub(crate) fn build(
    scenario: &Scenario,
    seed: u64,
    simulator: &Simulator,
) -> Result<(Engine, Vec<Loads>), Refused> {
    let own_domains = scenario.domains.len();
    let all = with_noise(scenario);
    let loads = crate::validity::check(scenario, &all, simulator)?;
    let scenario = &all;
    let host = &scenario.host;
    let pcpus = host.pcpus();
    let vcpus: Vec<Vcpu> = scenario
        .domains
        .iter()
        .enumerate()
        .flat_map(|(d, domain)| (0..domain.vcpus).map(move |i| (d as u32, i)))
        .enumerate()
        .map(|(id, (guest, index))| Vcpu {
            is_noise: guest as usize >= own_domains,
            exits: scenario.domains[guest as usize].guest_type != Some(GuestType::Pv),
            ..Vcpu::new(id as u32, guest, index)
        })
        .collect();
    // Room for each lock's line, the data beside locks, and the locks' per-CPU records.
    let named: usize = loads.iter().map(|of| of.lock_names().len()).sum();
    let data =
        |of: &Loads| of.layout(LayoutOf::types::<u8, usize>()).map_or(0, |l| l.size.div_ceil(LINE));
    let data: usize = loads.iter().map(data).sum();
    let lock_cpus = |(of, domain): (&Loads, &Domain)| of.lock_cpus(domain.vcpus);
    let lock_cpus: usize = loads.iter().zip(&scenario.domains).map(lock_cpus).sum();
    let lines = 4096 + 2 * named + data + 32 * lock_cpus + HOST_LINES * vcpus.len();
    let memory = Memory::new(host, lines);
    let prefetch = Prefetch::new(vcpus.len());
    let engine = Engine {
        seed,
        scenario: scenario.clone(),
        costs: Costs::new(&host.costs, seed),
        own_domains,
        all_up: Cell::new(Picos::ZERO),
        time: Timeline::default(),
        machine: Machine {
            pcpus: (0..pcpus).map(|_| Pcpu::new()).collect(),
            sockets: (0..host.sockets).map(|_| Socket::default()).collect(),
            locks_run_queues: Cell::new(false),
            host_lines: memory.lines(HOST_LINES * vcpus.len()),
            memory,
        },
        hypervisor: HypervisorState {
            pools: RefCell::new(admin::hypervisor(scenario, &simulator.schedulers)?),
            administrator: RefCell::new(Administrator::new(scenario, own_domains)),
            actions: RefCell::default(),
            timers: (0..=2 * pcpus).map(|_| events::Timer::new()).collect(),
        },
        code: Code {
            current: Cell::new(vcpus.as_ptr()),
            yielder: Cell::new(std::ptr::null()),
            stacks: RefCell::default(),
        },
        vcpus,
        guests: OnceCell::new(),
        end: End { unfinished: Cell::new(0), progress: Cell::new(0), asking: Asking::new() },
        counting: Counting::new(own_domains),
        telling: Telling::new(seed),
        prefetch,
    };
    Ok((engine, loads))
}

/// Creates the domains, boots the guests, and arms the first events.
pub(crate) fn start(
    engine: &Engine,
    simulator: &Simulator,
    loads: Vec<Loads>,
) -> Result<(), Refused> {
    let scenario = &engine.scenario;
    let mut guests = Vec::new();
    let mut first = 0;
    for (id, (domain, loads)) in scenario.domains.iter().zip(loads).enumerate() {
        guests.push(Guest::new(engine, id as u32, first, domain, loads, simulator)?);
        first += domain.vcpus;
    }
    engine.guests.set(guests).expect("an engine starts once");
    let guests = engine.guests.get().expect("just set");
    engine.hypervisor(0, |h, _, out| admin::start(scenario, &simulator.schedulers, h, out))?;
    for guest in guests {
        engine.hypervisor(0, |h, _, out| admin::create(h, &guest.domain, out))?;
        guest.boot(engine);
    }
    engine.find_run_queue_locks();
    let finite = guests.iter().filter(|g| !g.loads.is_endless()).count() as u32;
    // If no workload ends, the run goes to its limit.
    engine.end.unfinished.set(if finite == 0 {
        1
    } else {
        finite + u32::from(scenario.to_the_limit)
    });
    engine.push(scenario.limit, events::Event::Limit);
    engine.start_counting(finite == 0);
    for (v, at) in engine.vcpus.iter().zip(boot_times(engine, guests)) {
        if v.index == 0 {
            engine.guest(v.guest).started.set(at);
        }
        if !v.is_noise {
            engine.all_up.set(engine.all_up.get().max(at));
        }
        engine.push(at, events::Event::Boot { vcpu: v.id });
    }
    for index in admin::in_time_order(scenario) {
        engine.push(scenario.events[index].at, events::Event::Change { index: index as u32 });
    }
    Ok(())
}

/// When each vCPU comes up.
///
/// Each domain begins at a random offset, since the users of two machines do not start them at the same
/// moment; the first domain begins at 0. A domain's boot vCPU comes up first, the others at random offsets
/// after it. The offsets do not model how long a kernel boots. They let the time slices of two vCPUs have any
/// phase relative to each other, as on a host that has been up for long.
///
/// Without offsets (a `stagger` of 0) the vCPUs come up one after another, [`BOOT_DISTANCE`] apart. If all
/// came up at one instant, the scheduler would place each as if the host were empty, and pile them up.
fn boot_times(engine: &Engine, guests: &[Guest]) -> Vec<Picos> {
    let stagger = engine.scenario.host.stagger;
    let in_a_row = |i: usize| i as u64 * BOOT_DISTANCE;
    if stagger == Picos::ZERO {
        return (0..engine.vcpus.len()).map(in_a_row).collect();
    }
    let (own, noise) = guests.split_at(engine.own_domains);
    let offset = |g: &Guest| g.starting_offset(engine, 0).time_below(stagger);
    let first = own.iter().map(offset).min().unwrap_or_default();
    let times = |g: &Guest| -> Vec<Picos> {
        let after = |i: u32| {
            if i == 0 { Picos::ZERO } else { g.starting_offset(engine, i).time_below(stagger) }
        };
        (0..g.vcpus).map(|i| offset(g) - first + after(i)).collect()
    };
    let mut all: Vec<Picos> = own.iter().flat_map(times).collect();
    // Noise comes last, so that a scheduler that assigns pCPUs for good assigns them to domains.
    let last = all.iter().max().copied().unwrap_or_default() + BOOT_DISTANCE;
    let threads: u32 = noise.iter().map(|g| g.vcpus).sum();
    all.extend((0..threads as usize).map(|i| last + in_a_row(i)));
    all
}
