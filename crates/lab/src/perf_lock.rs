//! Imports what `perf lock contention` printed: a scenario with the lock that was waited for longest.
//!
//! The table has, for each place in the kernel, how many acquisitions had to wait there and for how long. It has
//! neither acquisitions that did not wait nor sections. But with the length of the measurement T and the number of
//! tasks N that want the lock, two numbers remain unknown, the section S and the time outside Z, and two are known:
//! the mean number of waiting tasks, which is the total wait in T, and the mean wait. `lock-loop` has fixed sections and
//! exponential times outside. In that model the first depends on N and Z/S alone; then the second is a multiple of S.

use crate::rt_app::Imported;
use overspin_located::LocatedError;
use overspin_report::{Block, Grid, short};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What the table does not say.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Its length in nanoseconds.
    pub elapsed_ns: u64,
    /// Tasks that want the lock.
    pub tasks: u32,
    /// The place to import, as the table writes it; the one with the longest total wait without.
    pub lock: Option<String>,
}

/// A row of the table. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Acquisitions that waited.
    pub contended: u64,
    /// All their waits.
    pub total: f64,
    /// `spinlock`, `mutex`, `rwsem:R`, ...
    pub kind: String,
    /// The place, or the lock.
    pub name: String,
}

/// A fitted lock.
#[derive(Clone, Debug)]
pub struct FittedLock {
    /// The scenario, and what it leaves out.
    pub imported: Imported,
    /// All rows.
    pub rows: Vec<Row>,
    /// The number of the row that was taken.
    pub taken: usize,
    /// The section, in nanoseconds.
    pub section: f64,
    /// The time outside, in nanoseconds.
    pub outside: f64,
}

/// Rows that a report shows.
const MOST_ROWS: usize = 10;
/// Sections in a trial of the model.
const SECTIONS: u32 = 40_000;
/// The longest time outside that is tried, in sections, as a power of two.
const MOST_OUTSIDE: f64 = 24.0;
/// Halvings of the range of times outside.
const HALVINGS: u32 = 40;

/// Fits a lock of the text of `perf lock contention`, which messages call `path`.
///
/// # Errors
/// If it is no such table, or if the lock cannot be fitted.
pub fn import(
    path: &str,
    text: &str,
    measurement: &Measurement,
) -> Result<FittedLock, LocatedError> {
    let (rows, spans) = read(path, text)?;
    let error = |row: Option<usize>, message: String, help: &str| {
        let span = row.map_or(0..0, |i| spans[i].clone());
        Err(LocatedError::at(path, text, span, "", message, help))
    };
    let is_wanted = |row: &Row| match &measurement.lock {
        Some(name) => row.name == *name,
        None => row.kind == SPIN,
    };
    let wanted = (0..rows.len()).filter(|i| is_wanted(&rows[*i]));
    let Some(taken) = wanted.max_by(|a, b| rows[*a].total.total_cmp(&rows[*b].total)) else {
        let message = match &measurement.lock {
            Some(name) => format!("there is no row for `{name}`"),
            None => "no row is about a spin lock".to_owned(),
        };
        let help = "--lock takes a caller or a symbol as the last column of the table writes it";
        return error(None, message, help);
    };
    let row = &rows[taken];
    if row.kind != SPIN {
        let message = format!(
            "`{}` is a {}: its waits contain sleeps and the scheduler's delays",
            row.name, row.kind
        );
        let help = "choose a spin lock; for locks that sleep import a recording (`overspin import perf-sched`)";
        return error(Some(taken), message, help);
    }
    let elapsed = measurement.elapsed_ns.max(1) as f64;
    let (waiting, most) = (row.total / elapsed, f64::from(measurement.tasks) - 1.0);
    if row.contended == 0 || waiting <= 0.0 || waiting >= most {
        let message = format!(
            "on average {} tasks waited here, which {} tasks with one holder cannot do",
            short(waiting),
            measurement.tasks
        );
        return error(
            Some(taken),
            message,
            "give --elapsed as long as perf measured, and --tasks as many as could want the lock",
        );
    }
    let mean = row.total / row.contended as f64;
    let (outside, wait) = solve(measurement.tasks, waiting);
    let section = mean / wait;
    let outside = outside * section;
    let scenario = scenario(path, measurement, row, section, outside);
    let others = rows.len() - 1;
    let mut dropped = vec![
        "the distributions of sections and of times outside: sections have one length here, and times outside are exponential"
            .to_owned(),
        "which tasks waited for which of several locks that one caller takes: here they all want one".to_owned(),
    ];
    if others > 0 {
        dropped.push(format!("{others} other callers (--lock takes another one)"));
    }
    let imported = Imported { scenario, dropped };
    Ok(FittedLock { imported, rows, taken, section, outside })
}

const SPIN: &str = "spinlock";

