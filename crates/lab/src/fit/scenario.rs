//! The scenario of a recorded mutex.
//!
//! Each thread that locked the mutex is a vCPU of one domain, under the scheduler of Linux, and runs `lock-loop`: it holds
//! the lock for the usual time, and computes for the usual time outside.

use super::recording::{Mutex, Recording};

/// Locks that are tried in place of the recorded one.
pub const LOCKS: [&str; 7] =
    ["mutex", "futex", "ticket", "mcs", "mcs-tp", "malthusian", "flexguard"];

/// Below this ratio of the 90th percentile to the median, times outside count as fixed.
const FIXED: f64 = 1.5;
/// Simulated time of a run.
const LENGTH: &str = "200ms";

/// A fitted scenario.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// As TOML.
    pub text: String,
    /// What it does not have of the program, a sentence each.
    pub doubts: Vec<String>,
}

/// The scenario of a mutex of a recording in the file `path`.
#[must_use]
pub fn scenario(path: &str, recording: &Recording, mutex: &Mutex) -> Fitted {
    let clock = recording.clock_ns as f64;
    // Each time has one reading of the clock in it.
    let section = (mutex.section.usual() - clock).max(1.0);
    let outside = (mutex.outside.usual() - clock).max(0.0);
    let threads = mutex.threads.max(1);
    // Where the threads sleep outside, they use less CPU time than they are outside.
    let cpu = recording.cpu_ns as f64 / mutex.acquisitions.max(1) as f64;
    let outside = outside.min((cpu - section).max(0.0));
    let [p50, p90] = [2, 10].map(|one_in| mutex.outside.of_all_but(one_in) as f64);
    let fixed = p90 < FIXED * p50;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let locks: Vec<String> = LOCKS.iter().map(|lock| quoted(lock)).collect();
    let text = format!(
        "# From {path}: the mutex that {program} locked first at {place}. {threads} threads, {acquisitions} acquisitions.\n\
         name = {path}\nlimit = \"{LENGTH}\"\n\n[host]\ncores = {cpus}\nscheduler = \"eevdf-6.18\"\n\n\
         # The program: a vCPU for each of its threads.\n[[domain]]\nname = \"program\"\nvcpus = {threads}\nlock = {lock}\n\n\
         [domain.kernel]\nhz = 0\n\n[domain.workload]\nkind = \"lock-loop\"\nsection = \"{section:.0}ns\"\n\
         outside = \"{outside:.0}ns\"\nfixed = {fixed}\nirqs_off = false\n\n\
         # A neighbour on the same CPUs. It is idle; with wait = \"0\" it always computes: 2:1 overcommit.\n[[domain]]\n\
         name = \"neighbour\"\nvcpus = {cpus}\nlock = \"ticket\"\n\n[domain.workload]\nkind = \"burn-wait\"\nburn = \"1us\"\n\
         wait = \"1000h\"\n\n# `overspin sweep` runs all combinations:\n# [[vary]]\n# name = \"lock\"\n# set = \"domain.program.lock\"\n\
         # to = [{locks}]\n#\n# [[vary]]\n# name = \"overcommit\"\n# set = \"domain.neighbour.workload.wait\"\n\
         # to = [\"1000h\", \"0\"]\n# labels = [\"as recorded\", \"2:1\"]\n",
        path = quoted(path),
        program = quoted(&recording.program),
        place = quoted(&mutex.first_locked_at),
        acquisitions = mutex.acquisitions,
        cpus = recording.cpus.max(1),
        lock = quoted(&recording.lock),
        locks = locks.join(", "),
    );
    Fitted { text, doubts: doubts(recording, mutex) }
}

fn doubts(recording: &Recording, mutex: &Mutex) -> Vec<String> {
    let mut doubts = Vec::new();
    let threads = f64::from(mutex.threads.max(1));
    let room = recording.elapsed_ns as f64 * threads.min(f64::from(recording.cpus.max(1)));
    let busy = 100.0 * recording.cpu_ns as f64 / room.max(1.0);
    if busy < 80.0 {
        doubts.push(format!(
            "the program used {busy:.0} % of the CPU time that its threads could use: they slept, or other programs had the CPUs. \
             The scenario's threads never sleep outside, so it has more contention"
        ));
    }
    let crowd = threads / f64::from(recording.cpus.max(1));
    if crowd > 1.0 {
        doubts.push(format!(
            "there are {crowd:.1} threads for each CPU: recorded times contain times without a CPU. The longest 1 % was left out \
             for that reason"
        ));
    }
    if mutex.mutexes > 1 {
        doubts.push(format!(
            "these are {} mutexes together, and the scenario has one lock",
            mutex.mutexes
        ));
    }
    let asked = mutex.acquisitions.saturating_sub(mutex.threads.into());
    if mutex.outside.count() * 10 < asked * 9 {
        doubts.push(format!(
            "only {} of {asked} times outside are known: the threads take many mutexes in turn",
            mutex.outside.count()
        ));
    }
    doubts
}
