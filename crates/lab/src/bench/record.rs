//! Records of benchmarks: the program's speed, and locks on threads.

use crate::bench::BenchResult;
use crate::metric::threads;
use overspin_native::bench::{Case, Plan, Point, Report};
use overspin_runs::record::{Kind, LocksPlan, Record, Run, Target};
use overspin_stats::jain;
use std::time::Duration;

/// The record of `overspin bench sim` or `sched`: each result is a place, and each repetition a run.
#[must_use]
pub fn speed(bench: &str, results: &[BenchResult]) -> Record {
    let mut record = Record::new(Kind::Bench, bench);
    let repetitions = results.iter().map(|r| r.samples.len()).max().unwrap_or(0);
    record.runs = (0..).take(repetitions).map(|number| Run { number, ..Run::default() }).collect();
    for result in results {
        let place = format!("{bench}.{}", result.name);
        let metric = match result.unit.as_str() {
            "MiB" => &threads::MEMORY,
            unit if unit.contains('/') => &threads::RATE,
            _ => &threads::TIME,
        };
        for (run, sample) in (0..).zip(&result.samples) {
            record.push_as(run, &place, metric.name, &result.unit, *sample);
        }
        record.targets.extend(result.target.map(|value| Target {
            place,
            metric: metric.name.into(),
            value,
            at_most: result.at_most,
        }));
    }
    record
}

/// The record of `overspin bench locks`. A run is numbered by its place in the order of all runs.
#[must_use]
pub fn locks(report: &Report, plan: &Plan) -> Record {
    let mut record = Record::new(Kind::BenchLocks, "locks");
    let seed = plan.seed;
    record.seed = Some(seed);
    record.locks = Some(planned(report, plan));
    record.warnings = report.warnings.iter().map(ToString::to_string).collect();
    for point in &report.points {
        of_point(&mut record, point, seed);
    }
    record.runs.sort_by_key(|r| r.number);
    record
}

fn planned(report: &Report, plan: &Plan) -> LocksPlan {
    // A length of an hour is the longest that the program reads.
    let ns = |length: &Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    LocksPlan {
        locks: plan.locks.clone(),
        cases: plan.cases.iter().map(|case| case.name().into()).collect(),
        threads: plan.threads.clone(),
        section_ns: plan.sections.iter().map(ns).collect(),
        outside_ns: plan.outsides.iter().map(ns).collect(),
        long_ns: ns(&plan.long),
        time_ns: ns(&plan.time),
        runs: plan.runs,
        cpus: plan.cpus.clone(),
        left_out: report.left_out.iter().map(ToString::to_string).collect(),
    }
}

fn of_point(record: &mut Record, point: &Point, seed: u64) {
    let Point { lock, case, threads, section_ns, outside_ns, .. } = point;
    // The plain case has no name, so that records compare with those from before there were others.
    let case = match case {
        Case::Plain => String::new(),
        other => format!("{}.", other.name()),
    };
    let place =
        format!("{lock}.{case}threads-{threads}.section-{section_ns}ns.outside-{outside_ns}ns");
    for sample in &point.samples {
        // No plan has so many runs that their number does not fit.
        let number = u32::try_from(sample.place).unwrap_or(u32::MAX);
        record.runs.push(Run { number, place: place.clone(), seed: Some(seed), ..Run::default() });
        let shares: Vec<f64> = sample.acquisitions.iter().map(|n| *n as f64).collect();
        let (total, seconds) = (shares.iter().sum::<f64>(), sample.time_ns as f64 / 1e9);
        let wait = &sample.wait;
        for (metric, value) in [
            (&threads::ACQUISITIONS, total / seconds),
            (&threads::FAIRNESS, 100.0 * jain(&shares)),
            (&threads::WAIT_P50, wait.p50 as f64),
            (&threads::WAIT_P90, wait.p90 as f64),
            (&threads::WAIT_P99, wait.p99 as f64),
            (&threads::WAIT_P999, wait.p99_9 as f64),
            (&threads::WAIT_MAX, wait.max as f64),
            (&threads::CPU, sample.cpu_ns as f64 / total),
            (&threads::PREEMPTED, sample.involuntary_switches as f64 / seconds),
            (&threads::SLEPT, sample.voluntary_switches as f64 / seconds),
            (&threads::LENGTH, seconds),
        ] {
            record.push(number, &place, metric, value);
        }
        for (thread, share) in shares.iter().enumerate() {
            record.push(number, &format!("{place}.thread-{thread}"), &threads::SHARE, *share);
        }
    }
}
