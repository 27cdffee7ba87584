//! What a trace of `vmstat` says about the phases of a file server. Published and simulated traces go through the same
//! code.

use super::Subject;
use crate::run::{VmstatRow, vmstat_rows};

/// Threshold of user time, in percent. Lines before the first and after the last line above it belong to
/// making and removing files, which is the kernel's work. Between these lines the share of the published traces of 2001 is
/// at least 11, except during waits for the disk; outside them it is at most 7.
const USER_WORK: f64 = 8.0;

/// The lines of `vmstat`.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The lines.
    pub rows: Vec<VmstatRow>,
    /// Seconds of the published length between two lines.
    pub interval_s: f64,
    /// The CPUs to which the percentages refer.
    pub cpus: f64,
}

impl Trace {
    /// The trace of a run; `None` if its kernel prints none.
    #[must_use]
    pub fn of(subject: &Subject<'_>) -> Option<Self> {
        let interval = subject.asked().kernel.vmstat?;
        let mut rows = vmstat_rows(subject.domain(), interval);
        for row in &mut rows {
            row.bo *= subject.scale;
        }
        let cpus = subject.domain().vcpus.len() as f64;
        Some(Self { rows, interval_s: interval.seconds() * subject.scale, cpus })
    }

    /// Adds up lines to lines of one second. If the last second is incomplete, its rest is idle.
    #[must_use]
    pub fn by_second(&self) -> Vec<VmstatRow> {
        let parts = (1.0 / self.interval_s).round().max(1.0);
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
        self.rows.chunks(parts as usize).map(one).collect()
    }

    /// A metric of the instrument `vmstat`; `None` if the trace does not have it.
    #[must_use]
    pub fn figure(&self, metric: &str) -> Option<f64> {
        let busy = |row: &VmstatRow| ((row.us + row.sy) / 100.0).min(1.0);
        let busy_s = |rows: &[VmstatRow]| rows.iter().map(busy).sum::<f64>() * self.interval_s;
        let works = |row: &VmstatRow| row.us >= USER_WORK;
        let rows = self.rows.as_slice();
        let inner = rows.get(1..rows.len().checked_sub(1)?)?;
        let total = |of: fn(&VmstatRow) -> f64| rows.iter().map(of).sum::<f64>();
        let writes = |rows: &[VmstatRow]| rows.iter().filter(|r| r.bo > 0.0).count() as f64;
        let user_share =
            || 100.0 * total(|r| r.us) / (total(|r| r.us) + total(|r| r.sy)).max(f64::MIN_POSITIVE);
        Some(match metric {
            // The work begins in the first line and ends in the last; the CPUs idle before and after.
            "elapsed" => {
                (inner.len() as f64 + busy(&rows[0]) + busy(&rows[rows.len() - 1]))
                    * self.interval_s
            }
            "make" => busy_s(&rows[..rows.iter().position(works)?]),
            "remove" => busy_s(&rows[rows.iter().rposition(works)? + 1..]),
            "idle" => inner.iter().map(|r| r.id / 100.0).sum::<f64>() * self.interval_s,
            "user" => total(|r| r.us) / 100.0 * self.interval_s * self.cpus,
            "system" => total(|r| r.sy) / 100.0 * self.interval_s * self.cpus,
            "user-share" => user_share(),
            "system-share" => 100.0 - user_share(),
            "written" => total(|r| r.bo),
            "writing" => writes(rows) * self.interval_s,
            "writing-seconds" => writes(&self.by_second()),
            "most-written" => self.by_second().iter().map(|r| r.bo).fold(0.0, f64::max),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finer_rows_say_the_same() {
        let row = |bo, us, sy, id| VmstatRow { r: 22.0, b: 0.0, bo, us, sy, id };
        let rows = vec![
            row(0.0, 2.0, 49.0, 49.0),
            row(9.0, 12.0, 89.0, 0.0),
            row(4.0, 15.0, 85.0, 0.0),
            row(0.0, 0.0, 100.0, 0.0),
            row(0.0, 0.0, 15.0, 85.0),
        ];
        // Four rows for each, with a quarter of the blocks.
        let fine =
            rows.iter().flat_map(|r| std::iter::repeat_n(VmstatRow { bo: r.bo / 4.0, ..*r }, 4));
        let fine = Trace { rows: fine.collect(), interval_s: 0.25, cpus: 8.0 };
        let whole = Trace { rows, interval_s: 1.0, cpus: 8.0 };
        assert_eq!(fine.by_second(), whole.rows);
        for metric in ["make", "remove", "user", "written", "writing-seconds"] {
            let (a, b) = (whole.figure(metric).unwrap(), fine.figure(metric).unwrap());
            assert!((a - b).abs() < 1e-9, "{metric}: {a} {b}");
        }
        // The rest of an incomplete last second is idle.
        let short = Trace { rows: fine.rows[..6].to_vec(), ..fine }.by_second();
        assert_eq!((short.len(), short[1].id, short[1].sy), (2, 50.0, 44.5));
        assert_eq!(Trace::default().figure("elapsed"), None);
    }
}
