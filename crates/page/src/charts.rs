//! The charts of a page: stacked bars, dots with whiskers, histograms. They are SVG inside the page, styled by
//! the page's style sheet, so that they follow its theme.

use maud::{Markup, html};
use overspin_experiment::{Compared, Grade};
use overspin_histogram::Histogram;
use overspin_report::svg::{Rows, Svg, px};
use overspin_report::{Axis, short};
use overspin_scenario::{Outcome, Picos};
use overspin_watch::timeline::Bars;

/// Height of a row of bars or dots.
const ROW: f64 = 20.0;
/// Space above the rows.
const TOP: f64 = 8.0;
/// A part of a bar with at least this part of the plot has room for its number.
const ROOM: f64 = 0.07;
/// Most samples of a row that are drawn one by one.
const MOST_DOTS: usize = 200;
/// Length of the line of what goes on beyond the scale.
const BROKEN: f64 = 40.0;
/// Longest label; longer ones are cut in the middle.
const LONGEST: usize = 44;

/// A chart with rows.
struct Chart {
    svg: Svg,
    rows: Rows,
    size: (f64, f64),
}

impl Chart {
    fn new<'a>(axis: Axis, height: f64, labels: impl Iterator<Item = &'a str>) -> Self {
        let labels: Vec<String> = labels.map(shortened).collect();
        let labels = || labels.iter().map(String::as_str);
        let (mut svg, left) = (Svg::default(), Rows::left(labels()));
        let (rows, bottom) = Rows::draw(&mut svg, axis, (left, TOP), height, labels());
        Self { svg, rows, size: (left + Rows::PLOT + Rows::VALUES, bottom) }
    }

    /// The chart, which `words` describe to readers that see no pictures.
    fn finish(self, words: &str) -> Markup {
        let words = format!("{words}{}", self.rows.axis.words());
        html! { div class="wide" { (self.svg.chart(&words, self.size)) } "\n" }
    }

    /// A circle of a class, whose meaning is shown under the pointer.
    fn dot(&mut self, class: &str, value: f64, y: f64, tip: &str) {
        let [x, y] = [self.rows.x(value), y].map(px);
        self.svg.add(&html! { circle class=(class) cx=(x) cy=(y) r="4.5" { title { (tip) } } });
    }

    fn whisker(&mut self, class: &str, ends: [f64; 2], y: f64) {
        self.svg.whisker(class, ends.map(|end| self.rows.x(end)), y);
    }

    /// A broken line to the end of the scale, for what goes on beyond it.
    fn broken(&mut self, class: &str, y: f64) {
        let end = self.rows.x(f64::MAX);
        let d = format!("M{} {}H{}", px(end - BROKEN), px(y), px(end));
        self.svg.add(&html! { path class={ "whisker " (class) } d=(d) {} });
        self.svg.broken((end - 28.0, y + 6.0), 12.0);
    }
}

fn shortened(label: &str) -> String {
    let letters: Vec<char> = label.chars().collect();
    if letters.len() <= LONGEST {
        return label.to_owned();
    }
    let half = LONGEST / 2 - 1;
    let begin: String = letters[..half].iter().collect();
    let end: String = letters[letters.len() - half..].iter().collect();
    format!("{begin}…{end}")
}

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

/// A sample of a legend, and its meaning.
pub(super) fn sample(element: &Markup, words: &str) -> Markup {
    html! { span { svg width="14" height="14" aria-hidden="true" { (element) } " " (words) } " " }
}

