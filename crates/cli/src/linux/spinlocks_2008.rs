//! `overspin reproduce 2008-spinlocks --world linux`: what was published in 2008, beside guests of this machine.

use super::measure::{OF_2008, WhichArgs, measured};
use crate::args::{Global, RecordArgs};
use crate::failure::{Failure, Verdict};
use crate::measure::real::RealArgs;
use overspin_experiment::report::claims_in_brief;
use overspin_experiment::{Compared, Experiment, Judged, against};
use overspin_linux::benchmark::Work;
use overspin_real::kernbench::Load;
use overspin_report::{Block, Grid, short};
use overspin_runs::record::Record;

/// Its loads, by their names in places and in the published figures.
const LOADS: [(Load, &str); 2] = [(Load::Half, "half load"), (Load::Optimal, "optimal load")];
/// Figures whose ratios are compared, and their words.
const METRICS: [(&str, &str); 3] =
    [("elapsed_s", "elapsed"), ("user_s", "user"), ("system_s", "system")];
/// Runs of each place, if the user does not say. The post has five.
const RUNS: u32 = 3;

/// Measures, and puts the ratios and the claims beside the published ones.
pub(super) fn reproduce(
    experiment: &Experiment,
    runs: Option<u32>,
    record: RecordArgs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let real = RealArgs::of(runs.unwrap_or(RUNS), record);
    let beside = |record: &Record| beside(experiment, record);
    let work = Work::Kernbench(LOADS.map(|(load, _)| load).to_vec());
    measured(work, &WhichArgs::of(&OF_2008), &real, RUNS, &beside, global)
}

fn beside(experiment: &Experiment, record: &Record) -> Vec<Block> {
    if record.runs.is_empty() {
        return Vec::new();
    }
    let (figures, claims) = against(experiment, record);
    vec![
        Block::Title(experiment.head.title.clone()),
        Block::Text(answer(&figures, &claims)),
        Block::Text(
            "Ratios to lock-byte in the same column of the post; the machine and the tree are others, so absolute times say \
             nothing."
                .into(),
        ),
        Block::Grid(ratios(&figures, record)),
        Block::Lines(claims_in_brief(&claims)),
    ]
}

/// The figure of a lock at a load, by its words.
fn find<'f>(figures: &'f [Compared], lock: &str, load: &str, metric: &str) -> Option<&'f Compared> {
    let place = format!("{lock}, {load}");
    figures.iter().find(|f| f.place == place && f.metric == metric)
}

/// The sentence that answers.
fn answer(figures: &[Compared], claims: &[Judged]) -> String {
    let [base, others @ ..] = OF_2008;
    let loads = LOADS.iter().filter_map(|(_, load)| {
        let elapsed = |lock| find(figures, lock, load, METRICS[0].0)?.simulated;
        let base = elapsed(base)?;
        let of = |lock| match elapsed(lock) {
            Some(other) => format!("{lock} {} times", short(other / base)),
            None => format!("{lock} more than 10 times"),
        };
        Some(format!("at {load} {}", others.map(of).join(" and ")))
    });
    let loads: Vec<String> = loads.collect();
    let held = claims.iter().filter(|claim| claim.holds == Some(true)).count();
    format!(
        "In guests of this machine the build takes, in times of {base}'s: {}. {held} of {} published claims hold here.",
        loads.join("; "),
        claims.len()
    )
}

/// A row for each load, figure and lock: its ratio to lock-byte's, measured and published.
fn ratios(figures: &[Compared], record: &Record) -> Grid {
    let mut grid = Grid::new(3, &["load", "figure", "lock", "here", "ratio here", "published"]);
    // A run that was ended has its samples, and no elapsed time.
    let was_ended = |lock: &str, load: Load| {
        let place = format!("{lock}.{}", load.name());
        record.samples.iter().any(|s| s.place == place && s.metric == "finished" && s.value == 0.0)
    };
    for (load, words_of_load) in LOADS {
        for (metric, words) in METRICS {
            for lock in OF_2008 {
                let Some(figure) = find(figures, lock, words_of_load, metric) else {
                    continue;
                };
                let base = find(figures, OF_2008[0], words_of_load, metric);
                let ratio =
                    |value: Option<f64>, base: Option<f64>, never: bool| match value.zip(base) {
                        Some((value, base)) => short(value / base),
                        None if never => "never".into(),
                        None => "-".into(),
                    };
                let never = was_ended(lock, load);
                let here = match figure.simulated {
                    Some(seconds) => format!("{} s", short(seconds)),
                    None if never => "never".into(),
                    None => "-".into(),
                };
                grid.row([
                    words_of_load.to_owned(),
                    words.to_owned(),
                    lock.to_owned(),
                    here,
                    ratio(figure.simulated, base.and_then(|f| f.simulated), never),
                    ratio(figure.published, base.and_then(|f| f.published), true),
                ]);
            }
        }
    }
    grid
}
