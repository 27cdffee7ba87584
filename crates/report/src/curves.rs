//! Curves: small plots side by side on common colours, with intervals, as an SVG file. Equal data give equal
//! bytes.

use super::chart::{LETTER, broken, escape, nice, text_at, tick};
use std::fmt::Write;

/// Size of a plot inside its axes.
const PLOT: (f64, f64) = (250.0, 170.0);
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 46.0;
const MARGIN: f64 = 16.0;
/// Colours that people distinguish without full colour vision (Okabe and Ito), strongest contrast first.
const COLOURS: [&str; MOST_NAMED] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#000000", "#56b4e9", "#7a5c00"];
/// Lines with a colour, a mark and a name; all others are thin and grey.
const MOST_NAMED: usize = 8;
/// If the values of a plot differ by this factor, its scale is logarithmic.
const DECADES: f64 = 30.0;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// Where.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The ends of its interval.
    pub ends: Option<[f64; 2]>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name. Curves of one name have one colour in all plots.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<At>,
}

/// The horizontal axis of all plots.
#[derive(Clone, Debug, PartialEq)]
pub struct Horizontal {
    /// The quantity, with its unit.
    pub title: String,
    /// Positions with a label.
    pub ticks: Vec<(f64, String)>,
    /// Whether factors, not differences, have equal lengths.
    pub log: bool,
}

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows, with the unit.
    pub title: String,
    /// The highest value possible, such as 100 for percentages: the scale ends there and is linear.
    pub most: Option<f64>,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// Draws the plots in rows of `columns`. `note` is printed below the legend.
#[must_use]
pub fn curves(
    title: &str,
    note: &str,
    horizontal: &Horizontal,
    plots: &[Plot],
    columns: usize,
) -> String {
    let columns = columns.clamp(1, plots.len().max(1));
    let cell = (LEFT + PLOT.0 + RIGHT, TOP + PLOT.1 + BOTTOM);
    let width = (columns as f64 * cell.0 + 2.0 * MARGIN).max(560.0);
    let mut out = String::new();
    let mut y = MARGIN;
    for line in broken(title, ((width - 2.0 * MARGIN) / 10.4) as usize) {
        y += 20.0;
        text_at(&mut out, (MARGIN, y), "font-size=\"16\" font-weight=\"bold\"", &line);
    }
    let (named, others) = named(plots);
    y = legend(&mut out, &named, others, y + 12.0, width);
    for line in broken(note, ((width - 2.0 * MARGIN) / LETTER) as usize) {
        y += 18.0;
        text_at(&mut out, (MARGIN, y), "fill=\"#666\"", &line);
    }
    y += 8.0;
    for (i, plot) in plots.iter().enumerate() {
        let corner = (MARGIN + (i % columns) as f64 * cell.0, y + (i / columns) as f64 * cell.1);
        draw(&mut out, plot, horizontal, &named, corner);
    }
    let height = y + plots.len().div_ceil(columns) as f64 * cell.1 + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{width:.0}\" height=\"{height:.0}\" fill=\"white\"/>\n{out}</svg>\n"
    )
}

/// The names of the curves that get a colour, and the number of the others. If there are too many curves, they
/// are chosen at equal distances by rank in the first plot, so that the best and the worst are among them.
fn named(plots: &[Plot]) -> (Vec<String>, usize) {
    let Some(first) = plots.first() else { return (Vec::new(), 0) };
    let mut names: Vec<&Curve> = first.curves.iter().collect();
    if names.len() <= MOST_NAMED {
        return (names.into_iter().map(|c| c.name.clone()).collect(), 0);
    }
    let last = |c: &Curve| c.points.last().map_or(f64::NEG_INFINITY, |p| p.y);
    names.sort_by(|a, b| last(b).total_cmp(&last(a)));
    let most = names.len() - 1;
    let at = |i: usize| names[(i * most + (MOST_NAMED - 1) / 2) / (MOST_NAMED - 1)].name.clone();
    ((0..MOST_NAMED).map(at).collect(), names.len() - MOST_NAMED)
}

