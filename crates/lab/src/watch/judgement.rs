//! Which cause slows a program or a machine down, in a sentence: a function of what was read.
//!
//! A cause counts from its limit on. Causes are compared by their *loss*: the part of the time in which threads wanted a
//! CPU, or a mutex, and did not have it.
//!
//! | Cause | Loss | Limit, and why |
//! |---|---|---|
//! | steal | stolen / (used + stolen) | 5 %; a machine with CPUs of its own has none, and up to 2 % is a host's own work. It must also be 1 % of all CPU time: on an idle machine a single tick would be a large part |
//! | quota | stopped / (ran + stopped) | 5 % of the periods: with periods of 100 ms, a stop every two seconds |
//! | CPUs | ready without a CPU / (ran + ready) | 5 %; with a free CPU, a thread waits for microseconds each time that it wakes up. For a thread that mostly sleeps these are a large part, so it must also be 10 ms in a second. Without a program and its run delay: pressure of 20 %, as a thread that waits elsewhere may be any |
//! | pause loops | 5 us for each exit | 1,000 a second for each CPU; an idle host has a few |
//! | mutexes | waited / (ran + ready + waited) | 10 %; waits for a busy mutex are normal below |
//! | memory, disk | pressure | 5 % and 20 %; not our subject, but a reader should not look for it elsewhere |
//!
//! **Order.** Pause loops and waits for mutexes follow from the first three, because holders that have no CPU hold for
//! longer. So they are the cause only if their loss is more than twice that of the others. A quota comes before run delay
//! that is up to twice as large: kernels may count the stop as run delay, too.

use super::{Interval, Program, Quota};
use overspin_report::two_digits;
use serde::Serialize;

const STEAL: f64 = 0.05;
const STEAL_OF_ALL: f64 = 0.01;
const QUOTA: f64 = 0.05;
const DELAY: f64 = 0.05;
const DELAY_S: f64 = 0.01;
const PRESSURE: f64 = 0.20;
const YIELDS: f64 = 1000.0;
/// What an exit, the search for another vCPU and the way back take, roughly.
const YIELD_S: f64 = 5e-6;
const MUTEXES: f64 = 0.10;
const MEMORY: f64 = 0.05;
const DISK: f64 = 0.20;
/// CPUs that are idle for this part would have had room.
const ROOM: f64 = 0.25;
/// A program that wants more CPUs than it may use, by this factor, does not fit even alone.
const FITS: f64 = 1.05;

/// What slows it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The hypervisor below gives the CPUs to others.
    Steal,
    /// A control group used up its quota.
    Quota,
    /// More threads are ready than there are CPUs.
    Cpus,
    /// vCPUs of guests spin for vCPUs that have no CPU.
    PauseLoops,
    /// Threads wait for the program's mutexes.
    Mutexes,
    /// Threads wait for memory.
    Memory,
    /// Threads wait for disks.
    Disk,
    /// No counter is beyond its limit.
    Nothing,
    /// Nothing that would tell could be read.
    Unknown,
}

/// A counter beside its limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The cause that it would show.
    pub cause: Cause,
    /// What was counted.
    pub what: &'static str,
    /// As the limit is written.
    pub value: String,
    /// From where on it is a cause.
    pub limit: String,
    /// Whether it is beyond its limit.
    pub is_over: bool,
    /// For comparing causes.
    pub loss: f64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The cause.
    pub cause: Cause,
    /// In a sentence.
    pub sentence: String,
    /// What helps; empty if nothing has to.
    pub remedy: String,
    /// All that was compared.
    pub checks: Vec<Check>,
}

/// Names the worst cause of an interval.
#[must_use]
pub fn judge(interval: &Interval) -> Judgement {
    let checks: Vec<Check> = [
        steal(interval),
        quota(interval),
        cpus(interval),
        pause_loops(interval),
        mutexes(interval),
        pressure(Cause::Memory, "waits for memory", interval.machine.memory_pressure, MEMORY),
        pressure(Cause::Disk, "waits for disks", interval.machine.io_pressure, DISK),
    ]
    .into_iter()
    .flatten()
    .collect();
    let cause = worst(&checks);
    let (sentence, remedy) = words(cause, interval, &checks);
    Judgement { cause, sentence, remedy, checks }
}

