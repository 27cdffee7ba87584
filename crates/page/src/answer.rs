//! The answer of a result: what a reader sees first.

use super::html::{blocks, table};
use maud::{Markup, html};
use overspin_record::Role;
use overspin_report::{Block, Grid};
use overspin_runs::record::{Kind, Record};
use overspin_runs::run::{self, Beside};
use overspin_runs::{seeds, sweep};
use overspin_scenario::{Outcome, Scenario};

/// The answer of a record; `run` is its only run, if it has one. `None` for a record that measures single things. A live page
/// has runs `beside` that one.
pub(super) fn answer(
    record: &Record,
    run: Option<(&Scenario, &Outcome)>,
    beside: Option<&Beside>,
) -> Option<Markup> {
    match (record.kind, run) {
        (Kind::Run, Some((scenario, outcome))) => Some(of_run(scenario, outcome, beside)),
        (Kind::Reproduction, _) => Some(of_experiments(record)),
        (Kind::Seeds, _) => {
            let figures = record.over_seeds.iter();
            said(seeds::answer(figures.map(|o| (o.place.as_str(), o.metric.as_str(), &o.spread))))
        }
        (Kind::Sweep, _) => {
            let outcome = sweep::Outcome::of(record);
            said(sweep::answer(&outcome).into_iter().chain(sweep::warnings(&outcome)))
        }
        _ => said(overspin_lab::validate::answer(record.validation.as_ref()?).map(Block::Text)),
    }
}

/// What the command says first, if it says anything.
fn said(all: impl IntoIterator<Item = Block>) -> Option<Markup> {
    let all: Vec<Block> = all.into_iter().collect();
    (!all.is_empty()).then(|| blocks(&all))
}

/// What the command prints. A saved page is without the runs that the command makes beside: it says what its record says.
fn of_run(scenario: &Scenario, outcome: &Outcome, beside: Option<&Beside>) -> Markup {
    let all = run::answer(scenario, outcome, beside.unwrap_or(&Beside::default()), None);
    // The page has title and description above.
    let is_new = |block: &Block| !matches!(block, Block::Text(t) if *t == scenario.description);
    let all: Vec<Block> = all.into_iter().filter(is_new).collect();
    html! {
        (blocks(&all))
        @if beside.is_none() {
          p class="faint" {
            "Seed " (outcome.seed) ". The record repeats the run: save it as JSON below, then "
            code { "overspin run FILE.json" } "."
          }
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
