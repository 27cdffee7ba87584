//! Computes each published figure from a trace of `vmstat` and the locks' counters. Published and simulated
//! traces go through the same code.

use overspin_runs::run::VmstatRow;
use overspin_runs::run::vmstat_rows;
use overspin_scenario::{DomainOutcome, Outcome, Picos, SEC, Scenario};
use serde::Serialize;

/// Threshold of user time, in percent. Lines before the first and after the last line above it belong to
/// making and removing files, which is the kernel's work. Between these lines the published share is at least
/// 11, except during waits for the disk; outside them it is at most 7.
const USER_WORK: f64 = 8.0;
/// vCPUs to which the published percentages refer.
const CPUS: f64 = 8.0;

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Kernel.
    pub kernel: String,
    /// Seed.
    pub seed: u64,
    /// Whether all clients finished.
    pub finished: bool,
    /// Seconds of published time between two rows.
    pub interval_s: f64,
    /// What `vmstat` printed, at published length.
    pub rows: Vec<VmstatRow>,
    /// Mean hold time of the five locks in microseconds.
    pub hold_us: f64,
    /// Part of this in which the holder reaches the data that it works on.
    pub hold_data_us: f64,
    /// Percentage of the CPU time spent on waiting for locks.
    pub spinning_percent: f64,
    /// Simulated time in picoseconds.
    pub elapsed: Picos,
    /// Locks, lines, vCPUs and the rest.
    pub domain: DomainOutcome,
    /// Hash of the run's events: equal for equal runs.
    #[serde(with = "overspin_scenario::hash_text")]
    pub trace_hash: u64,
}

impl Sample {
    /// The sample of an outcome whose scenario had 1/scale of the published length.
    pub(super) fn new(kernel: &str, scenario: &Scenario, mut outcome: Outcome, scale: u32) -> Self {
        let domain = outcome.domains.swap_remove(0);
        let interval = scenario.domains[0].kernel.vmstat.unwrap_or(SEC);
        let mut rows = vmstat_rows(&domain, interval);
        for row in &mut rows {
            row.bo *= f64::from(scale);
        }
        // The named locks come first, then the run queues' locks; only the named locks lie among data.
        let named = domain.locks.len() - domain.vcpus.len();
        let (five, cpus) = (&domain.locks[..named], domain.vcpus.len() as u64);
        let taken = five.iter().map(|l| l.acquisitions).sum::<u64>().max(1) as f64;
        let micros = |total: Picos| total.micros() / taken;
        let waited: Picos = domain.locks.iter().map(|l| l.wait_total).sum();
        Self {
            kernel: kernel.into(),
            seed: outcome.seed,
            finished: domain.finished.is_some(),
            interval_s: interval.seconds() * f64::from(scale),
            rows,
            hold_us: micros(five.iter().map(|l| l.hold_total).sum()),
            hold_data_us: micros(domain.lines.iter().map(|l| l.stalled).sum()),
            spinning_percent: waited.percent(outcome.elapsed * cpus),
            elapsed: outcome.elapsed,
            trace_hash: outcome.trace_hash,
            domain,
        }
    }

    /// Rows of a second each, as published.
    pub(super) fn seconds(&self) -> Vec<VmstatRow> {
        seconds(&self.rows, self.interval_s)
    }
}

/// Adds up rows to rows of one second. If the last second is incomplete, its rest is idle.
pub(super) fn seconds(rows: &[VmstatRow], interval_s: f64) -> Vec<VmstatRow> {
    let parts = (1.0 / interval_s).round().max(1.0);
    let one = |rows: &[VmstatRow]| {
        let sum = |of: fn(&VmstatRow) -> f64| rows.iter().map(of).sum::<f64>();
        let missing = 100.0 * (parts - rows.len() as f64);
        let last = rows[rows.len() - 1];
        VmstatRow {
            r: last.r,
            b: last.b,
            bo: sum(|r| r.bo),
            us: sum(|r| r.us) / parts,
            sy: sum(|r| r.sy) / parts,
            id: (sum(|r| r.id) + missing) / parts,
        }
    };
    rows.chunks(parts as usize).map(one).collect()
}

/// A figure from a trace whose rows are `interval_s` apart; `None` if there is no such figure.
pub(super) fn of_trace(rows: &[VmstatRow], interval_s: f64, metric: &str) -> Option<f64> {
    let busy = |row: &VmstatRow| ((row.us + row.sy) / 100.0).min(1.0);
    let busy_s = |rows: &[VmstatRow]| rows.iter().map(busy).sum::<f64>() * interval_s;
    let inner = rows.get(1..rows.len().checked_sub(1)?)?;
    let total = |of: fn(&VmstatRow) -> f64| rows.iter().map(of).sum::<f64>();
    let works = |row: &VmstatRow| row.us >= USER_WORK;
    let second = seconds(rows, interval_s);
    Some(match metric {
        // dbench begins in the first row and ends in the last; the CPUs idle before and after.
        "elapsed_s" => {
            (inner.len() as f64 + busy(&rows[0]) + busy(&rows[rows.len() - 1])) * interval_s
        }
        "make_s" => busy_s(&rows[..rows.iter().position(works)?]),
        "remove_s" => busy_s(&rows[rows.iter().rposition(works)? + 1..]),
        "idle_s" => inner.iter().map(|r| r.id / 100.0).sum::<f64>() * interval_s,
        "user_cpu_s" => total(|r| r.us) / 100.0 * interval_s * CPUS,
        "system_cpu_s" => total(|r| r.sy) / 100.0 * interval_s * CPUS,
        "user_share_percent" => {
            100.0 * total(|r| r.us) / (total(|r| r.us) + total(|r| r.sy)).max(f64::MIN_POSITIVE)
        }
        "written_kib" => total(|r| r.bo),
        "writing_s" => second.iter().filter(|r| r.bo > 0.0).count() as f64,
        "most_written_kib" => second.iter().map(|r| r.bo).fold(0.0, f64::max),
        _ => return None,
    })
}
