//! What a real benchmark found, as tables: kernbench's own lines, and for every benchmark the columns of the tables of
//! 2012: smallest, largest, median, mean, standard deviation, change in percent.

use super::answer::answer;
use super::seconds::vmstat;
use overspin_real::kernbench::Load;
use overspin_report::{Block, Grid, MOST_LINES, short};
use overspin_runs::record::{Group, RealConditions, Record};
use overspin_stats::Summary;
use overspin_stats::difference::welch;
use std::fmt::Write;

/// The benchmark whose own lines people know.
const KERNBENCH: &str = "kernbench";
/// The part of a place that is the machine, not the benchmark.
const MACHINE: &str = "/machine";
/// The part of a place that is a lock of a guest's kernel.
const LOCK: &str = "/lock ";
/// kernbench's names of our metrics.
const LINES: [(&str, &str); 6] = [
    ("elapsed", "Elapsed Time"),
    ("user", "User Time"),
    ("system", "System Time"),
    ("cpu", "Percent CPU"),
    ("context-switches", "Context Switches"),
    ("sleeps", "Sleeps"),
];

/// The report of a record of a real benchmark.
#[must_use]
pub fn report(record: &Record) -> Vec<Block> {
    let mut blocks = vec![Block::Title(record.name.clone())];
    let groups = record.groups();
    let locks = record.real.as_ref().map_or(&[][..], |r| &r.locks);
    blocks.extend(answer(record, &groups, locks).into_iter().map(Block::Text));
    if !record.description.is_empty() {
        blocks.push(Block::Text(record.description.clone()));
    }
    blocks.extend(record.warnings.iter().map(|w| Block::Text(format!("Doubtful: {w}."))));
    if groups.is_empty() {
        blocks.push(Block::Text("No run ended, so there are no figures.".into()));
        return blocks;
    }
    if record.name == KERNBENCH {
        let cpus = record.environment.as_ref().and_then(|e| e.usable_cpus).unwrap_or(1);
        blocks.extend(kernbench(&groups, cpus));
    }
    blocks.push(Block::Heading("Figures".into()));
    blocks.push(Block::Grid(figures(&groups, locks, record)));
    if locks.len() > 1 {
        blocks.push(Block::Text(format!(
            "The change is that of the mean against `{}` in the same place, with its 95 % confidence interval (Welch). \
             An interval on both sides of 0 decides nothing.",
            locks[0]
        )));
    }
    blocks.extend(kernel_locks(&groups));
    blocks.push(Block::Heading("The machine meanwhile".into()));
    blocks.push(Block::Grid(machine(&groups)));
    blocks.extend(last_run(record));
    blocks
}

/// kernbench's own lines for each place, on a machine with `cpus` CPUs.
fn kernbench(groups: &[Group<'_>], cpus: usize) -> Vec<Block> {
    let mut places: Vec<&str> = Vec::new();
    for group in groups.iter().filter(|g| g.metric == "elapsed") {
        if !places.contains(&group.place) {
            places.push(group.place);
        }
    }
    let mut out = String::new();
    for place in places {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "{}", heading(place, cpus));
        for (metric, words) in LINES {
            let group = groups.iter().find(|g| g.place == place && g.metric == metric);
            if let Some(s) = group.and_then(|g| Summary::of(&g.values)) {
                let _ = writeln!(out, "{words} {} ({})", figure(s.mean), figure(s.stddev));
            }
        }
        out.push('\n');
    }
    vec![Block::Heading("As kernbench prints it".into()), Block::Lines(out.trim_end().to_owned())]
}

/// The heading of a load: `Average Half load -j 3 Run (std deviation):`, after the lock if one was named.
fn heading(place: &str, cpus: usize) -> String {
    let (lock, name) = place.rsplit_once('.').map_or((None, place), |(l, name)| (Some(l), name));
    let lock = lock.map_or_else(String::new, |lock| format!("{lock}: "));
    let words = match Load::named(name) {
        Some(Load::Half) => "Half load",
        Some(Load::Optimal) => "Optimal load",
        Some(Load::Maximal) => "Maximal load",
        Some(Load::Jobs(_)) | None => "load",
    };
    let jobs = Load::named(name).map_or_else(String::new, |load| load.argument(cpus));
    let jobs = jobs.replacen("-j", "-j ", 1);
    format!("{lock}Average {words} {} Run (std deviation):", jobs.trim_end())
}

