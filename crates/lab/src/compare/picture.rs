//! The picture of a comparison: for each metric a panel, in it a row for each place, and in each row a bar for each file.

use super::Comparison;
use maud::Markup;
use overspin_report::{Bar, Panel, Row};
use overspin_stats::Summary;
use overspin_stats::difference::mean_interval;
use std::path::Path;

/// Draws the means of all files side by side as SVG, with their intervals at this confidence. Places and files keep
/// their order.
#[must_use]
pub fn picture(all: &[Comparison], confidence: f64) -> Markup {
    let files = each_once(all.iter().flat_map(|c| &c.files));
    let metrics = each_once(all.iter().map(|c| (&*c.metric, &*c.unit)));
    let names: Vec<String> = files.iter().map(|file| name(file)).collect();
    let note = format!("Bars are means; whiskers are their {} % intervals.", 100.0 * confidence);
    let panel = |(metric, unit): &(&str, &str)| {
        let of: Vec<&Comparison> = all.iter().filter(|c| c.metric == *metric).collect();
        let places = each_once(of.iter().map(|c| &*c.place));
        let rows = places.iter().map(|place| {
            let here = || of.iter().filter(|c| c.place == *place);
            let sets = || here().flat_map(|c| c.files.iter().zip(&c.summaries));
            let bar = |file: &&String| {
                let set = sets().find(|(of, _)| of == file);
                set.map_or(Bar::None, |(_, summary)| bar(summary, confidence))
            };
            Row { label: (*place).to_owned(), bars: files.iter().map(bar).collect() }
        });
        Panel {
            title: match *unit {
                "" => (*metric).to_owned(),
                unit => format!("{metric} [{unit}]"),
            },
            note: note.clone(),
            series: Panel::series_of(&names),
            rows: rows.collect(),
        }
    };
    let panels: Vec<Panel> = metrics.iter().map(panel).collect();
    overspin_report::picture(&names.join(", "), &panels)
}

/// What there is, each once, in the order of the first.
fn each_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut found, next| {
        if !found.contains(&next) {
            found.push(next);
        }
        found
    })
}

/// What a file is called in the legend: its name, without its folder and its ending.
fn name(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| file.into(), |stem| stem.to_string_lossy().into())
}

fn bar(summary: &Summary, confidence: f64) -> Bar {
    let interval = mean_interval(summary, confidence);
    Bar::Value(summary.mean, interval.map(|interval| [interval.low, interval.high]))
}

#[cfg(test)]
mod tests {
    use super::super::{Input, Samples, compare};
    use super::*;

    #[test]
    fn every_file_has_a_bar_in_every_place_and_every_metric_a_panel() {
        let file = |name: &str, rate: f64| {
            let set = |place: &str, metric: &str, unit: &str, scale: f64| Samples {
                place: place.into(),
                metric: metric.into(),
                unit: unit.into(),
                values: [0.9, 1.0, 1.1].map(|part| part * rate * scale).into(),
            };
            let samples = vec![
                set("ticket", "throughput", "1/s", 1.0),
                set("mcs", "throughput", "1/s", 2.0),
                set("ticket", "wait-mean", "us", 0.5),
            ];
            (format!("results/{name}.json"), Input::plain(samples))
        };
        let all = compare(&[file("sim", 10.0), file("hv", 20.0), file("linux", 50.0)], 0.95, None);
        let svg = picture(&all, 0.95).0;
        assert!(svg.contains(">sim, hv, linux<") && !svg.contains("results"));
        let values = svg.split("<text class=\"value\"").skip(1).map(|text| {
            let text = text.split_once('>').unwrap().1.split_once('<').unwrap().0;
            text.parse::<f64>().unwrap()
        });
        let values: Vec<f64> = values.collect();
        assert_eq!(values, [10.0, 20.0, 50.0, 20.0, 40.0, 100.0, 5.0, 10.0, 25.0]);
        assert!(svg.contains("throughput [1/s]") && svg.contains("wait-mean [us]"));
        assert_eq!(svg.matches(">ticket<").count(), 2);
    }
}
