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

/// A run as `vmstat 1` prints it, with the waits for the kernel's locks as a last column.
#[must_use]
pub fn vmstat(run: &RunSeconds) -> Grid {
    let header =
        ["s", "r", "b", "bi", "bo", "in", "cs", "us", "sy", "id", "wa", "st", "lock waits"];
    let mut grid = Grid::new(0, &header);
    for s in &run.seconds {
        let whole = |v: f64| format!("{v:.0}");
        let or_dash = |v: Option<f64>| v.map_or_else(|| "-".into(), whole);
        let share = |of: fn(&Shares) -> f64| or_dash(s.shares.as_ref().map(of));
        grid.row([
            whole(s.until_s),
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
