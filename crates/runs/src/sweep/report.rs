//! The report of a sweep: one table for each measure, the first axis down, all others across. With one axis, all measures
//! share a table.

use super::{Cell, MEASURES, Measured, Outcome, THROUGHPUT};
use crate::seeds::coincidences;
use overspin_report::{Block, Grid, short_integer, tenths, three_digits, two_digits};
use overspin_scenario::Ending;
use overspin_stats::{Finding, Spread, ranges};
use std::iter::repeat;

/// How the tables show a measure; `of` is its position in [`MEASURES`]. The other measures are in the record
/// and in the curves.
struct Shown {
    of: usize,
    note: &'static str,
    unit: &'static str,
    /// The factor of a figure.
    scale: f64,
    show: fn(f64) -> String,
}

const SHOWN_THROUGHPUT: Shown = Shown {
    of: THROUGHPUT,
    note: "Acquisitions per second, in percent of the best in the column.",
    unit: "1000/s",
    scale: 1e-3,
    show: |x| format!("{x:.0}"),
};

/// From this part of the best on, a value does about as much.
const CLOSE: f64 = 0.99;

/// A lock that does less than this part of the best in its column has collapsed: its percentiles are those of few waits.
const COLLAPSED: f64 = 0.5;

/// The position of the percentile in [`MEASURES`].
const P999: usize = 3;

const OTHERS: [Shown; 3] = [
    Shown {
        of: P999,
        note: "The wait that 99.9 % of the acquisitions did not exceed, in microseconds. A lock that collapses makes few \
               acquisitions, and so few long waits; ?: it did less than half of the best in its column.",
        unit: "us",
        scale: 1.0,
        show: short_integer,
    },
    Shown {
        of: 4,
        note: "Percent of the vCPUs' running time spent on waiting for locks: spinning, and stalls on their \
               cache lines.",
        unit: "%",
        scale: 1.0,
        show: two_digits,
    },
    Shown {
        of: 5,
        note: "Jain's index over the threads' shares, in percent.",
        unit: "%",
        scale: 1.0,
        show: |x| format!("{x:.0}"),
    },
];

const ELAPSED: &str = "The time until all work was done, in milliseconds: no lock was acquired that could be counted.";

/// A reason to doubt a rate.
struct Mark {
    is: fn(&Measured) -> bool,
    /// Beside the rate in a table.
    sign: char,
    word: &'static str,
    why: &'static str,
}

const MARKS: [Mark; 2] = [
    Mark {
        is: Measured::is_unsteady,
        sign: '~',
        word: "NOT STEADY",
        why: "The two halves of a run differ by more than a fifth, so that the rate depends on the length of the run: \
              make `limit` longer.",
    },
    Mark {
        is: Measured::is_disturbed,
        sign: '*',
        word: "DISTURBED",
        why: "Others had more than 5 % of the CPUs during a run, each of three times, or the run did more than its CPUs \
              can do. The record has the figures.",
    },
];

/// A point: its runs, and the spread of each measure.
struct Entry<'a> {
    point: &'a Measured,
    spreads: Vec<Option<Spread>>,
}

impl<'a> Entry<'a> {
    fn of(point: &'a Measured) -> Self {
        Self { point, spreads: (0..MEASURES.len()).map(|i| point.spread(i)).collect() }
    }

    /// The ending of the first run that deadlocked or was stopped, if there is one.
    fn unsound(&self) -> Option<&Ending> {
        self.point.cells.iter().filter_map(Cell::ending).find(|e| !e.is_sound())
    }

    /// The value, or its mean over seeds.
    fn value(&self, shown: &Shown) -> f64 {
        self.spreads[shown.of].as_ref().map_or(0.0, |s| s.summary.mean)
    }

    /// How long its work took in milliseconds, with half the interval of a mean; "limit" if some run did not end before.
    fn elapsed(&self) -> String {
        let cells = &self.point.cells;
        if !cells.iter().all(Cell::is_finished) {
            return "limit".into();
        }
        let seeds: Vec<u64> = cells.iter().filter_map(|c| c.run.seed).collect();
        let times: Vec<f64> =
            cells.iter().filter_map(|c| c.run.elapsed).map(|e| e.seconds() * 1e3).collect();
        let Some(spread) = Spread::of(&seeds, &times) else { return "-".into() };
        let half = spread.interval.map(|i| format!("±{}", three_digits((i.high - i.low) / 2.0)));
        three_digits(spread.summary.mean) + &half.unwrap_or_default()
    }

