//! One scenario with many seeds: separates chance from the answer.

mod record;
mod report;

pub use record::{record, record_head};
pub(crate) use report::coincidences;
pub use report::{answer, report};

use crate::parallel::{ParallelError, in_parallel};
use crate::record::Run;
use crate::runner::Runner;
use crate::sweep::Shard;
use overspin_record::metric::{Metric, Table, simulated};
use overspin_record::results::{Finished, Kept, Results};
use overspin_scenario::{DomainOutcome, Ending, Outcome, Picos, Scenario};
use overspin_stats::{Spread, jain};

/// A quantity that a run has for its host, for each domain or for each lock.
#[derive(Debug)]
pub struct Quantity {
    /// In words.
    pub what: &'static str,
    /// The metric of its samples in records.
    pub metric: &'static Metric,
}

macro_rules! quantities {
    ($all:ident: $($name:ident = $what:literal;)+) => {
        $(static $name: Quantity = Quantity { what: $what, metric: &simulated::$name };)+

        static $all: &[&Quantity] = &[$(&$name),+];
    };
}

quantities! { OF_HOST: BUSY = "busy"; }
quantities! { OF_DOMAIN:
    ELAPSED = "finished after";
    ITEMS = "items";
    FAIRNESS = "fairness (Jain)";
    STEAL = "steal";
    BURNED = "CPU burned";
}
quantities! { OF_LOCK:
    ACQUISITIONS = "acquisitions";
    WAITS = "waiting";
    WAIT_P50 = "p50 wait";
    WAIT_P99 = "p99 wait";
    WAIT_P999 = "p99.9 wait";
}

fn metrics_of(quantities: &[&Quantity]) -> Vec<&'static Metric> {
    quantities.iter().map(|q| q.metric).collect()
}

/// What a run has, with one seed or with many.
pub static TABLES: [Table; 3] = [
    Table { heading: "The host", places: "The place is `host`.", metrics: || metrics_of(OF_HOST) },
    Table {
        heading: "A domain",
        places: "The place is the domain's name, `guest`; `guest#1` if several share the name.",
        metrics: || metrics_of(OF_DOMAIN),
    },
    Table {
        heading: "A lock",
        places: "The place is `guest/dcache_lock`: the domain and the lock.",
        metrics: || metrics_of(OF_LOCK),
    },
];

/// A figure of a run.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The subject: `host`, a domain, or a lock as `domain/lock`.
    pub of: String,
    /// The quantity.
    pub quantity: &'static Quantity,
    /// The figure, in the quantity's unit.
    pub value: f64,
}

/// A figure over seeds.
#[derive(Clone, Debug)]
pub struct FigureOverSeeds {
    /// Subject and quantity: `of: what`.
    pub name: String,
    /// The subject, see [`Figure::of`].
    pub of: String,
    /// The quantity.
    pub quantity: &'static Quantity,
    /// Seeds whose runs have the figure. Runs that deadlocked or were stopped do not have it, and only runs
    /// that finished have a time at which they did.
    pub seeds: Vec<u64>,
    /// Its value with each of these seeds.
    pub samples: Vec<f64>,
    /// Statistics of the samples.
    pub spread: Spread,
}

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings<'a> {
    /// Only this part of the runs.
    pub shard: Option<Shard>,
    /// Threads; 0 means one for each CPU.
    pub threads: usize,
    /// The world to run in, and when to stop.
    pub runner: Runner,
    /// Where finished runs are kept as they end, and found again.
    pub results: Option<&'a Results>,
}

/// A scenario over seeds. [`record`](record()) writes it.
#[derive(Clone, Debug)]
pub struct OverSeeds {
    /// The scenario.
    pub scenario: Scenario,
    /// The run of each seed, and its figures.
    pub runs: Vec<(Run, Vec<Figure>)>,
    /// Figures over seeds.
    pub results: Vec<FigureOverSeeds>,
}

impl OverSeeds {
    /// How each run ended.
    pub fn endings(&self) -> impl Iterator<Item = &Ending> {
        self.runs.iter().filter_map(|(run, _)| run.ending.as_ref())
    }
}

/// The seeds of `count` runs, beginning with `first`. After the largest seed they continue from 0.
#[must_use]
pub fn seeds_from(first: u64, count: u32) -> Vec<u64> {
    (0..u64::from(count)).map(|i| first.wrapping_add(i)).collect()
}

