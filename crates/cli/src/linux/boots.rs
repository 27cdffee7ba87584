//! `overspin linux torture --boots`: boots with each lock, again and again.

use super::failure;
use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use overspin_linux::STOCK;
use overspin_linux::boots::{Boot, boot};
use overspin_linux::machine::Machine;
use overspin_real::scratch::Scratch;
use overspin_report::{Block, Grid};
use std::time::Duration;

/// Thirty times what a boot takes on two idle CPUs: then it hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// Boots with one lock.
struct Row<'a> {
    lock: &'a str,
    /// How long those took that came up.
    up: Vec<Duration>,
    /// What became of the others.
    failed: Vec<String>,
}

/// Boots `machine` so many times with each of `locks` and with the kernel's own lock, one boot each in a round, so that load which
/// comes and goes meets all.
pub(super) fn boots(
    machine: &Machine,
    by: &str,
    locks: &[&str],
    count: u32,
    global: &Global,
    outputs: &Outputs,
    stop: &dyn Fn() -> bool,
) -> Result<Verdict, Failure> {
    let scratch = Scratch::new(None).map_err(|f| crate::measure::real::failure(&f))?;
    let row = |lock| Row { lock, up: Vec::new(), failed: Vec::new() };
    let mut rows: Vec<Row<'_>> = locks.iter().copied().chain([STOCK]).map(row).collect();
    'rounds: for round in 1..=count {
        if !global.quiet && !global.no_progress {
            eprintln!("round {round} of {count}");
        }
        for row in &mut rows {
            let machine = machine.clone().with_lock(row.lock);
            match boot(&machine, LIMIT, &scratch, stop).map_err(failure)? {
                Boot::Up(after) => row.up.push(after),
                Boot::Stopped => break 'rounds,
                Boot::Failed { how, console } => {
                    let told = format!(
                        "{}, round {round}: {how}; its console ended with: {console}",
                        row.lock
                    );
                    eprintln!("{told}");
                    row.failed.push(told);
                }
            }
        }
    }
    for row in &mut rows {
        row.up.sort_unstable();
    }
    outputs.report(&report(machine, by, &rows))?;
    let fine = rows.iter().all(|row| row.failed.is_empty());
    Ok(if fine { Verdict::Fine } else { Verdict::Finding })
}

fn report(machine: &Machine, by: &str, rows: &[Row<'_>]) -> Vec<Block> {
    let failed: usize = rows.iter().map(|row| row.failed.len()).sum();
    let all = failed + rows.iter().map(|row| row.up.len()).sum::<usize>();
    let with = match rows.len() - 1 {
        1 => format!("with {} and with the kernel's own lock", rows[0].lock),
        locks => format!("with each of {locks} locks and with the kernel's own"),
    };
    let limit = LIMIT.as_secs();
    let answer = match failed {
        0 => format!("All {all} boots {with} came up."),
        _ => format!("{failed} of {all} boots {with} did not come up."),
    };
    let mut grid = Grid::new(1, &["lock", "came up", "did not", "median s", "longest s"]);
    let mut faults = String::new();
    for Row { lock, up, failed } in rows {
        let seconds =
            |at: usize| up.get(at).map_or("-".into(), |t| format!("{:.1}", t.as_secs_f64()));
        grid.row([
            (*lock).to_owned(),
            up.len().to_string(),
            failed.len().to_string(),
            seconds(up.len() / 2),
            seconds(up.len().saturating_sub(1)),
        ]);
        for told in failed {
            faults += told;
            faults.push('\n');
        }
    }
    let mut blocks = vec![
        Block::Title("Boots of a Linux kernel with each lock".into()),
        Block::Text(answer),
        Block::Text(format!(
            "{} vCPUs, {by}. A boot has {limit} s. It is up when the kernel waits for a disk, with all drivers and CPUs there.",
            machine.vcpus
        )),
        Block::Grid(grid),
    ];
    if !faults.is_empty() {
        blocks.push(Block::Lines(faults));
    }
    blocks
}