/// Bars of stacked parts; `unit` is that of their lengths.
pub(super) fn stacks(words: &str, unit: &str, parts: &[Part], bars: &[Stack]) -> Markup {
    let total = |bar: &Stack| bar.parts.iter().sum::<f64>();
    let longest = bars.iter().map(total).fold(0.0, f64::max);
    // Shares end at 100, not at the next line.
    let axis = Axis::linear([if unit == "%" && longest > 99.0 { 100.0 } else { longest }]);
    let mut chart = Chart::new(axis, ROW, bars.iter().map(|b| b.label.as_str()));
    let Chart { svg, rows, .. } = &mut chart;
    for (i, bar) in bars.iter().enumerate() {
        let y = rows.y(i) + 2.0;
        let mut from = 0.0;
        for (length, (class, meaning)) in bar.parts.iter().zip(parts) {
            if *length <= 0.0 {
                continue;
            }
            let to = from + length;
            let (x, end) = (rows.x(from), rows.x(to));
            svg.add(&html! {
                rect class=(class) x=(px(x)) y=(px(y)) width=(px(end - x)) height=(ROW - 4.0) {
                    title { (bar.label) ": " (meaning) " " (short(*length)) " " (unit) }
                }
            });
            if axis.part(to) - axis.part(from) >= ROOM {
                let class = format!("in {class}-text");
                svg.text(&class, (f64::midpoint(x, end), y + 12.0), &short(*length));
            }
            from = to;
        }
        svg.text("value", (rows.x(from) + 6.0, y + 12.0), &format!("{} {unit}", short(from)));
    }
    html! {
        p class="legend" {
            @for (class, words) in parts {
                (sample(&html! { rect class=(class) width="14" height="14" {} }, words))
            }
        }
        "\n" (chart.finish(words))
    }
}

/// Published figures beside simulated ones, of one metric: an open circle and a filled one, with the standard
/// deviation of each.
pub(super) fn figures(title: &str, figures: &[&Compared]) -> Markup {
    let ends = |value: Option<f64>, deviation: Option<f64>| {
        let deviation = deviation.unwrap_or(0.0);
        value.into_iter().flat_map(move |v| [v - deviation, v + deviation])
    };
    let ends = figures.iter().flat_map(|f| {
        ends(f.published, f.published_stddev).chain(ends(f.simulated, f.simulated_stddev))
    });
    let centres = figures.iter().flat_map(|f| [f.published, f.simulated]).flatten();
    // A whisker may reach below zero, where no logarithm is.
    let axis = Axis::over(centres.chain(ends.filter(|v| *v > 0.0)));
    let mut chart = Chart::new(axis, ROW + 8.0, figures.iter().map(|f| f.place.as_str()));
    for (i, f) in figures.iter().enumerate() {
        let y = chart.rows.y(i);
        let (upper, lower) = (y + 9.0, y + 19.0);
        match f.published {
            Some(value) => dot(&mut chart, value, f.published_stddev, upper, "published"),
            None => {
                let x = chart.rows.x(f64::MAX);
                chart.svg.text("value", (x - 96.0, upper + 4.0), "never finished");
            }
        }
        match f.simulated {
            Some(value) => dot(&mut chart, value, f.simulated_stddev, lower, "simulated"),
            None => {
                let words = match f.published.is_none() && f.grade == Grade::Good {
                    true => "never finished either",
                    false => f.note.as_deref().unwrap_or("not computed"),
                };
                chart.svg.text("value", (chart.rows.base() + 6.0, lower + 4.0), words);
            }
        }
        let error = f.error.map_or_else(String::new, |e| format!("{:+.1} %", 100.0 * e));
        let grade = match f.grade {
            Grade::Good => "✓",
            Grade::Fair => "≈",
            Grade::Missed => "✗",
        };
        let end = chart.rows.x(f64::MAX) + 8.0;
        chart.svg.text("value", (end, y + 18.0), &format!("{grade} {error}"));
    }
    chart.finish(&format!("{title}: published and simulated"))
}

