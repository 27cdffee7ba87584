//! The output of the tools of a kernel of 2001, `vmstat` and lockmeter's `lockstat`; and the cache lines,
//! which no tool could show.

use super::mean;
use overspin_report::{Grid, micros, percent, share};
use overspin_scenario::{DomainOutcome, LockOutcome, Picos, VmstatLine};

/// Size of a page in the unit of `vmstat`, 1 KiB.
const PAGE_KIB: u64 = 4;

/// A line of `vmstat` in its own units.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct VmstatRow {
    /// Tasks that run or are runnable.
    pub r: f64,
    /// Tasks that sleep for the disk.
    pub b: f64,
    /// KiB to the disk in an interval.
    pub bo: f64,
    /// User time in percent.
    pub us: f64,
    /// System time in percent.
    pub sy: f64,
    /// Idle time in percent.
    pub id: f64,
}

impl VmstatRow {
    /// A line of an interval with `vcpus` vCPUs. The last line of a run counts as a whole interval; its
    /// missing part is idle.
    #[must_use]
    pub fn new(line: &VmstatLine, interval: Picos, vcpus: usize) -> Self {
        let whole = interval.0 as f64 * vcpus as f64;
        let (us, sy) = (100.0 * line.user.0 as f64 / whole, 100.0 * line.system.0 as f64 / whole);
        Self {
            r: f64::from(line.running),
            b: f64::from(line.blocked),
            bo: (line.pages_out * PAGE_KIB) as f64,
            us,
            sy,
            // Ticks charge whole periods, so the sum may slightly exceed the interval.
            id: (100.0 - us - sy).max(0.0),
        }
    }
}

/// The rows of a domain whose `vmstat` has this interval.
#[must_use]
pub fn vmstat_rows(domain: &DomainOutcome, interval: Picos) -> Vec<VmstatRow> {
    let row = |line| VmstatRow::new(line, interval, domain.vcpus.len());
    domain.vmstat.iter().map(row).collect()
}

/// The rows as `vmstat` prints them; `bo` is per interval, which was a second.
pub fn vmstat(rows: &[VmstatRow]) -> Grid {
    let mut grid = Grid::new(0, &["interval", "r", "b", "bo", "us", "sy", "id"]);
    for (i, row) in rows.iter().enumerate() {
        let whole = |v: f64| format!("{v:.0}");
        let VmstatRow { r, b, bo, us, sy, id } = *row;
        let [r, b, bo, us, sy, id] = [r, b, bo, us, sy, id].map(whole);
        grid.row([(i + 1).to_string(), r, b, bo, us, sy, id]);
    }
    grid
}

/// Lockmeter's columns. No task uses a try-lock here, so there are no rejections.
/// `time` is the time that counts.
pub fn lockmeter(domain: &DomainOutcome, time: Picos) -> Grid {
    let header = [
        "UTIL",
        "CON",
        "HOLD\nMEAN us",
        "(MAX)",
        "WAIT\nMEAN us",
        "(MAX)",
        "(% CPU)",
        "TOTAL",
        "NOWAIT",
        "SPIN",
        "RJECT",
        "NAME",
    ];
    let mut grid = Grid::new(0, &header);
    grid.notes = 1;
    let cpus = domain.vcpus.len() as u64;
    let mut line = |l: &LockOutcome, util: String| {
        let spin = percent(l.contended, l.acquisitions);
        grid.row([
            util,
            spin.clone(),
            micros(mean(l.hold_total, l.acquisitions)),
            micros(l.hold_max),
            micros(mean(l.wait_total, l.contended)),
            micros(l.wait_max),
            share(l.wait_total, time * cpus),
            l.acquisitions.to_string(),
            percent(l.acquisitions - l.contended, l.acquisitions),
            spin,
            percent(0, l.acquisitions),
            l.name.clone(),
        ]);
    };
    let mut total = LockOutcome { name: "*TOTAL*".into(), ..LockOutcome::default() };
    for l in &domain.locks {
        total.acquisitions += l.acquisitions;
        total.contended += l.contended;
        total.wait_total += l.wait_total;
        total.wait_max = total.wait_max.max(l.wait_max);
        total.hold_total += l.hold_total;
        total.hold_max = total.hold_max.max(l.hold_max);
    }
    line(&total, String::new());
    for l in &domain.locks {
        line(l, share(l.hold_total, time));
    }
    grid
}

/// Accesses of holders to the cache lines of the kernel's data; a line is lost if the holder's vCPU had it
/// before.
pub fn lines(domain: &DomainOutcome) -> Grid {
    let header = [
        "line",
        "accesses by holders",
        "misses",
        "lost",
        "lost %",
        "mean us",
        "total s",
        "contents",
    ];
    let mut grid = Grid::new(1, &header);
    grid.notes = 1;
    for (i, l) in domain.lines.iter().enumerate() {
        grid.row([
            i.to_string(),
            l.accesses.to_string(),
            l.misses.to_string(),
            l.lost.to_string(),
            percent(l.lost, l.accesses),
            micros(mean(l.stalled, l.accesses)),
            overspin_report::seconds(l.stalled),
            l.names.join(" "),
        ]);
    }
    grid
}
