//! The outcome of a run: what the host counted, and what guests counted in their memory.

use crate::core::{Core, Domain};
use crate::{NAME, world};
use overspin_guest_abi::{LockStats, TaskStats};
use overspin_histogram::Histogram;
use overspin_host::{nanos, picos};
use overspin_scenario::{
    DomainOutcome, Ending, LatencyOutcome, LockOutcome, Measurement, NS, Outcome, PcpuOutcome,
    Picos, ShootdownOutcome, Stopped, TaskOutcome, VcpuOutcome,
};
use overspin_sched::Nanos;
use overspin_workload::Loads;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    Limit,
    Asked(Stopped),
}

/// Nanoseconds that a guest states. It cannot have counted more than the run lasted.
fn time(word: &AtomicU64, most: Picos) -> Picos {
    NS.saturating_mul(word.load(Ordering::Relaxed)).min(most)
}

/// The state of a run at the end of its warm-up.
#[derive(Debug)]
pub(crate) struct WarmUp {
    outcome: Outcome,
    /// The waits for each lock of each domain.
    waits: Vec<Vec<Histogram>>,
    /// The waits for answers of each task of each domain.
    answers: Vec<Vec<Histogram>>,
}

impl WarmUp {
    /// The warm-up ends now: guests' longest times begin anew. A guest that is just about to raise one may keep it.
    pub(crate) fn ends(core: &Core, seed: u64, loads: &[Loads]) -> Self {
        let (mut waits, mut answers) = (Vec::new(), Vec::new());
        for (d, loads) in core.domains.iter().zip(loads) {
            let locks = loads.lock_names().len() as u32;
            waits.push((0..locks).map(|i| waits_for(d, i)).collect());
            answers
                .push((0..d.image.sizes.tasks).map(|i| answered(d.image.task_stats(i))).collect());
            for stats in (0..d.image.sizes.lockers)
                .flat_map(|v| (0..locks).map(move |i| d.image.lock_stats(v, i)))
            {
                if stats.acquisitions.load(Ordering::Relaxed) > 0 {
                    stats.wait_max.store(0, Ordering::Relaxed);
                    stats.hold_max.store(0, Ordering::Relaxed);
                }
            }
            for stats in (0..d.image.sizes.tasks).map(|i| d.image.task_stats(i)) {
                if stats.answers.load(Ordering::Relaxed) > 0 {
                    stats.longest.store(0, Ordering::Relaxed);
                }
            }
        }
        Self { outcome: outcome(core, seed, End::Limit, (loads, &[]), None), waits, answers }
    }
}

/// Items of each domain so far.
pub(crate) fn items(core: &Core) -> Vec<u64> {
    let of_task = |d: &Domain, i| d.image.task_stats(i).items.load(Ordering::Relaxed);
    let of = |d: &Domain| {
        (0..d.image.sizes.tasks).fold(0, |sum: u64, i| sum.saturating_add(of_task(d, i)))
    };
    core.domains.iter().map(of).collect()
}

/// The outcome of what happened after the warm-up, without the parts that only observers know.
pub(crate) fn outcome(
    core: &Core,
    seed: u64,
    end: End,
    (loads, cpus): (&[Loads], &[u32]),
    before: Option<&WarmUp>,
) -> Outcome {
    let elapsed = core.now();
    let fault = |(d, domain): (&Domain, &overspin_scenario::Domain)| {
        d.fault.as_ref().map(|fault| format!("the host stopped domain `{}`: {fault}", domain.name))
    };
    let faults: Vec<String> =
        core.domains.iter().zip(&core.scenario.domains).filter_map(fault).collect();
    let mut doubts = faults.clone();
    if core.tracing.dropped > 0 {
        doubts.push(format!("{} moments at locks were too many to keep", core.tracing.dropped));
    }
    let mut all = Outcome {
        seed,
        ending: match end {
            _ if !faults.is_empty() => Ending::Deadlock { waits: faults },
            End::Finished => Ending::Finished,
            End::Limit => Ending::Limit,
            End::Asked(by) => Ending::Stopped { by },
        },
        elapsed,
        warmup: Picos::ZERO,
        progress_step: Picos::ZERO,
        events: core.pcpus.iter().map(|p| p.passes).sum(),
        run_ahead: 0,
        trace_hash: 0,
        pcpus: pcpus(core, nanos(elapsed)),
        domains: core
            .domains
            .iter()
            .zip(&core.scenario.domains)
            .zip(loads)
            .enumerate()
            .map(|(i, ((d, scenario), loads))| {
                domain((core, elapsed), d, (scenario, loads), before.map(|b| (b, i)))
            })
            .collect(),
        changes: core.administrator.done().to_vec(),
        worst_waits: Vec::new(),
        noise: None,
        measurement: Some(Measurement {
            world: NAME.into(),
            cpus: cpus.to_vec(),
            steps_per_us: core.rate as f64 * 1000.0 / (1_u64 << 20) as f64,
            missing: missing(core, loads),
            doubts,
            ..Measurement::default()
        }),
    };
    if let Some(before) = before {
        all = all.since(&before.outcome);
        // A guest counts the spinning of a wait when the wait ends: that of the warm-up, too.
        for v in all.domains.iter_mut().flat_map(|d| &mut d.vcpus) {
            v.spinning = v.spinning.min(v.running);
        }
    }
    all
}

