//! Comparison of results, as in ministat, with additions: unequal spreads, ranks, an interval of the ratio,
//! effect sizes, and a correction for many comparisons.

mod answer;
mod choose;
mod origin;
mod picture;
mod read;
mod report;
mod rows;

pub use answer::answer;
pub use choose::{Choice, NothingChosen, choose, common};
pub use origin::{Origin, differences};
pub use picture::picture;
pub use read::{Input, read};
pub use report::report;
pub use rows::csv;

use overspin_stats::Summary;
use overspin_stats::difference::{self, Interval, Means};
use serde::Serialize;

/// With fewer samples than this, a comparison says little.
const FEW: usize = 5;
/// A sample farther from the quartiles than this many times their distance is a strong outlier (Tukey).
const FAR_OUT: f64 = 3.0;
/// A lock that was acquired less than this part as often as the other one has collapsed.
const COLLAPSED: f64 = 0.5;
/// Seed of the bootstrap: the same samples give the same interval.
const SEED: u64 = 1;

/// A set of samples, of one metric in one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Where; empty for a plain column.
    pub place: String,
    /// What was measured; empty for a plain column.
    pub metric: String,
    /// Its unit, if known.
    pub unit: String,
    /// The samples, in their order.
    pub values: Vec<f64>,
}

impl Samples {
    /// Place and metric, in words.
    #[must_use]
    pub fn name(&self) -> String {
        match (self.place.as_str(), self.metric.as_str()) {
            ("", metric) => metric.to_owned(),
            (place, "") => place.to_owned(),
            (place, metric) => format!("{place}: {metric}"),
        }
    }

    /// Whether both have the same metric and place.
    fn same(&self, other: &Self) -> bool {
        (&self.place, &self.metric) == (&other.place, &other.metric)
    }
}

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Times.
    Lower,
    /// Rates.
    Higher,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Too few samples to tell.
    Undecided,
    /// No difference is proven.
    Same,
    /// Different, and the caller did not say which direction is good.
    Different,
    /// Different in the good direction.
    Improved,
    /// Different in the bad direction.
    Regressed,
}

/// A comparison of a set of samples with the first file's set of the same metric in the same place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Place and metric, in words.
    pub name: String,
    /// Where.
    #[serde(rename = "where")]
    pub place: String,
    /// What was measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// File of the first set, and of the second.
    pub files: [String; 2],
    /// Samples of both.
    pub samples: [Vec<f64>; 2],
    /// Their summaries.
    pub summaries: [Summary; 2],
    /// By Welch's test.
    pub welch: Option<Means>,
    /// By Student's test.
    pub student: Option<Means>,
    /// Probability by Mann and Whitney's test.
    pub mann_whitney_p: Option<f64>,
    /// Welch's probability, corrected for the number of comparisons.
    pub corrected_p: Option<f64>,
    /// Second mean over first.
    pub ratio: f64,
    /// Confidence interval of the ratio.
    pub ratio_interval: Option<Interval>,
    /// Hedges' g.
    pub hedges_g: Option<f64>,
    /// Cliff's delta.
    pub cliffs_delta: Option<f64>,
    /// The result.
    pub finding: Finding,
    /// Whether the shorter waits are those of a lock that collapsed, which made few: they are no improvement.
    #[serde(skip)]
    pub few_waits: bool,
    /// Reasons for caution.
    pub warnings: Vec<String>,
}

