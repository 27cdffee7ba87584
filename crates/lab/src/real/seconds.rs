//! What the machine did in each second, as CSV and as `vmstat 1` prints it.

use overspin_real::seconds::{Second, Shares};
use overspin_report::Grid;
use overspin_runs::record::{Record, RunSeconds};
use std::fmt::Write;

/// The columns of the CSV after run, place and second.
const COLUMNS: [&str; 18] = [
    "until_s",
    "runnable",
    "blocked",
    "read_kib_s",
    "written_kib_s",
    "interrupts_s",
    "switches_s",
    "faults_s",
    "user_percent",
    "system_percent",
    "idle_percent",
    "iowait_percent",
    "steal_percent",
    "cpu_pressure_percent",
    "io_pressure_percent",
    "memory_pressure_percent",
    "run_delay_s_s",
    "contentions_s",
];

/// A line for each second of each run. What the kernel does not tell is empty.
#[must_use]
pub fn csv(record: &Record) -> String {
    let mut out = format!("run,where,{}\n", COLUMNS.join(","));
    let Some(real) = &record.real else { return out };
    for RunSeconds { run, seconds, .. } in &real.seconds {
        let place = record.runs.iter().find(|r| r.number == *run).map_or("", |r| &r.place);
        for second in seconds {
            let cells = cells(second).map(|c| c.map_or_else(String::new, |v| format!("{v:.3}")));
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{run},{place},{}", cells.join(","));
        }
    }
    out
}

fn cells(s: &Second) -> [Option<f64>; 18] {
    let known = Some;
    let shares = s.shares.as_ref();
    [
        known(s.until_s),
        known(s.runnable as f64),
        known(s.blocked as f64),
        known(s.read_kib),
        known(s.written_kib),
        known(s.interrupts),
        known(s.switches),
        known(s.faults),
        shares.map(|s| s.user),
        shares.map(|s| s.system),
        shares.map(|s| s.idle),
        shares.map(|s| s.iowait),
        shares.map(|s| s.steal),
        s.cpu_pressure,
        s.io_pressure,
        s.memory_pressure,
        s.run_delay,
        s.contentions,
    ]
}

/// The end of each second in words: with so many decimals that no two are alike. A rest that is shorter than a second
/// rounds to the second before it.
#[must_use]
pub fn labels(seconds: &[Second]) -> Vec<String> {
    let with = |decimals: usize| -> Vec<String> {
        seconds.iter().map(|s| format!("{:.decimals$}", s.until_s)).collect()
    };
    let distinct = |labels: &[String]| labels.windows(2).all(|pair| pair[0] != pair[1]);
    (0..3).map(with).find(|labels| distinct(labels)).unwrap_or_else(|| with(3))
}

/// A run as `vmstat 1` prints it, with the waits for the kernel's locks as a last column.
#[must_use]
pub fn vmstat(run: &RunSeconds) -> Grid {
    let header =
        ["s", "r", "b", "bi", "bo", "in", "cs", "us", "sy", "id", "wa", "st", "lock waits"];
    let mut grid = Grid::new(0, &header);
    for (s, label) in run.seconds.iter().zip(labels(&run.seconds)) {
        let whole = |v: f64| format!("{v:.0}");
        let or_dash = |v: Option<f64>| v.map_or_else(|| "-".into(), whole);
        let share = |of: fn(&Shares) -> f64| or_dash(s.shares.as_ref().map(of));
        grid.row([
            label,
            s.runnable.to_string(),
            s.blocked.to_string(),
            whole(s.read_kib),
            whole(s.written_kib),
            whole(s.interrupts),
            whole(s.switches),
            share(|s| s.user),
            share(|s| s.system),
            share(|s| s.idle),
            share(|s| s.iowait),
            share(|s| s.steal),
            or_dash(s.contentions),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_seconds_have_one_label() {
        let of = |ends: &[f64]| {
            let second = |end: &f64| Second { until_s: *end, ..Second::default() };
            labels(&ends.iter().map(second).collect::<Vec<_>>())
        };
        assert_eq!(of(&[1.0002, 2.0001, 2.7]), ["1", "2", "3"]);
        assert_eq!(of(&[1.0002, 2.0001, 2.3]), ["1.0", "2.0", "2.3"], "not 1, 2, 2");
        assert_eq!(of(&[1.96, 2.01]), ["1.96", "2.01"], "a busy machine was late");
    }
}
