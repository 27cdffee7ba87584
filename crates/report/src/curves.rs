//! Curves: small plots side by side on common colours, with intervals, as an SVG file. Equal data give equal
//! bytes.

use super::svg::{MARGIN, SAMPLE, Svg, colour, px, width_of};
use super::{Axis, tick};
use maud::{Markup, html};

/// Size of a plot inside its axes.
const PLOT: (f64, f64) = (250.0, 170.0);
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 46.0;
/// Lines with a colour, a mark and a name; all others are thin and grey.
const MOST_NAMED: usize = colour::SERIES.len();

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

/// Numbers of an axis that differ by this factor need a logarithmic scale.
const WIDE: f64 = 4.0;

impl Horizontal {
    /// An axis of numbers: a logarithmic one if all are above 0 and they differ much.
    #[must_use]
    pub fn of_numbers(title: String, ticks: Vec<(f64, String)>) -> Self {
        let numbers = || ticks.iter().map(|(x, _)| *x);
        let least = numbers().fold(f64::INFINITY, f64::min);
        let log = least > 0.0 && numbers().fold(0.0, f64::max) / least >= WIDE;
        Self { title, ticks, log }
    }
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
) -> Markup {
    let columns = columns.clamp(1, plots.len().max(1));
    let cell = (LEFT + PLOT.0 + RIGHT, TOP + PLOT.1 + BOTTOM);
    let width = (columns as f64 * cell.0 + 2.0 * MARGIN).max(560.0);
    let mut svg = Svg::default();
    let y = svg.lines("title", title, MARGIN, width);
    let (named, others) = named(plots);
    let others = (others > 0).then(|| format!("{others} others"));
    let names = named.iter().chain(&others).map(String::as_str);
    let y = svg.legend(names, y + 12.0, width, |svg, i, (x, y)| {
        let style = Some(i).filter(|i| *i < named.len());
        line(svg, &[(x, y + 7.0), (x + SAMPLE, y + 7.0)], style);
        style.inspect(|i| mark(svg, (x + SAMPLE / 2.0, y + 7.0), *i));
    });
    let y = svg.lines("faint", note, y, width) + 8.0;
    for (i, plot) in plots.iter().enumerate() {
        let corner = (MARGIN + (i % columns) as f64 * cell.0, y + (i / columns) as f64 * cell.1);
        draw(&mut svg, plot, horizontal, &named, corner);
    }
    let height = y + plots.len().div_ceil(columns) as f64 * cell.1 + MARGIN;
    svg.picture(title, (width, height))
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

/// A line through `points`: in the colour of a number, or thin and grey.
fn line(svg: &mut Svg, points: &[(f64, f64)], style: Option<usize>) {
    let points: Vec<String> =
        points.iter().map(|(x, y)| format!("{},{}", px(*x), px(*y))).collect();
    let (colour, width) = style.map_or(("#bbb", "1"), |i| (colour::SERIES[i], "2"));
    let points = points.join(" ");
    svg.add(
        &html! { polyline points=(points) stroke=(colour) stroke-width=(width) fill="none" {} },
    );
}

/// A mark whose shape tells curves apart without colours.
fn mark(svg: &mut Svg, (x, y): (f64, f64), style: usize) {
    let (from, path) = match style % 4 {
        0 => ((-3.5, -3.5), "h7v7h-7z"),
        1 => ((-4.0, 0.0), "l4-5l4 5l-4 5z"),
        2 => ((-4.5, 3.5), "h9l-4.5-8z"),
        _ => ((-3.5, -3.5), "l7 7m0-7l-7 7"),
    };
    let d = format!("M{} {}{path}", px(x + from.0), px(y + from.1));
    // The second four are hollow.
    let colour = colour::SERIES[style];
    let fill = if style >= 4 { "white" } else { colour };
    svg.add(&html! { path d=(d) stroke=(colour) stroke-width="1.5" fill=(fill) {} });
}

/// The mark of a value beyond the scale, below its place at the upper end.
fn broken(svg: &mut Svg, (x, y): (f64, f64), style: usize) {
    let ([x, first, second], colour) =
        ([x - 6.0, y + 12.0, y + 17.0].map(px), colour::SERIES[style]);
    let d = format!("M{x} {first}l12-4M{x} {second}l12-4");
    svg.add(&html! { path class="broken" d=(d) stroke=(colour) stroke-width="1.5" fill="none" {} });
}

/// The vertical scale of a plot. Values of zero are at the lower end of a logarithmic one.
fn vertical(plot: &Plot) -> Axis {
    if let Some(most) = plot.most {
        return Axis::linear([most]);
    }
    let points = || plot.curves.iter().flat_map(|c| &c.points);
    let highest = points().map(|p| p.ends.map_or(p.y, |e| e[1].max(p.y)));
    Axis::over(points().map(|p| p.y).chain(highest).filter(|y| *y > 0.0))
}

fn draw(svg: &mut Svg, plot: &Plot, axis: &Horizontal, named: &[String], (left, top): (f64, f64)) {
    let [x0, y0, wide, high] = [left + LEFT, top + TOP, PLOT.0, PLOT.1];
    let (x1, y1) = (x0 + wide, y0 + high);
    let vertical = vertical(plot);
    let positions = axis.ticks.iter().map(|(x, _)| *x);
    let points = plot.curves.iter().flat_map(|c| &c.points).map(|p| p.x);
    let horizontal = Axis::exact(positions.chain(points), axis.log);
    let x = |value: f64| x0 + 8.0 + (wide - 16.0) * horizontal.part(value);
    let y = |value: f64| y1 - high * vertical.part(value);
    svg.text("heading", (left + 4.0, top + 16.0), &plot.title);
    for value in vertical.lines() {
        let y = px(y(value));
        svg.add(&html! { line class="grid" x1=(px(x0)) x2=(px(x1)) y1=(y) y2=(y) {} });
        svg.text("label faint", (x0 - 6.0, y + 4.0), &tick(value));
    }
    let mut free = f64::NEG_INFINITY;
    for (value, label) in &axis.ticks {
        let x = px(x(*value));
        svg.add(&html! { line class="frame" x1=(x) x2=(x) y1=(px(y1)) y2=(px(y1 + 4.0)) {} });
        // A label that would touch the one before is left out; its tick stays.
        let half = width_of(label) / 2.0;
        if x - half > free {
            svg.text("tick", (x, y1 + 18.0), label);
            free = x + half + 4.0;
        }
    }
    svg.text("tick", (f64::midpoint(x0, x1), y1 + 36.0), &axis.title);
    let style_of = |curve: &Curve| named.iter().position(|name| *name == curve.name);
    // The height of the words about values beyond the scale.
    let mut words = 0.0;
    // Grey curves first, so that the others are above them; of these the first one is on top.
    let mut order: Vec<&Curve> = plot.curves.iter().collect();
    order.sort_by_key(|c| std::cmp::Reverse(style_of(c).unwrap_or(usize::MAX)));
    for curve in order {
        let style = style_of(curve);
        let at = |p: &At| (x(p.x), y(p.y));
        line(svg, &curve.points.iter().map(at).collect::<Vec<_>>(), style);
        let Some(style) = style else { continue };
        for point in &curve.points {
            let is_beyond = vertical.is_beyond(point.y);
            if let Some(ends) = point.ends.filter(|_| !is_beyond) {
                let [x, left] = [x(point.x), x(point.x) - 3.0].map(px);
                let [low, high] = ends.map(|end| px(y(end)));
                let d = format!("M{x} {low}V{high}M{left} {low}h6M{left} {high}h6");
                svg.add(&html! { path d=(d) stroke=(colour::SERIES[style]) fill="none" {} });
            }
            mark(svg, at(point), style);
            if is_beyond || point.ends.is_some_and(|[_, high]| vertical.is_beyond(high)) {
                let x = x(point.x);
                // Towards the middle, and below the words before.
                let class = if x > f64::midpoint(x0, x1) { "value label" } else { "value" };
                let beside = if class == "value" { x + 8.0 } else { x - 8.0 };
                words += 12.0;
                broken(svg, (x, y0), style);
                svg.text(class, (beside, y0 + words), &vertical.in_words(point.y, point.ends));
            }
        }
    }
    svg.add(&html! {
        rect class="frame" x=(px(x0)) y=(px(y0)) width=(wide) height=(high) { title { (plot.title) } }
    });
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
        let line = svg.lines().rfind(|l| l.contains(style) && l.contains("points")).unwrap();
        let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let point = |p: &str| {
            let (x, y) = p.split_once(',').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        points.split(' ').map(point).collect()
    }

    #[test]
    fn points_are_where_their_values_are() {
        let plot = plot("rate [1/s]", vec![curve("a", &[10.0, 5.0, 0.0])]);
        let svg = curves("T", "", &axis(), &[plot], 3).0;
        let points = path(&svg, colour::SERIES[0]);
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
        let points = path(&curves("T", "", &axis(), &[plot], 1).0, colour::SERIES[0]);
        assert!((points[0].1 - points[1].1 - (points[1].1 - points[2].1)).abs() < 0.2);
    }

    #[test]
    fn a_point_far_beyond_the_others_is_at_the_upper_end_with_its_value_in_words() {
        let mut of = curve("a", &[2.0, 3.0, 2.0, 4.0, 900.0]);
        of.points[4].ends = Some([800.0, 1000.0]);
        let svg = curves("T", "", &axis(), &[plot("wait", vec![of.clone()])], 1).0;
        let points = path(&svg, colour::SERIES[0]);
        // 4 is the end of the scale: 2 is at half of it.
        assert!((points[4].1 - points[3].1).abs() < 0.2, "{points:?}");
        assert!((points[0].1 - points[3].1 - 0.5 * PLOT.1).abs() < 0.2, "{points:?}");
        assert!(svg.contains(">900.0±100.0<") && svg.matches("class=\"broken\"").count() == 1);
        // Of an interval, only its end is beyond.
        of.points[4] = At { y: 3.0, ends: Some([0.0, 900.0]), ..of.points[4] };
        let svg = curves("T", "", &axis(), &[plot("wait", vec![of])], 1).0;
        assert!(svg.contains(">3.00±450.0<") && svg.matches("class=\"broken\"").count() == 1);
    }

    #[test]
    fn percentages_end_at_their_most_whatever_their_intervals_say() {
        let mut of = curve("a", &[1.0, 50.0, 100.0]);
        of.points[2].ends = Some([40.0, 160.0]);
        let plot = Plot { most: Some(100.0), ..plot("fairness", vec![of]) };
        let svg = curves("T", "", &axis(), &[plot], 1).0;
        let points = path(&svg, colour::SERIES[0]);
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
        let svg = curves("<b>&\"", "a note", &axis(), &[plot], 1).0;
        assert!(
            svg.contains("22 others")
                && svg.contains(">&lt;b&gt;&amp;&quot;<")
                && svg.contains("a note")
        );
        assert_eq!(svg.matches("stroke=\"#bbb\"").count(), 22 + 1, "and one in the legend");
    }
}