/// A number as `bc` prints it for kernbench: six significant digits.
fn figure(value: f64) -> String {
    let digits = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = usize::try_from(6 - digits.clamp(1, 6)).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// The place of the first lock that corresponds to `place`; `None` if there is none, or it is that one.
pub(super) fn base(place: &str, locks: &[String]) -> Option<String> {
    let (first, lock) = (
        locks.first()?,
        locks.iter().find(|l| {
            place
                .strip_prefix(l.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })?,
    );
    (lock != first).then(|| format!("{first}{}", &place[lock.len()..]))
}

/// The change of the mean in percent, and the ends of its 95 % confidence interval; `None` with fewer than two samples
/// on a side.
#[must_use]
pub fn change(before: &Summary, after: &Summary) -> Option<[f64; 3]> {
    let means = welch(before, after, 0.95).filter(|_| before.mean != 0.0)?;
    let (difference, margin) = (means.difference, means.margin);
    let percent = |v: f64| 100.0 * v / before.mean;
    Some([difference, difference - margin, difference + margin].map(percent))
}

fn figures(groups: &[Group<'_>], locks: &[String], record: &Record) -> Grid {
    let several = locks.len() > 1;
    let mut header =
        vec!["where", "metric", "unit", "N", "min", "max", "median", "mean", "std. dev."];
    if several {
        header.extend(["change %", "from", "to"]);
    }
    let mut grid = Grid::new(3, &header);
    let main = record.kind.main_metrics();
    let of_benchmark: Vec<&Group<'_>> = groups.iter().filter(|g| !g.place.contains('/')).collect();
    // With many places, only what a person would call the result.
    let brief = of_benchmark.len() > MOST_LINES;
    for group in of_benchmark.iter().filter(|g| !brief || main.contains(&g.metric)) {
        let Some(s) = Summary::of(&group.values) else { continue };
        let mut row = vec![group.place.to_owned(), group.metric.to_owned(), group.unit.to_owned()];
        row.push(s.n.to_string());
        row.extend([s.min, s.max, s.median, s.mean, s.stddev].map(short));
        if several {
            let base = base(group.place, locks);
            let before = base.and_then(|base| {
                let of = |g: &&&Group<'_>| g.place == base && g.metric == group.metric;
                Summary::of(&of_benchmark.iter().find(of)?.values)
            });
            let changed = before.and_then(|before| change(&before, &s));
            row.extend(match changed {
                Some(percents) => percents.map(|v| format!("{v:+.1}")),
                None => ["-", "-", "-"].map(str::to_owned),
            });
        }
        grid.rows.push(row);
    }
    grid
}

/// What the machine did during the runs of each place, on average.
fn machine(groups: &[Group<'_>]) -> Grid {
    const COLUMNS: [&str; 9] = [
        "user-share",
        "system-share",
        "idle-share",
        "iowait-share",
        "steal-share",
        "switches",
        "cpu-pressure",
        "run-delay",
        "contentions",
    ];
    let header = [
        "where",
        "user\n%",
        "system\n%",
        "idle\n%",
        "iowait\n%",
        "steal\n%",
        "switches\n1/s",
        "CPU pressure\n%",
        "run delay\ns/s",
        "lock waits\n1/s",
    ];
    let mut grid = Grid::new(1, &header);
    let mut places: Vec<&str> = Vec::new();
    for place in groups.iter().filter_map(|g| g.place.strip_suffix(MACHINE)) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place in places.into_iter().take(MOST_LINES) {
        let mean = |metric: &str| {
            let of =
                |g: &&Group<'_>| g.place.strip_suffix(MACHINE) == Some(place) && g.metric == metric;
            let summary = groups.iter().find(of).and_then(|g| Summary::of(&g.values));
            summary.map_or_else(|| "-".into(), |s| short(s.mean))
        };
        let mut row = vec![place.to_owned()];
        row.extend(COLUMNS.map(mean));
        grid.rows.push(row);
    }
    grid
}

/// The locks of guests' kernels that were waited for longest, if the kernels keep account of them.
fn kernel_locks(groups: &[Group<'_>]) -> Vec<Block> {
    let header = ["where", "lock", "contentions", "waited s", "held s"];
    let mut grid = Grid::new(2, &header);
    let mean = |place: &str, metric: &str| {
        let group = groups.iter().find(|g| g.place == place && g.metric == metric);
        group.and_then(|g| Summary::of(&g.values)).map_or(0.0, |s| s.mean)
    };
    let mut waits: Vec<(&str, &str, &str, f64)> = (groups.iter())
        .filter(|group| group.metric == "lock-wait")
        .filter_map(|group| {
            let (place, lock) = group.place.split_once(LOCK)?;
            Some((place, lock, group.place, mean(group.place, "lock-wait")))
        })
        .collect();
    // The places keep their order.
    let mut order: Vec<&str> = Vec::new();
    for (place, ..) in &waits {
        if !order.contains(place) {
            order.push(place);
        }
    }
    let rank = |place: &str| order.iter().position(|known| *known == place);
    waits.sort_by(|a, b| rank(a.0).cmp(&rank(b.0)).then(b.3.total_cmp(&a.3)));
    for (place, lock, whole, wait) in waits {
        let [contentions, held] =
            ["lock-contentions", "lock-hold"].map(|metric| short(mean(whole, metric)));
        grid.row([place.into(), lock.into(), contentions, short(wait), held]);
    }
    if grid.rows.is_empty() {
        return Vec::new();
    }
    vec![
        Block::Heading("Locks of the guest's kernel that were waited for longest".into()),
        Block::Grid(grid),
    ]
}

/// The seconds of the last run: the record has those of all.
fn last_run(record: &Record) -> Vec<Block> {
    let Some(RealConditions { seconds, .. }) = &record.real else { return Vec::new() };
    let last = seconds.last().filter(|run| run.seconds.len() > 1);
    let Some((last, run)) =
        last.and_then(|l| Some((l, record.runs.iter().find(|r| r.number == l.run)?)))
    else {
        return Vec::new();
    };
    let mut grid = vmstat(last);
    let all = grid.rows.len();
    grid.rows.truncate(MOST_LINES);
    let mut blocks = vec![
        Block::Heading(format!("The last run ({}) by seconds, as vmstat prints it", run.place)),
        Block::Grid(grid),
    ];
    if all > MOST_LINES {
        blocks.push(Block::Text(format!("The first {MOST_LINES} of {all} seconds.")));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_the_same_place_with_the_first_lock() {
        let locks = ["none", "mutex"].map(str::to_owned);
        assert_eq!(base("mutex.clients-4", &locks).as_deref(), Some("none.clients-4"));
        assert_eq!(base("mutex", &locks).as_deref(), Some("none"));
        assert_eq!(base("none.clients-4", &locks), None);
        assert_eq!(base("mutexee.clients-4", &locks), None, "another word");
        assert_eq!(base("clients-4", &[]), None);
    }

    #[test]
    fn headings_are_those_of_kernbench() {
        assert_eq!(heading("half", 4), "Average Half load -j 3 Run (std deviation):");
        assert_eq!(heading("maximal", 4), "Average Maximal load -j Run (std deviation):");
        assert_eq!(
            heading("mutex.optimal", 4),
            "mutex: Average Optimal load -j 16 Run (std deviation):"
        );
        assert_eq!(heading("jobs-7", 4), "Average load -j 7 Run (std deviation):");
    }

    #[test]
    fn numbers_are_those_of_kernbench() {
        // Six digits at most, and no zeros at the end: `Elapsed Time 326.14 (0.5)`.
        let all = [326.14, 0.5, 0.0, 12_345.6, 1_234_567.0, 169.0].map(figure);
        assert_eq!(all, ["326.14", "0.5", "0", "12345.6", "1234567", "169"]);
    }
}
