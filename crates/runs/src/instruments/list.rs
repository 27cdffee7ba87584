//! All instruments, with how each of their metrics is computed.

use super::{Has, Instrument, Row, Subject, Trace, metrics};
use crate::catalog;
use crate::sweep::MEASURES;
use overspin_record::metric::Metric;
use overspin_record::metric::simulated::{BUSY, SPINNING};
use overspin_scenario::{
    DomainOutcome, ExtensionOutcome, LatencyOutcome, LineOutcome, LockOutcome, Picos, TaskOutcome,
    VcpuOutcome, WaitCauses, WindowOutcome,
};
use overspin_workload::{LockLoop, Pft};

/// A row: name, unit and meaning of the metric, the runs that have it, and how it is computed.
macro_rules! row {
    ($name:literal, $unit:literal, $meaning:literal, $has:ident, $of:expr) => {{
        static METRIC: Metric = Metric::new($name, $unit, $meaning);
        row!(&METRIC, $has, $of)
    }};
    ($metric:expr, $has:ident, $of:expr) => {
        Row { metric: $metric, has: Has::$has, of: $of }
    };
}

/// All instruments.
pub static INSTRUMENTS: [Instrument; 14] = [
    Instrument {
        name: "run",
        places: "What the hypervisor sees of the domain. `elapsed` and `cpu` are of finished runs only.",
        metrics: || metrics(&run()),
        rows: run,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "time",
        places: "What time(1) prints of the domain's tasks. Only finished runs have it.",
        metrics: || metrics(&time()),
        rows: time,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "vcpus",
        places: "What `xm vcpu-list` prints. The place of a vCPU is below the domain's: `ticket.half.v0`. Only \
                 finished runs have it.",
        metrics: || metrics(&vcpus()),
        rows: vcpus,
        of_vcpu: Some((&VCPU_TIME, vcpu_time)),
        fits: |_| true,
    },
    Instrument {
        name: "locks",
        places: "What each point of a sweep has, over the locks of all domains.",
        metrics: || metrics(&all_locks()),
        rows: all_locks,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "lockmeter",
        places: "What lockmeter shows of the workload's locks, and what no tool could show of cache lines. Only \
                 finished runs have it.",
        metrics: || metrics(&lockmeter()),
        rows: lockmeter,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "vmstat",
        places: "What a trace of `vmstat` says about a file server, in a domain whose kernel sets `vmstat`. Only \
                 finished runs have it.",
        metrics: || metrics(&vmstat()),
        rows: vmstat,
        of_vcpu: None,
        fits: |domain| domain.kernel.vmstat.is_some(),
    },
    Instrument {
        name: "windows",
        places: "The windows before preemptions of the domain's vCPUs.",
        metrics: || metrics(&windows()),
        rows: windows,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "extensions",
        places: "The extensions of time slices, in a domain whose kernel sets `slice_extension`.",
        metrics: || metrics(&extensions()),
        rows: extensions,
        of_vcpu: None,
        fits: |domain| domain.kernel.slice_extension.is_some(),
    },
    Instrument {
        name: "steal",
        places: "What the host steals from the domain, and what the domain does.",
        metrics: || metrics(&steal()),
        rows: steal,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "folding",
        places: "What a governor of stolen time does, in a domain whose kernel has one (`steal_governor`).",
        metrics: || metrics(&folding()),
        rows: folding,
        of_vcpu: None,
        fits: |domain| domain.kernel.steal_governor.is_some(),
    },
    Instrument {
        name: "exits",
        places: "Pause-loop exits of all domains, and what the host makes of them.",
        metrics: || metrics(&exits()),
        rows: exits,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "excursions",
        places: "Entries into the kernel in the middle of sections, in a domain of which a workload sets `excursion` or `run_up`.",
        metrics: || metrics(&excursions()),
        rows: excursions,
        of_vcpu: None,
        fits: |domain| domain.workload.get::<LockLoop>().is_some(),
    },
    Instrument {
        name: "quota",
        places: "What a cap does to a domain, and who pays for it. Threads *beside* the group are those on vCPUs without the \
                 cap (`capped_vcpus`).",
        metrics: || metrics(&quota()),
        rows: quota,
        of_vcpu: None,
        fits: |_| true,
    },
    Instrument {
        name: "faults",
        places: "The page faults of a domain that runs `pft`. Only finished runs have them.",
        metrics: || metrics(&faults()),
        rows: faults,
        of_vcpu: None,
        fits: |domain| domain.workload.get::<Pft>().is_some(),
    },
];