fn worst(checks: &[Check]) -> Cause {
    let loss = |cause: Cause| {
        let over = checks.iter().find(|check| check.cause == cause && check.is_over);
        over.map_or(0.0, |check| check.loss)
    };
    let larger = |a: Cause, b: Cause| if loss(b) > loss(a) { b } else { a };
    let stopped = match 2.0 * loss(Cause::Quota) >= loss(Cause::Cpus) && loss(Cause::Quota) > 0.0 {
        true => Cause::Quota,
        false => Cause::Cpus,
    };
    let root = larger(Cause::Steal, stopped);
    let follows = larger(Cause::PauseLoops, Cause::Mutexes);
    let cpu = if loss(follows) > 2.0 * loss(root) { follows } else { root };
    if loss(cpu) > 0.0 {
        return cpu;
    }
    let other = larger(Cause::Memory, Cause::Disk);
    match (loss(other) > 0.0, checks.iter().any(|check| tells_of_cpus(check.cause))) {
        (true, _) => other,
        (false, true) => Cause::Nothing,
        (false, false) => Cause::Unknown,
    }
}

fn tells_of_cpus(cause: Cause) -> bool {
    matches!(cause, Cause::Steal | Cause::Cpus)
}

/// A part in percent.
fn percent(part: f64) -> String {
    format!("{} %", two_digits(100.0 * part))
}

/// `part` of `part` and `rest`.
fn of_both(part: f64, rest: f64) -> f64 {
    if part > 0.0 { part / (part + rest.max(0.0)) } else { 0.0 }
}

fn check(cause: Cause, what: &'static str, value: f64, limit: f64, loss: f64) -> Check {
    let is_over = value >= limit;
    Check { cause, what, value: percent(value), limit: percent(limit), is_over, loss }
}

fn steal(interval: &Interval) -> Option<Check> {
    let shares = interval.machine.shares?;
    let part = of_both(shares.steal, shares.user + shares.system);
    let mut check =
        check(Cause::Steal, "steal, of the time that CPUs were wanted", part, STEAL, part);
    check.is_over &= shares.steal >= 100.0 * STEAL_OF_ALL;
    Some(check)
}

/// The group that was stopped for longest, and for how long in a second, summed over the CPUs.
fn stopped(interval: &Interval) -> Option<(&Quota, f64)> {
    let all = interval.quotas.iter();
    let worst = all.max_by_key(|quota| (quota.counted.throttled_ns, quota.counted.throttled))?;
    Some((worst, worst.counted.throttled_ns as f64 / 1e9 / interval.length_s.max(1e-6)))
}

fn quota(interval: &Interval) -> Option<Check> {
    let (quota, stopped) = stopped(interval)?;
    // While it is stopped in most periods, a group runs for as much as its quota allows.
    let ran = interval.program.as_ref().map_or(quota.cpus, |program| program.running);
    let loss = of_both(stopped, ran).max(quota.hit() * f64::EPSILON);
    Some(check(Cause::Quota, "quota used up, of the group's periods", quota.hit(), QUOTA, loss))
}

fn cpus(interval: &Interval) -> Option<Check> {
    let machine = &interval.machine;
    let ready = "ready without a CPU, of the time that one was wanted";
    let counted = match &interval.program {
        Some(program) => Some((program.waiting, program.running)),
        None => machine.run_delay.zip(busy(interval)),
    };
    if let Some((waiting, running)) = counted {
        let part = of_both(waiting, running);
        let mut check = check(Cause::Cpus, ready, part, DELAY, part);
        check.is_over &= waiting >= DELAY_S;
        return Some(check);
    }
    let part = machine.cpu_pressure? / 100.0;
    // If a thread always waits, each of two that share a CPU loses half.
    Some(check(
        Cause::Cpus,
        "some thread was ready without a CPU (pressure)",
        part,
        PRESSURE,
        part / 2.0,
    ))
}

fn pause_loops(interval: &Interval) -> Option<Check> {
    let rate = yields(interval)?;
    let each = rate / interval.cpus.max(1) as f64;
    Some(Check {
        cause: Cause::PauseLoops,
        what: "pause-loop exits of guests, a second and CPU",
        value: two_digits(each),
        limit: two_digits(YIELDS),
        is_over: each >= YIELDS,
        loss: each * YIELD_S,
    })
}