    /// The value times `scale`, with half the interval of a mean, and a mark if the seeds fall into two
    /// groups.
    fn show(&self, shown: &Shown, scale: f64) -> String {
        let mut text = (shown.show)(scale * self.value(shown));
        if let Some(spread) = &self.spreads[shown.of] {
            if let Some(i) = spread.interval {
                text += "±";
                text += &(shown.show)(scale * (i.high - i.low) / 2.0);
            }
            if matches!(spread.finding, Some(Finding::Bimodal { .. })) {
                text += "!";
            }
        }
        if shown.of == THROUGHPUT {
            text.extend(MARKS.iter().filter(|mark| (mark.is)(self.point)).map(|mark| mark.sign));
        }
        text
    }
}

impl Measured {
    /// Whether a run was not steady.
    fn is_unsteady(&self) -> bool {
        self.cells.iter().any(|cell| !cell.run.unsteady.is_empty())
    }

    /// Whether others disturbed a run, or it cannot be right.
    fn is_disturbed(&self) -> bool {
        self.cells.iter().any(|cell| cell.run.is_disturbed())
    }
}

/// Report of a sweep.
#[must_use]
pub fn report(outcome: &Outcome) -> Vec<Block> {
    let mut blocks = vec![Block::Title(outcome.name.clone())];
    if !outcome.description.is_empty() {
        blocks.push(Block::Text(outcome.description.clone()));
    }
    blocks.extend(answer(outcome));
    blocks.push(Block::Text(format!(
        "{}{}.",
        head(outcome),
        overspin_record::environment::program()
    )));
    blocks.extend(tables(outcome));
    blocks.extend(doubts(outcome, &entries(outcome)));
    blocks
}

/// The tables, with what the marks in them mean.
#[must_use]
pub fn tables(outcome: &Outcome) -> Vec<Block> {
    let mut blocks = Vec::new();
    let entries = entries(outcome);
    let best = best(outcome, &entries);
    let (rows, columns) = (outcome.axes.first().map_or(0, |(_, values)| values.len()), best.len());
    let relative = |c: usize, entry: &Entry<'_>| match best[c] {
        0.0 => "-".to_owned(),
        most => entry.show(&SHOWN_THROUGHPUT, 100.0 / most),
    };
    let mut measures = Vec::new();
    let is_finished = |e: &Entry<'_>| e.point.cells.iter().any(Cell::is_finished);
    if best.iter().all(|b| *b == 0.0) && entries.iter().any(is_finished) {
        blocks.push(Block::Heading("Elapsed".into()));
        blocks.push(Block::Text(ELAPSED.into()));
        let show = |_: usize, entry: &Entry<'_>| entry.elapsed();
        blocks.push(Block::Grid(grid(outcome, &entries, (rows, columns), &show)));
    } else {
        let mut throughput = grid(outcome, &entries, (rows, columns), &relative);
        let line = best.iter().map(|b| format!("{:.0}", b * SHOWN_THROUGHPUT.scale));
        throughput.rows.push(std::iter::once("best, 1000/s".to_owned()).chain(line).collect());
        measures.push((&SHOWN_THROUGHPUT, throughput));
    }
    for shown in &OTHERS {
        let show = |c: usize, entry: &Entry<'_>| {
            let collapsed = entry.value(&SHOWN_THROUGHPUT) < COLLAPSED * best[c];
            let mark = if shown.of == P999 && collapsed { "?" } else { "" };
            entry.show(shown, shown.scale) + mark
        };
        measures.push((shown, grid(outcome, &entries, (rows, columns), &show)));
    }
    let doubted = marks(outcome);
    if outcome.axes.len() == 1 {
        let notes = measures.iter().map(|(s, _)| format!("{}: {}", MEASURES[s.of].title, s.note));
        let notes: Vec<Block> = notes.map(Block::Text).chain(doubted).collect();
        blocks.push(Block::Grid(joined(measures)));
        blocks.extend(notes);
    } else {
        for (shown, grid) in measures {
            blocks.push(Block::Heading(MEASURES[shown.of].title.into()));
            blocks.push(Block::Text(shown.note.into()));
            if shown.of == THROUGHPUT {
                blocks.extend(doubted.iter().cloned());
            }
            blocks.push(Block::Grid(grid));
        }
    }
    blocks
}

