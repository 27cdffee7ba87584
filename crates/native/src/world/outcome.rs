//! The outcome of a run, from the accounts of its threads and of the kernel.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use overspin_host::{Curve, Observer};
use overspin_scenario::{
    DomainOutcome, Ending, LatencyOutcome, LockOutcome, Measurement, Outcome, Picos, TaskOutcome,
    ThrottlingOutcome, VcpuOutcome,
};

use super::control_group::{ControlGroup, Throttling};
use super::run::{DomainRun, Run, Task};
use super::switches::{Switch, migrations};
use super::task::{Done, LockSeen};
use super::trace::{Trace, VcpuTrace};
use super::{is_set, of, picos};
use crate::bench::{Clock, Spread};

/// What the quota of a domain did since the end of the warm-up.
fn throttling(of: &DomainRun) -> Option<ThrottlingOutcome> {
    let [before, all] = super::of(&of.throttling);
    let Throttling { periods, throttled, throttled_ns } = all?.since(before.unwrap_or_default());
    Some(ThrottlingOutcome { periods, throttled, time: picos(throttled_ns) })
}

/// Reads the kernel's records of switches, before it needs their place.
pub(super) fn read_switches(run: &Run) {
    for task in of(&run.tasks) {
        if let Some(switches) = &mut task.state().switches {
            switches.read();
        }
    }
}

/// Reads how often quotas have stopped domains: at the end of the warm-up (0), or in all (1).
pub(super) fn read_throttling(run: &Run, when: usize) {
    for domain in &run.domains {
        let told = domain.group.as_ref().and_then(ControlGroup::throttling);
        domain.throttling.lock().unwrap_or_else(PoisonError::into_inner)[when] = told;
    }
}

/// Takes the accounts of all threads: what they do after this is only to end.
pub(super) fn close_accounts(run: &Run) {
    read_throttling(run, 1);
    for task in of(&run.tasks) {
        let account = task.account();
        let mut state = task.state();
        if state.last.is_none() {
            state.last = Some(account);
        }
        if let Some(switches) = &mut state.switches {
            switches.read();
        }
    }
}

/// A run that is over.
#[derive(Debug)]
pub(super) struct Measured<'a> {
    /// The CPUs that stood for pCPUs.
    pub cpus: &'a [usize],
    pub doubts: Vec<String>,
    /// How it ended, and when.
    pub ending: (Ending, Picos),
}

/// What a task has left.
struct Left {
    task: Arc<Task>,
    done: Done,
    switches: Vec<Switch>,
    /// Whether its switches are all known.
    watched: bool,
    account: super::kernel::Account,
    items: u64,
    /// The number of its switches before the end of the warm-up.
    warm_switches: usize,
    ended: Option<Picos>,
}

impl Measured<'_> {
    /// The outcome; tells `observer` the moments if they are known.
    pub(super) fn outcome(self, run: &Run, observer: &mut dyn Observer) -> Outcome {
        let clock = run.burn.clock();
        let left: Vec<Left> = of(&run.tasks).into_iter().map(leave).collect();
        let (ending, elapsed) = self.ending.clone();
        let warmup = of(&run.warmup);
        // A vCPU is a thread, or moments of vCPUs would overlap.
        let single = (0..run.domains.len()).all(|d| {
            let of_domain = || left.iter().filter(move |l| l.task.domain == d);
            of_domain().all(|l| of_domain().filter(|o| o.task.vcpu == l.task.vcpu).count() == 1)
        });
        let switches = run.watches && !left.is_empty() && left.iter().all(|l| l.watched);
        let told = single && switches && !is_set(&run.full);
        let mut missing = self.missing(run, single, switches);
        let mut domains: Vec<DomainOutcome> = (0..run.domains.len())
            .map(|d| domain(run, d, &left, (elapsed - warmup, clock, single)))
            .collect();
        let mut pcpus = Vec::new();
        if told && let Some((_, began)) = run.began.get() {
            let ns = |ticks| clock.ns(began.ticks, ticks);
            let vcpus = left.into_iter().map(|l| VcpuTrace {
                domain: l.task.domain,
                vcpu: l.task.vcpu,
                held: l.done.held.iter().map(|h| h.by(ns)).collect(),
                switches: l.switches,
            });
            let vcpus = vcpus.collect();
            let begun_ns = began.ns;
            let trace = Trace { vcpus, begun_ns, warmup, end: elapsed, cpus: self.cpus };
            pcpus = trace.tell(observer, &mut domains);
        } else {
            missing.push("causes of waits, time on each pCPU, preempted holders".into());
        }
        let mut outcome = Outcome {
            seed: run.seed,
            ending,
            elapsed,
            warmup,
            progress_step: Picos::ZERO,
            events: 0,
            run_ahead: 0,
            trace_hash: 0,
            pcpus,
            domains,
            changes: Vec::new(),
            worst_waits: Vec::new(),
            noise: None,
            measurement: Some(Measurement {
                world: "threads".into(),
                cpus: self.cpus.iter().map(|cpu| *cpu as u32).collect(),
                steps_per_us: run.burn.steps_per_us(),
                missing,
                doubts: self.doubts,
                ..Measurement::default()
            }),
        };
        let mut curve = run.curve.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *curve, Curve::new(0)).complete(&mut outcome);
        outcome
    }

    /// What this world cannot measure, and why.
    fn missing(&self, run: &Run, single: bool, switches: bool) -> Vec<String> {
        let mut missing = vec!["time of spinning apart from other waiting".to_owned()];
        if !single {
            missing.push(
                "run states of vCPUs with several tasks: each task is a thread, and the kernel knows no vCPUs".into(),
            );
        }
        if run.watches && !switches {
            missing.push(
                "switches: the kernel does not let threads record theirs (perf_event_open), or some were lost".into(),
            );
        }
        if is_set(&run.full) {
            missing.push("moments: there were more acquisitions than a run remembers".into());
        }
        missing
    }
}

