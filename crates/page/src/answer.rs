//! The answer of a result: what a reader sees first.

use super::html::{blocks, table};
use maud::{Markup, html};
use overspin_record::{Group, Role};
use overspin_report::{Block, Grid, three_digits};
use overspin_runs::record::{Kind, Record};
use overspin_runs::run::{self, Beside};
use overspin_scenario::{Outcome, Scenario};
use overspin_stats::Spread;

/// Domains or points of which the answer speaks.
const MOST: usize = 3;

/// The answer of a record; `run` is its only run, if it has one. `None` for a record that measures single things.
pub(super) fn answer(record: &Record, run: Option<(&Scenario, &Outcome)>) -> Option<Markup> {
    match (record.kind, run) {
        (Kind::Run, Some((scenario, outcome))) => Some(of_run(scenario, outcome)),
        (Kind::Reproduction, _) => Some(of_experiments(record)),
        (Kind::Seeds, _) => of_seeds(record),
        (Kind::Sweep, _) => of_sweep(record),
        _ => {
            let text = overspin_lab::validate::answer(record.validation.as_ref()?)?;
            Some(html! { p { (text) } })
        }
    }
}

/// What the command prints, without the runs that it makes beside: a page says what its record says.
fn of_run(scenario: &Scenario, outcome: &Outcome) -> Markup {
    let all = run::answer(scenario, outcome, &Beside::default(), None);
    // The page has title and description above.
    let is_new = |block: &Block| !matches!(block, Block::Text(t) if *t == scenario.description);
    let all: Vec<Block> = all.into_iter().filter(is_new).collect();
    html! {
        (blocks(&all))
        p class="faint" {
            "Seed " (outcome.seed) ". The record repeats the run: save it as JSON below, then "
            code { "overspin run FILE.json" } "."
        }
    }
}

/// A row for each experiment: what holds and what does not.
fn of_experiments(record: &Record) -> Markup {
    let mut grid = Grid::new(
        1,
        &["experiment", "claims that hold", "of", "figures within 10 %", "within 25 %", "missed"],
    );
    let (mut holding, mut claims) = (0, 0);
    for e in &record.experiments {
        let hold = e.claims.iter().filter(|c| c.holds == Some(true)).count();
        let [good, fair, missed] = e.tally(Role::Predict);
        (holding, claims) = (holding + hold, claims + e.claims.len());
        let numbers = [hold, e.claims.len(), good, fair, missed].map(|n| n.to_string());
        grid.rows.push(std::iter::once(format!("{}: {}", e.id, e.title)).chain(numbers).collect());
    }
    html! {
        p {
            (holding) " of " (claims) " published claims hold. Figures are those that the model must yield without "
            "being fitted to them."
        }
        (table(&grid))
    }
}

/// What each domain did over seeds.
fn of_seeds(record: &Record) -> Option<Markup> {
    let groups = record.groups();
    let did =
        groups.iter().filter(|g| matches!(g.metric, "items" | "elapsed") && !g.place.contains('/'));
    let sentence = |group: &Group<'_>| {
        let seeds: Vec<u64> = (0..group.values.len() as u64).collect();
        let spread = Spread::of(&seeds, &group.values)?;
        let range = spread.interval.map_or_else(String::new, |i| {
            format!(
                ", with 95 % certainty between {} and {}",
                three_digits(i.low),
                three_digits(i.high)
            )
        });
        let what = if group.metric == "items" { "items a second" } else { "s for its work" };
        Some(format!("{}: {} {what}{range}.", group.place, three_digits(spread.summary.mean)))
    };
    let sentences: Vec<String> = did.filter_map(sentence).take(MOST).collect();
    (!sentences.is_empty()).then(|| html! { @for text in &sentences { p { (text) } } })
}

/// The points with the highest and the lowest throughput.
fn of_sweep(record: &Record) -> Option<Markup> {
    let groups = record.groups();
    let points = groups.iter().filter(|g| g.metric == "throughput" && !g.values.is_empty());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let mut points: Vec<(f64, &str)> = points.map(|g| (mean(&g.values), g.place)).collect();
    points.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (best, worst) = (points.first()?, points.last().filter(|_| points.len() > 1)?);
    Some(html! {
        p {
            "The most acquisitions, " (three_digits(best.0)) " a second, are those of " (best.1)
            "; the fewest, " (three_digits(worst.0)) " a second, those of " (worst.1) "."
        }
    })
}