/// What the marks beside rates mean.
fn marks(outcome: &Outcome) -> Vec<Block> {
    let used = MARKS.iter().filter(|mark| outcome.points.iter().any(mark.is));
    used.map(|m| Block::Text(format!("{}: {}. {}", m.sign, m.word, m.why))).collect()
}

/// The tables of one axis beside each other.
fn joined(measures: Vec<(&Shown, Grid)>) -> Grid {
    let mut all = Grid { words: 1, ..Grid::default() };
    for (shown, grid) in measures {
        let unit = if shown.of == THROUGHPUT { "% of best" } else { shown.unit };
        if all.rows.is_empty() {
            all.header.extend(grid.header.first().cloned());
            all.rows.extend(grid.rows.iter().map(|row| row[..1].to_vec()));
        }
        all.header.push(format!("{}\n{unit}", MEASURES[shown.of].title));
        // The last row, of the best rate, has no other figure.
        let cells = grid.rows.into_iter().map(|row| row.into_iter().nth(1)).chain(repeat(None));
        for (row, cell) in all.rows.iter_mut().zip(cells) {
            row.push(cell.unwrap_or_default());
        }
    }
    all
}

fn entries(outcome: &Outcome) -> Vec<Entry<'_>> {
    outcome.points.iter().map(Entry::of).collect()
}

/// The highest throughput of each column.
fn best(outcome: &Outcome, entries: &[Entry<'_>]) -> Vec<f64> {
    let rows = outcome.axes.first().map_or(0, |(_, values)| values.len());
    let columns = entries.len().checked_div(rows).unwrap_or(0);
    let of = |c: usize| {
        let column = entries.iter().skip(c).step_by(columns);
        column.map(|e| e.value(&SHOWN_THROUGHPUT)).fold(0.0, f64::max)
    };
    (0..columns).map(of).collect()
}

/// What to doubt of a sweep: rates that were not steady, runs that were disturbed, means of two groups of seeds.
#[must_use]
pub fn warnings(outcome: &Outcome) -> Vec<Block> {
    let named = MARKS.iter().filter_map(|mark| {
        let marked = outcome.points.iter().filter(|point| (mark.is)(point));
        let places: Vec<String> = marked.map(|point| point.at.join(", ")).collect();
        let text = || format!("{}: {}. {}", mark.word, places.join("; "), mark.why);
        (!places.is_empty()).then(|| Block::Text(text()))
    });
    named.chain(doubts(outcome, &entries(outcome))).collect()
}

/// Which value of the first axis does best, and where another one falls behind. Nothing is said if nothing was acquired, or
/// if some run did not come to its end.
#[must_use]
pub fn answer(outcome: &Outcome) -> Option<Block> {
    let (axis, values) = outcome.axes.first()?;
    let entries = entries(outcome);
    let best = best(outcome, &entries);
    let sound = |e: &Entry<'_>| !e.point.cells.is_empty() && e.unsound().is_none();
    if best.is_empty() || best.contains(&0.0) || !entries.iter().all(sound) {
        return None;
    }
    let columns = best.len();
    let place = |c: usize| match entries[c].point.at[1..].join(", ") {
        at if at.is_empty() => String::new(),
        at => format!(" at {at}"),
    };
    let rate = |value: f64| format!("{} acquisitions/s", three_digits(value));
    let mut text = String::new();
    if values.len() > 1 {
        // The least part of the best that each value does, and where.
        let least: Vec<(f64, usize)> = entries
            .chunks(columns)
            .map(|row| {
                let parts =
                    row.iter().zip(&best).map(|(e, best)| e.value(&SHOWN_THROUGHPUT) / best);
                parts.zip(0..).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a })
            })
            .collect();
        let by_least = |a: &&usize, b: &&usize| least[**a].0.total_cmp(&least[**b].0);
        let all: Vec<usize> = (0..least.len()).collect();
        let (steady, weak) = (*all.iter().rev().max_by(by_least)?, *all.iter().min_by(by_least)?);
        let percent = |row: usize| tenths((100.0 * least[row].0).min(100.0));
        text += &match least[steady].0 {
            1.0 if columns == 1 => format!(
                "{axis} {} does most, {}{}",
                values[steady],
                rate(best[0]),
                close(least.iter().filter(|(part, _)| *part >= CLOSE).count() - 1)
            ),
            1.0 => format!("{axis} {} does most", values[steady]),
            _ => format!(
                "{axis} {} never does less than {} % of the best",
                values[steady],
                percent(steady)
            ),
        };
        if columns > 1 && least[steady].0 == 1.0 {
            text += " everywhere";
        }
        text +=
            &format!("; {} falls to {} %{}.", values[weak], percent(weak), place(least[weak].1));
    }
    if columns > 1 {
        let last = columns - 1;
        let blank = if text.is_empty() { "" } else { " " };
        let (from, to) = (rate(best[0]), rate(best[last]));
        text += &format!("{blank}The best does {from}{} and {to}{}.", place(0), place(last));
    }
    if outcome.most_seeds() == 1 {
        text += " One run for each point: --seeds 5 says how sure this is.";
    }
    Some(Block::Text(text))
}