/// Draws the legend below `y`; returns its lower end.
fn legend(out: &mut String, named: &[String], others: usize, mut y: f64, width: f64) -> f64 {
    let mut x = MARGIN;
    let mut entry = |name: &str, style: Option<usize>| {
        let wide = 34.0 + name.chars().count() as f64 * LETTER + 14.0;
        if x > MARGIN && x + wide > width - MARGIN {
            (x, y) = (MARGIN, y + 20.0);
        }
        let points = [(x, y + 7.0), (x + 26.0, y + 7.0)];
        line(out, &points, style);
        if let Some(i) = style {
            mark(out, (x + 13.0, y + 7.0), i);
        }
        text_at(out, (x + 32.0, y + 12.0), "", name);
        x += wide;
    };
    for (i, name) in named.iter().enumerate() {
        entry(name, Some(i));
    }
    if others > 0 {
        entry(&format!("{others} others"), None);
    }
    y + 18.0
}

/// A line through `points`: in the colour of a number, or thin and grey.
fn line(out: &mut String, points: &[(f64, f64)], style: Option<usize>) {
    let mut path = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        // Writing to a String cannot fail, here and below.
        let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { "M" } else { " L" });
    }
    let (colour, width) = style.map_or(("#bbb", 1.0), |i| (COLOURS[i], 2.0));
    let _ = writeln!(
        out,
        "<path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"{width}\" fill=\"none\"/>"
    );
}

/// A mark whose shape tells curves apart without colours.
fn mark(out: &mut String, (x, y): (f64, f64), style: usize) {
    let d = match style % 4 {
        0 => format!("M{:.1} {:.1} h7 v7 h-7 z", x - 3.5, y - 3.5),
        1 => format!("M{:.1} {y:.1} l4 -5 l4 5 l-4 5 z", x - 4.0),
        2 => format!("M{:.1} {:.1} h9 l-4.5 -8 z", x - 4.5, y + 3.5),
        _ => format!("M{:.1} {:.1} l7 7 m0 -7 l-7 7", x - 3.5, y - 3.5),
    };
    // The second four are hollow.
    let colour = COLOURS[style];
    let fill = if style >= 4 { "white" } else { colour };
    let _ =
        writeln!(out, "<path d=\"{d}\" stroke=\"{colour}\" stroke-width=\"1.5\" fill=\"{fill}\"/>");
}

/// A scale from values to pixels.
struct Scale {
    ends: [f64; 2],
    log: bool,
    pixels: [f64; 2],
}

impl Scale {
    fn at(&self, value: f64) -> f64 {
        let of = |v: f64| if self.log { v.max(f64::MIN_POSITIVE).log10() } else { v };
        let [low, high] = self.ends.map(of);
        let part = if high > low { (of(value) - low) / (high - low) } else { 0.5 };
        self.pixels[0] + (self.pixels[1] - self.pixels[0]) * part.clamp(0.0, 1.0)
    }

    /// The vertical scale of a plot, and its grid lines.
    fn vertical(plot: &Plot, pixels: [f64; 2]) -> (Self, Vec<f64>) {
        if let Some(most) = plot.most {
            let lines = (0..=5).map(|i| most / 5.0 * f64::from(i)).collect();
            return (Self { ends: [0.0, most], log: false, pixels }, lines);
        }
        let points = || plot.curves.iter().flat_map(|c| &c.points);
        let most = points().map(|p| p.ends.map_or(p.y, |e| e[1].max(p.y))).fold(0.0, f64::max);
        let least = points().map(|p| p.y).filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
        if most / least >= DECADES {
            let (low, high) = (least.log10().floor() as i32, most.log10().ceil() as i32);
            let lines: Vec<f64> = (low..=high).map(|e| 10_f64.powi(e)).collect();
            let ends = [10_f64.powi(low), 10_f64.powi(high)];
            return (Self { ends, log: true, pixels }, lines);
        }
        let step = nice(if most > 0.0 { most / 5.0 } else { 1.0 });
        let count = (most / step).ceil().max(1.0);
        let lines = (0..=count as i32).map(|i| f64::from(i) * step).collect();
        (Self { ends: [0.0, count * step], log: false, pixels }, lines)
    }