/// Compares all files with the first one, measurement by measurement. Files are named sets of samples.
/// Measurements that only one of two files has are left out.
#[must_use]
pub fn compare(
    files: &[(String, Input)],
    confidence: f64,
    better: Option<Better>,
) -> Vec<Comparison> {
    let Some(((first, base), others)) = files.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    for (file, other) in others {
        for b in &other.samples {
            let of_base = base.samples.iter().find(|a| a.same(b));
            all.extend(
                of_base
                    .and_then(|a| one([first, file], a, b, confidence))
                    .map(|c| Comparison { few_waits: are_few_waits(&c, [base, other]), ..c }),
            );
        }
    }
    let p: Vec<f64> = all.iter().filter_map(|c| c.welch.map(|w| w.p)).collect();
    let mut corrected = difference::holm(&p).into_iter();
    for c in &mut all {
        c.corrected_p = c.welch.and_then(|_| corrected.next());
        c.finding = match (c.corrected_p, better) {
            (None, _) => Finding::Undecided,
            (Some(p), _) if p >= 1.0 - confidence => Finding::Same,
            (Some(_), None) => Finding::Different,
            (Some(_), Some(_)) if c.few_waits => Finding::Different,
            (Some(_), Some(Better::Lower)) if c.ratio <= 1.0 => Finding::Improved,
            (Some(_), Some(Better::Higher)) if c.ratio >= 1.0 => Finding::Improved,
            (Some(_), Some(_)) => Finding::Regressed,
        };
        if p.len() > 1 {
            c.warnings.push(format!("{} comparisons: probabilities are corrected (Holm)", p.len()));
        }
    }
    all
}

/// Whether the shorter waits of two inputs are those of a lock that collapsed.
fn are_few_waits(c: &Comparison, inputs: [&Input; 2]) -> bool {
    let acquired = inputs.map(|input| input.acquired.iter().find(|(place, _)| *place == c.place));
    let [Some((_, a)), Some((_, b))] = acquired else { return false };
    let [in_a, in_b] = c.summaries.map(|s| s.mean);
    let collapsed = if in_b < in_a { *b < COLLAPSED * a } else { *a < COLLAPSED * b };
    c.metric.starts_with("wait-") && in_a != in_b && collapsed
}

fn one(files: [&String; 2], a: &Samples, b: &Samples, confidence: f64) -> Option<Comparison> {
    let (sa, sb) = (Summary::of(&a.values)?, Summary::of(&b.values)?);
    let ranks = difference::mann_whitney(&a.values, &b.values);
    let mut warnings = Vec::new();
    for (file, set) in files.iter().zip([a, b]) {
        if set.values.len() < FEW {
            warnings.push(format!("{file}: only {} samples", set.values.len()));
        }
        let far = strong_outliers(&set.values);
        if far > 0 {
            warnings.push(format!("{file}: {far} strong outliers, which move the mean"));
        }
    }
    Some(Comparison {
        name: b.name(),
        place: b.place.clone(),
        metric: b.metric.clone(),
        unit: b.unit.clone(),
        files: files.map(Clone::clone),
        samples: [a.values.clone(), b.values.clone()],
        summaries: [sa, sb],
        welch: difference::welch(&sa, &sb, confidence),
        student: difference::student(&sa, &sb, confidence),
        mann_whitney_p: ranks.map(|(_, p)| p),
        corrected_p: None,
        ratio: sb.mean / sa.mean,
        ratio_interval: difference::ratio_interval(&a.values, &b.values, confidence, SEED),
        hedges_g: difference::hedges_g(&sa, &sb),
        cliffs_delta: ranks
            .map(|(u, _)| difference::cliffs_delta(u, a.values.len(), b.values.len())),
        finding: Finding::Undecided,
        few_waits: false,
        warnings,
    })
}

/// The value below which `part` of the sorted samples lie, interpolated between neighbours.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

