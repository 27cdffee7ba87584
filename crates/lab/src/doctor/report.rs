//! The diagnosis for people.

use super::{Diagnosis, Finding, State};
use overspin_report::{Block, Grid};

/// The table of all findings, then what the bad ones cost and what to do.
#[must_use]
pub fn report(diagnosis: &Diagnosis, machine: &str) -> Vec<Block> {
    let mut grid = Grid::new(3, &["looked at", "state", "found"]);
    for finding in &diagnosis.findings {
        grid.row([finding.what.into(), finding.state.name().into(), finding.found.clone()]);
    }
    let mut blocks = vec![
        Block::Title("What this machine offers".into()),
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
    let missing = diagnosis.findings.iter().filter(|f| f.state == State::Missing).count();
    blocks.push(Block::Heading("In short".into()));
    blocks.push(Block::Text(format!(
        "Simulated results depend on none of this: a scenario, a seed and a model version give the same bytes on \
         every machine. {}",
        match missing {
            0 => "Every command and every test finds what it needs.".to_owned(),
            n => format!("{n} of the things that commands or tests use are missing; they say so when they skip."),
        }
    )));
    blocks
}
