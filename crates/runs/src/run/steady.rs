//! Whether a run was steady, and the curve that shows it.

use overspin_report::{Block, seconds, short};
use overspin_scenario::{DomainOutcome, Outcome, Picos, Scenario};

/// What an unsteady domain did in the two halves of its run; `None` if the run was steady, or its work has an end.
#[must_use]
pub fn warning(outcome: &Outcome, domain: &DomainOutcome) -> Option<String> {
    let halves = outcome.halves(domain).filter(|halves| !halves.are_alike())?;
    let [first, second] = halves.items.map(|items| short(items / halves.seconds));
    Some(format!(
        "NOT STEADY: {first} items/s in the first half of the time that counts, {second} in the second. A rate of \
         this run depends on its length: make `limit` longer, and `warmup` if the curve begins with a start.",
    ))
}

/// From when a run counts, as a sentence after a blank; nothing if all of it counts.
#[must_use]
pub fn counts(scenario: &Scenario, outcome: &Outcome) -> String {
    match (outcome.warmup, scenario.warmup) {
        (Picos::ZERO, Some(asked)) if asked > Picos::ZERO => {
            format!(
                " It ended within its warm-up of {} s, so that all of it counts.",
                seconds(asked)
            )
        }
        (Picos::ZERO, _) => String::new(),
        (at, _) => format!(" What happened before {} s does not count.", seconds(at)),
    }
}

/// The work of a domain over time as a line of bars, from the start of the run; `None` if its work has an end.
pub(super) fn curve(outcome: &Outcome, domain: &DomainOutcome) -> Option<[Block; 2]> {
    outcome.halves(domain)?;
    let rates = outcome.rates(domain);
    let most = rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |rate: &f64| BARS[(rate / most * (BARS.len() - 1) as f64).round() as usize];
    let counts = match outcome.warmup.0 {
        0 => String::new(),
        _ => format!("; counted from {} s on", seconds(outcome.warmup)),
    };
    let words = format!(
        "Work over time, from the start, a column for each {} s{counts}. The highest is {} items/s:",
        seconds(outcome.progress_step),
        short(most),
    );
    Some([Block::Text(words), Block::Lines(rates.iter().map(bar).collect())])
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
