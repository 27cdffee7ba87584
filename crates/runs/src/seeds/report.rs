//! The report of a scenario over seeds, and the warnings about figures that hang on a coincidence.

use super::{ELAPSED, ITEMS, OverSeeds};
use crate::run::FEW_WAITS;
use overspin_report::{Block, Grid, MOST_LINES, seconds, short, three_digits};
use overspin_scenario::Ending;
use overspin_stats::{FALSE_ALARMS, FEWEST, Finding, Spread, ranges};

/// Most locks that are shown of a scenario; JSON has all.
const MOST_LOCKS: usize = 8;

/// Most domains that the answer names.
const MOST_DOMAINS: usize = 3;

/// Report of `over`.
#[must_use]
pub fn report(over: &OverSeeds) -> Vec<Block> {
    let scenario = &over.scenario;
    let mut blocks = vec![Block::Title(scenario.name.clone())];
    if !scenario.description.is_empty() {
        blocks.push(Block::Text(scenario.description.clone()));
    }
    let seeds: Vec<u64> = over.runs.iter().filter_map(|(run, _)| run.seed).collect();
    let figures = over.results.iter();
    blocks.extend(answer(figures.map(|f| (f.of.as_str(), f.quantity.metric.name, &f.spread))));
    let longest = over.runs.iter().filter_map(|(run, _)| run.elapsed).max().unwrap_or_default();
    // Only simulated runs have a hash: a measured run has no equals.
    let is_simulated = over.runs.iter().any(|(run, _)| run.trace_hash.is_some());
    let kind = if is_simulated { "simulated seconds" } else { "seconds, measured" };
    blocks.push(Block::Text(format!(
        "{} runs of at most {} {kind}, with seeds {}. Scheduler {}, {} pCPUs. Overspin {}.",
        seeds.len(),
        seconds(longest),
        ranges(&seeds),
        scenario.host.scheduler,
        scenario.host.pcpus(),
        env!("CARGO_PKG_VERSION"),
    )));
    let stuck: Vec<u64> = over
        .runs
        .iter()
        .filter(|(run, _)| matches!(run.ending, Some(Ending::Deadlock { .. })))
        .filter_map(|(run, _)| run.seed)
        .collect();
    if !stuck.is_empty() {
        blocks.push(Block::Text(format!(
            "DEADLOCK with seeds {}: no figure includes them. Use --seed {} to see the waits.",
            ranges(&stuck),
            stuck[0]
        )));
    }
    let unsteady = over.runs.iter().filter(|(run, _)| !run.unsteady.is_empty());
    let unsteady: Vec<u64> = unsteady.filter_map(|(run, _)| run.seed).collect();
    if !unsteady.is_empty() {
        blocks.push(Block::Text(format!(
            "NOT STEADY with seeds {}: the two halves of these runs differ by more than a fifth, so that their rates \
             depend on the length of the run. Make `limit` longer, and see the curve with --seed {}.",
            ranges(&unsteady),
            unsteady[0]
        )));
    }
    let disturbed = over.runs.iter().filter(|(run, _)| run.is_disturbed());
    let disturbed: Vec<u64> = disturbed.filter_map(|(run, _)| run.seed).collect();
    if !disturbed.is_empty() {
        blocks.push(Block::Text(format!(
            "DISTURBED with seeds {}: others had more than 5 % of the CPUs during these runs, each of three times, or \
             the runs did more than their CPUs can do.",
            ranges(&disturbed)
        )));
    }
    blocks.push(Block::Heading("Over seeds".into()));
    let shown = locks_to_show(over);
    let mut grid = Grid::new(2, &["of", "figure", "mean", "95 % from", "to", "min", "max"]);
    for m in &over.results {
        let is_lock =
            over.results.iter().any(|other| other.of == m.of && other.quantity.is_waiting());
        if is_lock && !shown.contains(&m.of.as_str()) {
            continue;
        }
        let Spread { summary: s, interval, .. } = &m.spread;
        let end = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), short);
        grid.row([
            m.of.clone(),
            match m.samples.len() {
                all if all == seeds.len() => {
                    format!("{}, {}", m.quantity.what, m.quantity.metric.unit)
                }
                some => format!("{}, {}, of {some} runs", m.quantity.what, m.quantity.metric.unit),
            },
            short(s.mean),
            end(interval.map(|i| i.low)),
            end(interval.map(|i| i.high)),
            short(s.min),
            short(s.max),
        ]);
    }
    blocks.push(Block::Grid(grid));
    let all = over.results.iter().filter(|m| m.quantity.is_waiting()).count();
    if all > shown.len() {
        blocks.push(Block::Text(format!(
            "Locks shown: {}, those with the longest waits, of {all}; --json has the others.",
            shown.len()
        )));
    }
    if !shown.is_empty() {
        blocks.push(Block::Text(FEW_WAITS.into()));
    }
    let found = over.results.iter().filter_map(|m| {
        // The total waiting repeats the wait of the lock.
        let finding = m.spread.finding.as_ref().filter(|_| !m.quantity.is_waiting())?;
        Some((m.name.clone(), m.quantity.metric.unit, finding))
    });
    blocks.extend(coincidences(found.collect(), seeds.len()));
    blocks
}

