//! The report of a sweep: one table for each measure, the first axis down, all others across.

use super::seeds::coincidences;
use super::{Block, Grid, short_integer, two_digits};
use crate::seeds::{Finding, Spread, seeds_in_words};
use crate::sweep::{Cell, Measured, PointOverSeeds};
use overspin_scenario::{Ending, US};

/// A measure: how to read it from a run, and from a point over its seeds, and how to show it.
struct Measure {
    title: &'static str,
    note: &'static str,
    unit: &'static str,
    of: fn(&Cell) -> f64,
    over: fn(&PointOverSeeds) -> Option<&Spread>,
    /// The factor of a figure.
    scale: f64,
    show: fn(f64) -> String,
}

const THROUGHPUT: Measure = Measure {
    title: "Throughput",
    note: "Acquisitions per second, in percent of the best in the column.",
    unit: "1000/s",
    of: |c| c.throughput,
    over: |p| p.throughput.as_ref(),
    scale: 1e-3,
    show: |x| format!("{x:.0}"),
};

const OTHERS: [Measure; 3] = [
    Measure {
        title: "p99.9 wait",
        note: "The wait that 99.9 % of the acquisitions did not exceed, in microseconds.",
        unit: "us",
        of: |c| c.wait_p999.0 as f64,
        over: |p| p.wait_p999.as_ref(),
        scale: 1.0 / US.0 as f64,
        show: short_integer,
    },
    Measure {
        title: "CPU burned",
        note: "Percent of the vCPUs' running time spent on waiting for locks: spinning, and stalls \
               on their cache lines.",
        unit: "%",
        of: |c| c.burned,
        over: |p| p.burned.as_ref(),
        scale: 100.0,
        show: two_digits,
    },
    Measure {
        title: "Fairness",
        note: "Jain's index over the threads' shares, in percent.",
        unit: "%",
        of: |c| c.fairness,
        over: |p| p.fairness.as_ref(),
        scale: 100.0,
        show: |x| format!("{x:.0}"),
    },
];

/// A combination of the axes: its runs, and their summary.
struct Entry<'a> {
    cells: &'a [Cell],
    over: Option<&'a PointOverSeeds>,
}

impl Entry<'_> {
    /// The ending of the first run that deadlocked or was stopped, if there is one.
    fn unsound(&self) -> Option<&Ending> {
        self.cells.iter().filter_map(Cell::ending).find(|e| !e.is_sound())
    }

    /// The value, or its mean over seeds.
    fn value(&self, measure: &Measure) -> f64 {
        match self.over {
            Some(over) => (measure.over)(over).map_or(0.0, |s| s.summary.mean),
            None => self.cells.first().map_or(0.0, measure.of),
        }
    }

    /// The value times `scale`, with half the interval of a mean, and a mark if the seeds fall into two
    /// groups.
    fn show(&self, measure: &Measure, scale: f64) -> String {
        let mut text = (measure.show)(scale * self.value(measure));
        if let Some(spread) = self.over.and_then(measure.over) {
            if let Some(i) = spread.interval {
                text += "±";
                text += &(measure.show)(scale * (i.high - i.low) / 2.0);
            }
            if matches!(spread.finding, Some(Finding::Bimodal { .. })) {
                text += "!";
            }
        }
        text
    }
}

