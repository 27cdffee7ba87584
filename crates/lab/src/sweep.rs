//! Sweeps: every combination of a scenario file's `[[vary]]` tables, run and measured in the same way.

use crate::catalog;
use crate::record::Run;
use crate::scenario_file::{Axis, MOST_RUNS, Point, Sweep};
use crate::seeds::{Spread, seeds_from};
use crate::way::Way;
use overspin_host::Refused;
use overspin_scenario::{DomainOutcome, Ending, LockOutcome, Outcome, Picos};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Seed of every run, or the first one; `None` means the sweep's own.
    pub seed: Option<u64>,
    /// Runs of each point, with consecutive seeds; `None` means as many as the sweep names seeds.
    pub seeds: Option<u32>,
    /// Threads; 0 means one for each CPU.
    pub threads: usize,
    /// The world to run in, and when to stop: an unfinished run then ends as [`Ending::Stopped`].
    pub way: Way,
}

/// One run of a sweep, measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its value on each axis.
    pub at: Vec<String>,
    /// Its seed, how it ended, and what its waits were spent on.
    pub run: Run,
    /// Acquisitions of the workload's locks per simulated second.
    pub throughput: f64,
    /// The longest time that 99.9 % of the acquisitions waited, for the worst of these locks.
    pub wait_p999: Picos,
    /// Part of the vCPUs' running time spent on waiting for locks, 0 to 1: spinning, and stalls on the locks'
    /// own cache lines.
    pub burned: f64,
    /// Jain's index over the tasks' items: 1 if all did the same, 1/n if one task did everything.
    pub fairness: f64,
}

impl Cell {
    /// How it ended; every cell has an ending.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.run.ending.as_ref()
    }

    /// Whether it ran to its intended end.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.ending().is_some_and(Ending::is_sound)
    }
}

/// The runs of a point over its seeds.
#[derive(Clone, Debug)]
pub struct PointOverSeeds {
    /// Its value on each axis.
    pub at: Vec<String>,
    /// Its seeds, without those of runs that deadlocked or were stopped.
    pub seeds: Vec<u64>,
    /// Throughput over these seeds; `None` if there are none.
    pub throughput: Option<Spread>,
    /// As above.
    pub wait_p999: Option<Spread>,
    /// As above.
    pub burned: Option<Spread>,
    /// As above.
    pub fairness: Option<Spread>,
}

impl PointOverSeeds {
    /// Over the runs of one point.
    fn of(cells: &[Cell]) -> Self {
        let at = cells.first().map_or_else(Vec::new, |first| first.at.clone());
        let sound: Vec<&Cell> = cells.iter().filter(|c| c.is_sound()).collect();
        let seeds: Vec<u64> = sound.iter().filter_map(|c| c.run.seed).collect();
        let spread = |of: fn(&Cell) -> f64| {
            let samples: Vec<f64> = sound.iter().map(|c| of(c)).collect();
            Spread::of(&seeds, &samples)
        };
        Self {
            at,
            throughput: spread(|c| c.throughput),
            wait_p999: spread(|c| c.wait_p999.0 as f64),
            burned: spread(|c| c.burned),
            fairness: spread(|c| c.fairness),
            seeds,
        }
    }
}

/// All runs of a sweep. [`record::sweep`](crate::record::sweep) writes it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Name of the scenario.
    pub name: String,
    /// The question.
    pub description: String,
    /// Axes by name, with their values.
    pub axes: Vec<(String, Vec<String>)>,
    /// Runs, with the last axis fastest; runs of one point with different seeds are neighbours.
    pub cells: Vec<Cell>,
    /// Points over their seeds; empty if there is only one seed.
    pub over_seeds: Vec<PointOverSeeds>,
}

/// Why a sweep could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The simulator refused a scenario.
    #[error("with {}: {cause}", .set.join(" "))]
    Sim {
        /// The settings of the refused run.
        set: Vec<String>,
        /// The reason.
        #[source]
        cause: Refused,
    },
    /// More runs than a sweep may have.
    #[error("the sweep has {runs} runs; at most {MOST_RUNS} are possible")]
    TooMany {
        /// How many.
        runs: usize,
    },
    /// No worker threads.
    #[error("cannot start {threads} threads: {cause}")]
    Threads {
        /// How many.
        threads: usize,
        /// The reason.
        #[source]
        cause: rayon::ThreadPoolBuildError,
    },
}

