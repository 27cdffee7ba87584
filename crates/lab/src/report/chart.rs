//! A picture of an experiment: one figure of every configuration, published beside simulated, as
//! bars in an SVG file.

use crate::reproduce::{Compared, Reproduction};
use std::fmt::Write;

const LABEL: f64 = 190.0;
const PLOT: f64 = 470.0;
const VALUES: f64 = 140.0;
const TOP: f64 = 84.0;
const BAR: f64 = 15.0;
const GAP: f64 = 14.0;
const PUBLISHED: &str = "#9aa5b1";
const SIMULATED: &str = "#1f6fb2";
/// A value this many times the median is drawn with a broken bar: one that never comes to an end
/// must not flatten all others.
const CLIP: f64 = 2.0;

/// Draws `metric`, for example `elapsed_s`, with its standard deviations.
#[must_use]
pub fn bars(result: &Reproduction, metric: &str, title: &str) -> String {
    let rows: Vec<&Compared> = result.figures.iter().filter(|f| f.metric == metric).collect();
    let mut values: Vec<f64> =
        rows.iter().flat_map(|f| [f.published, f.simulated]).flatten().collect();
    values.sort_by(f64::total_cmp);
    let median = values.get(values.len() / 2).copied().unwrap_or(1.0);
    // Differences go both ways from 0; they have no end that never comes.
    let least = values.iter().copied().fold(0.0, f64::min);
    let shown = |v: &f64| least < 0.0 || *v <= CLIP * median;
    let most = values.iter().copied().filter(shown).fold(median, f64::max);
    let scale = PLOT / ((most - least) * 1.12);
    let zero = LABEL - least * scale;
    let height = TOP + rows.len() as f64 * (2.0 * BAR + GAP) + 40.0;
    let width = LABEL + PLOT + VALUES;
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"16\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{}</text>",
        escape(title)
    );
    for (x, colour, name) in [(16.0, PUBLISHED, "published"), (126.0, SIMULATED, "simulated")] {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"44\" width=\"14\" height=\"14\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"56\">{name}</text>",
            x + 20.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"236\" y=\"56\" fill=\"#666\">whiskers: standard deviation of the runs</text>"
    );
    let step = nice((most - least) / 4.0);
    let bottom = height - 32.0;
    for i in (least / step) as i32..=(most * 1.12 / step) as i32 {
        let (value, x) = (f64::from(i) * step, zero + f64::from(i) * step * scale);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">{value}</text>",
            TOP - 8.0,
            bottom + 18.0
        );
    }
    for (i, f) in rows.iter().enumerate() {
        let y = TOP + i as f64 * (2.0 * BAR + GAP);
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            LABEL - 10.0,
            y + BAR + 4.0,
            escape(&f.place)
        );
        let scale = (zero, scale);
        bar(&mut out, y, PUBLISHED, f.published, f.published_stddev, scale);
        bar(&mut out, y + BAR, SIMULATED, f.simulated, f.simulated_stddev, scale);
    }
    out.push_str("</svg>\n");
    out
}

/// A bar from `zero`, where the picture has 0.
fn bar(
    out: &mut String,
    y: f64,
    colour: &str,
    value: Option<f64>,
    sd: Option<f64>,
    (zero, scale): (f64, f64),
) {
    let full = value.map_or(f64::MAX, |v| v * scale);
    let broken = full > PLOT;
    let length = full.min(PLOT);
    let _ = writeln!(
        out,
        "<rect x=\"{}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/>",
        zero + length.min(0.0),
        length.abs(),
        BAR - 1.0
    );
    if broken {
        let x = LABEL + PLOT - 30.0;
        let _ = writeln!(
            out,
            "<path d=\"M{} {} l8 {} M{} {} l8 {}\" stroke=\"white\" stroke-width=\"3\"/>",
            x,
            y + BAR,
            -BAR - 1.0,
            x + 8.0,
            y + BAR,
            -BAR - 1.0
        );
    } else if let Some(sd) = sd {
        let (low, high) = (zero + length - sd * scale, zero + length + sd * scale);
        let middle = y + BAR / 2.0;
        let _ = writeln!(
            out,
            "<path d=\"M{low:.1} {middle} H{high:.1} M{low:.1} {} v6 M{high:.1} {} v6\" \
             stroke=\"#222\" fill=\"none\"/>",
            middle - 3.0,
            middle - 3.0
        );
    }
    let whisker = if broken { 0.0 } else { sd.unwrap_or(0.0) * scale };
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{}\" font-size=\"12\">{}</text>",
        zero + length.max(0.0) + whisker + 6.0,
        y + BAR - 3.0,
        value.map_or_else(|| "never finished".to_owned(), super::short)
    );
}

/// The 1, 2 or 5 times a power of ten that is next to `about`.
fn nice(about: f64) -> f64 {
    let power = 10_f64.powf(about.max(f64::MIN_POSITIVE).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * power);
    steps.into_iter().find(|s| *s >= about).unwrap_or(10.0 * power)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Role;
    use crate::reproduce::Grade;

    fn row(place: &str, published: Option<f64>, simulated: f64) -> Compared {
        Compared {
            metric: "elapsed_s".into(),
            place: place.into(),
            published,
            published_stddev: Some(1.0),
            simulated: Some(simulated),
            simulated_stddev: None,
            error: None,
            role: Role::Predict,
            grade: Grade::Good,
            note: None,
        }
    }

    #[test]
    fn negative_bars_go_to_the_left_of_zero() {
        let result =
            Reproduction { figures: vec![row("a", Some(-10.0), 30.0)], ..Reproduction::default() };
        let svg = bars(&result, "elapsed_s", "T");
        // 40 units take 470 / 1.12 of the plot, from 190 on.
        let unit = 470.0 / 1.12 / 40.0;
        let zero = 190.0 + 10.0 * unit;
        let width = |value: f64| format!("width=\"{:.1}\"", value * unit);
        assert!(svg.contains(&format!("x=\"190\" y=\"84\" {}", width(10.0))), "{svg}");
        assert!(svg.contains(&format!("x=\"{zero}\" y=\"99\" {}", width(30.0))), "{svg}");
    }

    #[test]
    fn bars_are_as_long_as_their_values_and_endless_ones_are_broken() {
        let result = Reproduction {
            figures: vec![
                row("a <b>", Some(100.0), 50.0),
                row("c", None, 5000.0),
                row("d", Some(90.0), 80.0),
            ],
            ..Reproduction::default()
        };
        let svg = bars(&result, "elapsed_s", "T & U");
        assert!(svg.contains("T &amp; U") && svg.contains("a &lt;b&gt;"), "{svg}");
        assert!(svg.contains("never finished") && svg.contains(">5000<"), "{svg}");
        let widths: Vec<f64> = svg
            .lines()
            .filter(|l| l.starts_with("<rect x=\"190\""))
            .filter_map(|l| l.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(widths.len(), 6);
        assert!((widths[0] / widths[1] - 2.0).abs() < 0.01, "{widths:?}");
        assert_eq!((widths[2], widths[3]), (PLOT, PLOT));
    }

    #[test]
    fn grid_lines_are_at_round_values() {
        assert_eq!([nice(1.5), nice(130.0), nice(0.04)], [2.0, 200.0, 0.05]);
    }
}
