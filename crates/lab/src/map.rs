//! Maps: every combination of a scenario file's `[[vary]]` tables, run and measured alike.

use crate::scenario_file::{Axis, Map, Point};
use crate::until::Until;
use overspin_scenario::{DomainOutcome, Ending, LockOutcome, Outcome, Picos, SEC};
use overspin_sim::SimError;
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Seed of every run; `None` is the scenario's own.
    pub seed: Option<u64>,
    /// Threads; 0 is one for each CPU.
    pub threads: usize,
    /// When to stop: what has not ended by then ends as [`Ending::Stopped`].
    pub until: Until,
}

/// One run of a map, measured.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Its value on each axis.
    pub at: Vec<String>,
    /// `--set` arguments that run it alone.
    pub set: Vec<String>,
    /// Its seed.
    pub seed: u64,
    /// How it ended.
    pub ending: Ending,
    /// Hash of its scheduling and lock events.
    #[serde(with = "overspin_scenario::hash_text")]
    pub trace_hash: u64,
    /// Acquisitions of the workload's locks in a simulated second.
    pub throughput: f64,
    /// The longest time that 99.9 % of the acquisitions waited, of the worst of these locks.
    pub wait_p999: Picos,
    /// Part of the vCPUs' running time that went into waiting for locks, 0 to 1: spinning, and stalled
    /// on the locks' own lines.
    pub burned: f64,
    /// Jain's index over the tasks' items: 1 if all did the same, 1/n if one did everything.
    pub fairness: f64,
}

/// All runs of a map.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Layout of this record.
    pub schema: &'static str,
    /// Program version.
    pub version: &'static str,
    /// Name of the scenario.
    pub name: String,
    /// The question.
    pub description: String,
    /// Axes by name, with their values.
    pub axes: Vec<(String, Vec<String>)>,
    /// Runs, the last axis fastest.
    pub cells: Vec<Cell>,
}

/// Why a map could not be run.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The simulator refused a scenario.
    #[error("with {}: {cause}", .set.join(" "))]
    Sim {
        /// Of which run.
        set: Vec<String>,
        /// Why.
        #[source]
        cause: SimError,
    },
    /// No worker threads.
    #[error("cannot start {threads} threads: {cause}")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        #[source]
        cause: rayon::ThreadPoolBuildError,
    },
}

/// Runs all points of `map`, on as many threads as asked for; tells `progress` how many of how many are
/// done. The result does not depend on the threads.
///
/// # Errors
/// If a scenario is refused, or the threads are.
pub fn run(
    map: &Map,
    settings: Settings,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Measured, MapError> {
    let done = AtomicUsize::new(0);
    let total = map.points.len();
    let one = |point: &Point| {
        let seed = settings.seed.unwrap_or(point.scenario.seed);
        let outcome = settings
            .until
            .simulate(&point.scenario, seed, None, &mut |_| {})
            .map_err(|cause| MapError::Sim { set: point.sets.clone(), cause })?;
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        Ok(cell(&map.axes, point, &outcome))
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build()
        .map_err(|cause| MapError::Threads { threads: settings.threads, cause })?;
    let cells = pool.install(|| map.points.par_iter().map(one).collect::<Result<Vec<_>, _>>())?;
    Ok(Measured {
        schema: "overspin-map/2",
        version: env!("CARGO_PKG_VERSION"),
        name: map.name.clone(),
        description: map.description.clone(),
        axes: map.axes.iter().map(|a| (a.name.clone(), a.values.clone())).collect(),
        cells,
    })
}

fn cell(axes: &[Axis], point: &Point, outcome: &Outcome) -> Cell {
    // The guest kernel's own locks follow those of the workload; the map is about the latter.
    let domains = || {
        outcome.domains.iter().zip(&point.scenario.domains).map(|(of, domain)| {
            (of, &of.locks[..overspin_workload::lock_names(&domain.workload).len()])
        })
    };
    let locks = || domains().flat_map(|(_, locks)| locks);
    let rate = |(domain, locks): (&DomainOutcome, &[LockOutcome])| {
        let seconds = domain.lifetime(outcome.elapsed) as f64 / SEC as f64;
        let acquisitions = locks.iter().map(|l| l.acquisitions as f64).sum::<f64>();
        if seconds > 0.0 { acquisitions / seconds } else { 0.0 }
    };
    let vcpus = || outcome.domains.iter().flat_map(|d| &d.vcpus);
    let items: Vec<f64> =
        outcome.domains.iter().flat_map(|d| &d.tasks).map(|t| t.items as f64).collect();
    let part = |a: u64, of: u64| if of == 0 { 0.0 } else { a as f64 / of as f64 };
    Cell {
        at: axes.iter().zip(&point.at).map(|(a, i)| a.values[*i].clone()).collect(),
        set: point.sets.clone(),
        seed: outcome.seed,
        ending: outcome.ending.clone(),
        trace_hash: outcome.trace_hash,
        throughput: domains().map(rate).sum(),
        wait_p999: locks().map(|l| l.wait_p999).max().unwrap_or(0),
        // The hypervisor counts whole nanoseconds, the waits are counted in full.
        burned: part(vcpus().map(|v| v.waiting).sum(), vcpus().map(|v| v.running).sum()).min(1.0),
        fairness: jain(&items),
    }
}

/// Jain's fairness index; 1 where nobody did anything.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_file;
    use overspin_sim::Options;

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

    fn map(text: &str) -> Result<Map, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        match scenario_file::load(file.path(), &[]) {
            Ok(scenario_file::Loaded::Map(map)) => Ok(map),
            Ok(scenario_file::Loaded::One(_)) => Err("not a map".into()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn every_combination_is_the_run_that_its_set_arguments_describe() {
        let measured = run(
            &map(TWO_BY_TWO).unwrap(),
            Settings { seed: None, threads: 2, until: Until::default() },
            &|_, _| {},
        )
        .unwrap();
        let at: Vec<String> = measured.cells.iter().map(|c| c.at.join(" ")).collect();
        assert_eq!(at, ["ticket 2/2", "ticket 2/1", "lock-byte 2/2", "lock-byte 2/1"]);
        for cell in &measured.cells {
            let alone = scenario_file::parse("t", "t", TWO_BY_TWO, &cell.set).unwrap();
            let outcome = overspin_sim::run(&alone, cell.seed, Options::default()).unwrap();
            assert_eq!(outcome.trace_hash, cell.trace_hash, "{:?}", cell.set);
            assert!(cell.throughput > 0.0 && (0.0..=1.0).contains(&cell.burned));
        }
        // Nobody is descheduled while each vCPU has a pCPU.
        assert!(measured.cells[0].throughput > measured.cells[1].throughput);
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
            let error = map(&TWO_BY_TWO.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(map(TWO_BY_TWO.split("[[vary]]").next().unwrap()).unwrap_err(), "not a map");
    }

    #[test]
    fn jains_index_by_hand() {
        assert!((jain(&[1.0, 1.0, 1.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[4.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        // (1 + 3)^2 / (2 * (1 + 9))
        assert!((jain(&[1.0, 3.0]) - 0.8).abs() < 1e-12);
    }
}