/// What the first domains did, and how sure that is. `figures` have a place, a metric and its spread over seeds.
#[must_use]
pub fn answer<'a>(figures: impl IntoIterator<Item = (&'a str, &'a str, &'a Spread)>) -> Vec<Block> {
    let sentences = figures.into_iter().filter_map(|(of, metric, spread)| did(of, metric, spread));
    sentences.take(MOST_DOMAINS).map(Block::Text).collect()
}

/// What a domain did, and how sure that is; `None` for other figures.
fn did(of: &str, metric: &str, spread: &Spread) -> Option<String> {
    let did = |value: f64| match metric {
        m if m == ITEMS.metric.name => Some(format!("did {} items a second", three_digits(value))),
        m if m == ELAPSED.metric.name => Some(format!("did its work in {} s", three_digits(value))),
        _ => None,
    };
    let mut text = format!("`{of}` {}", did(spread.summary.mean)?);
    text += &match spread.interval {
        Some(i) => format!(
            ": with 95 % certainty, the mean is between {} and {}.",
            three_digits(i.low),
            three_digits(i.high)
        ),
        None => " on average.".into(),
    };
    if let Some(Finding::Bimodal { means, .. }) = &spread.finding {
        let [low, high] = means.map(three_digits);
        text += &format!(" But the seeds fall into two groups, of {low} and {high}: see below.");
    }
    Some(text)
}

/// The locks with the longest waits, as `domain/lock`, without locks that had no waits.
fn locks_to_show(over: &OverSeeds) -> Vec<&str> {
    let mut locks: Vec<(&str, f64)> = over
        .results
        .iter()
        .filter(|m| m.quantity.is_waiting() && m.spread.summary.max > 0.0)
        .map(|m| (m.of.as_str(), m.spread.summary.mean))
        .collect();
    locks.sort_by(|a, b| b.1.total_cmp(&a.1));
    locks.truncate(MOST_LOCKS);
    locks.into_iter().map(|(of, _)| of).collect()
}

/// Figures that a mean does not represent: name, unit and finding. `seeds` is the number of seeds.
pub(crate) fn coincidences(found: Vec<(String, &str, &Finding)>, seeds: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    let bimodal = found.iter().any(|(.., f)| matches!(f, Finding::Bimodal { .. }));
    if !found.is_empty() {
        let title = if bimodal { "This answer hangs on a coincidence" } else { "Doubtful" };
        blocks.push(Block::Heading(title.into()));
        let mut lines: Vec<String> =
            found.iter().take(MOST_LINES).map(|(name, unit, f)| line(name, unit, f)).collect();
        if found.len() > MOST_LINES {
            lines.push(format!("... and {} more; --json has them.", found.len() - MOST_LINES));
        }
        blocks.push(Block::Lines(lines.join("\n")));
    }
    if bimodal {
        blocks.push(Block::Text(format!(
            "The seeds fall into two groups, and the mean represents neither: report both, and use --seed and \
             `overspin explain` to see how they differ. (Test of Engelman and Hartigan; it takes one group for two \
             in at most {:.0} % of cases.)",
            100.0 * FALSE_ALARMS
        )));
    }
    if seeds < FEWEST {
        blocks.push(Block::Text(format!(
            "Fewer than {FEWEST} seeds cannot show whether the answer hangs on a coincidence."
        )));
    }
    blocks
}

fn line(name: &str, unit: &str, finding: &Finding) -> String {
    match finding {
        Finding::Bimodal { seeds: [low, high], means } => format!(
            "{name}: {} {unit} with seeds {}, {} {unit} with seeds {}",
            short(means[0]),
            ranges(low),
            short(means[1]),
            ranges(high)
        ),
        Finding::Outlier { seed, value, others } => format!(
            "{name}: {} {unit} with seed {seed} alone, {} {unit} on average with the others",
            short(*value),
            short(*others)
        ),
        Finding::Wide { variation } => format!(
            "{name}: the standard deviation is {:.0} % of the mean; more seeds narrow the interval",
            100.0 * variation
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_report::text;

    #[test]
    fn coincidences_name_their_seeds() {
        let bimodal = Finding::Bimodal { seeds: [vec![2, 4], vec![1, 3, 5]], means: [9.5, 151.0] };
        let wide = Finding::Wide { variation: 0.8 };
        let found = vec![
            ("a: items".to_owned(), "1/s", &bimodal),
            ("b: p99.9 wait".to_owned(), "us", &wide),
        ];
        let text = text(&coincidences(found, 5));
        for words in [
            "This answer hangs on a coincidence",
            "a: items: 9.50 1/s with seeds 2, 4, 151.0 1/s with seeds 1, 3, 5",
            "b: p99.9 wait: the standard deviation is 80 % of the mean",
            "in at most 1 % of cases",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(coincidences(Vec::new(), 5).is_empty());
        assert_eq!(coincidences(Vec::new(), 4).len(), 1, "too few seeds to tell");
        let few = coincidences(vec![("b".to_owned(), "us", &wide)], 5);
        assert_eq!(few[0], Block::Heading("Doubtful".into()));
    }
}
