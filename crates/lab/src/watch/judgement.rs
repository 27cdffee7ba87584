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

use super::sentence::words;
use super::{Interval, Quota};
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
pub(super) fn percent(part: f64) -> String {
    format!("{} %", two_digits(100.0 * part))
}

/// `part` of `part` and `rest`.
pub(super) fn of_both(part: f64, rest: f64) -> f64 {
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
pub(super) fn stopped(interval: &Interval) -> Option<(&Quota, f64)> {
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
pub(super) fn yields(interval: &Interval) -> Option<f64> {
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
pub(super) fn busy(interval: &Interval) -> Option<f64> {
    let shares = interval.machine.shares?;
    Some((shares.user + shares.system) / 100.0 * interval.cpus as f64)
}

/// The part of the CPU time that was idle.
pub(super) fn idle(interval: &Interval) -> Option<f64> {
    interval.machine.shares.map(|shares| (shares.idle + shares.iowait) / 100.0)
}
