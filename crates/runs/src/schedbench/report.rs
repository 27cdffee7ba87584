//! The report, in schedbench's columns, and the windows as CSV.

use super::file::BenchFile;
use super::summary::{Fairness, RunSummary, SetSummary, Spread, fairness, summarize};
use std::fmt::Write as _;

/// Name and width of the columns of a set, per figure.
const SET_COLUMNS: [&str; 7] = ["total", "avgavg", "stdev", "avgmax", "avgmin", "totmax", "totmin"];

/// The report: throughput in kops/s, utilisation in CPUs. At verbosity 0 it has a line for each set of
/// workers, at 1 also a line for each worker, at 2 also a line for each report.
#[must_use]
pub fn report(file: &BenchFile, verbosity: u8) -> String {
    let summaries: Vec<Option<RunSummary>> = file.runs.iter().map(summarize).collect();
    let done: Vec<RunSummary> = summaries.iter().flatten().cloned().collect();
    let mut out = super::origin::head(&done);
    for (i, (run, summary)) in file.runs.iter().zip(&summaries).enumerate() {
        let Some(summary) = summary else {
            let _ = writeln!(out, "Test [{i}] {} not run\n", run.label);
            continue;
        };
        let _ = writeln!(out, "== RUN {} ==", run.label);
        for (i, set) in summary.sets.iter().enumerate() {
            let _ = writeln!(out, "Set {i}: {}", set.args);
        }
        let fair = fairness(summary, &done);
        let missed = summary.sets.iter().flat_map(|s| &s.workers).any(|w| w.deadlines > 0);
        heading(&mut out, fair.is_some(), missed);
        for (i, set) in summary.sets.iter().enumerate() {
            set_line(&mut out, i, set, fair.as_ref().map(|f| &f[i]), missed);
        }
        if verbosity >= 1 {
            workers(&mut out, summary);
        }
        if verbosity >= 2 {
            for r in run.results.raw.iter().flatten() {
                let _ = writeln!(
                    out,
                    "[{:14.6}] {:>3}:{:<3} {:14.6} {:12} {:12}",
                    r.now as f64 / 1e9,
                    r.id.set,
                    r.id.id,
                    r.cputime as f64 / 1e9,
                    r.kops,
                    r.max_delta
                );
            }
        }
        out.push('\n');
    }
    out
}

fn heading(out: &mut String, fair: bool, missed: bool) {
    let _ = write!(out, "{:>5}", "set");
    for prefix in ["t", "u"] {
        for column in SET_COLUMNS {
            let _ = write!(out, " {:>9}", format!("{prefix}{column}"));
        }
    }
    let _ = write!(out, " {:>9}", "maxdelta");
    if fair {
        let _ = write!(out, " {:>13} {:>13}", "fair", "of alone");
    }
    if missed {
        let _ = write!(out, " {:>15}", "missed");
    }
    out.push('\n');
}

fn set_line(out: &mut String, i: usize, set: &SetSummary, fair: Option<&Fairness>, missed: bool) {
    let _ = write!(out, "{i:>5}");
    for Spread { total, mean, stddev, means, windows } in [set.throughput, set.utilization] {
        for value in [total, mean, stddev, means.max, means.min, windows.max, windows.min] {
            let _ = write!(out, " {value:9.2}");
        }
    }
    let _ = write!(out, " {:6.2} ms", set.max_delta_ms);
    if let Some(f) = fair {
        for range in [f.objective, f.degradation] {
            let _ = write!(out, " {:>13}", format!("{:.2} to {:.2}", range.min, range.max));
        }
    }
    if missed {
        let count = |of: fn(&super::WorkerSummary) -> u64| set.workers.iter().map(of).sum::<u64>();
        let text = format!("{} of {}", count(|w| w.missed), count(|w| w.deadlines));
        let _ = write!(out, " {text:>15}");
    }
    out.push('\n');
}

fn workers(out: &mut String, summary: &RunSummary) {
    let columns = ["toput", "time", "cpu", "tavg", "tmin", "tmax", "uavg", "umin", "umax"];
    let _ = write!(out, "{:>8}", "workerid");
    for column in columns {
        let _ = write!(out, " {column:>10}");
    }
    out.push('\n');
    for w in summary.sets.iter().flat_map(|s| &s.workers) {
        let of = |value: fn(&super::Window) -> f64| {
            let least = w.windows.iter().map(value).reduce(f64::min).unwrap_or(0.0);
            (least, w.windows.iter().map(value).fold(0.0, f64::max))
        };
        let ((tmin, tmax), (umin, umax)) = (of(|w| w.throughput), of(|w| w.utilization));
        let _ = write!(out, "{:>8} {:10}", format!("{}:{}", w.set, w.id), w.kops);
        let values = [w.time_s, w.cpu_s, w.throughput, tmin, tmax, w.utilization, umin, umax];
        for value in values {
            let _ = write!(out, " {value:10.2}");
        }
        out.push('\n');
    }
}
