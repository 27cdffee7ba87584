//! Pictures of an experiment: the published and the simulated figures of every configuration side by side, as
//! bars in an SVG file. A picture is a column of panels; each panel has rows of bars on its own scale.

use std::fmt::Write;

const LEAST_LABEL: f64 = 190.0;
const PLOT: f64 = 470.0;
/// Space on the right for the value of the longest bar.
const VALUES: f64 = 150.0;
const MARGIN: f64 = 16.0;
const GAP: f64 = 14.0;
/// Widths of a letter of 13 pixels, and of a bold letter of 16 pixels, in the widest sans-serif font of
/// browsers.
pub(super) const LETTER: f64 = 7.6;
const BOLD: f64 = 10.4;
/// The colour of what was published.
pub const PUBLISHED: &str = "#9aa5b1";
/// The colour of what was simulated.
pub const SIMULATED: &str = "#1f6fb2";
/// Colours of up to six series, distinguishable without full colour vision (Okabe and Ito).
const COLOURS: [&str; 6] = ["#999999", "#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#009e73"];
/// In a panel with a bar that never ends, a bar longer than this many times the median is broken, too.
/// Otherwise it would flatten all others.
const CLIP: f64 = 2.0;
/// If values differ by this factor, the scale is logarithmic.
const DECADES: f64 = 30.0;

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
        names.iter().cloned().zip(COLOURS.into_iter().cycle()).collect()
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.rows.iter().flat_map(|r| &r.bars)
    }

    /// Height of a bar.
    fn bar(&self) -> f64 {
        if self.series.len() > 2 { 12.0 } else { 15.0 }
    }
}

/// The position of values on a panel.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    /// Its ends: values, or their decimal logarithms.
    ends: [f64; 2],
    step: f64,
    log: bool,
    left: f64,
}

impl Scale {
    /// A scale that holds all bars of the panel, and ends at grid lines.
    fn of(panel: &Panel, left: f64) -> Self {
        let mut values: Vec<f64> = panel
            .bars()
            .filter_map(|b| if let Bar::Value(v, _) = b { Some(*v) } else { None })
            .collect();
        values.sort_by(f64::total_cmp);
        let median = values.get(values.len() / 2).copied().unwrap_or(1.0);
        let endless = panel.bars().any(|b| *b == Bar::Endless);
        let (least, most) = (values.first().copied(), values.last().copied());
        if let (Some(least), Some(most)) = (least, most)
            && least > 0.0
            && most / least >= DECADES
            && !endless
        {
            let ends = [least.log10().floor(), most.log10().ceil()];
            // A bar of the least value must be visible.
            let low = if least.log10() - ends[0] < 0.1 { ends[0] - 1.0 } else { ends[0] };
            return Self { ends: [low, ends[1]], step: 1.0, log: true, left };
        }
        let is_drawn = |v: f64| !endless || v <= CLIP * median;
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for bar in panel.bars() {
            if let Bar::Value(v, whisker) = bar
                && is_drawn(*v)
            {
                low = low.min(whisker.map_or(*v, |w| if *v < 0.0 { w[0] } else { *v }));
                high = high.max(whisker.map_or(*v, |w| w[1]));
            }
        }
        if high <= low {
            high = low + 1.0;
        }
        let step = nice((high - low) / 6.0);
        let ends = [(low / step).floor() * step, (high / step).ceil() * step];
        Self { ends, step, log: false, left }
    }

    /// The position of a value, clipped to the plot.
    fn x(&self, value: f64) -> f64 {
        let value = match self.log {
            true if value > 0.0 => value.log10(),
            true => self.ends[0],
            false => value,
        };
        let part = (value - self.ends[0]) / (self.ends[1] - self.ends[0]);
        self.left + PLOT * part.clamp(0.0, 1.0)
    }

    /// The position where bars begin.
    fn zero(&self) -> f64 {
        if self.log { self.left } else { self.x(0.0) }
    }

    fn is_beyond(&self, value: f64) -> bool {
        !self.log && value > self.ends[1]
    }

    /// Values of the grid lines.
    fn lines(&self) -> Vec<f64> {
        let count = ((self.ends[1] - self.ends[0]) / self.step).round() as i32;
        let at = |i| self.ends[0] + f64::from(i) * self.step;
        (0..=count).map(|i| if self.log { 10_f64.powf(at(i)) } else { at(i) }).collect()
    }
}