/// Runs `scenario` with each of `seeds`. Calls `progress` with the runs done and the runs in all. The result
/// does not depend on the threads, nor on which runs were kept before.
///
/// # Errors
/// If the scenario is refused, if a run cannot be kept, or if the threads cannot be started.
pub fn run(
    scenario: &Scenario,
    seeds: &[u64],
    settings: Settings<'_>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<OverSeeds, ParallelError> {
    let seeds = match settings.shard {
        Some(shard) => shard.of(seeds.iter().map(|s| (0, *s)).collect(), false),
        None => seeds.iter().map(|s| (0, *s)).collect(),
    };
    let runs =
        in_parallel(settings.runner.at_a_time(settings.threads), &seeds, progress, |(_, seed)| {
            if let Some(kept) = settings.results.and_then(|r| r.kept(None, *seed)) {
                return Ok((kept.run, kept.figures.into_iter().filter_map(found).collect()));
            }
            let outcome = settings
                .runner
                .run_quietly(scenario, *seed)
                .map_err(|cause| ParallelError::Sim { set: vec![format!("seed={seed}")], cause })?;
            let (run, figures) = (Run::of(&outcome), figures(&outcome));
            if let Some(results) = settings.results {
                let figures = figures.iter().map(kept).collect();
                results.keep(&Finished { run: run.clone(), figures, seconds: None })?;
            }
            Ok::<_, ParallelError>((run, figures))
        })?;
    let results = metrics(&runs);
    Ok(OverSeeds { scenario: scenario.clone(), runs, results })
}

/// What a results directory keeps of a figure.
fn kept(figure: &Figure) -> Kept {
    Kept {
        place: figure.of.clone(),
        metric: figure.quantity.metric.name.into(),
        unit: figure.quantity.metric.unit.into(),
        value: figure.value,
    }
}

/// The figure that was kept; `None` for one that this version does not know.
fn found(kept: Kept) -> Option<Figure> {
    let mut all = [OF_HOST, OF_DOMAIN, OF_LOCK].into_iter().flatten();
    let quantity = all.find(|q| q.metric.name == kept.metric)?;
    Some(Figure { of: kept.place, quantity, value: kept.value })
}

/// The figures of all runs, each over its seeds, ordered by the first run that has the figure.
fn metrics(runs: &[(Run, Vec<Figure>)]) -> Vec<FigureOverSeeds> {
    type Samples<'a> = (&'a Figure, Vec<u64>, Vec<f64>);
    let mut all: Vec<Samples<'_>> = Vec::new();
    for (run, figures) in runs {
        let sound = run.ending.as_ref().is_some_and(Ending::is_sound);
        for figure in figures.iter().filter(|_| sound) {
            let same = |(f, ..): &Samples<'_>| {
                f.of == figure.of && std::ptr::eq(f.quantity, figure.quantity)
            };
            let at = all.iter().position(same).unwrap_or_else(|| {
                all.push((figure, Vec::new(), Vec::new()));
                all.len() - 1
            });
            all[at].1.extend(run.seed);
            all[at].2.push(figure.value);
        }
    }
    all.into_iter()
        .filter_map(|(figure, seeds, samples)| {
            Some(FigureOverSeeds {
                name: format!("{}: {}", figure.of, figure.quantity.what),
                of: figure.of.clone(),
                quantity: figure.quantity,
                spread: Spread::of(&seeds, &samples)?,
                seeds,
                samples,
            })
        })
        .collect()
}

/// The main figures of a run.
#[must_use]
pub fn figures(outcome: &Outcome) -> Vec<Figure> {
    let sum = |f: fn(&overspin_scenario::PcpuOutcome) -> Picos| outcome.pcpus.iter().map(f).sum();
    let busy: Picos = sum(|p| p.busy);
    let whole = busy + sum(|p| p.switching) + sum(|p| p.idle);
    let mut all = Vec::new();
    push(&mut all, "host", &BUSY, percent(busy, whole));
    let names = labels(outcome.domains.iter().map(|d| d.name.as_str()));
    for (domain, name) in outcome.domains.iter().zip(names) {
        let time = outcome.lifetime(domain).seconds();
        of_domain(&mut all, domain, &name, time);
    }
    all
}

/// Names, followed by their position if several are equal.
fn labels<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let same = |name: &str| names.clone().filter(|n| *n == name).count();
    let label = |(i, name): (usize, &str)| match same(name) {
        1 => name.to_owned(),
        _ => format!("{name}#{i}"),
    };
    names.clone().enumerate().map(label).collect()
}

impl Quantity {
    /// Whether it is the time spent waiting for a lock, by which the report orders locks.
    pub(crate) fn is_waiting(&self) -> bool {
        std::ptr::eq(self, &WAITS)
    }
}