/// What the outcome lacks of guests without ticks.
fn missing(core: &Core, loads: &[Loads]) -> Vec<String> {
    let mut all = loads.iter().zip(&core.scenario.domains);
    let has_ticks = all.all(|(loads, d)| world::shares(loads, d.vcpus));
    let ticks = "ticks, and tasks' tick accounts, where each task has a vCPU of its own";
    if has_ticks { Vec::new() } else { vec![ticks.into()] }
}

fn pcpus(core: &Core, now: Nanos) -> Vec<PcpuOutcome> {
    let one = |p: &crate::core::Pcpu| {
        let open = p.occupied_since.map_or(0, |since| now.0 - since.0);
        let occupied = Nanos((p.occupied.0 + open).clamp(0, now.0));
        // Its thread does not hold the core, so a vCPU that it has is in its guest.
        let entered = p.current.map(|v| core.vcpus[v as usize].entered);
        let since = entered.zip(p.occupied_since).map(|(entered, since)| entered.max(since));
        let here = since.map_or(0, |since| (now.0 - since.0).max(0));
        let busy = Nanos((p.inside.0 + here).min(occupied.0));
        PcpuOutcome {
            busy: picos(busy),
            // Everything that the host does while the pCPU is given to a vCPU.
            switching: picos(Nanos(occupied.0 - busy.0)),
            idle: picos(Nanos(now.0 - occupied.0)),
            switches: p.switches,
        }
    };
    core.pcpus.iter().map(one).collect()
}

fn domain(
    (core, elapsed): (&Core, Picos),
    d: &Domain,
    (scenario, loads): (&overspin_scenario::Domain, &Loads),
    before: Option<(&WarmUp, usize)>,
) -> DomainOutcome {
    let asked = core.scenario.host.preemption_notification.as_ref();
    let vcpu = |i: u32| {
        let v = d.first + i;
        let times = core.look_at(v, |h, v| h.run_times(v, nanos(elapsed)));
        let (vcpu, page) = (&core.vcpus[v as usize], d.image.page(i));
        let running = picos(times.running);
        VcpuOutcome {
            running,
            runnable: picos(times.runnable),
            blocked: picos(times.blocked),
            offline: picos(times.offline),
            spinning: time(&page.spinning, running),
            waiting: time(&page.waiting, running),
            dispatches: vcpu.dispatches,
            ticks: vcpu.ticked,
            migrations: vcpu.migrations,
            windows: asked
                .filter(|options| overspin_host::notification::asks(options, d.vcpus))
                .map(|_| vcpu.notified.outcome(elapsed)),
            ..VcpuOutcome::default()
        }
    };
    // Tasks that share vCPUs measure their CPU time themselves; another has that of its vCPU.
    let shares = world::shares(loads, scenario.vcpus);
    let task = |i: u32, name: String, on: u32| {
        let stats = d.image.task_stats(i);
        let ended = stats.ended.load(Ordering::Relaxed);
        let running =
            || picos(core.look_at(d.first + on, |h, v| h.run_times(v, nanos(elapsed)).running));
        TaskOutcome {
            name,
            cpu: if shares { time(&stats.cpu, elapsed) } else { running() },
            sleeps: stats.sleeps.load(Ordering::Relaxed),
            preemptions: stats.preemptions.load(Ordering::Relaxed),
            user_ticks: time(&stats.ticks[0], elapsed),
            system_ticks: time(&stats.ticks[1], elapsed),
            items: stats.items.load(Ordering::Relaxed),
            ended: (ended > 0).then(|| NS.saturating_mul(ended - 1).min(elapsed)),
            latency: latency(stats, before.map(|(b, d)| &b.answers[d][i as usize]), elapsed),
            reports: d.reports[i as usize].clone(),
        }
    };
    let first = loads.start(scenario.vcpus);
    let started = (first.len() as u32..d.image.sizes.tasks).filter_map(|i| {
        let stats = d.image.task_stats(i);
        (stats.begun.load(Ordering::Relaxed) != 0).then(|| task(i, told_name(stats), 0))
    });
    let first = first.into_iter().enumerate().map(|(i, t)| {
        let on = t.start.vcpu.unwrap_or(i as u32);
        task(i as u32, t.start.name, on)
    });
    let tasks = first.chain(started).collect();
    DomainOutcome {
        name: scenario.name.clone(),
        started: picos(d.started),
        finished: d.finished.map(picos),
        vcpus: (0..d.vcpus).map(vcpu).collect(),
        locks: (0..)
            .zip(loads.lock_names())
            .map(|(i, name)| {
                let before = before.map(|(b, d)| {
                    let acquisitions = b.outcome.domains[d].locks[i as usize].acquisitions;
                    (acquisitions, &b.waits[d][i as usize])
                });
                lock(d, (i, name), before, elapsed)
            })
            .collect(),
        tasks,
        shootdowns: loads.unmaps().then(|| shootdowns(d, elapsed)),
        ..DomainOutcome::default()
    }
}

