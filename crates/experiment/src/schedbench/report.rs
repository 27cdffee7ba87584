//! schedbench's columns, over the seeds.

use super::{BenchSample, Schedbench};
use overspin_report::{Block, Grid};
use overspin_stats::Summary;

/// A row for each run, scheduler and set of workers.
pub(super) fn blocks(experiment: &Schedbench, runs: &[BenchSample]) -> Vec<Block> {
    let header = [
        "run",
        "scheduler",
        "set",
        "total [Mops/s]",
        "sd of workers",
        "utilisation [%]",
        "max delta, middle report [ms]",
        "highest report [ms]",
        "of alone",
    ];
    let mut grid = Grid::new(3, &header);
    for run in experiment.run_names() {
        for policy in &experiment.policies {
            let of: Vec<&BenchSample> =
                runs.iter().filter(|r| r.run == run && r.scheduler == policy.name).collect();
            let sets = of.first().map_or(0, |r| r.summary.sets.len());
            for set in 0..sets {
                let mean = |value: &dyn Fn(&BenchSample) -> f64| {
                    let all: Vec<f64> = of.iter().map(|r| value(r)).collect();
                    Summary::of(&all).map_or(0.0, |s| s.mean)
                };
                let count = of[0].summary.sets[set].workers.len().max(1) as f64;
                let alone = experiment.alone(runs, &policy.name, set);
                // Each run counts separately: extremes over all seeds together would lie further out.
                let late = |of_reports: fn(Summary) -> f64| {
                    let reports = |r: &&BenchSample| Summary::of(&r.lateness(set)).map(of_reports);
                    let each: Option<Vec<f64>> = of.iter().map(reports).collect();
                    let all = each.and_then(|each| Summary::of(&each));
                    all.map_or_else(|| "-".into(), |s| format!("{:.2}", s.mean))
                };
                let throughput = mean(&|r| r.summary.sets[set].throughput.total / 1000.0);
                grid.row([
                    run.clone(),
                    policy.name.clone(),
                    of[0].set_name(set).to_owned(),
                    format!("{throughput:.1}"),
                    format!("{:.2}", mean(&|r| r.summary.sets[set].throughput.stddev / 1000.0)),
                    format!("{:.1}", mean(&|r| 100.0 * r.summary.sets[set].utilization.mean)),
                    late(|reports| reports.median),
                    late(|reports| reports.max),
                    alone.map_or_else(
                        || "-".into(),
                        |alone| format!("{:.2}", throughput / count / alone),
                    ),
                ]);
            }
        }
    }
    vec![Block::Heading("As schedbench sums it up".into()), Block::Grid(grid)]
}
