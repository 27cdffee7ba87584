//! The outcome of a run, from the engine's statistics.

use crate::engine::Engine;
use crate::guest::{Drive, Guest, Shootdowns};
use crate::main_loop::Stop;
use overspin_host::picos;
use overspin_scenario::{
    DomainOutcome, Ending, NoiseOutcome, Outcome, PcpuOutcome, Picos, TaskOutcome,
    ThrottlingOutcome, VcpuOutcome, WaitCauses,
};

/// The outcome, without the parts that only observers know (see `overspin_host::run`).
pub(crate) fn outcome(engine: &Engine, stop: Stop) -> Outcome {
    let now = engine.now();
    let guests = engine.guests.get().expect("the run has begun");
    Outcome {
        seed: engine.seed,
        ending: match stop {
            Stop::Finished => Ending::Finished,
            Stop::Limit => Ending::Limit,
            Stop::Asked(by) => Ending::Stopped { by },
            Stop::Deadlock => {
                let of = guests.iter().filter(|g| !g.is_noise);
                Ending::Deadlock { waits: of.flat_map(|g| g.waits(engine)).collect() }
            }
        },
        elapsed: now,
        warmup: Picos::ZERO,
        progress_step: Picos::ZERO,
        events: engine.time.processed(),
        run_ahead: engine.time.run_ahead(),
        trace_hash: engine.telling.hash(),
        pcpus: engine
            .machine
            .pcpus
            .iter()
            .map(|p| {
                let occupied = p.busy_time(now);
                let running = occupied - p.busy.get();
                // A switch that the end of the run cuts short counts up to the end.
                let cut = if p.switching.get() { running } else { Picos::ZERO };
                let switching = p.switch_time.get() + cut;
                PcpuOutcome {
                    busy: occupied - switching,
                    switching,
                    idle: now - occupied,
                    switches: p.switches.get(),
                }
            })
            .collect(),
        domains: guests.iter().filter(|g| !g.is_noise).map(|g| domain_outcome(engine, g)).collect(),
        noise: noise_outcome(engine, guests),
        changes: engine.hypervisor.administrator.borrow().done().to_vec(),
        worst_waits: Vec::new(),
        measurement: None,
    }
}

/// The sum over all noise domains; `None` if the host has no noise.
fn noise_outcome(engine: &Engine, guests: &[Guest]) -> Option<NoiseOutcome> {
    engine.scenario.host.noise.as_ref()?;
    let mut sum = NoiseOutcome::default();
    for domain in guests.iter().filter(|g| g.is_noise).map(|g| domain_outcome(engine, g)) {
        sum.running += domain.vcpus.iter().map(|v| v.running).sum::<Picos>();
        sum.runnable += domain.vcpus.iter().map(|v| v.runnable).sum::<Picos>();
        sum.wakes += domain.tasks.iter().map(|t| t.items).sum::<u64>();
    }
    Some(sum)
}

fn domain_outcome(engine: &Engine, guest: &Guest) -> DomainOutcome {
    let range = guest.first as usize..(guest.first + guest.vcpus) as usize;
    DomainOutcome {
        name: guest.domain.name.clone(),
        started: guest.started.get(),
        finished: guest.finished.get(),
        vcpus: engine.vcpus[range]
            .iter()
            .map(|v| {
                let t = engine.look_at(v.id, |h, local| h.run_times(local, engine.nanos()));
                VcpuOutcome {
                    running: picos(t.running),
                    runnable: picos(t.runnable),
                    blocked: picos(t.blocked),
                    offline: picos(t.offline),
                    spinning: v.spin.time_at(v.run.clock(engine.now())),
                    waiting: Picos::ZERO,
                    dispatches: v.run.dispatches.get(),
                    migrations: v.run.migrations.get(),
                    ticks: v.irqs.ticks.get(),
                    spin_exits: v.spin.exits.count.get(),
                    exiting: v.spin.exits.time.get(),
                    interrupted: v.spin.interrupted.get(),
                    directed_yields: v.spin.exits.directed.get(),
                    windows: engine.window_outcome(v),
                    // Polling that the end of the run cuts short counts up to the end.
                    polling: v.halt.polled.get()
                        + if v.polls() { engine.now() - v.halt.since.get() } else { Picos::ZERO },
                    wait_causes: WaitCauses::default(),
                }
            })
            .collect(),
        locks: guest.lock_outcomes(),
        progress: Vec::new(),
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
                latency: t.latencies.outcome(),
                reports: t.reports.borrow().clone(),
                ended: t.ended.get(),
            })
            .collect(),
        lines: guest.data.outcome(),
        vmstat: guest.vmstat_lines(engine.now()),
        disk: guest.disk.as_ref().map(Drive::outcome),
        shootdowns: guest.shootdowns.as_ref().map(Shootdowns::outcome),
        extensions: guest.extension_outcome(),
        folding: guest.folding_outcome(engine.now()),
        excursions: guest.excursion_outcome(),
        throttling: engine.look_at(guest.first, |h, local| {
            let told = h.throttling(h.machine().domain_of(local), engine.nanos())?;
            let (periods, throttled) = (told.periods, told.throttled);
            Some(ThrottlingOutcome { periods, throttled, time: picos(told.time) })
        }),
    }
}
