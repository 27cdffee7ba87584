//! The output of kernbench and `xm vcpu-list`, also for runs that were not published. The file states how the
//! published figures are computed.

use super::{Kernbench, Sample};
use overspin_report::{Block, Grid};
use overspin_stats::Summary;
use std::fmt::Write;

/// Runs at the first load in a kernbench session, including the warm-up run.
const FIRST_LOAD: f64 = 6.0;
/// Runs at each further load.
const OTHER_LOADS: f64 = 5.0;

/// A value of a run that finished.
type Value = fn(&Sample) -> Option<f64>;

/// kernbench's names of its metrics. The first is averaged over the runs of one load. All others are averaged
/// over the runs of the earlier loads, too.
const METRICS: [(&str, Value); 6] = [
    ("Elapsed Time", |r| r.elapsed_s),
    ("User Time", |r| Some(r.user_s)),
    ("System Time", |r| Some(r.system_s)),
    ("Percent CPU", |r| r.percent_cpu),
    ("Context Switches", |r| Some(r.context_switches)),
    ("Sleeps", |r| Some(r.sleeps)),
];

/// The runs of an experiment, ready for queries.
pub(super) struct Session<'a> {
    pub(super) experiment: &'a Kernbench,
    pub(super) runs: &'a [Sample],
}

/// Kernbench's own blocks, and vCPU times.
pub(super) fn blocks(session: &Session<'_>) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("As kernbench prints it".into())];
    for lock in &session.experiment.locks {
        blocks.push(Block::Lines(session.kernbench(lock)));
    }
    blocks.push(Block::Heading("vCPU times of a session".into()));
    blocks.push(Block::Grid(session.vcpu_list()));
    blocks
}

impl<'a> Session<'a> {
    fn runs(&self, lock: &str, load: &str) -> Vec<&'a Sample> {
        self.runs.iter().filter(|r| r.lock == lock && r.load == load).collect()
    }

    fn kernbench(&self, lock: &str) -> String {
        let mut out = format!("{lock}\n");
        // The finished runs of all loads so far.
        let mut so_far: Vec<&Sample> = Vec::new();
        for load in &self.experiment.loads {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(out, "Average {} -j {} Run (std deviation):", load.title, load.jobs);
            let (finished, unfinished): (Vec<_>, Vec<_>) =
                self.runs(lock, &load.name).into_iter().partition(|r| r.elapsed_s.is_some());
            if !unfinished.is_empty() {
                let spinning: Vec<f64> = unfinished.iter().map(|r| 100.0 * r.spinning).collect();
                let _ = writeln!(
                    out,
                    "({} of {} runs did not finish; {:.1} % of their vCPU time went into waiting for locks)",
                    unfinished.len(),
                    unfinished.len() + finished.len(),
                    Summary::of(&spinning).map_or(0.0, |s| s.mean)
                );
            }
            so_far.extend(&finished);
            for (i, (name, value)) in METRICS.iter().enumerate().filter(|_| !finished.is_empty()) {
                let of = if i == 0 { &finished } else { &so_far };
                let values: Vec<f64> = of.iter().filter_map(|r| value(r)).collect();
                let _ = match Summary::of(&values) {
                    Some(s) => writeln!(out, "{name} {} ({})", six(s.mean), six(s.stddev)),
                    None => writeln!(out, "{name} not computed"),
                };
            }
            out.push('\n');
        }
        out
    }

    /// Time of a vCPU over a session: a warm-up and five runs at the first load, five at each other. `None`
    /// if a run did not finish.
    fn vcpu_time(&self, lock: &str, vcpu: usize) -> Option<f64> {
        let mut total = 0.0;
        for (i, load) in self.experiment.loads.iter().enumerate() {
            let time = |r: &&Sample| r.elapsed_s.and(r.vcpu_time_s.get(vcpu).copied());
            let times: Option<Vec<f64>> = self.runs(lock, &load.name).iter().map(time).collect();
            let runs = if i == 0 { FIRST_LOAD } else { OTHER_LOADS };
            total += runs * Summary::of(&times?)?.mean;
        }
        Some(total)
    }

    fn vcpu_list(&self) -> Grid {
        let mut grid = Grid::new(2, &["Name", "Lock", "VCPU", "Time(s)", "published"]);
        let head = &self.experiment.head;
        let Some(domain) = head.scenario.domains.first() else { return grid };
        for lock in &self.experiment.locks {
            for vcpu in 0..domain.vcpus as usize {
                let time = self.vcpu_time(lock, vcpu);
                let place = format!("{lock}, vcpu {vcpu}");
                let published = head.figures.iter().find(|f| f.place == place);
                let [time, published] =
                    [(time, "never ended"), (published.and_then(|f| f.mean), "-")].map(
                        |(time, none)| time.map_or_else(|| none.into(), |t| format!("{t:.1}")),
                    );
                grid.row([domain.name.clone(), lock.clone(), vcpu.to_string(), time, published]);
            }
        }
        grid
    }
}

/// Six significant digits, as awk prints them and therefore also kernbench.
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
