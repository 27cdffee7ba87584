//! The picture: a dot plot with a row for each figure and a column for each world and scheduler. Measured values
//! are the middle of each cell, so that all figures share one scale.

use super::report::columns;
use super::{Agreement, Compared, Comparison, FigureKind};
use maud::{Markup, html};
use overspin_report::short;
use overspin_report::svg::{MARGIN, Rows, SAMPLE, Svg, colour, px};

const CELL: f64 = 120.0;
const GAP: f64 = 14.0;
const ROW: f64 = 16.0;
/// The ends of a cell: this many times, or one over this many times, the measured value.
const FACTOR: f64 = 2.0;
/// The ends of a cell of a throughput that varies, in octaves from the measured value.
const OCTAVES: f64 = 2.0;
/// The ends of a cell of run states, in points from the measured value.
const POINTS: f64 = 20.0;
/// The agreements in the order of the legend, with their colours.
const LEGEND: [(Agreement, &str, &str); 3] = [
    (Agreement::Within, "within the goal", colour::BLUE),
    (Agreement::Unclear, "unclear", colour::ORANGE),
    (Agreement::Miss, "missed", colour::VERMILLION),
];

/// An SVG file.
#[must_use]
pub fn picture(result: &Comparison) -> Markup {
    const TITLE: &str = "Simulated beside measured";
    let columns = columns(result);
    let labels: Vec<String> = result.compared.iter().filter(|c| is_drawn(c)).map(label).collect();
    let left = Rows::left(labels.iter().map(String::as_str));
    let width = left + columns.len().max(6) as f64 * (CELL + GAP) + MARGIN;
    let mut svg = Svg::default();
    let y = svg.lines("title", TITLE, MARGIN, width) + 10.0;
    let y = svg.legend(LEGEND.map(|(_, words, _)| words), y, width, |svg, i, (x, y)| {
        dot(svg, (x + SAMPLE / 2.0, y + 7.0), LEGEND[i].2);
    });
    let words = "dot and line: simulated, with its 95 % interval; grey: the interval of the measured mean; green: the goal; \
                 an arrow: beyond the scale";
    let mut y = svg.lines("faint", words, y, width);
    for kind in FigureKind::ALL {
        y = panel(&mut svg, result, kind, &columns, (left, y), width);
    }
    svg.picture(TITLE, (width, y + MARGIN))
}

/// Whether the picture has the figure: of the three run states, two say it all.
fn is_drawn(c: &Compared) -> bool {
    c.metric != "runnable"
}

/// The row of a figure.
fn label(c: &Compared) -> String {
    format!("{}: {}", c.case, c.figure())
}

/// Draws the figures of a kind below `y`; returns the lower end.
fn panel(
    svg: &mut Svg,
    result: &Comparison,
    kind: FigureKind,
    columns: &[(String, String)],
    (left, y): (f64, f64),
    width: f64,
) -> f64 {
    let all: Vec<&Compared> =
        result.compared.iter().filter(|c| c.kind == kind && is_drawn(c)).collect();
    let mut rows: Vec<String> = Vec::new();
    for row in all.iter().map(|c| label(c)) {
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return y;
    }
    let scale = match kind {
        FigureKind::State => format!("-{POINTS} to +{POINTS} points from the measured value"),
        FigureKind::Varying => "a quarter to four times the measured value".into(),
        _ => "half to twice the measured value".into(),
    };
    let y = svg.lines("heading", &format!("{}: {scale}", kind.words()), y + 14.0, width) + 26.0;
    let left_of = |column: usize| left + column as f64 * (CELL + GAP);
    let goal = result.goals.of(kind);
    let [low, high] = match kind {
        FigureKind::State => [-goal, goal].map(|d| place(kind, 50.0, 50.0 + d)),
        FigureKind::Varying => [-goal, goal].map(|octaves| place(kind, 1.0, octaves.exp2())),
        _ => [1.0 - goal / 100.0, 1.0 + goal / 100.0].map(|ratio| place(kind, 1.0, ratio)),
    };
    let height = rows.len() as f64 * ROW;
    for (i, (world, scheduler)) in columns.iter().enumerate() {
        let x = left_of(i);
        svg.text("tick", (x + CELL / 2.0, y - 8.0), &format!("{world}, {scheduler}"));
        svg.rect("#f6f6f6", (x, y), (CELL, height));
        svg.rect("#d9f0e3", (x + CELL * low, y), (CELL * (high - low), height));
    }
    for (r, row) in rows.iter().enumerate() {
        let middle = y + (r as f64 + 0.5) * ROW;
        svg.text("label", (left - 8.0, middle + 4.0), row);
        for c in all.iter().filter(|c| label(c) == *row) {
            let column = columns.iter().position(|(w, s)| *w == c.world && *s == c.scheduler);
            if let Some(column) = column {
                svg.add(&html! { g { title { (hint(c)) } (cell(c, left_of(column), middle)) } });
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
        FigureKind::Varying => (value / measured).log2() / OCTAVES,
        _ => (value / measured).ln() / FACTOR.ln(),
    };
    (0.5 + part / 2.0).clamp(0.0, 1.0)
}

/// A figure in words.
fn hint(c: &Compared) -> String {
    let [simulated, measured] = [&c.simulated, &c.measured].map(|s| short(s.summary.mean));
    let unit = &c.unit;
    format!(
        "{} {}, {} under {}: simulated {simulated} {unit}, measured {measured} {unit}",
        c.case,
        c.figure(),
        c.world,
        c.scheduler,
    )
}

fn cell(c: &Compared, left: f64, y: f64) -> Markup {
    let mut svg = Svg::default();
    let at = |value: f64| left + CELL * place(c.kind, c.measured.summary.mean, value);
    let x = at(c.simulated.summary.mean);
    if let Some(of) = c.measured.interval {
        let (low, high) = (at(of.low), at(of.high));
        svg.rect("#bbb", (low, y - 3.5), ((high - low).max(1.5), 7.0));
    }
    let colour = LEGEND.iter().find(|l| l.0 == c.agreement).map_or("", |l| l.2);
    if let Some(of) = c.simulated.interval {
        let [low, high, y] = [at(of.low), at(of.high), y].map(px);
        svg.add(&html! { line x1=(low) x2=(high) y1=(y) y2=(y) stroke=(colour) {} });
    }
    if x <= left || x >= left + CELL {
        let point = if x <= left { 7 } else { -7 };
        let d = format!("M{} {}l{point}-4.5v9z", px(x), px(y));
        svg.add(&html! { path d=(d) fill=(colour) {} });
    } else {
        dot(&mut svg, (x, y), colour);
    }
    svg.markup()
}

fn dot(svg: &mut Svg, (x, y): (f64, f64), colour: &str) {
    svg.add(&html! { circle cx=(px(x)) cy=(px(y)) r="3.6" fill=(colour) {} });
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
