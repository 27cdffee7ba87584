//! What runs gave, as lines of text: a benchmark inside a guest tells the host so.

use crate::{Outcome, count, dbench, kernbench, pft, pgbench};
use overspin_scenario::Metric;
use std::fmt::Write as _;

/// Begins a line with a place; what follows is of its run.
const PLACE: &str = "overspin-place\t";
/// Begins a line with a figure; behind it are its part, name, unit and value, separated by tabs. All other lines are the
/// program's output.
const FIGURE: &str = "overspin-figure\t";

/// The lines of a run in this place.
#[must_use]
pub fn lines(place: &str, outcome: &Outcome) -> String {
    let mut text = format!("{PLACE}{place}\n{}", outcome.output);
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for figure in &outcome.figures {
        let Metric { name, unit, .. } = figure.metric;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{FIGURE}{}\t{name}\t{unit}\t{}", figure.part, figure.value);
    }
    text
}

/// The places and outcomes of these lines. A figure of another version, whose metric is not known here, is left out.
#[must_use]
pub fn outcomes(lines: &str) -> Vec<(String, Outcome)> {
    let mut all: Vec<(String, Outcome)> = Vec::new();
    for line in lines.lines() {
        if let Some(place) = line.strip_prefix(PLACE) {
            all.push((place.to_owned(), Outcome::default()));
            continue;
        }
        // What is said before the first run is of none.
        let Some((_, outcome)) = all.last_mut() else { continue };
        match line.strip_prefix(FIGURE) {
            Some(told) => {
                if let Some((part, metric, value)) = figure(told) {
                    *outcome = std::mem::take(outcome).with_part(part, metric, value);
                }
            }
            None => {
                outcome.output += line;
                outcome.output.push('\n');
            }
        }
    }
    all
}

fn figure(told: &str) -> Option<(String, &'static Metric, f64)> {
    let [part, name, unit, value] = told.split('\t').collect::<Vec<_>>().try_into().ok()?;
    Some((part.to_owned(), metric(name, unit)?, value.parse().ok()?))
}

/// The metric of a real benchmark; two benchmarks may have one of the same name in other units.
fn metric(name: &str, unit: &str) -> Option<&'static Metric> {
    let all: [&[&'static Metric]; 5] =
        [&kernbench::METRICS, &dbench::METRICS, &pgbench::METRICS, &pft::METRICS, &count::METRICS];
    all.into_iter().flatten().copied().find(|m| m.name == name && m.unit == unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_come_back_from_their_lines() {
        let told = [
            Outcome { output: "tps = 1\nno line end".into(), ..Outcome::default() }
                .with(&pgbench::RATE, 12.25)
                .with_part("v0".into(), &dbench::LATENCY, 1e-9),
            Outcome::default(),
        ];
        let text = format!("a warning\n{}{}", lines("a", &told[0]), lines("b", &told[1]));
        let heard = outcomes(&text);
        let places: Vec<&str> = heard.iter().map(|(place, _)| &**place).collect();
        assert_eq!(places, ["a", "b"]);
        assert_eq!(heard[0].1.output, "tps = 1\nno line end\n");
        let figures = |of: &Outcome| -> Vec<(String, &str, &str, f64)> {
            let one = |f: &crate::Figure| (f.part.clone(), f.metric.name, f.metric.unit, f.value);
            of.figures.iter().map(one).collect()
        };
        for (heard, told) in heard.iter().zip(&told) {
            assert_eq!(figures(&heard.1), figures(told));
        }
    }

    #[test]
    fn what_is_no_figure_is_output_or_left_out() {
        let text =
            "overspin-place\tx\noverspin-figure\t\tno-such\ts\t1\noverspin-figure\tx\nhello\n";
        let heard = outcomes(text);
        assert!(heard[0].1.figures.is_empty());
        assert_eq!(heard[0].1.output, "hello\n");
    }
}