    fn horizontal(axis: &Horizontal, plot: &Plot, pixels: [f64; 2]) -> Self {
        let points = plot.curves.iter().flat_map(|c| &c.points).map(|p| p.x);
        let all = || axis.ticks.iter().map(|(x, _)| *x).chain(points.clone());
        let ends = [all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)];
        Self { ends, log: axis.log && ends[0] > 0.0, pixels }
    }
}

fn draw(
    out: &mut String,
    plot: &Plot,
    axis: &Horizontal,
    named: &[String],
    (left, top): (f64, f64),
) {
    let (x0, y0) = (left + LEFT, top + TOP);
    let (x1, y1) = (x0 + PLOT.0, y0 + PLOT.1);
    let (vertical, lines) = Scale::vertical(plot, [y1, y0]);
    let horizontal = Scale::horizontal(axis, plot, [x0 + 8.0, x1 - 8.0]);
    text_at(out, (left + 4.0, top + 16.0), "font-weight=\"bold\"", &plot.title);
    for value in lines {
        let y = vertical.at(value);
        let _ = writeln!(
            out,
            "<line x1=\"{x0:.1}\" x2=\"{x1:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>"
        );
        let style = "text-anchor=\"end\" fill=\"#666\" font-size=\"12\"";
        text_at(out, (x0 - 6.0, y + 4.0), style, &large(value));
    }
    let mut free = f64::NEG_INFINITY;
    for (value, label) in &axis.ticks {
        let x = horizontal.at(*value);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y1:.1}\" y2=\"{:.1}\" stroke=\"#888\"/>",
            y1 + 4.0
        );
        // A label that would touch the one before is left out; its tick stays.
        let wide = label.chars().count() as f64 * LETTER;
        if x - wide / 2.0 > free {
            let style = "text-anchor=\"middle\" fill=\"#666\" font-size=\"12\"";
            text_at(out, (x, y1 + 18.0), style, label);
            free = x + wide / 2.0 + 4.0;
        }
    }
    let style = "text-anchor=\"middle\" fill=\"#444\" font-size=\"12\"";
    text_at(out, (f64::midpoint(x0, x1), y1 + 36.0), style, &axis.title);
    let style_of = |curve: &Curve| named.iter().position(|name| *name == curve.name);
    // Grey curves first, so that the others are above them; of these the first one is on top.
    let mut order: Vec<&Curve> = plot.curves.iter().collect();
    order.sort_by_key(|c| std::cmp::Reverse(style_of(c).unwrap_or(usize::MAX)));
    for curve in order {
        let style = style_of(curve);
        let at = |p: &At| (horizontal.at(p.x), vertical.at(p.y));
        line(out, &curve.points.iter().map(at).collect::<Vec<_>>(), style);
        let Some(style) = style else { continue };
        for point in &curve.points {
            let (x, y) = at(point);
            if let Some([low, high]) = point.ends {
                let (low, high) = (vertical.at(low), vertical.at(high));
                let _ = writeln!(
                    out,
                    "<path d=\"M{x:.1} {low:.1} V{high:.1} M{:.1} {low:.1} h6 M{:.1} {high:.1} h6\" \
                     stroke=\"{}\" fill=\"none\"/>",
                    x - 3.0,
                    x - 3.0,
                    COLOURS[style],
                );
            }
            mark(out, (x, y), style);
        }
    }
    let title = escape(&plot.title);
    let _ = writeln!(
        out,
        "<rect x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"#888\"><title>{title}</title></rect>",
        PLOT.0, PLOT.1
    );
}

