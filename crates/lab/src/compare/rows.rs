//! Comparisons in long form: a number in each row, as in the samples of records.

use super::Comparison;
use overspin_runs::record::{self, Sample};

/// The comparisons as CSV. `run` is the number of the comparison. A metric is the samples' metric, then a
/// dot, then the name of the number.
#[must_use]
pub fn csv(all: &[Comparison]) -> String {
    let samples: Vec<Sample> = (0..).zip(all).flat_map(|(number, c)| rows(number, c)).collect();
    record::rows(&samples, |_| None)
}

fn rows(number: u32, c: &Comparison) -> Vec<Sample> {
    let [a, b] = &c.summaries;
    let interval = c.ratio_interval;
    let all = [
        ("n-a", "", Some(a.n as f64)),
        ("n-b", "", Some(b.n as f64)),
        ("mean-a", &*c.unit, Some(a.mean)),
        ("mean-b", &*c.unit, Some(b.mean)),
        ("ratio", "", Some(c.ratio)),
        ("ratio-low", "", interval.map(|i| i.low)),
        ("ratio-high", "", interval.map(|i| i.high)),
        ("p", "", c.corrected_p),
    ];
    let row = |(what, unit, value): (&str, &str, Option<f64>)| {
        let value = value.filter(|v| v.is_finite())?;
        let metric = if c.metric.is_empty() { what.into() } else { format!("{}.{what}", c.metric) };
        Some(Sample { run: number, place: c.place.clone(), metric, unit: unit.into(), value })
    };
    all.into_iter().filter_map(row).collect()
}