/// Pause-loop exits a second.
fn yields(interval: &Interval) -> Option<f64> {
    Some(interval.guests?.yields as f64 / interval.length_s.max(1e-6))
}

fn mutexes(interval: &Interval) -> Option<Check> {
    let program = interval.program.as_ref()?;
    let waited = program.mutexes?.waited;
    let part = of_both(waited, program.running + program.waiting);
    Some(check(
        Cause::Mutexes,
        "waits for mutexes, of the threads' time awake",
        part,
        MUTEXES,
        part,
    ))
}

fn pressure(cause: Cause, what: &'static str, percent: Option<f64>, limit: f64) -> Option<Check> {
    let part = percent? / 100.0;
    Some(check(cause, what, part, limit, part))
}

/// CPUs that were busy.
fn busy(interval: &Interval) -> Option<f64> {
    let shares = interval.machine.shares?;
    Some((shares.user + shares.system) / 100.0 * interval.cpus as f64)
}

/// The part of the CPU time that was idle.
fn idle(interval: &Interval) -> Option<f64> {
    interval.machine.shares.map(|shares| (shares.idle + shares.iowait) / 100.0)
}

/// The sentence and the remedy.
fn words(cause: Cause, interval: &Interval, checks: &[Check]) -> (String, String) {
    let value = checks.iter().find(|check| check.cause == cause).map(|check| check.value.as_str());
    let value = value.unwrap_or("0 %");
    let whose = interval.program.as_ref().map(|program| format!("`{}`", program.name));
    let (begin, remedy) = match cause {
        Cause::Steal => {
            let victims = match &whose {
                Some(name) => format!("{name} and whatever holds its mutexes"),
                None => "its threads, mutex holders among them,".into(),
            };
            (
                format!(
                    "steal {value}: the hypervisor gave CPUs of this machine to others for {value} of the time that it \
                     wanted them, so {victims} stood still"
                ),
                "ask the host for CPUs of its own or fewer neighbours, or give this machine fewer vCPUs; \
                 `overspin advise` says how many fit",
            )
        }
        Cause::Quota => of_quota(interval),
        Cause::Cpus => of_cpus(value, interval),
        Cause::PauseLoops => (
            format!(
                "pause loops: vCPUs of guests spun {} times a second for vCPUs that had no CPU",
                two_digits(yields(interval).unwrap_or(0.0))
            ),
            "run fewer vCPUs, or let guests use locks that sleep (paravirtual spinlocks)",
        ),
        Cause::Mutexes => (
            format!(
                "mutexes: threads of {} waited for its mutexes for {value} of the time that they were awake ({})",
                whose.as_deref().unwrap_or("the program"),
                waits(interval.program.as_ref()).unwrap_or_default()
            ),
            "`overspin exec --stats` lists the most used mutexes at the end; `exec --record` and `overspin fit` say what \
             other locks would do",
        ),
        Cause::Memory => (
            format!(
                "memory: some thread waited for memory for {value} of the time; no cause on the CPUs"
            ),
            "add memory, or run less",
        ),
        Cause::Disk => (
            format!(
                "disk: some thread waited for a disk for {value} of the time; no cause on the CPUs"
            ),
            "look at the disks (`iostat -x 1`)",
        ),
        Cause::Nothing => (nothing(interval), ""),
        Cause::Unknown => (
            "cannot tell: nothing that shows waits for CPUs is readable here".into(),
            "see the list below",
        ),
    };
    let also = match cause {
        Cause::Steal | Cause::Quota | Cause::Cpus => also(interval, checks),
        _ => String::new(),
    };
    (format!("{begin}{also}"), remedy.into())
}

fn of_quota(interval: &Interval) -> (String, &'static str) {
    let Some((quota, stopped)) = stopped(interval) else { return (String::new(), "") };
    let whose = match &interval.program {
        Some(program) if program.name != quota.group => format!(" of `{}`", program.name),
        _ => String::new(),
    };
    (
        format!(
            "quota: group {}{whose} used up its {} CPUs in {} of its periods, and stood still for {} s in each second \
             (all CPUs)",
            quota.group,
            two_digits(quota.cpus),
            percent(quota.hit()),
            two_digits(stopped)
        ),
        "raise the quota (cpu.max, cpu.cfs_quota_us, `limits.cpu` of Kubernetes), or run fewer threads than it has CPUs",
    )
}

