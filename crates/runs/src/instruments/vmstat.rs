//! `vmstat`: what a trace of `vmstat` says about the phases of a file server. Published and simulated traces go through
//! the same code.

use super::{Has, Instrument, Row, Subject, row};
use crate::run::{VmstatRow, vmstat_rows};
use overspin_record::metric::Metric;

pub(super) static VMSTAT: Instrument = Instrument {
    name: "vmstat",
    places: "What a trace of `vmstat` says about a file server, in a domain whose kernel sets `vmstat`. Only finished \
             runs have it.",
    metrics: || VMSTAT.all(),
    rows: || ROWS.to_vec(),
    of_vcpu: None,
    fits: |domain| domain.kernel.vmstat.is_some(),
};

static ROWS: [Row; 12] = [
    row!("elapsed", "s", "from the beginning of the work to its end", Finished, |s| Trace::of(s)?
        .elapsed()),
    row!("make", "s", "busy time before the first user work: files are made", Finished, |s| {
        Trace::of(s)?.make()
    }),
    row!("remove", "s", "busy time after the last user work: files are removed", Finished, |s| {
        Trace::of(s)?.remove()
    }),
    row!("idle", "s", "idle time between the first and the last line", Finished, |s| Trace::of(s)?
        .idle()),
    row!("user", "s", "user time of all CPUs", Finished, |s| Some(Trace::of(s)?.user())),
    row!("system", "s", "system time of all CPUs", Finished, |s| Some(Trace::of(s)?.system())),
    row!("user-share", "%", "user time in parts of the CPU time that is not idle", Finished, |s| {
        Some(Trace::of(s)?.user_share())
    }),
    row!(
        "system-share",
        "%",
        "system time in parts of the CPU time that is not idle",
        Finished,
        |s| { Some(100.0 - Trace::of(s)?.user_share()) }
    ),
    row!("written", "KiB", "what is written to the disk", Finished, |s| Some(
        Trace::of(s)?.written()
    )),
    row!(
        "writing",
        "s",
        "time in which something is written, by the lines of the trace",
        Finished,
        |s| {
            let trace = Trace::of(s)?;
            Some(trace.rows.iter().filter(|row| row.bo > 0.0).count() as f64 * trace.interval_s)
        }
    ),
    row!(
        "writing-seconds",
        "s",
        "whole seconds in which something is written, as published lines tell",
        Finished,
        |s| { Some(Trace::of(s)?.writing_seconds()) }
    ),
    row!("most-written", "KiB", "most that is written in one second", Finished, |s| Some(
        Trace::of(s)?.most_written()
    )),
];

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

    /// The lines between the first and the last.
    fn inner(&self) -> Option<&[VmstatRow]> {
        self.rows.get(1..self.rows.len().checked_sub(1)?)
    }

    fn busy_s(&self, rows: &[VmstatRow]) -> f64 {
        rows.iter().map(busy).sum::<f64>() * self.interval_s
    }

    fn total(&self, of: fn(&VmstatRow) -> f64) -> f64 {
        self.rows.iter().map(of).sum()
    }

    /// Seconds of the work. It begins in the first line and ends in the last; the CPUs idle before and after.
    #[must_use]
    pub fn elapsed(&self) -> Option<f64> {
        let inner = self.inner()?.len() as f64;
        let (first, last) = (self.rows.first()?, self.rows.last()?);
        Some((inner + busy(first) + busy(last)) * self.interval_s)
    }

    /// Busy seconds before the first user work.
    #[must_use]
    pub fn make(&self) -> Option<f64> {
        Some(self.busy_s(&self.rows[..self.rows.iter().position(works)?]))
    }

    /// Busy seconds after the last user work.
    #[must_use]
    pub fn remove(&self) -> Option<f64> {
        Some(self.busy_s(&self.rows[self.rows.iter().rposition(works)? + 1..]))
    }

    /// Idle seconds between the first and the last line.
    #[must_use]
    pub fn idle(&self) -> Option<f64> {
        Some(self.inner()?.iter().map(|r| r.id / 100.0).sum::<f64>() * self.interval_s)
    }

    /// User seconds of all CPUs.
    #[must_use]
    pub fn user(&self) -> f64 {
        self.total(|r| r.us) / 100.0 * self.interval_s * self.cpus
    }

    /// System seconds of all CPUs.
    #[must_use]
    pub fn system(&self) -> f64 {
        self.total(|r| r.sy) / 100.0 * self.interval_s * self.cpus
    }

    /// User time in percent of the time that is not idle.
    #[must_use]
    pub fn user_share(&self) -> f64 {
        let (user, system) = (self.total(|r| r.us), self.total(|r| r.sy));
        100.0 * user / (user + system).max(f64::MIN_POSITIVE)
    }

    /// KiB that are written.
    #[must_use]
    pub fn written(&self) -> f64 {
        self.total(|r| r.bo)
    }

    /// Whole seconds in which something is written.
    #[must_use]
    pub fn writing_seconds(&self) -> f64 {
        self.by_second().iter().filter(|r| r.bo > 0.0).count() as f64
    }

    /// Most KiB that are written in one second.
    #[must_use]
    pub fn most_written(&self) -> f64 {
        self.by_second().iter().map(|r| r.bo).fold(0.0, f64::max)
    }
}

fn busy(row: &VmstatRow) -> f64 {
    ((row.us + row.sy) / 100.0).min(1.0)
}

fn works(row: &VmstatRow) -> bool {
    row.us >= USER_WORK
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
        let figures = |t: &Trace| {
            [t.make().unwrap(), t.remove().unwrap(), t.user(), t.written(), t.writing_seconds()]
        };
        for (a, b) in figures(&whole).into_iter().zip(figures(&fine)) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
        // The rest of an incomplete last second is idle.
        let short = Trace { rows: fine.rows[..6].to_vec(), ..fine }.by_second();
        assert_eq!((short.len(), short[1].id, short[1].sy), (2, 50.0, 44.5));
        assert_eq!(Trace::default().elapsed(), None);
    }
}