/// Draws the panels, one below the other.
#[must_use]
pub fn picture(title: &str, panels: &[Panel]) -> String {
    let letters = |text: &str| text.chars().count() as f64;
    let longest = panels
        .iter()
        .flat_map(|p| &p.rows)
        .map(|r| letters(&r.label) * LETTER + MARGIN + 10.0)
        .fold(LEAST_LABEL, f64::max);
    let width = longest + PLOT + VALUES;
    let mut body = String::new();
    let mut y = MARGIN;
    for line in broken(title, ((width - 2.0 * MARGIN) / BOLD) as usize) {
        y += 20.0;
        text_at(&mut body, (MARGIN, y), "font-size=\"16\" font-weight=\"bold\"", &line);
    }
    for panel in panels {
        y = draw(&mut body, panel, (longest, width), y + 10.0);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"white\"/>\n{body}</svg>\n",
        height = y + MARGIN,
    )
}

/// Draws a panel below `y`; returns its lower end.
fn draw(out: &mut String, panel: &Panel, (left, width): (f64, f64), mut y: f64) -> f64 {
    let scale = Scale::of(panel, left);
    let log = if scale.log { ", logarithmic scale" } else { "" };
    for line in broken(&format!("{}{log}", panel.title), ((width - 2.0 * MARGIN) / LETTER) as usize)
    {
        y += 18.0;
        text_at(out, (MARGIN, y), "font-weight=\"bold\"", &line);
    }
    y += 8.0;
    let mut x = MARGIN;
    for (name, colour) in &panel.series {
        let wide = 20.0 + name.chars().count() as f64 * LETTER + 18.0;
        if x > MARGIN && x + wide > width - MARGIN {
            (x, y) = (MARGIN, y + 20.0);
        }
        rect(out, (x, y), (14.0, 14.0), colour);
        text_at(out, (x + 20.0, y + 12.0), "", name);
        x += wide;
    }
    if !panel.note.is_empty() {
        if x + panel.note.chars().count() as f64 * LETTER > width - MARGIN {
            (x, y) = (MARGIN, y + 20.0);
        }
        text_at(out, (x, y + 12.0), "fill=\"#666\"", &panel.note);
    }
    let top = y + 30.0;
    let high = panel.bar() * panel.series.len() as f64;
    let bottom = top + panel.rows.len() as f64 * (high + GAP);
    for value in scale.lines() {
        let x = scale.x(value);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\" stroke=\"#ddd\"/>",
            top - 8.0
        );
        let style = "text-anchor=\"middle\" fill=\"#666\"";
        text_at(out, (x, bottom + 16.0), style, &tick(value));
    }
    for (i, row) in panel.rows.iter().enumerate() {
        let y = top + i as f64 * (high + GAP);
        let style = "text-anchor=\"end\"";
        text_at(out, (left - 10.0, y + high / 2.0 + 4.0), style, &row.label);
        for (j, (bar, (_, colour))) in row.bars.iter().zip(&panel.series).enumerate() {
            draw_bar(out, y + j as f64 * panel.bar(), panel.bar(), colour, *bar, &scale);
        }
    }
    bottom + 24.0
}

fn draw_bar(out: &mut String, y: f64, high: f64, colour: &str, bar: Bar, scale: &Scale) {
    let middle = y + high / 2.0;
    let (end, words) = match bar {
        Bar::None => {
            text_at(out, (scale.zero() + 6.0, y + high - 3.0), "font-size=\"11\"", "not computed");
            return;
        }
        Bar::Endless => (f64::INFINITY, "never finished".to_owned()),
        Bar::Value(v, _) => (v, crate::short(v)),
    };
    let broken = scale.is_beyond(end);
    let (zero, x) = (scale.zero(), scale.x(end));
    rect(out, (zero.min(x), y), ((x - zero).abs(), high - 1.0), colour);
    let mut right = zero.max(x);
    if broken {
        let x = right - 30.0;
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {y1:.1} l8 {up:.1} M{x2:.1} {y1:.1} l8 {up:.1}\" stroke=\"white\" \
             stroke-width=\"3\"/>",
            x2 = x + 8.0,
            y1 = y + high,
            up = -high - 1.0,
        );
    } else if let Bar::Value(_, Some(ends)) = bar {
        let [low, high] = ends.map(|v| scale.x(v));
        let _ = writeln!(
            out,
            "<path d=\"M{low:.1} {middle:.1} H{high:.1} M{low:.1} {up:.1} v6 M{high:.1} {up:.1} v6\" \
             stroke=\"#222\" fill=\"none\"/>",
            up = middle - 3.0,
        );
        right = right.max(high);
    }
    text_at(out, (right + 6.0, y + high - 3.0), "font-size=\"11\"", &words);
}