fn strong_outliers(values: &[f64]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
    let reach = FAR_OUT * (high - low);
    values.iter().filter(|v| **v < low - reach || **v > high + reach).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[f64]) -> Input {
        Input::plain(vec![Samples {
            unit: "s".into(),
            values: values.to_vec(),
            ..Samples::default()
        }])
    }

    fn findings(sets: &[&[f64]], better: Option<Better>) -> Vec<Finding> {
        let files: Vec<_> =
            sets.iter().enumerate().map(|(i, s)| (format!("f{i}"), set(s))).collect();
        compare(&files, 0.95, better).iter().map(|c| c.finding).collect()
    }

    #[test]
    fn directions() {
        let (slow, fast) = ([10.0, 10.1, 9.9, 10.0, 10.05], [9.0, 9.1, 8.9, 9.0, 9.05]);
        assert_eq!(findings(&[&slow, &fast], None), [Finding::Different]);
        assert_eq!(findings(&[&slow, &fast], Some(Better::Lower)), [Finding::Improved]);
        assert_eq!(findings(&[&slow, &fast], Some(Better::Higher)), [Finding::Regressed]);
        assert_eq!(findings(&[&slow, &slow], Some(Better::Higher)), [Finding::Same]);
        assert_eq!(findings(&[&slow, &[9.0]], None), [Finding::Undecided]);
    }

    #[test]
    fn a_lock_that_collapses_is_not_better_because_it_made_few_waits() {
        // Of the same lock: how often it was acquired, and its percentile of the waits.
        let of = |rate: f64, wait: f64| {
            let samples = |metric: &str, unit: &str, mean: f64| Samples {
                place: "guest/section".into(),
                metric: metric.into(),
                unit: unit.into(),
                values: [0.99, 1.0, 1.01, 1.0, 1.005].map(|part| part * mean).into(),
            };
            let acquired = vec![("guest/section".to_owned(), rate)];
            // The rate itself need not be chosen.
            Input { acquired, ..Input::plain(vec![samples("wait-p99.9", "us", wait)]) }
        };
        let compared = |a: Input, b: Input, better| {
            let all = compare(&[("a".into(), a), ("b".into(), b)], 0.95, better);
            let said = overspin_report::text(&answer(&all, 0.95, better));
            (all[0].finding, said)
        };
        for better in [None, Some(Better::Lower)] {
            let (finding, said) = compared(of(1e6, 50.0), of(1e4, 5.0), better);
            assert_eq!(finding, Finding::Different);
            assert!(said.contains("few waits") && said.contains("0 better, 0 worse"), "{said}");
            let (_, said) = compared(of(1e4, 5.0), of(1e6, 50.0), better);
            assert!(said.contains("few waits") && !said.contains("WORSE"), "{said}");
            // Shorter waits of as much work, and longer ones of less, are what they look like.
            let (_, said) = compared(of(1e6, 50.0), of(6e5, 5.0), better);
            assert!(said.contains("1 better") && !said.contains("few waits"), "{said}");
            let (_, said) = compared(of(1e6, 5.0), of(1e4, 50.0), better);
            assert!(said.contains("WORSE") && !said.contains("few waits"), "{said}");
        }
    }

    #[test]
    fn many_comparisons_prove_less() {
        // p is about 0.03: proof alone, but not as one of five.
        let base = [10.0, 10.4, 9.6, 10.2, 9.8, 10.1];
        let other = [10.4, 10.8, 10.0, 10.6, 10.2, 10.5];
        let alone = findings(&[&base, &other], None);
        assert_eq!(alone, [Finding::Different]);
        let five = findings(&[&base, &other, &other, &other, &other, &other], None);
        assert_eq!(five, [Finding::Same; 5]);
    }

    #[test]
    fn warnings_tell_of_few_samples_and_outliers() {
        let files = [
            ("a".to_owned(), set(&[1.0, 2.0])),
            ("b".to_owned(), set(&[1.0, 1.1, 1.0, 0.9, 1.05, 0.95, 9.0])),
        ];
        let warnings = compare(&files, 0.95, None).remove(0).warnings.join("\n");
        assert!(
            warnings.contains("a: only 2 samples") && warnings.contains("b: 1 strong outliers")
        );
    }

    #[test]
    fn quartiles_are_interpolated() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), 1.75);
        assert_eq!(quantile(&[7.0], 0.9), 7.0);
    }
}
