//! The scenario of a recorded mutex.
//!
//! As many vCPUs as threads used the mutex at a time are one domain, under the scheduler of Linux, and run `lock-loop`: they hold
//! the lock, compute outside, and sleep, with the lock and without, as the recorded threads did.
//!
//! | Key | From the recording |
//! |---|---|
//! | `vcpus` | all times of the mutex (held, waited for, left alone), divided by the time from its first to its last acquisition |
//! | `locks` | of several mutexes of one place: the same, divided by the threads. A thread leaves each of them alone all the time |
//! | `section`, `outside` | mean CPU time in it, by the looks of the threads at their own accounts |
//! | `asleep`, `asleep_every` | the mean of sleeps in sections, and how rare they are |
//! | `idle`, `idle_every` | what is left of a thread's time, and how rare sleeps outside are |
//!
//! A recording without looks is of an earlier version: then nobody sleeps, and the longest 1 % of times count as times without a
//! CPU.

use super::recording::{Account, Mutex, Recording};
use overspin_workload::MOST_LOCKS;

/// Locks that are tried in place of the recorded one.
pub const LOCKS: [&str; 7] =
    ["mutex", "futex", "ticket", "mcs", "mcs-tp", "malthusian", "flexguard"];

/// Below this ratio of the 90th percentile to the median, times outside count as fixed.
const FIXED: f64 = 1.5;
/// Simulated time of a run, in milliseconds.
const SHORTEST_MS: f64 = 200.0;
const LONGEST_MS: f64 = 2000.0;
/// From this percentage on, the program uses the CPUs that it can use.
const BUSY: f64 = 80.0;
/// A thread that used the mutex for less than this part of the time counts as none.
const SLACK: f64 = 0.1;
/// Less than this part of a thread's time is no sleep.
const NO_SLEEP: f64 = 0.05;
/// Times outside that are so many times as long as the mean of computing are sleeps, if nothing else is known.
const FAR: f64 = 20.0;

/// Less is the start of a program.
const SHORT_NS: u64 = 20_000_000;
const FEW: u64 = 100;

/// A fitted scenario.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// As TOML.
    pub text: String,
    /// What it does not have of the program, a sentence each.
    pub doubts: Vec<String>,
}

/// What the threads of a mutex do. Times are means in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Model {
    threads: u32,
    locks: u32,
    section: f64,
    outside: f64,
    idle: f64,
    idle_every: u64,
    asleep: f64,
    asleep_every: u64,
}

/// So many, at least one.
fn every(share: f64) -> u64 {
    if share > 0.0 { (1.0 / share).round().clamp(1.0, 1e9) as u64 } else { 1 }
}

impl Model {
    fn of(recording: &Recording, mutex: &Mutex) -> Self {
        let section = Account::of(&mutex.section, &mutex.section_looks);
        let outside = Account::of(&mutex.outside, &mutex.outside_looks);
        let clock = recording.clock_ns as f64;
        let threads = mutex.threads.max(1);
        let all = mutex.acquisitions.max(1) as f64;
        let span = mutex.to_ns.saturating_sub(mutex.from_ns).max(1) as f64;
        let used = mutex.section.mean() + mutex.wait.mean() + mutex.outside.mean();
        // Threads that used it at a time. A thread that leaves several mutexes alone counts for each.
        let in_use = all * used / span;
        let turns = (in_use / f64::from(threads)).clamp(1.0, mutex.mutexes.max(1) as f64);
        let locks = (turns.round() as u32).clamp(1, MOST_LOCKS);
        // From one acquisition of any of them to the next.
        let of_any = |outside: f64, section: f64| (outside + section) / turns - section;
        let Some(section) = section else {
            // Each time has one reading of the clock in it.
            let section = (mutex.section.usual() - clock).max(1.0);
            let outside = of_any(mutex.outside.usual() - clock, section).max(0.0);
            // Where the threads sleep outside, they use less CPU time than they are outside.
            let cpu = recording.cpu_ns as f64 / all;
            let outside = outside.min((cpu - section).max(0.0));
            return Self {
                threads,
                locks,
                section,
                outside,
                idle_every: 1,
                asleep_every: 1,
                ..Self::default()
            };
        };
        let outside = outside.unwrap_or_default();
        // A thread that used it for a part of the time counts as that part.
        let at_a_time = (in_use / turns - SLACK).ceil().clamp(1.0, f64::from(threads));
        let round = at_a_time * span / all;
        let section_cpu = (section.cpu - clock).max(1.0);
        let outside_cpu = of_any(outside.cpu - clock, section_cpu).max(1.0);
        let asleep_outside = outside.mean_asleep() / turns;
        let busy = section_cpu + section.mean_asleep() + mutex.wait.mean() + outside_cpu;
        let left = round - busy;
        // With threads that wait for CPUs, what is left is not all sleep.
        let crowded = busy_percent(recording, mutex) > BUSY;
        let left = if crowded { left.min(asleep_outside) } else { left };
        let idle_every = every(match outside.sleeps {
            // Too rare to have been looked at.
            0.0 => mutex.outside.share_above(FAR * turns * outside_cpu) / turns,
            sleeps => sleeps / turns,
        });
        Self {
            threads: at_a_time as u32,
            locks,
            section: section_cpu,
            // If they use it more often than their times outside say, these were not typical.
            outside: if left < 0.0 && !crowded {
                (outside_cpu + left).max(0.0)
            } else {
                outside_cpu
            },
            idle: if left > NO_SLEEP * round { left * idle_every as f64 } else { 0.0 },
            idle_every,
            asleep: if section.sleeps > 0.0 { section.asleep } else { 0.0 },
            asleep_every: every(section.sleeps),
        }
    }
}

