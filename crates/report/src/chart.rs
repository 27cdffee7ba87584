//! Pictures of an experiment: the published and the simulated figures of every configuration side by side, as
//! bars in an SVG file. A picture is a column of panels; each panel has rows of bars on its own scale.

use super::Axis;
use super::svg::{MARGIN, Rows, SAMPLE, Svg, colour};
use maud::Markup;

/// Space between rows.
const GAP: f64 = 14.0;
/// On a logarithmic scale, all values are at least this many times its lower end.
const VISIBLE: f64 = 1.25;

/// A bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// A bar as long as its value, with the ends of its whisker, if it has one.
    Value(f64, Option<[f64; 2]>),
    /// A bar for something that never ended.
    Endless,
    /// A bar for an unknown value.
    None,
}

impl Bar {
    fn value(&self) -> Option<f64> {
        if let Self::Value(v, _) = self { Some(*v) } else { None }
    }
}

/// Bars side by side, one for each series.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The configuration.
    pub label: String,
    /// The bars, in the order of the series.
    pub bars: Vec<Bar>,
}

/// Rows on one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The quantity, with its unit.
    pub title: String,
    /// A remark, for example about the whiskers.
    pub note: String,
    /// Names and colours.
    pub series: Vec<(String, &'static str)>,
    /// Rows.
    pub rows: Vec<Row>,
}

impl Panel {
    /// Series of these names, each in its own colour.
    #[must_use]
    pub fn series_of(names: &[String]) -> Vec<(String, &'static str)> {
        names.iter().cloned().zip(colour::SERIES.into_iter().cycle()).collect()
    }

    /// A scale for all bars.
    fn axis(&self) -> Axis {
        let bars = || self.rows.iter().flat_map(|r| &r.bars);
        let ends = |bar: &Bar| match *bar {
            Bar::Value(v, Some([low, high])) => {
                Some([if v < 0.0 { low.min(v) } else { v }, high.max(v)])
            }
            Bar::Value(v, None) => Some([v; 2]),
            Bar::Endless | Bar::None => None,
        };
        // A bar of the least value must be visible on a logarithmic scale.
        let least = bars().filter_map(Bar::value).fold(f64::INFINITY, f64::min);
        Axis::over(bars().filter_map(ends).flatten().chain([least / VISIBLE]))
    }
}

/// Draws the panels, one below the other.
#[must_use]
pub fn picture(title: &str, panels: &[Panel]) -> Markup {
    let left = Rows::left(panels.iter().flat_map(|p| &p.rows).map(|r| r.label.as_str()));
    let width = left + Rows::PLOT + Rows::VALUES;
    let mut svg = Svg::default();
    let mut y = svg.lines("title", title, MARGIN, width);
    for panel in panels {
        y = draw(&mut svg, panel, (left, width), y + 10.0);
    }
    svg.picture(title, (width, y + MARGIN))
}

/// Draws a panel below `y`; returns its lower end.
fn draw(svg: &mut Svg, panel: &Panel, (left, width): (f64, f64), y: f64) -> f64 {
    let axis = panel.axis();
    let title = format!("{}{}", panel.title, axis.words());
    let y = svg.lines("heading", &title, y, width) + 8.0;
    let names = panel.series.iter().map(|(name, _)| name.as_str());
    let y = svg.legend(names, y, width, |svg, i, at| {
        svg.rect(panel.series[i].1, at, (SAMPLE, 14.0));
    });
    let y = svg.lines("faint", &panel.note, y, width) + 8.0;
    let high = if panel.series.len() > 2 { 12.0 } else { 15.0 };
    let row = high * panel.series.len() as f64 + GAP;
    let labels = panel.rows.iter().map(|r| r.label.as_str());
    let (rows, bottom) = Rows::draw(svg, axis, (left, y), row, labels);
    for (i, row) in panel.rows.iter().enumerate() {
        let y = rows.y(i) + GAP / 2.0;
        for (j, (bar, (_, colour))) in row.bars.iter().zip(&panel.series).enumerate() {
            draw_bar(svg, (y + j as f64 * high, high), colour, *bar, &rows);
        }
    }
    bottom
}