/// Runs all points of `sweep` with all seeds, on as many threads as asked for. Calls `progress` with the runs
/// done and the runs in all. The result does not depend on the threads.
///
/// # Errors
/// If a scenario is refused, if the threads cannot be started, or if there are too many runs.
pub fn run(
    sweep: &Sweep,
    settings: Settings,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Measured, SweepError> {
    let seeds_of = |point: &Point| match settings {
        Settings { seed: None, seeds: None, .. } if !sweep.seeds.is_empty() => sweep.seeds.clone(),
        _ => {
            let first = settings.seed.unwrap_or(point.scenario.seed);
            seeds_from(first, settings.seeds.unwrap_or(1))
        }
    };
    let each = sweep.points.first().map_or(0, |p| seeds_of(p).len());
    let runs = sweep.points.len().saturating_mul(each);
    if runs > MOST_RUNS {
        return Err(SweepError::TooMany { runs });
    }
    let jobs: Vec<(&Point, u64)> =
        sweep.points.iter().flat_map(|p| seeds_of(p).into_iter().map(move |s| (p, s))).collect();
    let cells = in_parallel(settings.threads, &jobs, progress, |(point, seed)| {
        let outcome = settings
            .way
            .run(&point.scenario, *seed, &mut (), &|_| {})
            .map_err(|cause| SweepError::Sim { set: point.sets.clone(), cause })?;
        Ok(cell(&sweep.axes, point, &outcome))
    })?;
    let over_seeds =
        if each > 1 { cells.chunks(each).map(PointOverSeeds::of).collect() } else { Vec::new() };
    Ok(Measured {
        name: sweep.name.clone(),
        description: sweep.description.clone(),
        axes: sweep.axes.iter().map(|a| (a.name.clone(), a.values.clone())).collect(),
        cells,
        over_seeds,
    })
}

/// Does `job` for each of `jobs` on threads; the results are in the order of the jobs.
pub(crate) fn in_parallel<J: Sync, T: Send>(
    threads: usize,
    jobs: &[J],
    progress: &(dyn Fn(usize, usize) + Sync),
    job: impl Fn(&J) -> Result<T, SweepError> + Sync,
) -> Result<Vec<T>, SweepError> {
    let done = AtomicUsize::new(0);
    let one = |of: &J| {
        let result = job(of)?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        Ok(result)
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|cause| SweepError::Threads { threads, cause })?;
    pool.install(|| jobs.par_iter().map(one).collect())
}

fn cell(axes: &[Axis], point: &Point, outcome: &Outcome) -> Cell {
    // The guest kernel's own locks follow the workload's; the sweep covers only the latter.
    let domains = || {
        outcome
            .domains
            .iter()
            .zip(&point.scenario.domains)
            .map(|(of, domain)| (of, &of.locks[..catalog::lock_names(domain).len()]))
    };
    let locks = || domains().flat_map(|(_, locks)| locks);
    let rate = |(domain, locks): (&DomainOutcome, &[LockOutcome])| {
        let seconds = domain.lifetime(outcome.elapsed).seconds();
        let acquisitions = locks.iter().map(|l| l.acquisitions as f64).sum::<f64>();
        if seconds > 0.0 { acquisitions / seconds } else { 0.0 }
    };
    let vcpus = || outcome.domains.iter().flat_map(|d| &d.vcpus);
    let items: Vec<f64> =
        outcome.domains.iter().flat_map(|d| &d.tasks).map(|t| t.items as f64).collect();
    let part = |a: Picos, of: Picos| if of == Picos::ZERO { 0.0 } else { a.ratio(of) };
    Cell {
        at: axes.iter().zip(&point.at).map(|(a, i)| a.values[*i].clone()).collect(),
        run: Run::of(outcome),
        throughput: domains().map(rate).sum(),
        wait_p999: locks().map(|l| l.wait_p999).max().unwrap_or_default(),
        // The hypervisor counts in whole nanoseconds, the waits are counted in picoseconds.
        burned: part(vcpus().map(|v| v.waiting).sum(), vcpus().map(|v| v.running).sum()).min(1.0),
        fairness: jain(&items),
    }
}

/// Jain's fairness index; 1 if no task did anything.
pub(crate) fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_file;

    const TWO_BY_TWO: &str = r#"
limit = "20ms"
[host]
cores = 2
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
[domain.workload]
kind = "lock-loop"
section = "2us"
[[vary]]
name = "lock"
set = "domain.guest.lock"
to = ["ticket", "lock-byte"]
[[vary]]
name = "vCPUs/pCPUs"
set = "domain.guest.vcpus / host.cores"
to = ["2/2", "2/1"]
"#;

    fn sweep(text: &str) -> Result<Sweep, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        match scenario_file::load(file.path(), &[]) {
            Ok(scenario_file::Loaded::Sweep(sweep)) => Ok(sweep),
            Ok(_) => Err("not a sweep".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_combination_is_the_run_that_its_set_arguments_describe() {
        let sweep = sweep(TWO_BY_TWO).unwrap();
        let measured =
            run(&sweep, Settings { threads: 2, ..Settings::default() }, &|_, _| {}).unwrap();
        let at: Vec<String> = measured.cells.iter().map(|c| c.at.join(" ")).collect();
        assert_eq!(at, ["ticket 2/2", "ticket 2/1", "lock-byte 2/2", "lock-byte 2/1"]);
        for (cell, point) in measured.cells.iter().zip(&sweep.points) {
            let alone = scenario_file::parse("t", "t", TWO_BY_TWO, &point.sets).unwrap();
            let seed = cell.run.seed.unwrap();
            let outcome = overspin_sim::run(&alone, seed).unwrap();
            assert_eq!(Some(outcome.trace_hash), cell.run.trace_hash, "{:?}", point.sets);
            assert!(cell.throughput > 0.0 && (0.0..=1.0).contains(&cell.burned));
        }
        // No vCPU is descheduled while each has a pCPU.
        assert!(measured.cells[0].throughput > measured.cells[1].throughput);
    }

    const SEEDS: &str = "[[vary]]\nname = \"seed\"\nset = \"seed\"\nto = [\"3\", \"5\", \"4\"]\n";

    #[test]
    fn seeds_are_no_axis_and_each_point_runs_with_each_of_them() {
        let with_seeds = sweep(&format!("{TWO_BY_TWO}{SEEDS}")).unwrap();
        assert_eq!((with_seeds.axes.len(), with_seeds.points.len()), (2, 4));
        let measure = |sweep: &Sweep, seed, seeds| {
            run(sweep, Settings { seed, seeds, threads: 2, ..Settings::default() }, &|_, _| {})
                .unwrap()
        };
        let named = measure(&with_seeds, None, None);
        let seeds: Vec<u64> = named.cells.iter().filter_map(|c| c.run.seed).collect();
        assert_eq!(seeds, [3, 5, 4].repeat(4));
        assert_eq!(named.over_seeds.len(), 4);
        for (point, cells) in named.over_seeds.iter().zip(named.cells.chunks(3)) {
            assert_eq!(point.at, cells[2].at);
            let mean = cells.iter().map(|c| c.throughput).sum::<f64>() / 3.0;
            let spread = point.throughput.as_ref().unwrap();
            assert!((spread.summary.mean - mean).abs() < 1e-9 * mean);
        }
        // The options win over the file, and do the same without the file's seeds.
        let asked = measure(&with_seeds, Some(3), Some(3));
        let plain = measure(&sweep(TWO_BY_TWO).unwrap(), Some(3), Some(3));
        let hashes = |m: &Measured| m.cells.iter().map(|c| c.run.trace_hash).collect::<Vec<_>>();
        assert_eq!(hashes(&asked), hashes(&plain));
        assert_eq!(asked.cells[0].run.trace_hash, named.cells[0].run.trace_hash);
        let alone = measure(&with_seeds, Some(4), None);
        assert_eq!((alone.cells.len(), alone.over_seeds.len()), (4, 0));
        let text = crate::report::text(&crate::report::sweep(&named));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("mean over seeds 3, 5, 4") && text.contains('±'), "{text}");
        assert!(!crate::report::text(&crate::report::sweep(&alone)).contains('±'));
    }

    #[test]
    fn a_file_that_varies_only_the_seed_is_one_scenario() {
        let text = format!("{}{SEEDS}", TWO_BY_TWO.split("[[vary]]").next().unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let loaded = scenario_file::load(file.path(), &[]).unwrap();
        assert!(matches!(loaded, scenario_file::Loaded::Seeds(_, seeds) if seeds == [3, 5, 4]));
    }

    #[test]
    fn more_runs_than_anybody_waits_for_are_refused() {
        let sweep = sweep(TWO_BY_TWO).unwrap();
        let settings = Settings { seeds: Some(30_000), ..Settings::default() };
        assert!(matches!(
            run(&sweep, settings, &|_, _| {}),
            Err(SweepError::TooMany { runs: 120_000 })
        ));
    }

    #[test]
    fn mistakes_in_seeds_have_their_place() {
        for (from, to, message) in [
            ("\"4\"]", "\"-4\"]", "`-4` is not a seed"),
            ("\"4\"]", "\"3\"]", "seed 3 is listed twice"),
            ("\"4\"]\n", &format!("\"4\"]\n{SEEDS}"), "the seed is varied twice"),
        ] {
            let error = sweep(&format!("{TWO_BY_TWO}{}", SEEDS.replacen(from, to, 1))).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn mistakes_are_found_before_anything_runs() {
        let cases = [
            ("to = [\"2/2\", \"2/1\"]", "to = [\"2/2\", \"2\"]", "has 1 parts for 2 keys"),
            ("to = [\"2/2\", \"2/1\"]", "to = []", "is empty"),
            ("\"lock-byte\"]", "\"lock-bite\"]", "there is no lock `lock-bite`"),
            ("set = \"domain.guest.lock\"", "", "`set` is missing"),
        ];
        for (from, to, message) in cases {
            let error = sweep(&TWO_BY_TWO.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(sweep(TWO_BY_TWO.split("[[vary]]").next().unwrap()).unwrap_err(), "not a sweep");
    }

    #[test]
    fn jains_index_by_hand() {
        assert!((jain(&[1.0, 1.0, 1.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[4.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        // (1 + 3)^2 / (2 * (1 + 9))
        assert!((jain(&[1.0, 3.0]) - 0.8).abs() < 1e-12);
    }
}