fn dot(chart: &mut Chart, value: f64, deviation: Option<f64>, y: f64, class: &str) {
    let spread = deviation.map_or_else(String::new, |d| format!(" ± {}", short(d)));
    let ends = deviation.filter(|d| *d > 0.0).map(|d| [value - d, value + d]);
    let (axis, words) = (chart.rows.axis, format!("{class} {}{spread}", short(value)));
    let is_beyond = axis.is_beyond(value);
    if let Some(ends) = ends.filter(|_| !is_beyond) {
        chart.whisker(class, ends, y);
    }
    chart.dot(class, value, y, &words);
    if is_beyond || ends.is_some_and(|[_, high]| axis.is_beyond(high)) {
        let x = chart.rows.x(f64::MAX) - BROKEN - 6.0;
        chart.broken(class, y);
        chart.svg.text("value label over", (x, y + 4.0), &axis.in_words(value, ends));
    }
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
pub(super) fn samples(title: &str, unit: &str, rows: &[Dots]) -> Markup {
    let axis = Axis::over(rows.iter().flat_map(|r| r.values.iter().copied()));
    let mut chart = Chart::new(axis, ROW, rows.iter().map(|r| r.label.as_str()));
    for (i, row) in rows.iter().enumerate() {
        let y = chart.rows.y(i) + ROW / 2.0;
        let Some(s) = overspin_stats::Summary::of(&row.values) else { continue };
        if s.n > 1 {
            chart.whisker("simulated", [s.min, s.max], y);
            for value in row.values.iter().take(MOST_DOTS) {
                let x = px(chart.rows.x(*value));
                chart.svg.add(&html! { circle class="sample" cx=(x) cy=(px(y)) r="2.5" {} });
            }
        }
        let tip = format!("{}: median {} {unit} of {}", row.label, short(s.median), s.n);
        chart.dot("simulated", s.median, y, &tip);
        let end = chart.rows.x(s.max.max(s.median)) + 8.0;
        let mut words = short(s.median);
        if axis.is_beyond(s.max) {
            chart.broken("simulated", y);
            if s.n > 1 {
                words += &format!(", most {}", short(s.max));
            }
        }
        chart.svg.text("value", (end, y + 4.0), &words);
    }
    chart.finish(title)
}

/// The waits for one lock by length: a bar for each fifth of a decade.
pub(super) fn histogram(name: &str, waits: &Histogram) -> Markup {
    const WIDTH: f64 = 420.0;
    const HEIGHT: f64 = 110.0;
    let bars = Bars::of(waits);
    let first = bars.counts.iter().position(|n| *n > 0).unwrap_or(0);
    let axis = Axis::decades(Bars::from_ns(first), Bars::from_ns(bars.counts.len()));
    let most = bars.counts.iter().copied().max().unwrap_or(1).max(1);
    // The first and the last time stand half outside the plot.
    let x = |ns: f64| 24.0 + WIDTH * axis.part(ns);
    let mut svg = Svg::default();
    for (i, count) in bars.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        let (from, to) = (Bars::from_ns(i), Bars::from_ns(i + 1));
        // A single wait among millions must be visible: the longest waits are the point of the picture.
        let high = (HEIGHT * *count as f64 / most as f64).max(2.0);
        let [left, top, high] = [x(from) + 0.5, HEIGHT + 6.0 - high, high].map(px);
        let width = px((x(to) - x(from) - 1.0).max(1.0));
        svg.add(&html! {
            rect class="style-wait" x=(left) y=(top) width=(width) height=(high) {
                title { (count) " waits from " (time(from)) " to " (time(to)) }
            }
        });
    }
    for ns in axis.lines() {
        let x = px(x(ns));
        svg.add(&html! { line class="grid" x1=(x) x2=(x) y1=(HEIGHT + 6.0) y2=(HEIGHT + 11.0) {} });
        svg.text("tick", (x, HEIGHT + 23.0), &time(ns));
    }
    html! {
        figure class="histogram" {
            figcaption { (name) ": " (waits.count()) " waits, at most " (most) " in a bar" }
            div class="wide" { (svg.chart(&format!("waits for {name} by length"), (472.0, 138.0))) }
        }
        "\n"
    }
}