/// Report of `measured`.
#[must_use]
pub fn sweep(measured: &Measured) -> Vec<Block> {
    let mut blocks = vec![Block::Title(measured.name.clone())];
    if !measured.description.is_empty() {
        blocks.push(Block::Text(measured.description.clone()));
    }
    let points = match measured.over_seeds.len() {
        0 => measured.cells.len(),
        points => points,
    };
    let seeds = measured.cells.len().checked_div(points).unwrap_or(1).max(1);
    let entries: Vec<Entry<'_>> = measured
        .cells
        .chunks(seeds)
        .enumerate()
        .map(|(i, cells)| Entry { cells, over: measured.over_seeds.get(i) })
        .collect();
    let across: Vec<&str> = measured.axes.iter().skip(1).map(|(name, _)| name.as_str()).collect();
    let rows = measured.axes.first().map_or(0, |(_, values)| values.len());
    let columns = entries.len().checked_div(rows).unwrap_or(0);
    let mut head = format!(
        "{} runs. Columns: {}. D: deadlock. -: stopped before its end. ",
        measured.cells.len(),
        if across.is_empty() { "one".to_owned() } else { across.join(", ") },
    );
    if seeds > 1 {
        let list: Vec<u64> = measured.cells[..seeds].iter().filter_map(|c| c.run.seed).collect();
        head += &format!(
            "Each figure is the mean over seeds {}, ± half its 95 % interval; !: the seeds fall into two \
             groups. ",
            seeds_in_words(&list)
        );
    }
    blocks.push(Block::Text(format!("{head}{}.", super::program())));
    let best: Vec<f64> = (0..columns)
        .map(|c| {
            let column = entries.iter().skip(c).step_by(columns);
            column.map(|e| e.value(&THROUGHPUT)).fold(0.0, f64::max)
        })
        .collect();
    let relative = |c: usize, entry: &Entry<'_>| match best[c] {
        0.0 => "-".to_owned(),
        most => entry.show(&THROUGHPUT, 100.0 / most),
    };
    let mut throughput = grid(measured, &entries, rows, columns, &relative);
    let line = best.iter().map(|b| format!("{:.0}", b * THROUGHPUT.scale));
    throughput.rows.push(std::iter::once("best, 1000/s".to_owned()).chain(line).collect());
    let mut measures = vec![(&THROUGHPUT, throughput)];
    for measure in &OTHERS {
        let show = |_, entry: &Entry<'_>| entry.show(measure, measure.scale);
        measures.push((measure, grid(measured, &entries, rows, columns, &show)));
    }
    for (measure, grid) in measures {
        blocks.push(Block::Heading(measure.title.into()));
        blocks.push(Block::Text(measure.note.into()));
        blocks.push(Block::Grid(grid));
    }
    if seeds > 1 {
        blocks.extend(doubts(measured, seeds));
    }
    blocks
}

/// The measures that hang on a coincidence. The tables show how much each figure spreads.
fn doubts(measured: &Measured, seeds: usize) -> Vec<Block> {
    let mut scaled: Vec<(String, &str, Finding)> = Vec::new();
    for measure in std::iter::once(&THROUGHPUT).chain(&OTHERS) {
        for point in &measured.over_seeds {
            let name = format!("{}, {}", measure.title, point.at.join(" "));
            let finding = (measure.over)(point).and_then(|s| s.finding.clone());
            let finding = match finding {
                Some(Finding::Bimodal { seeds, means }) => {
                    Finding::Bimodal { seeds, means: means.map(|m| m * measure.scale) }
                }
                Some(Finding::Outlier { seed, value, others }) => Finding::Outlier {
                    seed,
                    value: value * measure.scale,
                    others: others * measure.scale,
                },
                Some(Finding::Wide { .. }) | None => continue,
            };
            scaled.push((name, measure.unit, finding));
        }
    }
    coincidences(scaled.iter().map(|(name, unit, f)| (name.clone(), *unit, f)).collect(), seeds)
}

fn grid(
    measured: &Measured,
    entries: &[Entry<'_>],
    rows: usize,
    columns: usize,
    show: &dyn Fn(usize, &Entry<'_>) -> String,
) -> Grid {
    let first = measured.axes.first().map_or("", |(name, _)| name.as_str());
    let head = entries.iter().take(columns).map(|e| e.cells[0].at[1..].join("\n"));
    let mut grid = Grid {
        header: std::iter::once(first.to_owned()).chain(head).collect(),
        words: 1,
        ..Grid::default()
    };
    for row in entries.chunks(columns.max(1)).take(rows) {
        let cells = row.iter().enumerate().map(|(c, entry)| match entry.unsound() {
            Some(Ending::Deadlock { .. }) => "D".to_owned(),
            Some(_) => "-".to_owned(),
            None => show(c, entry),
        });
        grid.rows.push(std::iter::once(row[0].cells[0].at[0].clone()).chain(cells).collect());
    }
    grid
}