/// `time`: the seconds that count.
fn of_domain(all: &mut Vec<Figure>, domain: &DomainOutcome, of: &str, time: f64) {
    push(all, of, &ELAPSED, domain.time_to_finish().map(Picos::seconds));
    let items: Vec<f64> = domain.tasks.iter().map(|t| t.items as f64).collect();
    let done: f64 = items.iter().sum();
    let rate = |count: f64| (time > 0.0).then(|| count / time);
    push(all, of, &ITEMS, rate(done).filter(|_| done > 0.0));
    let several = items.len() > 1 && done > 0.0;
    push(all, of, &FAIRNESS, several.then(|| 100.0 * jain(&items)));
    let sum = |f: fn(&overspin_scenario::VcpuOutcome) -> Picos| domain.vcpus.iter().map(f).sum();
    let (running, runnable): (Picos, Picos) = (sum(|v| v.running), sum(|v| v.runnable));
    push(all, of, &STEAL, percent(runnable, running + runnable));
    if domain.locks.is_empty() {
        return;
    }
    let waiting: Picos = sum(|v| v.waiting);
    push(all, of, &BURNED, percent(waiting.min(running), running));
    let names = labels(domain.locks.iter().map(|l| l.name.as_str()));
    for (lock, name) in domain.locks.iter().zip(names) {
        let of = format!("{of}/{name}");
        push(all, &of, &ACQUISITIONS, rate(lock.acquisitions as f64));
        push(all, &of, &WAITS, rate(lock.wait_total.seconds()));
        push(all, &of, &WAIT_P50, Some(lock.wait_p50.micros()));
        push(all, &of, &WAIT_P99, Some(lock.wait_p99.micros()));
        push(all, &of, &WAIT_P999, Some(lock.wait_p999.micros()));
    }
}

fn push(all: &mut Vec<Figure>, of: &str, quantity: &'static Quantity, value: Option<f64>) {
    all.extend(value.map(|value| Figure { of: of.to_owned(), quantity, value }));
}

fn percent(part: Picos, whole: Picos) -> Option<f64> {
    (whole > Picos::ZERO).then(|| part.percent(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario_file;
    use overspin_testing::SCENARIO;

    #[test]
    fn every_sample_is_of_the_run_with_its_seed() {
        let scenario = scenario_file::parse("t", "t", SCENARIO, &[]).unwrap();
        let seeds = seeds_from(7, 3);
        let over =
            run(&scenario, &seeds, Settings { threads: 2, ..Settings::default() }, &|_, _| {})
                .unwrap();
        assert_eq!(over.runs.iter().filter_map(|r| r.0.seed).collect::<Vec<_>>(), [7, 8, 9]);
        let find = |name: &str| over.results.iter().find(|m| m.name == name).unwrap();
        let rate = find("guest/section: acquisitions");
        assert_eq!(rate.seeds, seeds);
        for (seed, sample) in seeds.iter().zip(&rate.samples) {
            let outcome = overspin_sim::run(&scenario, *seed).unwrap();
            let lock = &outcome.domains[0].locks[0];
            // Of 20 ms, a quarter is the warm-up.
            assert!((sample - lock.acquisitions as f64 / 0.015).abs() < 1e-6);
        }
        let mean = rate.samples.iter().sum::<f64>() / 3.0;
        assert!((rate.spread.summary.mean - mean).abs() < 1e-9 * mean);
        for name in ["host: busy", "guest: items", "guest: steal", "guest/section: p99.9 wait"] {
            assert_eq!(find(name).samples.len(), 3, "{name}");
        }
        assert!(
            over.results.iter().all(|m| m.quantity.metric.name != "elapsed"),
            "a loop has no end"
        );
    }

    #[test]
    fn runs_without_a_figure_are_left_out_of_it() {
        let run = |seed, deadlock: bool, value: Option<f64>| {
            let mut figures = Vec::new();
            push(&mut figures, "guest", &ELAPSED, value);
            let ending =
                if deadlock { Ending::Deadlock { waits: Vec::new() } } else { Ending::Finished };
            (Run { seed: Some(seed), ending: Some(ending), ..Run::default() }, figures)
        };
        let runs = [
            run(1, false, Some(2.0)),
            run(2, false, None),
            run(3, true, Some(9.0)),
            run(4, false, Some(4.0)),
        ];
        let metrics = metrics(&runs);
        assert_eq!(metrics.len(), 1);
        assert_eq!(
            (&metrics[0].seeds[..], &metrics[0].samples[..]),
            (&[1, 4][..], &[2.0, 4.0][..])
        );
        assert_eq!(metrics[0].spread.summary.mean, 3.0);
    }

    #[test]
    fn domains_of_one_name_are_told_apart() {
        assert_eq!(labels(["a", "b", "a"].into_iter()), ["a#0", "b", "a#2"]);
    }

    #[test]
    fn seeds_go_round() {
        assert_eq!(seeds_from(u64::MAX, 2), [u64::MAX, 0]);
    }
}
