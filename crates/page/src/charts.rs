//! The charts of a page: stacked bars, dots with whiskers, histograms.

use super::axis::{Axis, Chart};
use super::html::escape;
use overspin_experiment::{Compared, Grade};
use overspin_histogram::Histogram;
use overspin_report::short;
use overspin_watch::timeline::Bars;
use std::fmt::Write;

/// Height of a row of bars or dots.
const ROW: f64 = 20.0;
/// A part of a bar with at least this part of the plot has room for its number.
const ROOM: f64 = 0.07;
/// Most samples of a row that are drawn one by one.
const MOST_DOTS: usize = 200;

/// A part of each bar: its class in the style sheet, and its meaning.
pub(super) type Part = (&'static str, &'static str);

/// A bar.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    /// The subject.
    pub(super) label: String,
    /// The length of each part, in the order of the legend.
    pub(super) parts: Vec<f64>,
}

/// A legend, for parts of bars.
pub(super) fn legend(parts: &[Part]) -> String {
    let mut out = "<p class=\"legend\">".to_owned();
    for (class, words) in parts {
        // Writing to a String cannot fail, here and below.
        let _ = write!(
            out,
            "<span><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"14\" height=\"14\"/></svg> {}</span> ",
            escape(words)
        );
    }
    out + "</p>\n"
}

/// Bars of stacked parts; `unit` is that of their lengths.
pub(super) fn stacks(words: &str, unit: &str, parts: &[Part], bars: &[Stack]) -> String {
    let total = |bar: &Stack| bar.parts.iter().sum::<f64>();
    let longest = bars.iter().map(total).fold(0.0, f64::max);
    // Shares end at 100, not at the next line.
    let axis = Axis::to(if unit == "%" && longest > 99.0 { 100.0 } else { longest });
    let mut chart = Chart::new(axis, bars.iter().map(|b| b.label.as_str()));
    for bar in bars {
        let y = chart.row(&bar.label, ROW) + 2.0;
        let mut from = 0.0;
        for (length, (class, meaning)) in bar.parts.iter().zip(parts) {
            if *length <= 0.0 {
                continue;
            }
            let to = from + length;
            let tip = format!("{}: {meaning} {} {unit}", bar.label, short(*length));
            chart.bar(from, to, (y, ROW - 4.0), class, &tip);
            if axis.part(to) - axis.part(from) >= ROOM {
                let middle = (chart.x(from) + chart.x(to)) / 2.0;
                chart.text((middle, y + 12.0), &format!("in {class}-text"), &short(*length));
            }
            from = to;
        }
        let end = (chart.x(from) + 6.0, y + 12.0);
        chart.text(end, "value", &format!("{} {unit}", short(from)));
    }
    legend(parts) + &chart.finish(words)
}

