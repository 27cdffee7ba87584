//! The report of a map: one table for each measure, the first axis down, all others across.

use super::{Block, Grid};
use crate::map::{Cell, Measured};
use overspin_scenario::{Ending, US};

/// Report of `measured`.
#[must_use]
pub fn map(measured: &Measured) -> Vec<Block> {
    let mut blocks = vec![Block::Title(measured.name.clone())];
    if !measured.description.is_empty() {
        blocks.push(Block::Text(measured.description.clone()));
    }
    let across: Vec<&str> = measured.axes.iter().skip(1).map(|(name, _)| name.as_str()).collect();
    let rows = measured.axes.first().map_or(0, |(_, values)| values.len());
    let columns = measured.cells.len().checked_div(rows).unwrap_or(0);
    blocks.push(Block::Text(format!(
        "{} runs. Columns: {}. D: deadlock. -: stopped before its end. {}.",
        measured.cells.len(),
        if across.is_empty() { "one".to_owned() } else { across.join(", ") },
        super::program()
    )));
    let best: Vec<f64> = (0..columns)
        .map(|c| {
            measured.cells.iter().skip(c).step_by(columns).map(|x| x.throughput).fold(0.0, f64::max)
        })
        .collect();
    let relative = |c: usize, cell: &Cell| match best[c] {
        0.0 => "-".to_owned(),
        most => format!("{:.0}", 100.0 * cell.throughput / most),
    };
    let mut throughput = grid(measured, rows, columns, &relative);
    let line = best.iter().map(|b| format!("{:.0}", b / 1e3));
    throughput.rows.push(std::iter::once("best, 1000/s".to_owned()).chain(line).collect());
    let wait = grid(measured, rows, columns, &|_, cell| {
        super::short_integer(cell.wait_p999 as f64 / US as f64)
    });
    let burned = grid(measured, rows, columns, &|_, cell| super::two_digits(100.0 * cell.burned));
    let fairness =
        grid(measured, rows, columns, &|_, cell| format!("{:.0}", 100.0 * cell.fairness));
    let measures = [
        ("Throughput", "Acquisitions a second, in percent of the best of the column.", throughput),
        ("p99.9 wait", "Microseconds that 99.9 % of the acquisitions did not exceed.", wait),
        (
            "CPU burned",
            "Percent of the vCPUs' running time that went into waiting for locks: spinning, and stalled on \
             their cache lines.",
            burned,
        ),
        ("Fairness", "Jain's index over the threads' shares, in percent.", fairness),
    ];
    for (title, note, grid) in measures {
        blocks.push(Block::Heading(title.into()));
        blocks.push(Block::Text(note.into()));
        blocks.push(Block::Grid(grid));
    }
    blocks
}

fn grid(
    measured: &Measured,
    rows: usize,
    columns: usize,
    show: &dyn Fn(usize, &Cell) -> String,
) -> Grid {
    let first = measured.axes.first().map_or("", |(name, _)| name.as_str());
    let head = measured.cells.iter().take(columns).map(|cell| cell.at[1..].join("\n"));
    let mut grid = Grid {
        header: std::iter::once(first.to_owned()).chain(head).collect(),
        words: 1,
        ..Grid::default()
    };
    for row in measured.cells.chunks(columns.max(1)).take(rows) {
        let cells = row.iter().enumerate().map(|(c, cell)| match cell.ending {
            Ending::Deadlock { .. } => "D".to_owned(),
            Ending::Stopped { .. } => "-".to_owned(),
            Ending::Finished | Ending::Limit => show(c, cell),
        });
        grid.rows.push(std::iter::once(row[0].at[0].clone()).chain(cells).collect());
    }
    grid
}
