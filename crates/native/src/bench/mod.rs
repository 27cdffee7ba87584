//! Benchmark of locks, ours and others': speed, fairness and waiting times in one table.
//!
//! A point is a lock, a [case](Case), a number of threads, the length of the critical section and the length of the
//! work between two sections. Every point is measured several times, and the runs of all points are shuffled. A
//! temporary disturbance of the machine then affects all points alike, and shows as spread.
//!
//! Each thread repeats: outside work, whose length is uniform between 0 and twice the mean, so that threads
//! do not fall into step; lock; a section of fixed length; unlock. Both lengths are counted in steps of
//! work, not in time. The wait lasts from just before `lock` to just after it. Each wait goes into a
//! histogram of the thread. An acquisition costs two readings of the time stamp counter, one of them with
//! the lock held. This cost is the same for all locks.
//!
//! The loop is not the workload `lockloop`, which every world runs: that one calls its world through `dyn Env`
//! for each section: a cost of the order of what is measured here.

mod case;
mod contestants;
mod machine;
mod own;
mod paired;
mod plan;
mod queue;
mod result;
mod run;
mod spread;
mod thread;
mod work;

use std::time::Instant;

use case::Lengths;
use machine::MachineTime;
use run::Run;

#[cfg(feature = "world")]
pub(crate) use spread::Spread;
pub(crate) use thread::{Usage, precise_sleeps};
pub use work::Clock;
#[cfg(feature = "world")]
pub(crate) use work::Reading;
#[cfg(feature = "world")]
pub use work::Readings;
pub(crate) use work::{Lots, work};

pub use case::{BURST, Case, SHARED_LINES, ZIPF_LOCKS};
pub use contestants::MUTEXES;
pub use machine::{Warning, warnings};
pub use own::OwnLock;
pub use paired::{PairedPoint, PairedReport, Pairs, ticket_against_pv_ticket};
pub use plan::{Plan, PlanError};
pub use result::{Point, Report, Sample, Waits};
pub use thread::pin;

/// Carries out `plan`. Calls `tell` after each run with the numbers of finished runs and of all runs.
///
/// # Errors
/// If the plan is impossible.
///
/// # Panics
/// If threads cannot be started.
pub fn measure(plan: &Plan, tell: &mut dyn FnMut(usize, usize)) -> Result<Report, PlanError> {
    let names = plan.check()?;
    let mut warnings = warnings();
    let clock = Clock::calibrated();
    let steps_per_ns = work::steps_per_ns(clock);
    let mut situations = Vec::new();
    let mut left_out = Vec::new();
    for &lock in &names {
        for &case in &plan.cases {
            if !plan.suits(lock, case) {
                left_out.push(lock);
                continue;
            }
            for &threads in &plan.threads {
                for &section in &plan.sections {
                    for &outside in &plan.outsides {
                        situations.push((lock, case, threads, section, outside));
                    }
                }
            }
        }
    }
    let mut lots = Lots::new(plan.seed);
    let mut order: Vec<usize> = (0..plan.runs).flat_map(|_| 0..situations.len()).collect();
    lots.shuffle(&mut order);

    let mut results: Vec<Vec<Sample>> = vec![Vec::new(); situations.len()];
    let (before, start) = (MachineTime::now(), Instant::now());
    for (place, &index) in order.iter().enumerate() {
        let (lock, case, threads, section, outside) = situations[index];
        let run = Run {
            clock,
            case,
            threads,
            lengths: Lengths::new(section, outside, plan.long, steps_per_ns)?,
            time: plan.time,
            cpus: &plan.cpus,
            seed: lots.draw(),
            place,
        };
        // `check` has found the name.
        let result = plan.maker(lock).map(|maker| run.with(maker));
        results[index].extend(result.transpose()?);
        tell(place + 1, order.len());
    }
    let ours: u64 = results.iter().flatten().map(|sample| sample.cpu_ns + sample.hogs_ns).sum();
    if let (Some(before), Some(after)) = (before, MachineTime::now()) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let wall_s = start.elapsed().as_secs_f64();
        let percent = after.taken_since(before, wall_s, cpus, ours as f64 / 1e9);
        // Allows for the kernel's own work, and for our warm-ups, which take a tenth.
        if percent > 15.0 {
            warnings.push(Warning::Taken { percent });
        }
    }
    let points = situations.into_iter().zip(results).map(|(situation, samples)| {
        let (lock, case, threads, section, outside) = situation;
        result::point(lock, case, threads, section, outside, samples)
    });
    Ok(Report { warnings, left_out, points: points.collect() })
}