/// What is said of values that do about as much as the best.
fn close(others: usize) -> String {
    match others {
        0 => String::new(),
        1 => "; 1 more does within 1 % of that".into(),
        n => format!("; {n} more do within 1 % of that"),
    }
}

/// How many runs there are, and how to read the tables.
fn head(outcome: &Outcome) -> String {
    let across: Vec<&str> = outcome.axes.iter().skip(1).map(|(name, _)| name.as_str()).collect();
    let mut head = format!(
        "{} runs. {}D: deadlock. -: not made, or stopped before its end. ",
        outcome.cells().count(),
        if across.is_empty() { String::new() } else { format!("Columns: {}. ", across.join(", ")) },
    );
    let counts = || outcome.points.iter().map(|p| p.cells.len()).filter(|n| *n > 0);
    let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    if most > 1 {
        let seeds = match outcome.points.iter().find(|p| p.cells.len() == most) {
            Some(point) if fewest == most => {
                let seeds: Vec<u64> = point.cells.iter().filter_map(|c| c.run.seed).collect();
                format!("seeds {}", ranges(&seeds))
            }
            _ => format!("{fewest} to {most} seeds"),
        };
        head += &format!(
            "Each figure is the mean over {seeds}, ± half its 95 % interval; !: the seeds fall into two groups. "
        );
    }
    head
}

/// The measures that hang on a coincidence. The tables show how much each figure spreads.
fn doubts(outcome: &Outcome, entries: &[Entry<'_>]) -> Vec<Block> {
    if outcome.most_seeds() < 2 {
        return Vec::new();
    }
    let mut scaled: Vec<(String, &str, Finding)> = Vec::new();
    for shown in std::iter::once(&SHOWN_THROUGHPUT).chain(&OTHERS) {
        for entry in entries {
            let name = format!("{}, {}", MEASURES[shown.of].title, entry.point.at.join(" "));
            let finding = entry.spreads[shown.of].as_ref().and_then(|s| s.finding.clone());
            let finding = match finding {
                Some(Finding::Bimodal { seeds, means }) => {
                    Finding::Bimodal { seeds, means: means.map(|m| m * shown.scale) }
                }
                Some(Finding::Outlier { seed, value, others }) => Finding::Outlier {
                    seed,
                    value: value * shown.scale,
                    others: others * shown.scale,
                },
                Some(Finding::Wide { .. }) | None => continue,
            };
            scaled.push((name, shown.unit, finding));
        }
    }
    let findings = scaled.iter().map(|(name, unit, f)| (name.clone(), *unit, f)).collect();
    coincidences(findings, outcome.most_seeds())
}

fn grid(
    outcome: &Outcome,
    entries: &[Entry<'_>],
    (rows, columns): (usize, usize),
    show: &dyn Fn(usize, &Entry<'_>) -> String,
) -> Grid {
    let first = outcome.axes.first().map_or("", |(name, _)| name.as_str());
    let head = entries.iter().take(columns).map(|e| e.point.at[1..].join("\n"));
    let mut grid = Grid {
        header: std::iter::once(first.to_owned()).chain(head).collect(),
        words: 1,
        ..Grid::default()
    };
    for row in entries.chunks(columns.max(1)).take(rows) {
        let cells = row.iter().enumerate().map(|(c, entry)| match entry.unsound() {
            _ if entry.point.cells.is_empty() => "-".to_owned(),
            Some(Ending::Deadlock { .. }) => "D".to_owned(),
            Some(_) => "-".to_owned(),
            None => show(c, entry),
        });
        grid.rows.push(std::iter::once(row[0].point.at[0].clone()).chain(cells).collect());
    }
    grid
}