#[rustfmt::skip]
fn run() -> Vec<Row> {
    vec![
        row!("finished", "", "1 if the domain's work was done before the limit, else 0", Every,
            |s| Some(f64::from(u8::from(s.domain().finished.is_some())))),
        row!("elapsed", "s", "time from the start of the domain until its work was done", Finished,
            |s| s.domain().time_to_finish().map(|time| time.seconds() * s.scale)),
        row!("cpu", "s", "CPU time of the domain's tasks", Finished, |s| Some(cpu(s) * s.scale)),
        row!("requests", "1/s", "work items of the other domains: requests that they answer", Every, requests),
        row!("holders-preempted", "", "holds of a lock during which the holder was descheduled", Every,
            |s| Some(s.domain().locks.iter().map(|l| l.holder_preempted).sum::<u64>() as f64)),
        row!(&SPINNING, Every, |s| Some(part(
            s.domain().vcpus.iter().map(|v| v.spinning).sum(),
            s.domain().vcpus.iter().map(|v| v.running).sum(),
        ))),
        row!(&BUSY, Every, |s| Some(part(
            s.outcome.pcpus.iter().map(|p| p.busy).sum(),
            s.outcome.pcpus.iter().map(|p| p.busy + p.switching + p.idle).sum(),
        ))),
        row!("events", "", "a number that is equal for runs with the same events: the first 52 bits of their hash", Every,
            |s| Some((s.outcome.trace_hash >> 12) as f64)),
    ]
}

#[rustfmt::skip]
fn time() -> Vec<Row> {
    vec![
        row!("user", "s", "user time that ticks charged", Finished, |s| Some(user(s) * s.scale)),
        row!("system", "s", "system time that ticks charged", Finished, |s| Some(system(s) * s.scale)),
        row!("cpu", "%", "(user + system) / elapsed in whole percent, truncated as by time(1)", Finished,
            |s| Some(((user(s) + system(s)) / s.seconds() * 100.0).floor())),
        row!("context-switches", "", "involuntary switches", Finished,
            |s| Some(s.domain().tasks.iter().map(|t| t.preemptions).sum::<u64>() as f64 * s.scale)),
        row!("sleeps", "", "voluntary switches", Finished,
            |s| Some(s.domain().tasks.iter().map(|t| t.sleeps).sum::<u64>() as f64 * s.scale)),
    ]
}

fn vcpus() -> Vec<Row> {
    vec![row!(&VCPU_TIME, Finished, |s| sum(&s.domain().vcpus, |v| vcpu_time(s, v)))]
}

fn all_locks() -> Vec<Row> {
    MEASURES.iter().map(|m| row!(m.metric, Sound, m.of)).collect()
}

#[rustfmt::skip]
fn lockmeter() -> Vec<Row> {
    vec![
        row!("hold", "us", "mean hold time of the workload's locks", Finished,
            |s| Some(each(s, locks(s).iter().map(|l| l.hold_total).sum()))),
        row!("hold-data", "us", "of this, the time in which the holder gets at its data", Finished,
            |s| Some(each(s, s.domain().lines.iter().map(|l| l.stalled).sum()))),
        row!("waiting-share", "%", "waits for all locks in parts of the time of all CPUs", Finished, |s| {
            let waited: Picos = s.domain().locks.iter().map(|l| l.wait_total).sum();
            Some(waited.percent(s.outcome.counted() * s.domain().vcpus.len() as u64))
        }),
        row!("lost-lines", "%", "part of the holders' accesses that were to a line that they had had and lost", Finished, |s| {
            let sum = |count: fn(&LineOutcome) -> u64| s.domain().lines.iter().map(count).sum::<u64>() as f64;
            Some(100.0 * sum(|l| l.lost) / sum(|l| l.accesses).max(1.0))
        }),
    ]
}