fn draw_bar(svg: &mut Svg, (y, high): (f64, f64), colour: &str, bar: Bar, rows: &Rows) {
    let base = rows.base();
    let write = |svg: &mut Svg, x, words: &str| svg.text("value", (x + 6.0, y + high - 3.0), words);
    let (end, words, ends) = match bar {
        Bar::None => return write(svg, base, "not computed"),
        Bar::Endless => (f64::INFINITY, "never finished".to_owned(), None),
        Bar::Value(v, ends) => (v, rows.axis.in_words(v, ends), ends),
    };
    let x = rows.x(end);
    svg.rect(colour, (base.min(x), y), ((x - base).abs(), high - 1.0));
    let mut right = base.max(x);
    if let Some(ends) = ends.filter(|_| !rows.axis.is_beyond(end)) {
        let ends = ends.map(|v| rows.x(v));
        svg.whisker("", ends, y + high / 2.0);
        right = right.max(ends[1]);
    }
    if rows.axis.is_beyond(ends.map_or(end, |ends| ends[1].max(end))) {
        svg.broken((right - 30.0, y + high), high + 1.0);
    }
    write(svg, right, &words);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(rows: &[(&str, Bar, Bar)]) -> Panel {
        let row = |(label, a, b): &(&str, Bar, Bar)| Row {
            label: (*label).to_owned(),
            bars: vec![*a, *b],
        };
        Panel {
            title: "time [s]".into(),
            note: String::new(),
            series: vec![
                ("published".into(), colour::PUBLISHED),
                ("simulated".into(), colour::SIMULATED),
            ],
            rows: rows.iter().map(row).collect(),
        }
    }

    fn value(v: f64) -> Bar {
        Bar::Value(v, None)
    }

    /// All values of the attribute `key` in elements that begin like this.
    fn numbers(svg: &str, element: &str, key: &str) -> Vec<f64> {
        svg.lines()
            .filter(|l| l.starts_with(element))
            .filter_map(|l| l.split(&format!(" {key}=\"")).nth(1)?.split('"').next()?.parse().ok())
            .collect()
    }

    /// Bars and grid, without background and legend.
    fn plot(svg: &str) -> (Vec<(f64, f64)>, Vec<f64>) {
        let (x, width) = (numbers(svg, "<rect", "x"), numbers(svg, "<rect", "width"));
        // The background has no x.
        let bars = x.into_iter().zip(width.into_iter().skip(1)).filter(|(_, w)| *w != SAMPLE);
        (bars.collect(), numbers(svg, "<line", "x1"))
    }

    #[track_caller]
    fn nothing_is_cut_off(svg: &str) {
        let size = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
        let (width, height) = size.split_once(' ').unwrap();
        let (width, height): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());
        for line in svg.lines().filter(|l| l.starts_with("<text")) {
            let number = |key| numbers(line, "<text", key)[0];
            let words = line.split_once('>').unwrap().1.trim_end_matches("</text>");
            let plain = |words: String, escape| words.replace(escape, "x");
            let words = ["&lt;", "&gt;", "&amp;", "&quot;"].into_iter().fold(words.into(), plain);
            let letter = if line.contains("\"title\"") { 10.4 } else { 7.6 };
            let wide = words.chars().count() as f64 * letter;
            let from = match () {
                () if line.contains("\"label\"") => number("x") - wide,
                () if line.contains("\"tick\"") => number("x") - wide / 2.0,
                () => number("x"),
            };
            assert!(
                from >= 0.0 && from + wide <= width && number("y") < height,
                "{line} in {size}"
            );
        }
        let (bars, lines) = plot(svg);
        let (first, last) = (lines[0], lines[lines.len() - 1]);
        for (x, w) in bars {
            assert!(
                x >= first - 0.1 && x + w <= last + 0.1,
                "a bar from {x}, {w} wide: {first} to {last}"
            );
        }
    }

    #[test]
    fn negative_bars_go_to_the_left_of_zero_and_stay_inside_the_grid() {
        let svg =
            picture("T", &[panel(&[("a", value(-11.5), Bar::Value(8.4, Some([3.0, 13.8])))])]).0;
        nothing_is_cut_off(&svg);
        let (bars, lines) = plot(&svg);
        // Steps of 5 from -15 to 15: zero is in the middle.
        let (unit, zero) = (Rows::PLOT / 30.0, lines[3]);
        assert_eq!(lines.len(), 7);
        assert!(
            (bars[0].0 - (zero - 11.5 * unit)).abs() < 0.1 && (bars[0].1 - 11.5 * unit).abs() < 0.1
        );
        assert!((bars[1].0 - zero).abs() < 0.1 && (bars[1].1 - 8.4 * unit).abs() < 0.1);
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_endless_ones_are_broken() {
        let rows = [
            ("<b>&\"", value(100.0), value(50.0)),
            ("c", Bar::Endless, value(5000.0)),
            ("d", value(90.0), Bar::None),
        ];
        let svg = picture("T & U", &[panel(&rows)]).0;
        nothing_is_cut_off(&svg);
        assert!(svg.contains(">T &amp; U<") && svg.contains(">&lt;b&gt;&amp;&quot;<"), "{svg}");
        assert!(
            svg.contains("never finished")
                && svg.contains(">5000<")
                && svg.contains("not computed")
        );
        let (bars, _) = plot(&svg);
        assert!((bars[0].1 / bars[1].1 - 2.0).abs() < 0.01, "{bars:?}");
        assert_eq!((bars[2].1, bars[3].1), (Rows::PLOT, Rows::PLOT));
        assert_eq!(svg.matches("stroke=\"white\"").count(), 2);
    }

    #[test]
    fn a_bar_or_a_whisker_far_beyond_the_others_is_broken_and_says_its_value() {
        let with = |v, deviation: f64| Bar::Value(v, Some([v - deviation, v + deviation]));
        let rows = [("a", value(10.0), with(8.0, 100.0)), ("b", value(9.0), value(7.0))];
        let svg = picture("T", &[panel(&rows)]).0;
        nothing_is_cut_off(&svg);
        assert!(svg.contains(">time [s], cut at 10<") && svg.contains(">8.00±100.0<"), "{svg}");
        assert_eq!(svg.matches("stroke=\"white\"").count(), 1, "the whisker");
        let (bars, _) = plot(&svg);
        assert!((bars[0].1 - Rows::PLOT).abs() < 0.1 && (bars[1].1 - 0.8 * Rows::PLOT).abs() < 0.1);
        let rows = [("a", with(1000.0, 20.0), value(8.0)), ("b", value(9.0), value(7.0))];
        let svg = picture("T", &[panel(&rows)]).0;
        nothing_is_cut_off(&svg);
        assert!(svg.contains(">1000±20.00<") && !svg.contains("whisker \""), "{svg}");
        assert_eq!(svg.matches("stroke=\"white\"").count(), 1, "the bar");
    }

    #[test]
    fn decades_are_drawn_on_a_logarithmic_scale() {
        let svg = picture(
            "T",
            &[panel(&[("a", value(2.0), value(200.0)), ("b", value(20.0), value(9.0))])],
        )
        .0;
        nothing_is_cut_off(&svg);
        assert!(svg.contains("logarithmic scale"), "{svg}");
        let (bars, lines) = plot(&svg);
        assert_eq!(lines.len(), 4, "1, 10, 100 and 1000");
        // Each factor of ten has the same length.
        assert!((bars[1].1 - bars[2].1 - (bars[2].1 - bars[0].1)).abs() < 0.2, "{bars:?}");
    }

    #[test]
    fn long_words_get_the_room_that_they_need() {
        let label = "patched-paravirt-y, scale 500, 64 clients, and more";
        let mut one = panel(&[(label, value(1.0), value(2.0))]);
        one.series = Panel::series_of(&vec!["a series with a rather long name".to_owned(); 5]);
        one.note = "whiskers: from the worst seed to the best one, of five seeds".into();
        one.rows[0].bars = vec![value(1.0); 5];
        nothing_is_cut_off(&picture(&"words and words ".repeat(12), &[one.clone(), one]).0);
    }
}
