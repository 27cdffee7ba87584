//! Curves of an experiment: a measured quantity along one word of its samples' places.

use crate::Reproduction;
use overspin_report::{At, Curve, Horizontal, Plot};
use overspin_runs::record::Sample;
use overspin_stats::Spread;
use overspin_stats::Summary;
use std::cmp::Ordering;

/// What to draw. Words of a place are numbered from 0.
#[derive(Clone, Debug)]
pub struct Along {
    /// Metrics, each with its title.
    pub metrics: Vec<(String, String)>,
    /// Only places with these words.
    pub only: Vec<(usize, String)>,
    /// The number of words of a place.
    pub words: usize,
    /// The word on the horizontal axis: one that begins with a number, or a name.
    pub x: usize,
    /// The title of the horizontal axis.
    pub title: String,
    /// Words that have plots of their own. All others name the curves.
    pub plots: Vec<usize>,
}

impl Along {
    /// The plots with their horizontal axis, on which steps have equal lengths whatever their numbers are. A
    /// curve's values are means over seeds with 95 % intervals.
    #[must_use]
    pub fn draw(&self, result: &Reproduction) -> (Horizontal, Vec<Plot>) {
        let steps = self.steps(result);
        let mut plots: Vec<Plot> = Vec::new();
        let mut values: Vec<((usize, String, usize), Vec<f64>)> = Vec::new();
        for (words, metric, sample) in self.samples(result) {
            let Some(step) = steps.iter().position(|s| *s == words[self.x]) else { continue };
            let unit = match sample.unit.as_str() {
                "" => String::new(),
                unit => format!(" [{unit}]"),
            };
            let title = match self.named(&words, true).as_str() {
                "" => format!("{metric}{unit}"),
                head => format!("{head}: {metric}{unit}"),
            };
            let plot = plots.iter().position(|p| p.title == title).unwrap_or_else(|| {
                plots.push(Plot { title, most: None, curves: Vec::new() });
                plots.len() - 1
            });
            let key = (plot, self.named(&words, false), step);
            match values.iter_mut().find(|(k, _)| *k == key) {
                Some((_, all)) => all.push(sample.value),
                None => values.push((key, vec![sample.value])),
            }
        }
        for ((plot, name, step), all) in values {
            let ends = Spread::of(&[], &all).and_then(|s| s.interval).map(|i| [i.low, i.high]);
            let Some(summary) = Summary::of(&all) else { continue };
            let at = At { x: step as f64, y: summary.mean, ends };
            let curves = &mut plots[plot].curves;
            match curves.iter_mut().find(|c| c.name == name) {
                Some(curve) => curve.points.push(at),
                None => curves.push(Curve { name, points: vec![at] }),
            }
        }
        for curve in plots.iter_mut().flat_map(|p| &mut p.curves) {
            curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        let ticks = steps.into_iter().enumerate().map(|(i, word)| (i as f64, word)).collect();
        (Horizontal { title: self.title.clone(), ticks, log: false }, plots)
    }

    /// The samples to draw, with the words of their places and the title of their metric.
    fn samples<'a>(
        &'a self,
        result: &'a Reproduction,
    ) -> impl Iterator<Item = (Vec<String>, &'a str, &'a Sample)> {
        result.samples.iter().filter_map(|sample| {
            let words = place_words(&sample.place);
            let has = |(i, word): &(usize, String)| words.get(*i).is_some_and(|w| w == word);
            let (_, title) = self.metrics.iter().find(|m| m.0 == sample.metric)?;
            let fits = words.len() == self.words && self.only.iter().all(has);
            fits.then_some((words, title.as_str(), sample))
        })
    }

    /// The words on the horizontal axis: by their numbers, or in the order of the experiment if one has none.
    fn steps(&self, result: &Reproduction) -> Vec<String> {
        let mut steps: Vec<String> = Vec::new();
        for (words, ..) in self.samples(result) {
            if !steps.contains(&words[self.x]) {
                steps.push(words[self.x].clone());
            }
        }
        let number = |word: &String| leading_number(word);
        if steps.iter().all(|s| number(s).is_some()) {
            steps.sort_by(|a, b| number(a).partial_cmp(&number(b)).unwrap_or(Ordering::Equal));
        }
        steps
    }

    /// The words that name the plot, or else the curve.
    fn named(&self, words: &[String], plot: bool) -> String {
        let known = |i: usize| i == self.x || self.only.iter().any(|(at, _)| *at == i);
        let kept = words.iter().enumerate().filter(|(i, _)| !known(*i));
        let kept = kept.filter(|(i, _)| self.plots.contains(i) == plot);
        kept.map(|(_, w)| w.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The words of a place: between dots, or in quotes.
#[must_use]
pub fn place_words(place: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in place.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("it has one from the beginning").push(c),
        }
    }
    words
}

/// The number with which a word begins: 16 for `16a+16b`.
fn leading_number(word: &str) -> Option<f64> {
    let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    word[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along() -> Along {
        Along {
            metrics: vec![("faults".into(), "page faults".into())],
            only: vec![(0, "pft".into())],
            words: 3,
            x: 2,
            title: "I/O rate [1/s]".into(),
            plots: Vec::new(),
        }
    }

    #[test]
    fn samples_become_means_along_a_word() {
        let sample = |place: &str, value| Sample {
            run: 0,
            place: place.into(),
            metric: "faults".into(),
            unit: "1/s".into(),
            value,
        };
        let samples = vec![
            sample("pft.\"with help\".1000", 8.0),
            sample("pft.none.0", 2.0),
            sample("pft.none.1000", 3.0),
            sample("pft.none.1000", 5.0),
            sample("count.none.0", 99.0),
            sample("pft.none", 99.0),
        ];
        let result = Reproduction { samples, ..Reproduction::default() };
        let (axis, plots) = along().draw(&result);
        assert_eq!(axis.ticks, [(0.0, "0".into()), (1.0, "1000".into())]);
        assert_eq!(plots.len(), 1);
        assert_eq!(plots[0].title, "page faults [1/s]");
        let none = plots[0].curves.iter().find(|c| c.name == "none").unwrap();
        assert_eq!(
            none.points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>(),
            [(0.0, 2.0), (1.0, 4.0)]
        );
        // Of 3 and 5: the mean 4, and t with one degree of freedom, 12.706, times the standard error of 1.
        let [low, high] = none.points[1].ends.unwrap();
        assert!((low + 8.706).abs() < 1e-2 && (high - 16.706).abs() < 1e-2, "{low} {high}");
        assert_eq!(plots[0].curves.len(), 2);
    }

    #[test]
    fn words_may_have_dots_in_quotes() {
        assert_eq!(place_words("a.\"2.4.10 + patch\".b"), ["a", "2.4.10 + patch", "b"]);
        assert_eq!([leading_number("16a+16b"), leading_number("half")], [Some(16.0), None]);
    }
}