#[rustfmt::skip]
fn vmstat() -> Vec<Row> {
    /// A row whose value is that figure of the trace.
    macro_rules! traced {
        ($name:literal, $unit:literal, $meaning:literal) => {
            row!($name, $unit, $meaning, Finished, |s| Trace::of(s)?.figure($name))
        };
    }
    vec![
        traced!("elapsed", "s", "from the beginning of the work to its end"),
        traced!("make", "s", "busy time before the first user work: files are made"),
        traced!("remove", "s", "busy time after the last user work: files are removed"),
        traced!("idle", "s", "idle time between the first and the last line"),
        traced!("user", "s", "user time of all CPUs"),
        traced!("system", "s", "system time of all CPUs"),
        traced!("user-share", "%", "user time in parts of the CPU time that is not idle"),
        traced!("system-share", "%", "system time in parts of the CPU time that is not idle"),
        traced!("written", "KiB", "what is written to the disk"),
        traced!("writing", "s", "time in which something is written, by the lines of the trace"),
        traced!("writing-seconds", "s", "whole seconds in which something is written, as published lines tell"),
        traced!("most-written", "KiB", "most that is written in one second"),
    ]
}

#[rustfmt::skip]
fn windows() -> Vec<Row> {
    vec![
        row!("windows", "", "windows that the host offered", Every, |s| of_windows(s, |w| w.offered)),
        row!("windows-used", "", "windows in which the guest gave the CPU up by itself", Every, |s| of_windows(s, |w| w.used)),
        row!("windows-expired", "", "windows that ran out", Every, |s| of_windows(s, |w| w.expired)),
        row!("windows-refused", "", "preemptions without a window, because too many had expired", Every,
            |s| of_windows(s, |w| w.refused)),
    ]
}

#[rustfmt::skip]
fn extensions() -> Vec<Row> {
    vec![
        row!("extensions", "", "extensions of time slices that the kernel granted", Every, |s| of_extensions(s, |e| e.granted)),
        row!("extensions-yielded", "", "extensions that the task gave back", Every, |s| of_extensions(s, |e| e.yielded)),
        row!("extensions-expired", "", "extensions that ran out", Every, |s| of_extensions(s, |e| e.expired)),
    ]
}

#[rustfmt::skip]
fn steal() -> Vec<Row> {
    vec![
        row!("stolen", "%", "time in which vCPUs wanted a pCPU and had none, in parts of the time of all vCPUs", Every, |s| Some(part(
            s.domain().vcpus.iter().map(|v| v.runnable).sum(),
            s.outcome.counted() * s.domain().vcpus.len() as u64,
        ))),
        row!("items", "1/s", "work items of all tasks of the domain", Every,
            |s| Some(item_rate(s, s.domain()))),
        row!("least-to-most", "%", "work items of the domain that does least, in parts of those of the domain that does most", Every, |s| {
            let all = || s.outcome.domains.iter().map(|d| item_rate(s, d));
            let most = all().fold(0.0, f64::max);
            (most > 0.0).then(|| 100.0 * all().fold(most, f64::min) / most)
        }),
    ]
}

#[rustfmt::skip]
fn folding() -> Vec<Row> {
    vec![
        row!("preferred", "", "vCPUs that tasks were to use, on average", Every,
            |s| s.domain().folding.map(|f| f.preferred.ratio(s.outcome.counted()))),
        row!("narrowed", "", "how often the governor removed a core", Every, |s| s.domain().folding.map(|f| f.narrowed as f64)),
        row!("widened", "", "how often it added one", Every, |s| s.domain().folding.map(|f| f.widened as f64)),
        row!("pushed", "", "tasks that a tick took off a vCPU that they were not to use any more", Every,
            |s| s.domain().folding.map(|f| f.pushed as f64)),
    ]
}

