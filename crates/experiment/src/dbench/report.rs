//! `vmstat` and lockmeter of the first run of each kernel, and its cache lines.

use super::{Dbench, Sample};
use overspin_report::Block;
use overspin_runs::run::vmstat::lines;
use overspin_runs::run::vmstat::lockmeter;
use overspin_runs::run::vmstat::vmstat;

pub(super) fn blocks(experiment: &Dbench, runs: &[Sample]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for kernel in &experiment.kernels {
        let name = &kernel.name;
        blocks.push(Block::Heading(format!("{name}: vmstat 1, as published")));
        blocks.push(Block::Grid(vmstat(&kernel.rows())));
        let Some(run) = runs.iter().find(|r| r.kernel == *name) else { continue };
        blocks.push(Block::Heading(format!("{name}: vmstat 1, simulated, seed {}", run.seed)));
        blocks.push(Block::Grid(vmstat(&run.seconds())));
        blocks.push(Block::Heading(format!("{name}: lockmeter, simulated")));
        blocks.push(Block::Grid(lockmeter(&run.domain, run.elapsed)));
        blocks.push(Block::Heading(format!("{name}: cache lines, simulated")));
        blocks.push(Block::Grid(lines(&run.domain)));
    }
    blocks
}
