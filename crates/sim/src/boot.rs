//! From a scenario to a world that is about to begin.

use crate::SimError;
use crate::admin;
use crate::attribution::Attribution;
use crate::events;
use crate::foresight::Foresight;
use crate::guest::{Guest, LockKinds};
use crate::host::Pcpu;
use crate::memory::{LINE, Memory};
use crate::speed::Socket;
use crate::vcpu::Vcpu;
use crate::world::World;
use overspin_scenario::{Picos, Scenario};
use overspin_workload::{Kinds, LayoutOf, Loads, with_noise};
use std::cell::{Cell, OnceCell, RefCell};

/// Time between two vCPUs that come up, so that a scheduling pass fits in between.
const BOOT_DISTANCE: Picos = 10 * overspin_scenario::US;

/// The world, and what the workloads of all domains make them do.
pub(crate) fn build(
    scenario: &Scenario,
    seed: u64,
    workloads: &Kinds,
) -> Result<(World, Vec<Loads>), SimError> {
    let own_domains = scenario.domains.len();
    let all = with_noise(scenario);
    let loads = crate::check::check(scenario, &all, workloads)?;
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
            ..Vcpu::new(id as u32, guest, index)
        })
        .collect();
    // Room for each lock's line, the data beside locks, and the locks' per-CPU records.
    let named: usize = loads.iter().map(|of| of.lock_names().len()).sum();
    let data =
        |of: &Loads| of.layout(LayoutOf::types::<u8, usize>()).map_or(0, |l| l.size.div_ceil(LINE));
    let data: usize = loads.iter().map(data).sum();
    let lines = 4096 + 2 * named + data + 32 * vcpus.len();
    let foresight = Foresight::new(vcpus.len());
    let world = World {
        now: Cell::new(0),
        horizon: Cell::new(0),
        turn: Cell::new(0),
        postponed: RefCell::default(),
        any_postponed: Cell::new(false),
        current: Cell::new(0),
        yielder: Cell::new(std::ptr::null()),
        memory: Memory::new(host, lines),
        events: RefCell::default(),
        processed: Cell::new(0),
        run_ahead: Cell::new(0),
        hash: Cell::new(seed),
        progress: Cell::new(0),
        scenario: scenario.clone(),
        own_domains,
        all_up: Cell::new(0),
        hypervisor: RefCell::new(admin::hypervisor(scenario)?),
        params: RefCell::new(admin::initial_params(scenario)),
        changes: RefCell::default(),
        actions: RefCell::default(),
        timers: (0..=2 * pcpus).map(|_| events::Timer::new()).collect(),
        pcpus: (0..pcpus).map(|_| Pcpu::new()).collect(),
        sockets: (0..host.sockets).map(|_| Socket::default()).collect(),
        vcpus,
        guests: OnceCell::new(),
        stacks: RefCell::default(),
        seed,
        unfinished: Cell::new(0),
        attribution: Attribution::default(),
        foresight,
        trace: Cell::new(None),
    };
    Ok((world, loads))
}

/// Creates the domains, boots the guests, and arms the first events.
pub(crate) fn start(world: &World, kinds: &LockKinds, loads: Vec<Loads>) -> Result<(), SimError> {
    let scenario = &world.scenario;
    let mut guests = Vec::new();
    let mut first = 0;
    for (id, (domain, loads)) in scenario.domains.iter().zip(loads).enumerate() {
        guests.push(Guest::new(world, id as u32, first, domain, loads, kinds)?);
        first += domain.vcpus;
    }
    world.guests.set(guests).expect("a world starts once");
    let guests = world.guests.get().expect("just set");
    world.hypervisor(0, |h, _, out| admin::start(scenario, h, out))?;
    for guest in guests {
        world.hypervisor(0, |h, _, out| admin::create(h, &guest.domain, out))?;
        guest.boot(world);
    }
    let finite = guests.iter().filter(|g| !g.loads.is_endless()).count() as u32;
    // With nothing that ends, the run goes to its limit.
    world.unfinished.set(if finite == 0 { 1 } else { finite + u32::from(scenario.to_the_limit) });
    world.push(scenario.limit, events::Event::Limit);
    for (v, at) in world.vcpus.iter().zip(boot_times(world, guests)) {
        if v.index == 0 {
            world.guest(v.guest).started.set(at);
        }
        if !v.is_noise {
            world.all_up.set(world.all_up.get().max(at));
        }
        world.push(at, events::Event::Boot { vcpu: v.id });
    }
    world.arm_changes();
    Ok(())
}

/// When each vCPU comes up.
///
/// Domains begin at offsets of their own, since nothing makes the users of two machines start them
/// at the same moment; the first one begins at 0. A domain's boot vCPU comes first, the others at offsets after
/// it: what matters is not how long a kernel takes to boot, but that the time slices of two vCPUs may have any
/// phase to each other, as they have on a host that has been up for long.
///
/// Without offsets they come one after another: all at one instant, the scheduler would place every
/// vCPU as if the host were empty, and pile them up.
fn boot_times(world: &World, guests: &[Guest]) -> Vec<Picos> {
    let stagger = world.scenario.host.stagger;
    let in_a_row = |i: usize| i as Picos * BOOT_DISTANCE;
    if stagger == 0 {
        return (0..world.vcpus.len()).map(in_a_row).collect();
    }
    let (own, noise) = guests.split_at(world.own_domains);
    let offset = |g: &Guest| g.starting_offset(world, 0).below(stagger);
    let first = own.iter().map(offset).min().unwrap_or(0);
    let times = |g: &Guest| -> Vec<Picos> {
        let after = |i: u32| if i == 0 { 0 } else { g.starting_offset(world, i).below(stagger) };
        (0..g.vcpus).map(|i| offset(g) - first + after(i)).collect()
    };
    let mut all: Vec<Picos> = own.iter().flat_map(times).collect();
    // Noise comes last: a scheduler that gives pCPUs away for good gives them to domains.
    let last = all.iter().max().copied().unwrap_or(0) + BOOT_DISTANCE;
    let threads: u32 = noise.iter().map(|g| g.vcpus).sum();
    all.extend((0..threads as usize).map(|i| last + in_a_row(i)));
    all
}