fn of_cpus(value: &str, interval: &Interval) -> (String, &'static str) {
    let idle_part = idle(interval).unwrap_or(0.0);
    let has_room = idle_part >= ROOM;
    let Some(program) = &interval.program else {
        let kind = match has_room {
            true => {
                "although CPUs were idle: threads are confined to some CPUs, or wake up in bursts"
            }
            false => "as more threads are ready than there are CPUs",
        };
        let begin = match interval.machine.run_delay {
            Some(_) => format!(
                "too few CPUs: threads were ready without a CPU for {value} of the time that they wanted one"
            ),
            None => {
                format!("too few CPUs: some thread was ready without a CPU for {value} of the time")
            }
        };
        let sentence = format!("{begin} (idle: {}), {kind}", percent(idle_part));
        return (
            sentence,
            "run less beside each other, or add CPUs; --pid says what a program loses",
        );
    };
    let allowed = program.allowed.unwrap_or(interval.cpus);
    let others = busy(interval).map(|busy| (busy - program.running).max(0.0));
    let begin = format!(
        "threads of `{}` were ready without a CPU for {value} of the time that they wanted one",
        program.name
    );
    if allowed < interval.cpus && has_room {
        return (
            format!(
                "confined: {begin}, as they may use only {allowed} of the {} CPUs (idle: {})",
                interval.cpus,
                percent(idle_part)
            ),
            "widen its affinity or its cpuset (`taskset -pc`, cpuset.cpus)",
        );
    }
    if has_room {
        return (
            format!(
                "pinned or in bursts: {begin}, although CPUs were idle for {}",
                percent(idle_part)
            ),
            "see whether its threads are pinned one by one (`taskset -apc PID`), or wake each other all at once",
        );
    }
    // Threads that are ready on average: with fewer than CPUs, the program alone would fit.
    let wanted = program.running + program.waiting;
    let own = format!(
        "its own threads wanted {} CPUs of the {allowed} that it may use",
        two_digits(wanted)
    );
    let wants_more = wanted > FITS * allowed as f64;
    match others.filter(|others| *others >= ROOM * allowed as f64) {
        Some(others) => (
            format!(
                "too few CPUs: {begin}, as other programs used {} of the {} CPUs{}",
                two_digits(others),
                interval.cpus,
                if wants_more { format!(" and {own}") } else { String::new() }
            ),
            "stop or move what runs beside it, or weigh it down (`cpu.weight`, `nice`)",
        ),
        None => (format!("too few CPUs: {begin}, as {own}"), "give it more CPUs, or fewer threads"),
    }
}

/// What follows from a cause, if it is beyond its own limit.
fn also(interval: &Interval, checks: &[Check]) -> String {
    let is_over = |cause| checks.iter().any(|check| check.cause == cause && check.is_over);
    let mut words = String::new();
    if is_over(Cause::Mutexes)
        && let Some(waits) = waits(interval.program.as_ref())
    {
        words += &format!("; behind holders without a CPU, threads waited for mutexes ({waits})");
    }
    if is_over(Cause::PauseLoops)
        && let Some(rate) = yields(interval)
    {
        words += &format!("; vCPUs of guests spun {} times a second", two_digits(rate));
    }
    words
}

fn waits(program: Option<&Program>) -> Option<String> {
    let mutexes = program?.mutexes?;
    let (waits, waited) = (two_digits(mutexes.waits), two_digits(mutexes.waited));
    Some(format!("{waits} waits and {waited} s of them in each second"))
}

fn nothing(interval: &Interval) -> String {
    let idle =
        idle(interval).map(|idle| format!("the CPUs were idle for {} of the time", percent(idle)));
    let had = match &interval.program {
        Some(program) if program.running + program.waiting < 1e-4 => {
            Some(format!("`{}` slept", program.name))
        }
        Some(program) => Some(format!(
            "`{}` had a CPU for {} of the time that it wanted one",
            program.name,
            percent(1.0 - of_both(program.waiting, program.running))
        )),
        None => None,
    };
    let seen: Vec<String> = had.into_iter().chain(idle).collect();
    let limit = match interval.unseen.len() {
        0 => String::new(),
        1 => ", as far as can be seen (1 counter is not readable)".into(),
        n => format!(", as far as can be seen ({n} counters are not readable)"),
    };
    format!("nothing is wrong{limit}: {}", seen.join(", and "))
}
