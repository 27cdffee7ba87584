//! Results: of one run, and of all runs of a point.

use std::time::Duration;

use super::Warning;
use super::case::Case;
use super::spread::Spread;

/// The results of a plan.
#[derive(Clone, Debug)]
pub struct Report {
    /// Conditions that make the results doubtful.
    pub warnings: Vec<Warning>,
    /// Locks that were left out of a case, because they have no condition variable or reader-writer lock.
    pub left_out: Vec<&'static str>,
    /// One for each point, in the order of the plan.
    pub points: Vec<Point>,
}

/// The results of a lock in one situation.
#[derive(Clone, Debug)]
pub struct Point {
    /// Name of the lock.
    pub lock: &'static str,
    /// What the threads do.
    pub case: Case,
    /// Threads.
    pub threads: usize,
    /// Length of the section, nanoseconds.
    pub section_ns: u64,
    /// Mean length of the work between two sections, nanoseconds.
    pub outside_ns: u64,
    /// Acquisitions per second: the median of the runs.
    pub throughput: f64,
    /// The lowest and the highest throughput of the runs.
    pub throughput_range: [f64; 2],
    /// The share of the thread with the fewest acquisitions over the share of the one with the most;
    /// median.
    pub min_max_share: f64,
    /// Jain's index of the shares: 1 if equal, 1/n if one thread has all; median.
    pub jain: f64,
    /// Waits of a run: for each figure the median of the runs.
    pub wait: Waits,
    /// The longest wait of all runs, nanoseconds.
    pub worst_wait: u64,
    /// CPU time per acquisition, nanoseconds; median.
    pub cpu_ns: f64,
    /// Involuntary switches (a thread was descheduled) per second; median.
    pub involuntary_switches: f64,
    /// Voluntary switches (a thread went to sleep) per second; median.
    pub voluntary_switches: f64,
    /// The underlying samples.
    pub samples: Vec<Sample>,
}

/// Waits, in nanoseconds. Percentiles are at most 1/128 too long.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Longest.
    pub max: u64,
}

impl Waits {
    pub(super) fn of(all: &Spread) -> Self {
        let [p50, p90, p99, p99_9] = [2, 10, 100, 1000].map(|one_in| all.of_all_but(one_in));
        Self { p50, p90, p99, p99_9, max: all.max }
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its place in the order of all runs.
    pub place: usize,
    /// Its duration, nanoseconds.
    pub time_ns: u64,
    /// Acquisitions of each thread.
    pub acquisitions: Vec<u64>,
    /// Waits of all threads.
    pub wait: Waits,
    /// CPU time of all threads, nanoseconds.
    pub cpu_ns: u64,
    /// CPU time of the computing threads, where a case has such, nanoseconds.
    pub hogs_ns: u64,
    /// Involuntary switches (a thread was descheduled).
    pub involuntary_switches: u64,
    /// Voluntary switches (a thread went to sleep).
    pub voluntary_switches: u64,
}

impl Sample {
    fn total(&self) -> f64 {
        self.acquisitions.iter().sum::<u64>() as f64
    }

    /// Acquisitions per second.
    pub(super) fn throughput(&self) -> f64 {
        self.per_second(self.total())
    }

    fn per_second(&self, count: f64) -> f64 {
        count / (self.time_ns as f64 / 1e9)
    }

    fn min_max_share(&self) -> f64 {
        let max = self.acquisitions.iter().max().copied().unwrap_or(0);
        let min = self.acquisitions.iter().min().copied().unwrap_or(0);
        if max == 0 { 1.0 } else { min as f64 / max as f64 }
    }

    /// Jain's fairness index (Jain, Chiu and Hawe 1984).
    fn jain(&self) -> f64 {
        let squares: f64 = self.acquisitions.iter().map(|&n| (n as f64).powi(2)).sum();
        if squares == 0.0 {
            1.0
        } else {
            self.total().powi(2) / (self.acquisitions.len() as f64 * squares)
        }
    }
}

/// Sums up the runs of a point. There is at least one.
pub(super) fn point(
    lock: &'static str,
    case: Case,
    threads: usize,
    section: Duration,
    outside: Duration,
    samples: Vec<Sample>,
) -> Point {
    let sorted = |of: &dyn Fn(&Sample) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |of: &dyn Fn(&Sample) -> f64| {
        let values = sorted(of);
        f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
    };
    let wait = |of: &dyn Fn(&Waits) -> u64| median(&|sample| of(&sample.wait) as f64) as u64;
    let throughputs = sorted(&Sample::throughput);
    Point {
        lock,
        case,
        threads,
        section_ns: section.as_nanos() as u64,
        outside_ns: outside.as_nanos() as u64,
        throughput: median(&Sample::throughput),
        throughput_range: [throughputs[0], throughputs[throughputs.len() - 1]],
        min_max_share: median(&Sample::min_max_share),
        jain: median(&Sample::jain),
        wait: Waits {
            p50: wait(&|w| w.p50),
            p90: wait(&|w| w.p90),
            p99: wait(&|w| w.p99),
            p99_9: wait(&|w| w.p99_9),
            max: wait(&|w| w.max),
        },
        worst_wait: samples.iter().map(|sample| sample.wait.max).max().unwrap_or(0),
        cpu_ns: median(&|sample| sample.cpu_ns as f64 / sample.total().max(1.0)),
        involuntary_switches: median(&|s| s.per_second(s.involuntary_switches as f64)),
        voluntary_switches: median(&|s| s.per_second(s.voluntary_switches as f64)),
        samples,
    }
}
