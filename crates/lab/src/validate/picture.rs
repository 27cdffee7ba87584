//! The picture: a dot plot with a row for each figure and a column for each world and scheduler. Measured values
//! are the middle of each cell, so that all figures share one scale.

use super::report::columns;
use super::{Agreement, Compared, Comparison, FigureKind};
use overspin_report::{escape, short, text_at};
use std::fmt::Write;

const LABEL: f64 = 230.0;
const CELL: f64 = 104.0;
const GAP: f64 = 14.0;
const ROW: f64 = 15.0;
const MARGIN: f64 = 16.0;
/// The ends of a cell: this many times, or one over this many times, the measured value.
const FACTOR: f64 = 2.0;
/// The ends of a cell of run states, in points from the measured value.
const POINTS: f64 = 20.0;

fn colour(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Within => "#0072b2",
        Agreement::Unclear => "#e69f00",
        Agreement::Miss => "#d55e00",
    }
}

/// An SVG file.
#[must_use]
pub fn picture(result: &Comparison) -> String {
    let columns = columns(result);
    let width = LABEL + columns.len().max(6) as f64 * (CELL + GAP) + MARGIN;
    let mut out = String::new();
    let mut y = MARGIN + 18.0;
    text_at(
        &mut out,
        (MARGIN, y),
        "font-size=\"16\" font-weight=\"bold\"",
        "Simulated beside measured",
    );
    y += 20.0;
    let mut x = MARGIN;
    for (agreement, words) in [
        (Agreement::Within, "within the goal"),
        (Agreement::Unclear, "unclear"),
        (Agreement::Miss, "missed"),
    ] {
        dot(&mut out, (x + 5.0, y - 4.0), colour(agreement));
        text_at(&mut out, (x + 14.0, y), "", words);
        x += 34.0 + 7.0 * words.len() as f64;
    }
    y += 18.0;
    let words = "dot and line: simulated, with its 95 % interval; grey: the interval of the measured mean; green: the goal; \
                 an arrow: beyond the scale";
    text_at(&mut out, (MARGIN, y), "fill=\"#666\"", words);
    for kind in FigureKind::ALL {
        y = panel(&mut out, result, kind, &columns, y + 30.0);
    }
    let height = y + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#222\">\n<rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"white\"/>\n{out}</svg>\n"
    )
}

/// Whether the picture has the figure: of the three run states, two say it all.
fn is_drawn(c: &Compared) -> bool {
    c.metric != "runnable"
}

/// Draws the figures of a kind below `y`; returns the lower end.
fn panel(
    out: &mut String,
    result: &Comparison,
    kind: FigureKind,
    columns: &[(String, String)],
    mut y: f64,
) -> f64 {
    let all: Vec<&Compared> =
        result.compared.iter().filter(|c| c.kind == kind && is_drawn(c)).collect();
    let mut rows: Vec<(&str, String)> = Vec::new();
    for c in &all {
        let row = (c.case.as_str(), c.figure());
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return y - 30.0;
    }
    let title = match kind {
        FigureKind::State => {
            format!("{}: -{POINTS} to +{POINTS} points from the measured value", kind.words())
        }
        _ => format!("{}: half to twice the measured value", kind.words()),
    };
    text_at(out, (MARGIN, y), "font-weight=\"bold\"", &title);
    y += 18.0;
    let left = |column: usize| LABEL + column as f64 * (CELL + GAP);
    for (i, (world, scheduler)) in columns.iter().enumerate() {
        let words = format!("{world}, {scheduler}");
        text_at(out, (left(i) + CELL / 2.0, y), "text-anchor=\"middle\" font-size=\"10\"", &words);
    }
    y += 8.0;
    let goal = result.goals.of(kind);
    let [low, high] = match kind {
        FigureKind::State => [-goal, goal].map(|d| place(kind, 50.0, 50.0 + d)),
        _ => [1.0 - goal / 100.0, 1.0 + goal / 100.0].map(|ratio| place(kind, 1.0, ratio)),
    };
    let height = rows.len() as f64 * ROW;
    for i in 0..columns.len() {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{CELL}\" height=\"{height:.1}\" fill=\"#f6f6f6\"/>\
             <rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#d9f0e3\"/>",
            left(i),
            left(i) + CELL * low,
            CELL * (high - low),
        );
    }
    for (r, (case, figure)) in rows.iter().enumerate() {
        let middle = y + (r as f64 + 0.5) * ROW;
        let style = "text-anchor=\"end\" font-size=\"11\"";
        text_at(out, (LABEL - 8.0, middle + 4.0), style, &format!("{case}: {figure}"));
        for c in all.iter().filter(|c| c.case == *case && c.figure() == *figure) {
            let column = columns.iter().position(|(w, s)| *w == c.world && *s == c.scheduler);
            if let Some(column) = column {
                cell(out, c, left(column), middle);
            }
        }
    }
    y + height
}

/// The place of `value` in a cell, from 0 to 1, if it was measured as `measured`.
fn place(kind: FigureKind, measured: f64, value: f64) -> f64 {
    let part = match kind {
        FigureKind::State => (value - measured) / POINTS,
        _ if measured <= 0.0 || value <= 0.0 => {
            if value > measured {
                1.0
            } else if value < measured {
                -1.0
            } else {
                0.0
            }
        }
        _ => (value / measured).ln() / FACTOR.ln(),
    };
    (0.5 + part / 2.0).clamp(0.0, 1.0)
}

fn cell(out: &mut String, c: &Compared, left: f64, y: f64) {
    let base = c.measured.summary.mean;
    let at = |value: f64| left + CELL * place(c.kind, base, value);
    let x = at(c.simulated.summary.mean);
    let hint = format!(
        "{} {}, {} under {}: simulated {} {}, measured {} {}",
        c.case,
        c.figure(),
        c.world,
        c.scheduler,
        short(c.simulated.summary.mean),
        c.unit,
        short(base),
        c.unit
    );
    let _ = writeln!(out, "<g><title>{}</title>", escape(&hint));
    if let Some(of) = c.measured.interval {
        let (low, high) = (at(of.low), at(of.high));
        let _ = writeln!(
            out,
            "<rect x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"7\" fill=\"#888\" fill-opacity=\"0.55\"/>",
            y - 3.5,
            (high - low).max(1.5),
        );
    }
    let colour = colour(c.agreement);
    if let Some(of) = c.simulated.interval {
        let (low, high) = (at(of.low), at(of.high));
        let _ = writeln!(out, "<path d=\"M{low:.1} {y:.1} H{high:.1}\" stroke=\"{colour}\"/>");
    }
    if x <= left || x >= left + CELL {
        let point = if x <= left { 7.0 } else { -7.0 };
        let _ = writeln!(out, "<path d=\"M{x:.1} {y:.1} l{point} -4.5 v9 z\" fill=\"{colour}\"/>");
    } else {
        dot(out, (x, y), colour);
    }
    out.push_str("</g>\n");
}

fn dot(out: &mut String, (x, y): (f64, f64), colour: &str) {
    let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"{colour}\"/>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_measured_value_is_in_the_middle_and_its_double_at_the_end() {
        assert_eq!(place(FigureKind::Throughput, 10.0, 10.0), 0.5);
        assert_eq!(place(FigureKind::Latency, 10.0, 20.0), 1.0);
        assert_eq!(place(FigureKind::Throughput, 10.0, 5.0), 0.0);
        assert_eq!(place(FigureKind::State, 50.0, 60.0), 0.75);
        assert_eq!([0.0, 5.0].map(|v| place(FigureKind::Throughput, 0.0, v)), [0.5, 1.0]);
    }
}