/// The work of a whole run as bars, with the part from `from` to `until` marked; nothing if the run kept no course.
pub(super) fn overview(outcome: &Outcome, from: Picos, until: Picos) -> Markup {
    const HEIGHT: f64 = 40.0;
    let step = outcome.progress_step;
    let steps = outcome.domains.iter().map(|d| d.progress.len()).max().unwrap_or(0);
    if steps == 0 || step == Picos::ZERO {
        return html! {};
    }
    let mut rates = vec![0.0; steps];
    for domain in &outcome.domains {
        rates.iter_mut().zip(outcome.rates(domain)).for_each(|(sum, rate)| *sum += rate);
    }
    let most = rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut svg = Svg::default();
    for (i, rate) in rates.iter().enumerate() {
        // A step in which something was done is seen.
        let high = if *rate > 0.0 { (HEIGHT * rate / most).max(1.0) } else { 0.0 };
        svg.add(&html! { rect x=(i) y=(px(HEIGHT - high)) width="0.9" height=(px(high)) {} });
    }
    let place = |time: Picos| (time.ratio(step) * 100.0).round() / 100.0;
    let (left, width) = (place(from), place(until) - place(from));
    svg.add(&html! { rect class="window" x=(left) y="0" width=(width) height=(HEIGHT) {} });
    html! {
        svg class="overview" role="img" preserveAspectRatio="none" viewBox={ "0 0 " (steps) " " (HEIGHT) }
            aria-label="work over the whole run, with the part that the timeline shows" { (svg.markup()) }
        "\n"
    }
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
        let svg = stacks("words", "s", &parts, &bars).0;
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
    fn a_figure_far_beyond_the_others_is_a_broken_line_with_its_value() {
        let figure = |published, simulated, deviation| Compared {
            metric: "elapsed_s".into(),
            place: "p".into(),
            published: Some(published),
            published_stddev: None,
            simulated: Some(simulated),
            simulated_stddev: Some(deviation),
            error: None,
            role: overspin_experiment::Role::Predict,
            grade: Grade::Good,
            note: None,
        };
        let all =
            [figure(330.0, 350.0, 2.0), figure(500.0, 6045.0, 9.0), figure(410.0, 400.0, 0.0)];
        let svg = figures("elapsed, s", &all.iter().collect::<Vec<_>>()).0;
        assert!(svg.contains("elapsed, s: published and simulated, cut at 500"), "{svg}");
        assert!(svg.contains(">6045±9.00<"), "{svg}");
        assert_eq!(svg.matches("stroke=\"white\"").count(), 1);
        let all =
            [figure(330.0, 350.0, 9000.0), figure(500.0, 450.0, 9.0), figure(410.0, 400.0, 0.0)];
        let svg = figures("elapsed, s", &all.iter().collect::<Vec<_>>()).0;
        assert!(svg.contains(">350.0±9000<") && svg.matches("stroke=\"white\"").count() == 1);
        let rows = [2.0, 2.0, 2.0, 3.0, 90.0].map(|v| Dots { label: "a".into(), values: vec![v] });
        let svg = samples("wait, us", "us", &rows).0;
        assert!(svg.contains(">90.00<") && svg.matches("stroke=\"white\"").count() == 1, "{svg}");
    }

    #[test]
    fn every_bin_with_waits_has_a_visible_bar() {
        let mut waits = Histogram::default();
        (0..100_000).for_each(|_| waits.record(5_000));
        waits.record(60_000_000);
        let svg = histogram("guest/<lock>", &waits).0;
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("100001 waits") && svg.contains("&lt;lock&gt;"), "{svg}");
        assert!(svg.contains("height=\"2\""), "one wait of many is two pixels high: {svg}");
    }

    #[test]
    fn times_are_in_the_unit_that_suits() {
        assert_eq!([1.0, 1000.0, 1585.0, 1e8].map(time), ["1 ns", "1 us", "1.6 us", "100 ms"]);
    }

    #[test]
    fn long_labels_keep_both_ends() {
        let label = shortened(&format!("begin{}end", "x".repeat(100)));
        assert!(
            label.starts_with("begin")
                && label.ends_with("end")
                && label.chars().count() <= LONGEST
        );
    }
}