/// Published figures beside simulated ones, of one metric: an open circle and a filled one, with the standard
/// deviation of each.
pub(super) fn figures(metric: &str, figures: &[&Compared]) -> String {
    let ends = |value: Option<f64>, deviation: Option<f64>| {
        let deviation = deviation.unwrap_or(0.0);
        value.into_iter().flat_map(move |v| [v - deviation, v + deviation])
    };
    let values = figures.iter().flat_map(|f| {
        ends(f.published, f.published_stddev).chain(ends(f.simulated, f.simulated_stddev))
    });
    // A whisker may reach below zero, where no logarithm is.
    let all: Vec<f64> = values.collect();
    let centres = figures.iter().flat_map(|f| [f.published, f.simulated]).flatten();
    let axis = Axis::over(centres.chain(all.into_iter().filter(|v| *v > 0.0)));
    let mut chart = Chart::new(axis, figures.iter().map(|f| f.place.as_str()));
    for f in figures {
        let y = chart.row(&f.place, ROW + 8.0);
        let (upper, lower) = (y + 9.0, y + 19.0);
        match f.published {
            Some(value) => dot(&mut chart, value, f.published_stddev, upper, "published"),
            None => {
                let x = chart.x(f64::MAX);
                chart.text((x - 96.0, upper + 4.0), "value", "never finished");
            }
        }
        match f.simulated {
            Some(value) => dot(&mut chart, value, f.simulated_stddev, lower, "simulated"),
            None => {
                let words = match f.published.is_none() && f.grade == Grade::Good {
                    true => "never finished either",
                    false => f.note.as_deref().unwrap_or("not computed"),
                };
                let x = chart.x(0.0) + 6.0;
                chart.text((x, lower + 4.0), "value", words);
            }
        }
        let error = f.error.map_or_else(String::new, |e| format!("{:+.1} %", 100.0 * e));
        let grade = match f.grade {
            Grade::Good => "✓",
            Grade::Fair => "≈",
            Grade::Missed => "✗",
        };
        let end = chart.x(f64::MAX) + 8.0;
        chart.text((end, y + 18.0), "value", &format!("{grade} {error}"));
    }
    let scale = if axis.is_log() { ", logarithmic scale" } else { "" };
    chart.finish(&format!("{metric}: published and simulated{scale}"))
}

fn dot(chart: &mut Chart, value: f64, deviation: Option<f64>, y: f64, class: &str) {
    let x = chart.x(value);
    let spread = deviation.map_or_else(String::new, |d| format!(" ± {}", short(d)));
    if let Some(d) = deviation.filter(|d| *d > 0.0) {
        whisker(chart, value - d, value + d, y, class);
    }
    let tip = format!("{class} {}{spread}", short(value));
    chart.draw(&format!(
        "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"><title>{}</title></circle>",
        escape(&tip)
    ));
}

fn whisker(chart: &mut Chart, low: f64, high: f64, y: f64, class: &str) {
    let (from, to, up) = (chart.x(low), chart.x(high), y - 3.0);
    chart.draw(&format!(
        "<path class=\"whisker {class}\" d=\"M{from:.1} {y:.1} H{to:.1} M{from:.1} {up:.1} v6 M{to:.1} {up:.1} v6\"/>"
    ));
}

/// Samples of one metric.
#[derive(Clone, Debug)]
pub(super) struct Dots {
    /// The place.
    pub(super) label: String,
    /// The samples.
    pub(super) values: Vec<f64>,
}

/// Every sample of a metric as a dot, with a bar from the least to the greatest, and the median as a filled circle.
pub(super) fn samples(metric: &str, unit: &str, rows: &[Dots]) -> String {
    let axis = Axis::over(rows.iter().flat_map(|r| r.values.iter().copied()));
    let mut chart = Chart::new(axis, rows.iter().map(|r| r.label.as_str()));
    for row in rows {
        let y = chart.row(&row.label, ROW) + ROW / 2.0;
        let Some(s) = overspin_stats::Summary::of(&row.values) else { continue };
        if s.n > 1 {
            whisker(&mut chart, s.min, s.max, y, "simulated");
            for value in row.values.iter().take(MOST_DOTS) {
                let x = chart.x(*value);
                chart.draw(&format!(
                    "<circle class=\"sample\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>"
                ));
            }
        }
        let x = chart.x(s.median);
        chart.draw(&format!(
            "<circle class=\"simulated\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"><title>{}</title></circle>",
            escape(&format!("{}: median {} {unit} of {}", row.label, short(s.median), s.n))
        ));
        let end = chart.x(s.max.max(s.median)) + 8.0;
        chart.text((end, y + 4.0), "value", &short(s.median));
    }
    let scale = if axis.is_log() { ", logarithmic scale" } else { "" };
    chart.finish(&format!("{metric} [{unit}]{scale}"))
}