#[rustfmt::skip]
fn exits() -> Vec<Row> {
    vec![
        row!("pause-loop-exits", "1/s", "exits of vCPUs that spun", Every, |s| Some(of_host(s, |v| v.spin_exits))),
        row!("directed-yields", "1/s", "yields to a sibling that the scheduler took", Every,
            |s| Some(of_host(s, |v| v.directed_yields))),
        row!("exiting", "%", "running time of all vCPUs that exits took", Every, |s| {
            let all = || s.outcome.domains.iter().flat_map(|d| &d.vcpus);
            Some(part(all().map(|v| v.exiting).sum(), all().map(|v| v.running).sum()))
        }),
    ]
}

/// A count of all vCPUs of the host, for each second.
fn of_host(s: &Subject<'_>, of: fn(&VcpuOutcome) -> u64) -> f64 {
    let vcpus = s.outcome.domains.iter().flat_map(|d| &d.vcpus);
    vcpus.map(of).sum::<u64>() as f64 / s.outcome.counted().seconds()
}

#[rustfmt::skip]
fn excursions() -> Vec<Row> {
    vec![
        row!("excursions", "1/s", "entries into the kernel in sections", Every,
            |s| s.domain().excursions.map(|e| e.number as f64 / s.outcome.counted().seconds())),
        row!("excursions-preempted", "%", "those in which, or on the return from which, another task took over", Every,
            |s| s.domain().excursions.map(|e| 100.0 * e.preempted as f64 / e.number.max(1) as f64)),
    ]
}

#[rustfmt::skip]
fn quota() -> Vec<Row> {
    vec![
        row!("throttled-periods", "%", "periods in which it used its quota up, of those in which it ran (`nr_throttled`)", Sound,
            |s| s.domain().throttling.map(|t| 100.0 * t.throttled as f64 / t.periods.max(1) as f64)),
        row!("throttled-time", "", "seconds for which it stood still, summed over the pCPUs, each second (`throttled_time`)", Sound,
            |s| s.domain().throttling.map(|t| t.time.seconds() / s.seconds())),
        row!("burnt-quota", "%", "CPU time under the cap that was spent on waiting for locks: spinning, and stalls on their lines",
            Sound, |s| Some(part(under_cap(s).0.iter().map(|v| v.waiting).sum(), under_cap(s).0.iter().map(|v| v.running).sum()))),
        row!("behind-throttled", "%", "waits for locks, in which its cap kept the holder, or the next one, from running, and the waiter \
            was not off its pCPU, too", Sound, |s| behind(&s.domain().vcpus)),
        row!("behind-throttled-beside", "%", "the same for threads beside the group", Sound, |s| behind(under_cap(s).1)),
        row!("items-under", "1/s", "work of a thread under the cap", Sound, |s| Some(rate(s, tasks(s).0))),
        row!("items-beside", "1/s", "work of a thread beside the group", Sound, |s| Some(rate(s, tasks(s).1))),
        row!("latency-p99", "ms", "99 % of the answers of a thread under the cap took at most this long, of the thread where it is \
            longest", Sound, |s| latency(tasks(s).0, |l| l.p99)),
        row!("latency-p99-beside", "ms", "the same of a thread beside the group", Sound, |s| latency(tasks(s).1, |l| l.p99)),
        row!("latency-p999-beside", "ms", "the same for 99.9 % of the answers", Sound, |s| latency(tasks(s).1, |l| l.p999)),
    ]
}

/// The parts of a list that belong to vCPUs under the cap, and to those beside it.
fn divided<'a, T>(s: &Subject<'_>, all: &'a [T]) -> (&'a [T], &'a [T]) {
    all.split_at((s.asked().capped_vcpus() as usize).min(all.len()))
}

fn under_cap<'a>(s: &Subject<'a>) -> (&'a [VcpuOutcome], &'a [VcpuOutcome]) {
    divided(s, &s.domain().vcpus)
}

