//! The cost of the paravirtual ticket lock where its slow path is not used, compared with the ticket lock
//! in pairs of runs.
//!
//! Both runs of a pair have the same seed and directly follow each other, in random order. A disturbance
//! of the machine that lasts longer than a pair affects both alike and cancels out in their ratio. The
//! pairs of all situations are shuffled, like all runs of this module.
//!
//! The branch to the slow path of the release is off. Without features, [`nopvspin`](overspin_locks::Tuning::nopvspin) does this: a
//! flag that the release reads. With the feature `static-branch` the code itself does: it has a
//! no-operation in place of the branch.

use std::thread;
use std::time::Duration;

use serde::Serialize;

use overspin_locks::{PvTicket2012, Ticket};

use super::PlanError;
use super::case::{Case, Lengths};
use super::contestants::Maker;
use super::machine::{self, Warning};
use super::own::Bare;
use super::run::Run;
use super::work::{self, Clock, Lots};
use crate::Threads;

/// A plan of paired runs: all combinations are measured.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Numbers of threads, at most the number of CPUs. With more threads both locks only wait for slices.
    pub threads: Vec<usize>,
    /// Lengths of the critical section, with mean lengths of the work between two sections.
    pub situations: Vec<(Duration, Duration)>,
    /// Length of one run, after a warm-up of a tenth of it.
    pub time: Duration,
    /// Pairs of runs of each combination.
    pub pairs: usize,
    /// Seed for the order of the runs and the draws of the threads.
    pub seed: u64,
}

impl Default for Pairs {
    /// Threads in powers of two up to the number of CPUs, and that number itself; a lock that is hardly
    /// ever free, and one as in `overspin bench locks`. It takes some four seconds on two CPUs.
    fn default() -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let mut threads: Vec<usize> =
            std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < cpus).collect();
        threads.push(cpus);
        let ns = Duration::from_nanos;
        let situations = vec![(ns(0), ns(0)), (ns(100), ns(200))];
        Self { threads, situations, time: Duration::from_millis(15), pairs: 30, seed: 1 }
    }
}

impl Pairs {
    /// The number of pairs of all combinations.
    #[must_use]
    pub fn total(&self) -> usize {
        self.pairs * self.threads.len() * self.situations.len()
    }
}

/// The results of a plan of pairs.
#[derive(Clone, Debug, Serialize)]
pub struct PairedReport {
    /// Conditions that make the results doubtful.
    pub warnings: Vec<Warning>,
    /// Whether the branch is patched into the code, instead of a flag that is read.
    pub patched_branch: bool,
    /// One point for each combination.
    pub points: Vec<PairedPoint>,
}

/// The results of both locks in one situation.
#[derive(Clone, Debug, Serialize)]
pub struct PairedPoint {
    /// Threads.
    pub threads: usize,
    /// Length of the section, nanoseconds.
    pub section_ns: u64,
    /// Mean length of the work between two sections, nanoseconds.
    pub outside_ns: u64,
    /// Acquisitions per second of the ticket lock and of the paravirtual one, for each pair.
    pub pairs: Vec<[f64; 2]>,
}

/// Carries out `plan`. Calls `tell` after each pair with the numbers of finished pairs and of all pairs.
///
/// # Errors
/// If a section is too long to count.
///
/// # Panics
/// If threads cannot be started.
pub fn ticket_against_pv_ticket(
    plan: &Pairs,
    tell: &mut dyn FnMut(usize, usize),
) -> Result<PairedReport, PlanError> {
    let clock = Clock::calibrated();
    let steps_per_ns = work::steps_per_ns(clock);
    let mut points = Vec::new();
    for &(section, outside) in &plan.situations {
        for &threads in &plan.threads {
            points.push((threads, section, outside));
        }
    }
    let mut lots = Lots::new(plan.seed);
    let mut order: Vec<usize> = (0..plan.pairs).flat_map(|_| 0..points.len()).collect();
    lots.shuffle(&mut order);
    let mut results: Vec<Vec<[f64; 2]>> = vec![Vec::new(); points.len()];
    for (place, &index) in order.iter().enumerate() {
        let (threads, section, outside) = points[index];
        let lengths = Lengths::new(section, outside, Duration::ZERO, steps_per_ns)?;
        let (case, time, cpus, seed) = (Case::Plain, plan.time, &[][..], lots.draw());
        let run = || Run { clock, case, threads, lengths, time, cpus, seed, place };
        let ticket = || run().with(Maker::of::<Bare<Ticket<Threads>, true>>());
        let paravirtual = || run().with(Maker::of::<Bare<PvTicket2012<Threads>, true>>());
        let pair = if lots.up_to(1) == 0 {
            let first = ticket()?;
            [first, paravirtual()?]
        } else {
            let first = paravirtual()?;
            [ticket()?, first]
        };
        results[index].push(pair.map(|sample| sample.throughput()));
        tell(place + 1, order.len());
    }
    let points = points.into_iter().zip(results).map(|((threads, section, outside), pairs)| {
        let (section_ns, outside_ns) = (section.as_nanos() as u64, outside.as_nanos() as u64);
        PairedPoint { threads, section_ns, outside_ns, pairs }
    });
    Ok(PairedReport {
        warnings: machine::warnings(),
        patched_branch: cfg!(feature = "static-branch"),
        points: points.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_its_pairs() {
        let plan = Pairs {
            threads: vec![1, 2],
            situations: vec![(Duration::ZERO, Duration::from_nanos(100))],
            // So long that the only thread of a run gets a CPU, also beside other tests.
            time: Duration::from_millis(30),
            pairs: 3,
            seed: 7,
        };
        let mut told = Vec::new();
        let report = ticket_against_pv_ticket(&plan, &mut |done, all| told.push((done, all)));
        let points = report.expect("short sections").points;
        assert_eq!(told, (1..=6).map(|done| (done, 6)).collect::<Vec<_>>());
        assert_eq!(points.iter().map(|p| p.threads).collect::<Vec<_>>(), [1, 2]);
        for point in points {
            assert_eq!((point.pairs.len(), point.outside_ns), (3, 100));
            // One thread is never kept from the lock; two may be stopped for the whole time.
            assert!(point.threads > 1 || point.pairs.iter().flatten().all(|t| *t > 0.0));
        }
    }

    #[test]
    fn sections_too_long_to_count_are_refused() {
        let hour = Duration::from_secs(3600);
        let plan = Pairs { situations: vec![(hour, hour)], ..Pairs::default() };
        let refused = ticket_against_pv_ticket(&plan, &mut |_, _| ());
        assert!(matches!(refused, Err(PlanError::TooLong(time)) if time == hour));
    }

    #[test]
    fn threads_go_up_to_the_cpus() {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let threads = Pairs::default().threads;
        assert_eq!((threads[0], threads.last()), (1, Some(&cpus)));
        assert!(threads.is_sorted_by(|a, b| a < b));
    }
}
