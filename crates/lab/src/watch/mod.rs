//! What a live machine does to a program: steal, quotas, run delay, pause-loop exits of guests, waits for mutexes.
//!
//! A [`Watcher`] reads counters of the kernel and says what happened between two readings: an [`Interval`]. [`judge`] names
//! its worst cause in a sentence; it is a function of the interval and of nothing else. [`report()`] is the screen,
//! [`prometheus()`] the text for a scraper.

mod group;
mod guests;
mod judgement;
mod mutexes;
mod prometheus;
mod report;
mod sentence;
mod threads;
mod unseen;
mod watcher;

pub use group::{quota, throttling_within};
pub use guests::Guests;
pub use judgement::{Cause, Judgement, judge};
pub use overspin_native::world::Throttling;
pub use prometheus::prometheus;
pub use report::report;
pub use watcher::{Target, Watcher};

use overspin_scenario::Second;
use serde::Serialize;

/// What happened between two readings.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// Its length.
    pub length_s: f64,
    /// CPUs of the machine.
    pub cpus: usize,
    /// The machine.
    pub machine: Second,
    /// The program that is watched, if one is.
    pub program: Option<Program>,
    /// Groups with a quota: those around the program, or all of the machine.
    pub quotas: Vec<Quota>,
    /// What KVM counted.
    pub guests: Option<Guests>,
    /// CPU time of this command in a second.
    pub own_cpu: Option<f64>,
    /// What could not be read.
    pub unseen: Vec<Unseen>,
}

/// The program that is watched. Rates are in seconds, or events, of all its threads in a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Program {
    /// The name of its first process, or the group's.
    pub name: String,
    /// Processes at the end of the interval.
    pub processes: usize,
    /// Threads at the end of the interval, as far as they were read.
    pub threads: usize,
    /// Threads that were not read.
    pub left_out: usize,
    /// CPUs that it may use.
    pub allowed: Option<usize>,
    /// Time that its threads had a CPU.
    pub running: f64,
    /// Time that they were ready and had none (run delay).
    pub waiting: f64,
    /// Involuntary switches: a thread was descheduled.
    pub preempted: f64,
    /// Voluntary switches: a thread went to sleep.
    pub slept: f64,
    /// Waits for its mutexes, if it runs under `overspin exec --stats`.
    pub mutexes: Option<Mutexes>,
}

/// Waits for mutexes that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Mutexes {
    /// Waits a second.
    pub waits: f64,
    /// Their time, of all threads, in a second.
    pub waited: f64,
    /// What holders did.
    pub holders: Holders,
}

/// What holders of mutexes did while they held them. `exec --stats` looks at one acquisition in 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Holders {
    /// Acquisitions that were looked at.
    pub looks: u64,
    /// How long they held.
    pub held_ns: u64,
    /// How long of that they were ready without a CPU.
    pub descheduled_ns: u64,
    /// How long of that they were off their CPU, if they went to sleep meanwhile.
    pub asleep_ns: u64,
}

impl Holders {
    /// The part of the time in which they held that they had no CPU, although they were ready.
    #[must_use]
    pub fn descheduled(&self) -> f64 {
        self.descheduled_ns as f64 / self.held_ns.max(1) as f64
    }

    /// The part of the time in which they held that they slept.
    #[must_use]
    pub fn asleep(&self) -> f64 {
        self.asleep_ns as f64 / self.held_ns.max(1) as f64
    }
}

/// A group with a quota of CPU time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Quota {
    /// Its path.
    pub group: String,
    /// The CPUs that it may use.
    pub cpus: f64,
    /// How often it was stopped.
    pub counted: Throttling,
}

impl Quota {
    /// The part of its periods in which it used up its quota.
    #[must_use]
    pub fn hit(&self) -> f64 {
        match self.counted.periods {
            0 => 0.0,
            all => self.counted.throttled as f64 / all as f64,
        }
    }
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// Why, and how to let this command see it.
    pub remedy: String,
}

#[cfg(test)]
mod tests;
