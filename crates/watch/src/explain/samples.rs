//! The explanation of a record without waits for locks: its measurements, and what is amiss.

use overspin_report::{Block, Grid, MOST_LINES, short};
use overspin_runs::record::{Kind, Record};
use overspin_stats::Summary;

/// Explains a record by its samples.
#[must_use]
pub fn samples(record: &Record) -> Vec<Block> {
    let mut blocks = vec![
        Block::Title(format!("{}: what was measured", record.name)),
        Block::Text(format!("A record of {}. {}", record.kind.words(), why(record.kind))),
    ];
    blocks.extend(record.warnings.iter().map(|w| Block::Text(format!("Doubtful: {w}."))));
    blocks.extend(targets(record));
    let groups = record.groups();
    let main = record.kind.main_metrics();
    let mut shown: Vec<_> =
        groups.iter().filter(|g| main.is_empty() || main.contains(&g.metric)).collect();
    if shown.is_empty() {
        shown = groups.iter().collect();
    }
    let header = ["where", "metric", "unit", "N", "min", "median", "max"];
    let mut grid = Grid::new(3, &header);
    for group in shown.iter().take(MOST_LINES) {
        let Some(s) = Summary::of(&group.values) else { continue };
        grid.row([
            group.place.to_owned(),
            group.metric.to_owned(),
            group.unit.to_owned(),
            s.n.to_string(),
            short(s.min),
            short(s.median),
            short(s.max),
        ]);
    }
    blocks.push(Block::Grid(grid));
    let left = groups.len() - shown.len().min(MOST_LINES);
    if left > 0 {
        blocks.push(Block::Text(format!("{left} more metrics and places are in the record.")));
    }
    blocks
}

/// Says why there are no causes of waits.
fn why(kind: Kind) -> &'static str {
    match kind {
        Kind::BenchLocks => {
            "Threads of this machine are not watched while they wait, so the causes of their waits are not known. \
             The metrics `preempted` and `slept` say how often they lost their CPU."
        }
        Kind::Schedbench => {
            "Its workers take no lock; they wait for a CPU. The metric `late` is the lateness of the latest \
             wake-up of a second."
        }
        Kind::Calibration => "It lists what operations of a machine took, in rounds.",
        Kind::Noise => "It lists what took CPUs away, by kind: `thread`, `taken` and `short`.",
        Kind::Real => {
            "Its programs are not watched while they wait; the places that end in `/machine` say what the machine \
             did meanwhile, and `contentions` how often threads had to wait for the kernel's own locks."
        }
        Kind::Validation => {
            "It compares the simulator with this machine: `overspin report` shows how."
        }
        _ => "It has no waits for locks.",
    }
}

/// Targets that were not reached.
fn targets(record: &Record) -> Vec<Block> {
    let groups = record.groups();
    let missed = record.targets.iter().filter_map(|t| {
        let group = groups.iter().find(|g| g.place == t.place && g.metric == t.metric)?;
        let median = Summary::of(&group.values)?.median;
        let reached = if t.at_most { median <= t.value } else { median >= t.value };
        let bound = if t.at_most { "at most" } else { "at least" };
        (!reached).then(|| {
            let (value, target) = (short(median), short(t.value));
            format!("{}: {value} {}, but should be {bound} {target}.", t.place, group.unit)
        })
    });
    let missed: Vec<String> = missed.collect();
    match (record.targets.len(), missed.is_empty()) {
        (0, _) => Vec::new(),
        (n, true) => vec![Block::Text(format!("All {n} targets are reached."))],
        (n, false) => vec![
            Block::Text(format!("{} of {n} targets are not reached:", missed.len())),
            Block::Lines(missed.join("\n")),
        ],
    }
}