/// The waits for one lock by length: a bar for each fifth of a decade.
pub(super) fn histogram(name: &str, waits: &Histogram) -> String {
    const WIDTH: f64 = 420.0;
    const HEIGHT: f64 = 110.0;
    let bars = Bars::of(waits);
    let first = bars.counts.iter().position(|n| *n > 0).unwrap_or(0);
    let axis = Axis::decades(Bars::from_ns(first), Bars::from_ns(bars.counts.len()));
    let most = bars.counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    // The first and the last time stand half outside the plot.
    let x = |ns: f64| 24.0 + WIDTH * axis.part(ns);
    let mut body = String::new();
    for (i, count) in bars.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        let (from, to) = (Bars::from_ns(i), Bars::from_ns(i + 1));
        // A single wait among millions must be visible: the longest waits are the point of the picture.
        let high = (HEIGHT * *count as f64 / most).max(2.0);
        let _ = writeln!(
            body,
            "<rect class=\"style-wait\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{high:.1}\"><title>{count} waits from {} to {}</title></rect>",
            x(from) + 0.5,
            HEIGHT + 6.0 - high,
            (x(to) - x(from) - 1.0).max(1.0),
            time(from),
            time(to),
        );
    }
    for ns in axis.lines() {
        let _ = writeln!(
            body,
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"/><text class=\"tick\" x=\"{0:.1}\" y=\"{3:.1}\">{4}</text>",
            x(ns),
            HEIGHT + 6.0,
            HEIGHT + 11.0,
            HEIGHT + 23.0,
            time(ns)
        );
    }
    format!(
        "<figure class=\"histogram\"><figcaption>{}: {} waits, at most {most} in a bar</figcaption>\
         <svg class=\"chart\" role=\"img\" aria-label=\"waits for {0} by length\" width=\"472\" height=\"138\" \
         viewBox=\"0 0 472 138\">\n{body}</svg></figure>\n",
        escape(name),
        waits.count(),
    )
}

/// A round time on an axis.
fn time(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    match units.iter().find(|(unit, _)| ns >= unit * 0.999) {
        Some((unit, name)) => format!("{} {name}", short_round(ns / unit)),
        None => format!("{} ns", short_round(ns)),
    }
}

fn short_round(value: f64) -> String {
    if value >= 9.995 { format!("{value:.0}") } else { format!("{value:.1}").replace(".0", "") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bar_lie_end_to_end() {
        let bars = [Stack { label: "a".into(), parts: vec![1.0, 0.0, 3.0] }];
        let parts: [Part; 3] = [("c0", "one"), ("c1", "two"), ("c2", "three")];
        let svg = stacks("words", "s", &parts, &bars);
        let number = |text: &str, key: &str| -> f64 {
            text.split(&format!(" {key}=\""))
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        let bar = |class: &str| {
            let at = format!("<rect class=\"{class}\" x=");
            svg.lines().find(|l| l.starts_with(&at)).unwrap_or_else(|| panic!("{class}: {svg}"))
        };
        let (one, three) = (bar("c0"), bar("c2"));
        assert!((number(one, "x") + number(one, "width") - number(three, "x")).abs() < 0.11);
        assert!((number(three, "width") / number(one, "width") - 3.0).abs() < 0.01);
        assert!(!svg.contains("<rect class=\"c1\" x="), "a part without length is not drawn");
    }

    #[test]
    fn every_bin_with_waits_has_a_visible_bar() {
        let mut waits = Histogram::default();
        (0..100_000).for_each(|_| waits.record(5_000));
        waits.record(60_000_000);
        let svg = histogram("guest/<lock>", &waits);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("100001 waits") && svg.contains("&lt;lock&gt;"), "{svg}");
        assert!(svg.contains("height=\"2.0\""), "one wait of many is two pixels high: {svg}");
    }

    #[test]
    fn times_are_in_the_unit_that_suits() {
        assert_eq!([1.0, 1000.0, 1585.0, 1e8].map(time), ["1 ns", "1 us", "1.6 us", "100 ms"]);
    }
}