/// Where each vCPU has a task of its own.
fn tasks<'a>(s: &Subject<'a>) -> (&'a [TaskOutcome], &'a [TaskOutcome]) {
    divided(s, &s.domain().tasks)
}

fn behind(vcpus: &[VcpuOutcome]) -> Option<f64> {
    let causes = WaitCauses::sum(vcpus.iter().map(|v| &v.wait_causes));
    (!vcpus.is_empty())
        .then(|| part(causes.holder_throttled + causes.next_throttled, causes.total()))
}

fn rate(s: &Subject<'_>, tasks: &[TaskOutcome]) -> f64 {
    tasks.iter().map(|t| t.items as f64).sum::<f64>() / s.seconds() / tasks.len().max(1) as f64
}

/// The longest of one kind of latency, in milliseconds.
fn latency(tasks: &[TaskOutcome], of: fn(LatencyOutcome) -> Picos) -> Option<f64> {
    tasks.iter().filter_map(|t| t.latency).map(of).max().map(|time| time.seconds() * 1000.0)
}

#[rustfmt::skip]
fn faults() -> Vec<Row> {
    vec![
        row!("faults", "1/s", "page faults in a second of wall time", Finished,
            |s| Some(items(s.domain()) as f64 / s.seconds())),
        row!("faults-cpu", "1/s", "page faults in a second of CPU time", Finished,
            |s| Some(items(s.domain()) as f64 / cpu(s))),
    ]
}

static VCPU_TIME: Metric = Metric::new("vcpu-time", "s", "running time of the vCPU, or of all");

fn vcpu_time(s: &Subject<'_>, vcpu: &VcpuOutcome) -> f64 {
    vcpu.running.seconds() * s.scale
}

fn sum<T>(all: &[T], of: impl Fn(&T) -> f64) -> Option<f64> {
    Some(all.iter().map(of).sum())
}

/// In percent.
fn part(part: Picos, whole: Picos) -> f64 {
    if whole == Picos::ZERO { 0.0 } else { 100.0 * part.ratio(whole) }
}

fn items(domain: &DomainOutcome) -> u64 {
    domain.tasks.iter().map(|t| t.items).sum()
}

/// Items of a domain per second of its life.
fn item_rate(s: &Subject<'_>, domain: &DomainOutcome) -> f64 {
    items(domain) as f64 / s.outcome.lifetime(domain).seconds()
}

fn cpu(s: &Subject<'_>) -> f64 {
    s.domain().tasks.iter().map(|t| t.cpu.seconds()).sum()
}

fn user(s: &Subject<'_>) -> f64 {
    s.domain().tasks.iter().map(|t| t.user_ticks).sum::<Picos>().seconds()
}

fn system(s: &Subject<'_>) -> f64 {
    s.domain().tasks.iter().map(|t| t.system_ticks).sum::<Picos>().seconds()
}

fn requests(s: &Subject<'_>) -> Option<f64> {
    let others = s.outcome.domains.iter().enumerate().filter(|(i, _)| *i != s.domain);
    others.map(|(_, other)| item_rate(s, other)).reduce(|a, b| a + b)
}

fn of_windows(s: &Subject<'_>, of: fn(&WindowOutcome) -> u64) -> Option<f64> {
    let windows = s.domain().vcpus.iter().filter_map(|v| v.windows.as_ref());
    Some(windows.map(of).sum::<u64>() as f64)
}

fn of_extensions(s: &Subject<'_>, of: fn(&ExtensionOutcome) -> u64) -> Option<f64> {
    s.domain().extensions.as_ref().map(|all| of(all) as f64)
}

/// The locks of the workload; those of the guest's kernel come after them.
fn locks<'a>(s: &Subject<'a>) -> &'a [LockOutcome] {
    &s.domain().locks[..catalog::names().locks_of(s.asked()).len()]
}

/// Microseconds of an acquisition of the workload's locks.
fn each(s: &Subject<'_>, total: Picos) -> f64 {
    total.micros() / locks(s).iter().map(|l| l.acquisitions).sum::<u64>().max(1) as f64
}