fn scenario(
    path: &str,
    measurement: &Measurement,
    row: &Row,
    section: f64,
    outside: f64,
) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let tasks = measurement.tasks;
    format!(
        "# From {path}: {contended} waits of {total} us in all at {name}, in {elapsed} s. perf does not see acquisitions\n\
         # that do not wait: section and outside follow from the waits, for {tasks} tasks that want the lock.\n\
         name = {path}\nlimit = \"200ms\"\n\n[host]\ncores = {tasks}\nscheduler = \"eevdf-6.18\"\n\n\
         [[domain]]\nname = \"kernel\"\nvcpus = {tasks}\nlock = \"qspinlock\"\n\n[domain.kernel]\nhz = 0\n\n\
         [domain.workload]\nkind = \"lock-loop\"\nsection = \"{section:.0}ns\"\noutside = \"{outside:.0}ns\"\n",
        path = quoted(path),
        name = quoted(&row.name),
        contended = row.contended,
        total = short(row.total / 1e3),
        elapsed = short(measurement.elapsed_ns as f64 / 1e9),
    )
}

/// The time outside in sections with which so many of `tasks` tasks wait on average, and the mean wait of those that wait.
fn solve(tasks: u32, waiting: f64) -> (f64, f64) {
    let (mut low, mut high) = (-MOST_OUTSIDE, MOST_OUTSIDE);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        // More time outside, fewer that wait.
        if trial(tasks, middle.exp2()).0 > waiting { low = middle } else { high = middle }
    }
    let outside = f64::midpoint(low, high).exp2();
    (outside, trial(tasks, outside).1)
}

/// Tasks that take a lock in the order of their requests, hold it for 1, and stay away for an exponential time with
/// this mean. Returns the mean number of waiting tasks, and the mean wait of those that waited.
fn trial(tasks: u32, outside: f64) -> (f64, f64) {
    // The same numbers in each trial, so that only `outside` makes a difference.
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut exponential = || {
        let uniform: f64 = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        -outside * (1.0 - uniform).ln()
    };
    let mut requests: Vec<f64> = (0..tasks).map(|_| exponential()).collect();
    let (mut free, mut waits, mut waited) = (0.0_f64, 0.0, 0_u32);
    for _ in 0..SECTIONS {
        let first = requests.iter_mut().min_by(|a, b| a.total_cmp(b));
        let Some(request) = first else { break };
        let begin = free.max(*request);
        let wait = begin - *request;
        waits += wait;
        waited += u32::from(wait > 0.0);
        free = begin + 1.0;
        *request = free + exponential();
    }
    (waits / free.max(1.0), waits / f64::from(waited.max(1)))
}

/// The rows of the table and their places.
#[allow(clippy::type_complexity, reason = "two lists of one length")]
fn read(path: &str, text: &str) -> Result<(Vec<Row>, Vec<std::ops::Range<usize>>), LocatedError> {
    let help = "give what `perf lock contention` printed, with its columns contended, total wait, type and caller, and without \
                -t, -x and -o";
    let (mut rows, mut spans, mut at) = (Vec::new(), Vec::new(), 0);
    let mut columns: Vec<&str> = Vec::new();
    for line in text.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        let error = |message: &str| LocatedError::at(path, text, span.clone(), "", message, help);
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if columns.is_empty() {
            if !trimmed.starts_with("contended") {
                // perf speaks of its recording before the table.
                if trimmed.starts_with("[ perf ") || trimmed.starts_with("Warning:") {
                    continue;
                }
                return Err(error("this is no table of `perf lock contention`"));
            }
            columns = trimmed.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
            if !columns.contains(&"total wait") || !columns.iter().any(|c| NAMES.contains(c)) {
                return Err(error("this table has no total waits of locks or callers"));
            }
            continue;
        }
        // Totals below the table: `=== output for debug ===`.
        if trimmed.starts_with("===") {
            break;
        }
        rows.push(
            row(trimmed, &columns)
                .ok_or_else(|| error("this row does not have the columns of the table"))?,
        );
        spans.push(span.clone());
    }
    if rows.is_empty() {
        return Err(LocatedError::at(
            path,
            text,
            0..0,
            "",
            "this table has no rows: nothing waited",
            help,
        ));
    }
    Ok((rows, spans))
}

/// Columns that name a lock or a place; they are the last.
const NAMES: [&str; 2] = ["caller", "symbol"];

fn row(line: &str, columns: &[&str]) -> Option<Row> {
    let mut row = Row { contended: 0, total: 0.0, kind: String::new(), name: String::new() };
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        rest = after.trim_start();
        Some(word).filter(|word| !word.is_empty())
    };
    for column in columns {
        match *column {
            "contended" => row.contended = word()?.parse().ok()?,
            "total wait" => row.total = time(word()?, word()?)?,
            "max wait" | "min wait" | "avg wait" => {
                time(word()?, word()?)?;
            }
            "type" => word()?.clone_into(&mut row.kind),
            "address" => {
                word()?;
            }
            name if NAMES.contains(&name) => {
                let mut all = Vec::new();
                while let Some(word) = word() {
                    all.push(word);
                }
                // With -l the type stands behind the symbol: `rq_lock (spinlock)`.
                if let Some(kind) = all.last().and_then(|w| w.strip_prefix('(')?.strip_suffix(')'))
                {
                    kind.clone_into(&mut row.kind);
                    all.pop();
                }
                row.name = all.join(" ");
            }
            _ => return None,
        }
    }
    Some(row)
}

