//! The sentence about a cause, and what helps.

use super::judgement::{Cause, Check, busy, idle, of_both, percent, stopped, yields};
use super::{Interval, Program};
use overspin_report::two_digits;

/// CPUs that are idle for this part would have had room.
const ROOM: f64 = 0.25;
/// A program that wants more CPUs than it may use, by this factor, does not fit even alone.
const FITS: f64 = 1.05;
/// Holders are told about from so many looks on, and from this part of their time.
const LOOKS: u64 = 20;
const PART: f64 = 0.01;
const OWN_REMEDY: &str =
    "give it more CPUs (also in its affinity and its cpuset), or fewer threads";
const OTHERS_REMEDY: &str =
    "stop or move what runs beside it, or weigh it down (`cpu.weight`, `nice`)";

/// The sentence and the remedy.
pub(super) fn words(cause: Cause, interval: &Interval, checks: &[Check]) -> (String, String) {
    let value = checks.iter().find(|check| check.cause == cause).map(|check| check.value.as_str());
    let value = value.unwrap_or("0 %");
    let whose = interval.program.as_ref().map(|program| format!("`{}`", program.name));
    let (begin, remedy) = match cause {
        Cause::Steal => {
            let victims = whose.as_deref().unwrap_or("its threads");
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
                "mutexes: threads of {} waited for its mutexes for {value} of the time that they were awake ({}{})",
                whose.as_deref().unwrap_or("the program"),
                waits(interval.program.as_ref()).unwrap_or_default(),
                holders(interval).map_or_else(String::new, |holders| format!("; {holders}"))
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
    let more = if wanted > FITS * allowed as f64 { wanted - allowed as f64 } else { 0.0 };
    let others = others.filter(|others| *others >= ROOM * allowed as f64);
    let used = others.map(|others| {
        format!("other programs used {} of the {} CPUs", two_digits(others), interval.cpus)
    });
    let (reason, remedy) = match used {
        None => (own, OWN_REMEDY),
        Some(used) if more == 0.0 => (used, OTHERS_REMEDY),
        // Without the others, it would still lack these CPUs.
        Some(used) if more >= others.unwrap_or(0.0) => (format!("{own}, and {used}"), OWN_REMEDY),
        Some(used) => (format!("{used}, and {own}"), OTHERS_REMEDY),
    };
    (format!("too few CPUs: {begin}, as {reason}"), remedy)
}

/// What follows from a cause, if it is beyond its own limit.
fn also(interval: &Interval, checks: &[Check]) -> String {
    let is_over = |cause| checks.iter().any(|check| check.cause == cause && check.is_over);
    let mut words = String::new();
    if is_over(Cause::Mutexes)
        && let Some(waits) = waits(interval.program.as_ref())
    {
        words += &format!("; threads waited for mutexes ({waits})");
    }
    if let Some(holders) = holders(interval) {
        words += &format!("; {holders}");
    }
    if is_over(Cause::PauseLoops)
        && let Some(rate) = yields(interval)
    {
        words += &format!("; vCPUs of guests spun {} times a second", two_digits(rate));
    }
    words
}

/// What was measured of the holders of the program's mutexes, if enough were looked at and it is worth a word.
fn holders(interval: &Interval) -> Option<String> {
    let program = interval.program.as_ref()?;
    let holders = program.mutexes?.holders;
    if holders.looks < LOOKS {
        return None;
    }
    let told =
        |part: f64, what: &str| (part >= PART).then(|| format!("{what} for {}", percent(part)));
    let all = [told(holders.descheduled(), "were off their CPU"), told(holders.asleep(), "slept")];
    let parts: Vec<String> = all.into_iter().flatten().collect();
    if parts.is_empty() {
        return None;
    }
    Some(format!(
        "mutex holders of `{}` {} of the time that they held",
        program.name,
        parts.join(", and ")
    ))
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