fn rect(out: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), colour: &str) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
    );
}

/// Writes a text of an SVG file at a place.
pub fn text_at(out: &mut String, (x, y): (f64, f64), style: &str, words: &str) {
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{}</text>", escape(words));
}

/// The text in lines of at most this many letters, broken between words.
pub(super) fn broken(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A value at the axis: a multiple of a round number, without rounding errors.
pub fn tick(value: f64) -> String {
    let rounded = format!("{value:.6}");
    let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
    if rounded == "-0" { "0".into() } else { rounded.to_owned() }
}

/// The smallest 1, 2 or 5 times a power of ten that is at least `about`.
pub fn nice(about: f64) -> f64 {
    let power = 10_f64.powf(about.max(f64::MIN_POSITIVE).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * power);
    steps.into_iter().find(|s| *s >= about).unwrap_or(10.0 * power)
}

/// The text with what SVG and HTML give a meaning written so that it stands for itself.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
            series: vec![("published".into(), PUBLISHED), ("simulated".into(), SIMULATED)],
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
        let bars = x.into_iter().zip(width.into_iter().skip(1)).filter(|(_, w)| *w != 14.0);
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
            let letter = if line.contains("font-size=\"16\"") { BOLD } else { LETTER };
            let wide = words.chars().count() as f64 * letter;
            let from = match () {
                () if line.contains("\"end\"") => number("x") - wide,
                () if line.contains("\"middle\"") => number("x") - wide / 2.0,
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
            picture("T", &[panel(&[("a", value(-11.5), Bar::Value(8.4, Some([3.0, 13.8])))])]);
        nothing_is_cut_off(&svg);
        let (bars, lines) = plot(&svg);
        // Steps of 5 from -15 to 15: zero is in the middle.
        let (unit, zero) = (PLOT / 30.0, LEAST_LABEL + PLOT / 2.0);
        assert_eq!(lines.len(), 7);
        assert!(
            (bars[0].0 - (zero - 11.5 * unit)).abs() < 0.1 && (bars[0].1 - 11.5 * unit).abs() < 0.1
        );
        assert!((bars[1].0 - zero).abs() < 0.1 && (bars[1].1 - 8.4 * unit).abs() < 0.1);
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_endless_ones_are_broken() {
        let rows = [
            ("a <b>", value(100.0), value(50.0)),
            ("c", Bar::Endless, value(5000.0)),
            ("d", value(90.0), Bar::None),
        ];
        let svg = picture("T & U", &[panel(&rows)]);
        nothing_is_cut_off(&svg);
        assert!(svg.contains("T &amp; U") && svg.contains("a &lt;b&gt;"), "{svg}");
        assert!(
            svg.contains("never finished")
                && svg.contains(">5000<")
                && svg.contains("not computed")
        );
        let (bars, _) = plot(&svg);
        assert!((bars[0].1 / bars[1].1 - 2.0).abs() < 0.01, "{bars:?}");
        assert_eq!((bars[2].1, bars[3].1), (PLOT, PLOT));
        assert_eq!(svg.matches("stroke=\"white\"").count(), 2);
    }

    #[test]
    fn decades_are_drawn_on_a_logarithmic_scale() {
        let svg = picture(
            "T",
            &[panel(&[("a", value(2.0), value(200.0)), ("b", value(20.0), value(9.0))])],
        );
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
        nothing_is_cut_off(&picture(&"words and words ".repeat(12), &[one.clone(), one]));
    }

    #[test]
    fn grid_lines_are_at_round_values() {
        assert_eq!([nice(1.5), nice(130.0), nice(0.04)], [2.0, 200.0, 0.05]);
        assert_eq!([0.1 + 0.2, 200.0, -0.0, 1e-7].map(tick), ["0.3", "200", "0", "0"]);
    }
}