/// A value at the axis, in thousands or millions if it is large.
fn large(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", tick(value / 1e6)),
        v if v >= 1e3 => format!("{}k", tick(value / 1e3)),
        _ => tick(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, ys: &[f64]) -> Curve {
        let at = |(i, y): (usize, &f64)| At { x: 2_f64.powi(i as i32), y: *y, ends: None };
        Curve { name: name.into(), points: ys.iter().enumerate().map(at).collect() }
    }

    fn plot(title: &str, curves: Vec<Curve>) -> Plot {
        Plot { title: title.into(), most: None, curves }
    }

    fn axis() -> Horizontal {
        let ticks = [1.0, 2.0, 4.0].map(|x| (x, format!("{x}x"))).into();
        Horizontal { title: "vCPUs for each pCPU".into(), ticks, log: true }
    }

    /// The points of the first path with this colour and this width.
    fn path(svg: &str, style: &str) -> Vec<(f64, f64)> {
        let line = svg.lines().rfind(|l| l.contains(style) && l.contains(" L")).unwrap();
        let d = line.split("d=\"M").nth(1).unwrap().split('"').next().unwrap();
        let point = |p: &str| {
            let (x, y) = p.trim().split_once(' ').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        d.split('L').map(point).collect()
    }

    #[test]
    fn points_are_where_their_values_are() {
        let plot = plot("rate [1/s]", vec![curve("a", &[10.0, 5.0, 0.0])]);
        let svg = curves("T", "", &axis(), &[plot], 3);
        let points = path(&svg, COLOURS[0]);
        // Equal factors have equal lengths; 0 to 10 is the whole height.
        assert!(
            (points[1].0 - points[0].0 - (points[2].0 - points[1].0)).abs() < 0.2,
            "{points:?}"
        );
        assert!((points[2].1 - points[0].1 - PLOT.1).abs() < 0.2, "{points:?}");
        assert!((points[1].1 - f64::midpoint(points[0].1, points[2].1)).abs() < 0.2);
        assert!(svg.contains("vCPUs for each pCPU") && svg.contains(">2x<"));
    }

    #[test]
    fn decades_have_equal_heights() {
        let plot = plot("wait", vec![curve("a", &[1.0, 10.0, 100.0])]);
        let points = path(&curves("T", "", &axis(), &[plot], 1), COLOURS[0]);
        assert!((points[0].1 - points[1].1 - (points[1].1 - points[2].1)).abs() < 0.2);
    }

    #[test]
    fn percentages_end_at_their_most_whatever_their_intervals_say() {
        let mut of = curve("a", &[1.0, 50.0, 100.0]);
        of.points[2].ends = Some([40.0, 160.0]);
        let plot = Plot { most: Some(100.0), ..plot("fairness", vec![of]) };
        let svg = curves("T", "", &axis(), &[plot], 1);
        let points = path(&svg, COLOURS[0]);
        assert!((points[0].1 - points[2].1 - 0.99 * PLOT.1).abs() < 0.2, "{points:?}");
        assert!(svg.contains(">100<") && !svg.contains(">120<"));
    }

    #[test]
    fn of_many_curves_the_best_and_the_worst_have_names() {
        let of = |i: i32| curve(&format!("c{i}"), &[1.0, 1.0, f64::from(i)]);
        let plot = plot("rate", (0..30).map(of).collect());
        let (names, others) = named(std::slice::from_ref(&plot));
        assert_eq!((names.len(), others), (MOST_NAMED, 22));
        assert_eq!((names[0].as_str(), names[MOST_NAMED - 1].as_str()), ("c29", "c0"));
        let svg = curves("T & U", "a note", &axis(), &[plot], 1);
        assert!(svg.contains("22 others") && svg.contains("T &amp; U") && svg.contains("a note"));
        assert_eq!(svg.matches("stroke=\"#bbb\"").count(), 22 + 1, "and one in the legend");
    }
}
