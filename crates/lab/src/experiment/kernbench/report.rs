//! What kernbench and `xm vcpu-list` print.

use super::{Kernbench, Measured};
use crate::report::{Block, Grid};
use crate::stats::Summary;
use std::fmt::Write;

/// kernbench's names of its metrics.
const METRICS: [(&str, &str); 6] = [
    ("Elapsed Time", "elapsed_s"),
    ("User Time", "user_s"),
    ("System Time", "system_s"),
    ("Percent CPU", "percent_cpu"),
    ("Context Switches", "context_switches"),
    ("Sleeps", "sleeps"),
];

/// Kernbench's own blocks, and vCPU times.
pub(super) fn blocks(experiment: &Kernbench, measured: &Measured<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("As kernbench prints it".into())];
    for lock in &experiment.locks {
        blocks.push(Block::Lines(kernbench(experiment, measured, lock)));
    }
    blocks.push(Block::Heading("vCPU times of a session".into()));
    blocks.push(Block::Grid(vcpu_list(experiment, measured)));
    blocks
}

fn kernbench(experiment: &Kernbench, measured: &Measured<'_>, lock: &str) -> String {
    let mut out = format!("{lock}\n");
    for load in &experiment.loads {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "Average {} -j {} Run (std deviation):", load.title, load.jobs);
        let runs = measured.runs(lock, &load.name);
        let unfinished: Vec<_> = runs.iter().filter(|r| r.elapsed_s.is_none()).collect();
        if !unfinished.is_empty() {
            let spinning: Vec<f64> = unfinished.iter().map(|r| 100.0 * r.spinning).collect();
            let _ = writeln!(
                out,
                "({} of {} runs did not finish; {:.1} % of their vCPU time went into waiting for locks)",
                unfinished.len(),
                runs.len(),
                Summary::of(&spinning).map_or(0.0, |s| s.mean)
            );
        }
        if unfinished.len() < runs.len() {
            for (name, metric) in METRICS {
                let _ = match measured.kernbench(lock, &load.name, metric).0 {
                    Some(s) => writeln!(out, "{name} {} ({})", six(s.mean), six(s.stddev)),
                    None => writeln!(out, "{name} not computed"),
                };
            }
        }
        out.push('\n');
    }
    out
}

/// Six significant digits, as awk prints them and kernbench therefore does.
fn six(value: f64) -> String {
    let digits =
        if value == 0.0 { 0 } else { (5 - value.abs().log10().floor() as i32).clamp(0, 9) };
    let text = format!("{value:.*}", digits.unsigned_abs() as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn vcpu_list(experiment: &Kernbench, measured: &Measured<'_>) -> Grid {
    let mut grid = Grid::new(2, &["Name", "Lock", "VCPU", "Time(s)", "published"]);
    let Some(domain) = experiment.head.scenario.domains.first() else { return grid };
    for lock in &experiment.locks {
        for vcpu in 0..domain.vcpus as usize {
            let (time, completion) = measured.vcpu_time(lock, vcpu);
            let time = match (time, completion.unfinished) {
                (Some(time), 0) => format!("{time:.1}"),
                _ => "never ended".into(),
            };
            let published =
                experiment.figures.iter().find(|f| f.vcpu == Some(vcpu) && f.lock == *lock);
            let published =
                published.and_then(|f| f.mean).map_or_else(|| "-".into(), |m| format!("{m:.1}"));
            grid.row([domain.name.clone(), lock.clone(), vcpu.to_string(), time, published]);
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::six;

    #[test]
    fn numbers_look_like_kernbenchs() {
        let shown: Vec<String> =
            [503.002, 19.3737, 0.562_699, 141.0, 54_069.4, 0.0, 1_234_567.0].map(six).into();
        assert_eq!(shown, ["503.002", "19.3737", "0.562699", "141", "54069.4", "0", "1234567"]);
    }
}