/// `11.26 us` in nanoseconds.
fn time(number: &str, unit: &str) -> Option<f64> {
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    number.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).map(|n| n * scale)
}

/// The table, and what was made of it.
#[must_use]
pub fn report(fitted: &FittedLock) -> Vec<Block> {
    let mut grid = Grid::new(2, &["caller", "type", "waits", "total us", "mean us"]);
    for row in fitted.rows.iter().take(MOST_ROWS) {
        let mean = row.total / row.contended.max(1) as f64;
        grid.row([
            row.name.clone(),
            row.kind.clone(),
            row.contended.to_string(),
            short(row.total / 1e3),
            short(mean / 1e3),
        ]);
    }
    let row = &fitted.rows[fitted.taken];
    vec![
        Block::Title(format!("`{}` as a lock-loop", row.name)),
        Block::Text(format!(
            "Sections of {} us and {} us outside make these waits.",
            short(fitted.section / 1e3),
            short(fitted.outside / 1e3)
        )),
        Block::Grid(grid),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_runs::scenario_file;

    /// `perf lock contention` of perf 6.1, on two CPUs that compiled.
    const TABLE: &str = include_str!("../../../examples/locks.perf.txt");

    fn measurement(ms: u64, tasks: u32, lock: Option<&str>) -> Measurement {
        Measurement { elapsed_ns: ms * 1_000_000, tasks, lock: lock.map(str::to_owned) }
    }

    #[test]
    fn a_table_of_perf_is_read() {
        let fitted = import("l.txt", TABLE, &measurement(2_000, 2, None)).unwrap();
        // The first row of the file: 32 waits, 542.33 us in all.
        let row = &fitted.rows[0];
        assert_eq!((row.contended, row.total.round()), (32, 542_330.0));
        assert_eq!((row.kind.as_str(), row.name.as_str()), (SPIN, "swake_up_one+0x35"));
        assert_eq!(fitted.taken, 0);
        // Two tasks that seldom meet: a waiter has half a section before it.
        assert!((fitted.section / 2.0 / 16_948.0 - 1.0).abs() < 0.05, "{}", fitted.section);
        let by_address = "contended   total wait     max wait     avg wait            address   symbol\n\n\
                          3      9.00 us      4.00 us      3.00 us   ffff8cd000000000   rq_lock (spinlock)\n";
        let fitted = import("l.txt", by_address, &measurement(1, 4, Some("rq_lock"))).unwrap();
        assert_eq!(fitted.rows[0].kind, SPIN);
    }

    /// The simulator with the fitted scenario has the waits of the row.
    #[test]
    fn the_fitted_lock_waits_as_measured() {
        for (waits, mean_us, tasks) in [(8_000_u64, 3.0, 4_u32), (2_000, 5.0, 2), (40_000, 6.0, 4)]
        {
            let text = format!(
                "contended   total wait     max wait     avg wait         type   caller\n\n\
                 {waits}     {:.2} us      99.00 us      {mean_us:.2} us     spinlock   f+0x1\n",
                waits as f64 * mean_us
            );
            let fitted = import("l.txt", &text, &measurement(200, tasks, None)).unwrap();
            let s = scenario_file::parse("l.toml", "l", &fitted.imported.scenario, &[]).unwrap();
            let outcome = overspin_sim::run(&s, 1).unwrap();
            let lock = &outcome.domains[0].locks[0];
            let seconds = outcome.counted().0 as f64 / 1e12;
            let rate = lock.contended as f64 / seconds * 0.2;
            assert!((rate / waits as f64 - 1.0).abs() < 0.25, "{rate} {waits}: {fitted:?}");
        }
    }

    #[test]
    fn faults_say_what_to_do() {
        let head = "contended   total wait     max wait     avg wait         type   caller\n";
        let row = "2   11.26 us   6.00 us   5.63 us     mutex   f+0x1\n";
        for (text, lock, message) in [
            ("hello\n".to_owned(), None, "no table"),
            (head.to_owned(), None, "no rows"),
            (format!("{head}x y\n"), None, "does not have the columns"),
            (format!("{head}{row}"), None, "no row is about a spin lock"),
            (format!("{head}{row}"), Some("g"), "no row for `g`"),
            (format!("{head}{row}"), Some("f+0x1"), "is a mutex"),
            (
                "contended   total wait     max wait     avg wait          pid   comm\n".to_owned(),
                None,
                "no total waits of locks",
            ),
            (
                format!("{head}2   3.00 s   2.00 s   1.50 s     spinlock   f+0x1\n"),
                None,
                "cannot do",
            ),
        ] {
            let e = import("l.txt", &text, &measurement(1_000, 2, lock)).unwrap_err();
            assert!(e.message.contains(message), "{e}");
        }
    }
}
