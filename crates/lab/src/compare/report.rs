//! Comparisons for people: a table, a box plot and a sentence each.

use super::{Comparison, Finding, quantile};
use overspin_report::{Block, Grid, short};
use std::fmt::Write;

/// Columns of a box plot.
const WIDTH: usize = 72;

/// Blocks of a report at this confidence.
#[must_use]
pub fn report(all: &[Comparison], confidence: f64) -> Vec<Block> {
    let mut blocks = Vec::new();
    for c in all {
        let name = if c.name.is_empty() { "samples" } else { &c.name };
        let unit = if c.unit.is_empty() { String::new() } else { format!(" [{}]", c.unit) };
        blocks.push(Block::Heading(format!("{name}{unit}")));
        let mut grid = Grid::new(2, &["", "file", "N", "min", "max", "median", "mean", "stddev"]);
        for ((mark, file), s) in ["A", "B"].iter().zip(&c.files).zip(&c.summaries) {
            let mut row = vec![(*mark).to_owned(), file.clone(), s.n.to_string()];
            row.extend([s.min, s.max, s.median, s.mean, s.stddev].map(short));
            grid.rows.push(row);
        }
        blocks.push(Block::Grid(grid));
        blocks.push(Block::Lines(box_plots(c)));
        blocks.push(Block::Lines(words(c, confidence)));
    }
    blocks
}

/// Minimum, quartiles and maximum of both sets on one scale: `|---[==M==]---|`.
fn box_plots(c: &Comparison) -> String {
    let least = c.summaries[0].min.min(c.summaries[1].min);
    let most = c.summaries[0].max.max(c.summaries[1].max);
    let scale = if most > least { (WIDTH - 1) as f64 / (most - least) } else { 0.0 };
    let column = |value: f64| ((value - least) * scale).round() as usize;
    let mut out = String::new();
    for (mark, samples) in ["A", "B"].iter().zip(&c.samples) {
        let mut sorted = samples.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part| column(quantile(&sorted, part));
        let mut line = vec![' '; WIDTH];
        line[at(0.0)..=at(1.0)].fill('-');
        line[at(0.25)..=at(0.75)].fill('=');
        (line[at(0.0)], line[at(1.0)]) = ('|', '|');
        (line[at(0.25)], line[at(0.75)]) = ('[', ']');
        line[at(0.5)] = 'M';
        let line: String = line.into_iter().collect();
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "{mark} {}", line.trim_end());
    }
    let (low, high) = (short(least), short(most));
    let _ = writeln!(out, "  {low}{high:>width$}", width = WIDTH.saturating_sub(low.len()));
    out
}

fn words(c: &Comparison, confidence: f64) -> String {
    let percent = 100.0 * confidence;
    let mut out = String::new();
    let _ = match c.finding {
        Finding::Undecided => writeln!(out, "Undecided: too few samples."),
        Finding::Same => writeln!(out, "No difference proven at {percent}% confidence."),
        Finding::Different => writeln!(out, "Difference at {percent}% confidence."),
        Finding::Improved => writeln!(out, "Improved, at {percent}% confidence."),
        Finding::Regressed => writeln!(out, "REGRESSED, at {percent}% confidence."),
    };
    for (test, result) in [("Welch", c.welch), ("Student, as ministat", c.student)] {
        let Some(m) = result else { continue };
        // A part of zero is undefined.
        let base = c.summaries[0].mean;
        let parts = if base == 0.0 {
            String::new()
        } else {
            let part = |of: f64| 100.0 * of / base.abs();
            format!("{:.3}% +/- {:.3}%; ", part(m.difference), part(m.margin))
        };
        let _ = writeln!(
            out,
            "  {} +/- {}  ({parts}{test}: t = {:.3}, df = {:.1}, p = {:.5})",
            short(m.difference),
            short(m.margin),
            m.t,
            m.df,
            m.p
        );
    }
    if let Some(p) = c.corrected_p.filter(|p| c.welch.is_some_and(|w| w.p != *p)) {
        let _ = writeln!(out, "  p = {p:.5} with all comparisons counted (Holm)");
    }
    if let Some(p) = c.mann_whitney_p {
        let _ = writeln!(out, "  p = {p:.5} by ranks (Mann-Whitney)");
    }
    let _ = match c.ratio_interval {
        Some(i) => {
            writeln!(out, "  B is {:.4} x A, {:.4} to {:.4} (bootstrap)", c.ratio, i.low, i.high)
        }
        None if c.ratio.is_finite() => writeln!(out, "  B is {:.4} x A", c.ratio),
        None => Ok(()),
    };
    if let Some((g, delta)) = c.hedges_g.zip(c.cliffs_delta) {
        let _ =
            writeln!(out, "  effect: {g:+.2} standard deviations (Hedges), {delta:+.2} (Cliff)");
    }
    for warning in &c.warnings {
        let _ = writeln!(out, "  warning: {warning}");
    }
    out
}
