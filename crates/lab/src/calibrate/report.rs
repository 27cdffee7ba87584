//! What a calibration found, as tables.

use super::{Median, rewarm, told};
use overspin_native::calibrate::{Calibration, Quantity};
use overspin_report::{Block, Grid, short};

/// The report.
#[must_use]
pub fn report(calibration: &Calibration) -> Vec<Block> {
    let system = &calibration.system;
    let mut blocks = vec![
        Block::Title("What operations of this machine cost".into()),
        Block::Text(format!(
            "{}. Linux {}, {}. {} of {} CPUs, {:.0} s. Medians, with the interval that has the true median with \
             95 % confidence.",
            system.cpu_model.as_deref().unwrap_or("Unknown CPU"),
            system.kernel.as_deref().unwrap_or("(unknown)"),
            if system.virtualised { "in a virtual machine" } else { "no hypervisor seen" },
            calibration.cpus.len(),
            system.cpus,
            calibration.elapsed.as_secs_f64(),
        )),
    ];
    blocks.extend(calibration.warnings.iter().map(|w| Block::Text(format!("Doubtful: {w}."))));
    let is_pair = |q: Quantity| matches!(q, Quantity::Between(..));
    let is_cold =
        |q: Quantity| matches!(q, Quantity::Rewarm { .. } | Quantity::RewarmControl { .. });
    blocks.push(Block::Grid(table(calibration, |q| !is_pair(q) && !is_cold(q))));
    // With one pair, the class says the same.
    if calibration.series.iter().filter(|s| is_pair(s.quantity)).count() > 1 {
        blocks.push(Block::Heading("Lines between CPUs".into()));
        blocks.push(Block::Grid(table(calibration, is_pair)));
    }
    if let Some(told) = rewarm::permille(calibration) {
        blocks.push(Block::Heading("What a thread loses to cold caches when it returns".into()));
        blocks.push(Block::Text(format!("{told}.")));
        blocks.push(Block::Grid(rewarm::table(calibration)));
    }
    if !calibration.missing.is_empty() {
        blocks.push(Block::Heading("Not measured".into()));
        let mut grid = Grid::new(2, &["quantity", "why"]);
        for (quantity, why) in &calibration.missing {
            grid.row([told(*quantity).words, why.clone()]);
        }
        blocks.push(Block::Grid(grid));
    }
    blocks
}

fn table(calibration: &Calibration, wanted: impl Fn(Quantity) -> bool) -> Grid {
    let mut grid = Grid::new(1, &["quantity", "key", "median", "from", "to", "unit", "samples"]);
    for series in calibration.series.iter().filter(|s| wanted(s.quantity)) {
        let (told, Some(median)) = (told(series.quantity), Median::of(&series.samples)) else {
            continue;
        };
        grid.row([
            told.words,
            told.key.unwrap_or("-").into(),
            short(median.value),
            short(median.interval[0]),
            short(median.interval[1]),
            told.unit.into(),
            median.n.to_string(),
        ]);
    }
    grid
}