/// The part of the CPU time that the threads of the mutex could have, in percent, that the program used.
fn busy_percent(recording: &Recording, mutex: &Mutex) -> f64 {
    let threads = f64::from(mutex.threads.max(1));
    let room = recording.elapsed_ns as f64 * threads.min(f64::from(recording.cpus.max(1)));
    100.0 * recording.cpu_ns as f64 / room.max(1.0)
}

/// The scenario of a mutex of a recording in the file `path`.
#[must_use]
pub fn scenario(path: &str, recording: &Recording, mutex: &Mutex) -> Fitted {
    let Model { threads, locks, section, outside, idle, idle_every, asleep, asleep_every } =
        Model::of(recording, mutex);
    let several = if locks > 1 { format!("locks = {locks}\n") } else { String::new() };
    let mut sleeps = String::new();
    if idle > 0.0 {
        sleeps += &format!("idle = \"{idle:.0}ns\"\nidle_every = {idle_every}\n");
    }
    sleeps += match asleep > 0.0 {
        true => {
            format!("mode = \"user\"\nasleep = \"{asleep:.0}ns\"\nasleep_every = {asleep_every}\n")
        }
        false => "irqs_off = false\n".to_owned(),
    }
    .as_str();
    // Long enough for a thousand rounds of the threads, or as long as the program did so.
    let round = section + outside + idle / idle_every as f64 + asleep / asleep_every as f64;
    let limit = (round * 1000.0 / f64::from(threads) / 1e6).clamp(SHORTEST_MS, LONGEST_MS).ceil();
    let [p50, p90] = [2, 10].map(|one_in| mutex.outside.of_all_but(one_in) as f64);
    let fixed = p90 < FIXED * p50;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let names: Vec<String> = LOCKS.iter().map(|lock| quoted(lock)).collect();
    let text = format!(
        "# From {path}: the mutex that {program} locked first at {place}. {of_it} threads, {acquisitions} acquisitions.\n\
         name = {path}\nlimit = \"{limit}ms\"\n\n[host]\ncores = {cpus}\nscheduler = \"eevdf-6.18\"\n\n\
         # The program: a vCPU for each thread that used the mutex at a time.\n[[domain]]\nname = \"program\"\nvcpus = {threads}\nlock = {lock}\n\n\
         [domain.kernel]\nhz = 0\n\n[domain.workload]\nkind = \"lock-loop\"\n{several}section = \"{section:.0}ns\"\n\
         outside = \"{outside:.0}ns\"\nfixed = {fixed}\n{sleeps}\n\
         # A neighbour on the same CPUs. It is idle; with wait = \"0\" it always computes: 2:1 overcommit.\n[[domain]]\n\
         name = \"neighbour\"\nvcpus = {cpus}\nlock = \"ticket\"\n\n[domain.workload]\nkind = \"burn-wait\"\nburn = \"1us\"\n\
         wait = \"1000h\"\n\n# `overspin sweep` runs all combinations:\n# [[vary]]\n# name = \"lock\"\n# set = \"domain.program.lock\"\n\
         # to = [{names}]\n#\n# [[vary]]\n# name = \"overcommit\"\n# set = \"domain.neighbour.workload.wait\"\n\
         # to = [\"1000h\", \"0\"]\n# labels = [\"as recorded\", \"2:1\"]\n",
        path = quoted(path),
        program = quoted(&recording.program),
        place = quoted(&mutex.first_locked_at),
        acquisitions = mutex.acquisitions,
        of_it = mutex.threads,
        cpus = recording.cpus.max(1),
        lock = quoted(&recording.lock),
        names = names.join(", "),
    );
    Fitted { text, doubts: doubts(recording, mutex, locks) }
}

fn doubts(recording: &Recording, mutex: &Mutex, locks: u32) -> Vec<String> {
    let mut doubts = Vec::new();
    let busy = busy_percent(recording, mutex);
    let has_looks = !mutex.section_looks.0.is_empty();
    if busy < BUSY && !has_looks {
        doubts.push(format!(
            "the program used {busy:.0} % of the CPU time that its threads could use: they slept, or other programs had the CPUs. \
             The scenario's threads never sleep outside, so it has more contention: record it again with this version"
        ));
    }
    let span = mutex.to_ns.saturating_sub(mutex.from_ns);
    if span < SHORT_NS || mutex.acquisitions < FEW {
        doubts.push(format!(
            "it is {} acquisitions in {:.3} s: a program that begins. Record a longer run",
            mutex.acquisitions,
            span as f64 / 1e9
        ));
    }
    let crowd = f64::from(mutex.threads.max(1)) / f64::from(recording.cpus.max(1));
    if crowd > 1.0 && (busy >= BUSY || !has_looks) {
        doubts.push(format!(
            "there are {crowd:.1} threads for each CPU: recorded times contain times without a CPU"
        ));
    }
    if mutex.mutexes > 1 {
        let model = match locks {
            1 => "one lock, as if they came one after the other".to_owned(),
            locks => format!("{locks} locks, each taken equally often"),
        };
        doubts.push(format!(
            "these are {} mutexes of one place, and the scenario has {model}",
            mutex.mutexes
        ));
    }
    let asked = mutex.acquisitions.saturating_sub(mutex.threads.into());
    if mutex.outside.count() * 10 < asked.saturating_mul(9) {
        doubts.push(format!(
            "only {} of {asked} times outside are known: the threads take many mutexes in turn",
            mutex.outside.count()
        ));
    }
    doubts
}
