//! The diagnosis for people.

use super::{Diagnosis, Finding, State};
use overspin_report::{Block, Grid};

/// The answer, the table of all findings, then what the bad ones cost and what to do.
#[must_use]
pub fn report(diagnosis: &Diagnosis, machine: &str) -> Vec<Block> {
    let mut grid = Grid::new(3, &["looked at", "state", "found"]);
    for finding in &diagnosis.findings {
        grid.row([finding.what.into(), finding.state.name().into(), finding.found.clone()]);
    }
    let mut blocks = vec![
        Block::Title("What this machine offers".into()),
        Block::Text(answer(diagnosis)),
        Block::Text(format!("{machine}.")),
        Block::Grid(grid),
    ];
    let told: Vec<&Finding> = diagnosis.findings.iter().filter(|f| !f.cost.is_empty()).collect();
    if !told.is_empty() {
        blocks.push(Block::Heading("What it costs".into()));
    }
    for finding in told {
        let remedy = match finding.remedy.is_empty() {
            true => String::new(),
            false => format!(" Remedy: {}.", finding.remedy),
        };
        blocks.push(Block::Text(format!("- {}: {}.{remedy}", finding.what, finding.cost)));
    }
    blocks
}

/// What works here, and what to do first.
fn answer(diagnosis: &Diagnosis) -> String {
    let of = |state: State| -> Vec<&Finding> {
        diagnosis.findings.iter().filter(|f| f.state == state).collect()
    };
    let names = |all: &[&Finding]| all.iter().map(|f| f.what).collect::<Vec<_>>().join(", ");
    let (costs, missing) = (of(State::Costs), of(State::Missing));
    let measured = match costs.is_empty() {
        true => "Measurements suffer from nothing that was looked at.".into(),
        false => format!("Measurements suffer from: {}.", names(&costs)),
    };
    let found = match missing.is_empty() {
        true => "Every command and every test finds what it needs.".into(),
        false => format!(
            "Missing, so that commands end with exit code 3 or tests skip: {}.",
            names(&missing)
        ),
    };
    let next = match diagnosis.findings.iter().any(|f| f.what == "KVM" && f.state != State::Missing)
    {
        true => "overspin run examples/ticket-overcommit.toml --world hv",
        false => "overspin run examples/ticket-overcommit.toml --world threads",
    };
    format!(
        "Simulations run here like everywhere: a scenario, a seed and a model version give the same bytes on every machine. \
         {measured} {found} To see a lock on this machine's CPUs: {next}"
    )
}