fn leave(task: Arc<Task>) -> Left {
    let mut state = task.state.lock().unwrap_or_else(PoisonError::into_inner);
    let done = state.done.take().unwrap_or_default();
    let (watched, switches) = match &mut state.switches {
        Some(s) => (!s.lost, std::mem::take(&mut s.seen)),
        None => (false, Vec::new()),
    };
    let (account, ended, warm) = (state.last.unwrap_or_default(), state.ended, state.warm);
    drop(state);
    let items = task.items.load(Relaxed) - warm.items;
    let (account, warm_switches) = (account.since(warm.account), warm.switches.min(switches.len()));
    Left { task, done, switches, watched, account, items, warm_switches, ended }
}

fn domain(
    run: &Run,
    d: usize,
    all: &[Left],
    (counted, clock, single): (Picos, Clock, bool),
) -> DomainOutcome {
    let of_run = &run.domains[d];
    let mine: Vec<&Left> = all.iter().filter(|l| l.task.domain == d).collect();
    let vcpu = |v: u32| {
        let threads = || mine.iter().filter(move |l| l.task.vcpu == v);
        let sum = |of: fn(&Left) -> u64| threads().map(|l| of(l)).sum::<u64>();
        let running = picos(sum(|l| l.account.cpu_ns)).min(counted);
        let runnable = picos(sum(|l| l.account.delay_ns.unwrap_or(0))).min(counted - running);
        let mut outcome = VcpuOutcome {
            running,
            dispatches: sum(|l| l.account.dispatches),
            migrations: threads().map(|l| migrations(&l.switches[l.warm_switches..])).sum(),
            ..VcpuOutcome::default()
        };
        if single {
            (outcome.runnable, outcome.blocked) = (runnable, counted - running - runnable);
        }
        outcome
    };
    let lock = |(i, name): (usize, &String)| {
        let mut sum = LockSeen::default();
        for seen in mine.iter().filter_map(|l| l.done.locks.get(i)) {
            sum.add(seen);
        }
        sum.outcome(name, clock)
    };
    DomainOutcome {
        name: of_run.name.clone(),
        started: Picos::ZERO,
        finished: of(&of_run.finished),
        vcpus: (0..of_run.vcpus).map(vcpu).collect(),
        locks: of_run.lock_names.iter().enumerate().map(lock).collect(),
        tasks: mine.iter().map(|l| task(l)).collect(),
        throttling: throttling(of_run),
        ..DomainOutcome::default()
    }
}

fn task(l: &Left) -> TaskOutcome {
    TaskOutcome {
        name: l.task.name.clone(),
        cpu: picos(l.account.cpu_ns),
        user_ticks: Picos::ZERO,
        system_ticks: Picos::ZERO,
        sleeps: l.account.voluntary,
        preemptions: l.account.involuntary,
        items: l.items,
        ended: l.ended,
        latency: l.done.latency.as_ref().map(latency),
        reports: l.done.reports.clone(),
    }
}

fn latency(all: &Spread) -> LatencyOutcome {
    LatencyOutcome {
        answers: all.count(),
        total: picos(all.total),
        max: picos(all.max),
        p50: picos(all.of_all_but(2)),
        p99: picos(all.of_all_but(100)),
        p999: picos(all.of_all_but(1000)),
    }
}

impl LockSeen {
    fn add(&mut self, other: &Self) {
        self.waits.add(&other.waits);
        self.contended += other.contended;
        self.hold_total += other.hold_total;
        self.hold_max = self.hold_max.max(other.hold_max);
        self.slow_paths += other.slow_paths;
        self.kicks += other.kicks;
    }

    fn outcome(&self, name: &str, clock: Clock) -> LockOutcome {
        let time = |ticks: u64| picos(clock.ns(0, ticks));
        let quantile = |one_in| time(self.waits.of_all_but(one_in));
        LockOutcome {
            name: name.to_owned(),
            acquisitions: self.waits.count(),
            contended: self.contended,
            wait_total: time(self.waits.total),
            wait_max: time(self.waits.max),
            wait_p50: quantile(2),
            wait_p99: quantile(100),
            wait_p999: quantile(1000),
            hold_total: time(self.hold_total),
            hold_max: time(self.hold_max),
            slow_paths: self.slow_paths,
            kicks: self.kicks,
            ..LockOutcome::default()
        }
    }
}