/// The TLB shootdowns of a guest.
fn shootdowns(d: &Domain, elapsed: Picos) -> ShootdownOutcome {
    let mut sum = ShootdownOutcome::default();
    for unmaps in (0..d.vcpus).map(|i| &d.image.page(i).unmaps) {
        let count = |word: &AtomicU64| word.load(Ordering::Relaxed);
        sum.shootdowns = sum.shootdowns.saturating_add(count(&unmaps.shootdowns));
        sum.interrupts = sum.interrupts.saturating_add(count(&unmaps.interrupts));
        sum.skipped = sum.skipped.saturating_add(count(&unmaps.skipped));
        sum.waited += time(&unmaps.waited, elapsed);
        sum.preempted += time(&unmaps.preempted, elapsed);
    }
    sum
}

/// The name that a guest gave a task. It may be anything.
fn told_name(stats: &TaskStats) -> String {
    let name = stats.name();
    let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..len]).into_owned()
}

/// All waits for a lock so far.
fn waits_for(d: &Domain, lock: u32) -> Histogram {
    let mut waits = Histogram::default();
    // To read the others would be to allocate their memory.
    let waited = |stats: &&LockStats| stats.contended.load(Ordering::Relaxed) > 0;
    let all = (0..d.image.sizes.lockers).map(|v| d.image.lock_stats(v, lock));
    all.filter(waited).for_each(|stats| waits.add(stats.waits.buckets()));
    waits
}

/// What happened at a lock. `before`: its acquisitions in the warm-up, and their waits.
fn lock(
    d: &Domain,
    (i, name): (u32, String),
    before: Option<(u64, &Histogram)>,
    most: Picos,
) -> LockOutcome {
    let all = || (0..d.image.sizes.lockers).map(|v| d.image.lock_stats(v, i));
    let sum = |of: fn(&LockStats) -> &AtomicU64| {
        all().map(|stats| of(stats).load(Ordering::Relaxed)).fold(0, u64::saturating_add)
    };
    let longest = |of: fn(&LockStats) -> &AtomicU64| {
        all().map(|stats| time(of(stats), most)).max().unwrap_or_default()
    };
    let total = |of: fn(&LockStats) -> &AtomicU64| NS.saturating_mul(sum(of));
    let (acquisitions, wait_max) = (sum(|s| &s.acquisitions), longest(|s| &s.wait_max));
    let (mut waits, mut counted) = (waits_for(d, i), acquisitions);
    if let Some((acquisitions, then)) = before {
        (waits, counted) = (waits.since(then), counted.saturating_sub(acquisitions));
    }
    let quantile = |one_in| NS.saturating_mul(waits.of_all_but(one_in, counted)).min(wait_max);
    LockOutcome {
        name,
        acquisitions,
        contended: sum(|s| &s.contended),
        wait_total: total(|s| &s.wait_total),
        wait_max,
        wait_p50: quantile(2),
        wait_p99: quantile(100),
        wait_p999: quantile(1000),
        hold_total: total(|s| &s.hold_total),
        hold_max: longest(|s| &s.hold_max),
        slow_paths: sum(|s| &s.slow_paths),
        kicks: sum(|s| &s.kicks),
        holder_preempted: sum(|s| &s.preempted),
        ..LockOutcome::default()
    }
}

/// All waits for answers of a task so far.
fn answered(stats: &TaskStats) -> Histogram {
    let mut waits = Histogram::default();
    if stats.answers.load(Ordering::Relaxed) > 0 {
        waits.add(stats.waits.buckets());
    }
    waits
}

fn latency(stats: &TaskStats, before: Option<&Histogram>, most: Picos) -> Option<LatencyOutcome> {
    let answers = stats.answers.load(Ordering::Relaxed);
    (answers > 0).then(|| {
        let (mut waits, max) = (answered(stats), time(&stats.longest, most));
        if let Some(before) = before {
            waits = waits.since(before);
        }
        let quantile = |one_in| NS.saturating_mul(waits.of_all_but(one_in, waits.count())).min(max);
        LatencyOutcome {
            answers,
            total: NS.saturating_mul(stats.waited.load(Ordering::Relaxed)),
            max,
            p50: quantile(2),
            p99: quantile(100),
            p999: quantile(1000),
        }
    })
}
