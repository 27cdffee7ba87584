//! Records of benchmarks: the program's speed, and locks on threads.

use crate::bench::BenchResult;
use crate::record::{Kind, Record, Run, Target};
use crate::sweep::jain;
use overspin_native::bench::{Point, Report};

/// The record of `overspin bench sim` or `sched`: each result is a place, and each repetition a run.
#[must_use]
pub fn speed(bench: &str, results: &[BenchResult]) -> Record {
    let mut record = Record::new(Kind::Bench, bench);
    let repetitions = results.iter().map(|r| r.samples.len()).max().unwrap_or(0);
    record.runs = (0..).take(repetitions).map(|number| Run { number, ..Run::default() }).collect();
    for result in results {
        let place = format!("{bench}.{}", result.name);
        // Times have a plain unit; rates are something over time.
        let metric = if result.unit.contains('/') { "rate" } else { "time" };
        for (run, sample) in (0..).zip(&result.samples) {
            record.push(run, &place, metric, &result.unit, *sample);
        }
        record.targets.extend(result.target.map(|value| Target {
            place,
            metric: metric.into(),
            value,
            at_most: result.at_most,
        }));
    }
    record
}

/// The record of `overspin bench locks`. A run is numbered by its place in the order of all runs.
#[must_use]
pub fn locks(report: &Report, seed: u64) -> Record {
    let mut record = Record::new(Kind::BenchLocks, "locks");
    record.seed = Some(seed);
    record.warnings = report.warnings.iter().map(ToString::to_string).collect();
    for point in &report.points {
        of_point(&mut record, point, seed);
    }
    record.runs.sort_by_key(|r| r.number);
    record
}

fn of_point(record: &mut Record, point: &Point, seed: u64) {
    let Point { lock, threads, section_ns, outside_ns, .. } = point;
    let place = format!("{lock}.threads-{threads}.section-{section_ns}ns.outside-{outside_ns}ns");
    for sample in &point.samples {
        // No plan has so many runs that their number does not fit.
        let number = u32::try_from(sample.place).unwrap_or(u32::MAX);
        record.runs.push(Run { number, place: place.clone(), seed: Some(seed), ..Run::default() });
        let shares: Vec<f64> = sample.acquisitions.iter().map(|n| *n as f64).collect();
        let (total, seconds) = (shares.iter().sum::<f64>(), sample.time_ns as f64 / 1e9);
        let wait = &sample.wait;
        for (metric, unit, value) in [
            ("acquisitions", "1/s", total / seconds),
            ("fairness", "%", 100.0 * jain(&shares)),
            ("wait-p50", "ns", wait.p50 as f64),
            ("wait-p90", "ns", wait.p90 as f64),
            ("wait-p99", "ns", wait.p99 as f64),
            ("wait-p99.9", "ns", wait.p99_9 as f64),
            ("wait-max", "ns", wait.max as f64),
            ("cpu", "ns", sample.cpu_ns as f64 / total),
            ("preempted", "1/s", sample.involuntary_switches as f64 / seconds),
            ("slept", "1/s", sample.voluntary_switches as f64 / seconds),
            ("length", "s", seconds),
        ] {
            record.push(number, &place, metric, unit, value);
        }
        for (thread, share) in shares.iter().enumerate() {
            record.push(number, &format!("{place}.thread-{thread}"), "share", "", *share);
        }
    }
}
