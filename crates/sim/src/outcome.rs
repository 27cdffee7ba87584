//! What came out of a run.

use crate::engine::Stop;
use crate::guest::{Drive, Guest};
use crate::vcpu::Op;
use crate::world::World;
use overspin_scenario::{
    DomainOutcome, Ending, NS, NoiseOutcome, Outcome, PcpuOutcome, Picos, TaskOutcome, VcpuOutcome,
};
use overspin_sched::Nanos;
use std::cell::Cell;

pub(crate) fn outcome(world: &World, stop: Stop) -> Outcome {
    let now = world.now.get();
    let guests = world.guests.get().expect("the run has begun");
    Outcome {
        seed: world.seed,
        ending: match stop {
            Stop::Finished => Ending::Finished,
            Stop::Limit => Ending::Limit,
            Stop::Asked(by) => Ending::Stopped { by },
            Stop::Deadlock => {
                let of = guests.iter().filter(|g| !g.is_noise);
                Ending::Deadlock { waits: of.flat_map(|g| g.waits(world)).collect() }
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
                let occupied = p.busy_time(now);
                let running = occupied - p.busy.get();
                // A switch that the end of the run cuts short counts as far as it came.
                let cut = if p.switching.get() { running } else { 0 };
                let switching = p.switch_time.get() + cut;
                PcpuOutcome {
                    busy: occupied - switching,
                    switching,
                    idle: now - occupied,
                    switches: p.switches.get(),
                }
            })
            .collect(),
        domains: guests.iter().filter(|g| !g.is_noise).map(|g| domain_outcome(world, g)).collect(),
        noise: noise_outcome(world, guests),
        changes: world.changes.borrow().clone(),
        worst_waits: world.worst_waits(),
    }
}

/// The sum over all domains that make noise.
fn noise_outcome(world: &World, guests: &[Guest]) -> Option<NoiseOutcome> {
    world.scenario.host.noise.as_ref()?;
    let mut sum = NoiseOutcome::default();
    for domain in guests.iter().filter(|g| g.is_noise).map(|g| domain_outcome(world, g)) {
        sum.running += domain.vcpus.iter().map(|v| v.running).sum::<Picos>();
        sum.runnable += domain.vcpus.iter().map(|v| v.runnable).sum::<Picos>();
        sum.wakes += domain.tasks.iter().map(|t| t.items).sum::<u64>();
    }
    Some(sum)
}

fn domain_outcome(world: &World, guest: &Guest) -> DomainOutcome {
    let now = world.now.get();
    let range = guest.first as usize..(guest.first + guest.vcpus) as usize;
    DomainOutcome {
        name: guest.domain.name.clone(),
        started: guest.started.get(),
        finished: guest.finished.get(),
        vcpus: world.vcpus[range]
            .iter()
            .map(|v| {
                let t = world.look_at(v.id, |h, local| h.run_times(local, world.nanos()));
                let picos = |ns: Nanos| ns.max(0) as Picos * NS;
                VcpuOutcome {
                    running: picos(t.running),
                    runnable: picos(t.runnable),
                    blocked: picos(t.blocked),
                    offline: picos(t.offline),
                    spinning: v.spinning.get(),
                    waiting: v.waiting_time(now),
                    dispatches: v.dispatches.get(),
                    migrations: v.migrations.get(),
                    ticks: v.ticks.get(),
                    spin_exits: v.pauses.exits.get(),
                    exiting: v.pauses.exiting.get(),
                    directed_yields: v.pauses.directed.get(),
                    windows: world.window_outcome(v),
                    // What the end of the run cuts short counts as far as it came.
                    polling: v.polling.get()
                        + if v.op.get() == Op::HaltPoll {
                            world.now.get() - v.blocked_since.get()
                        } else {
                            0
                        },
                    wait_causes: v.waited.each_ref().map(Cell::get).into(),
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
                reports: t.reports.borrow().clone(),
                ended: t.ended.get(),
            })
            .collect(),
        lines: guest.data.outcome(),
        vmstat: guest.vmstat_lines(world.now.get()),
        disk: guest.disk.as_ref().map(Drive::outcome),
    }
}
