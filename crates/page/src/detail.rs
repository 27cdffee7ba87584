//! The run of a record that a page shows in detail. A run is a function of scenario, seed and model, so it is made again
//! with observers for what no record keeps: the timeline, and every wait by its length.

use overspin_host::{Observer, Refused};
use overspin_runs::record::{Kind, Record};
use overspin_scenario::{Ending, Outcome, Picos, Scenario};
use overspin_watch::explain;
use overspin_watch::timeline::{Recorder, Timeline, WaitLengths};

/// Makes a run: scenario, seed, observer.
pub type MakeRun<'a> = &'a dyn Fn(&Scenario, u64, &mut dyn Observer) -> Result<Outcome, Refused>;

/// A run in detail.
#[derive(Debug)]
pub struct Detail {
    /// Its place in the record, in words; empty if the record has only this run.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
    /// The outcome.
    pub outcome: Outcome,
    /// Whether it is not the run of the record: another model made that one.
    pub differs: bool,
    /// Every wait by its length.
    pub waits: WaitLengths,
    /// What happened, in as many slices and marks as asked for.
    pub timeline: Timeline,
}

/// Why a run cannot be shown in detail.
#[derive(Debug, thiserror::Error)]
pub enum DetailError {
    /// A point of the record does not fit its scenario.
    #[error("{0}")]
    Record(String),
    /// The world refuses the scenario.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Makes the run of a record again, or the worst of its runs: the one whose vCPUs waited for locks for the largest
/// part of their time. `None` if the record has no scenario, if its runs cannot be repeated,
/// or if no vCPU waited in any of many runs.
///
/// The timeline has at most `most` slices and marks, as those of [`Watched::run`].
///
/// # Errors
/// If a point of the record does not fit its scenario, or if the world refuses the scenario.
pub fn detail(
    record: &Record,
    most: usize,
    make: MakeRun<'_>,
) -> Result<Option<Detail>, DetailError> {
    if record.unrepeatable().is_some() {
        return Ok(None);
    }
    let Some(wanted) = wanted(record).map_err(DetailError::Record)? else { return Ok(None) };
    let Wanted { name, mut scenario, seed, hash, stopped } = wanted;
    if let Some((at, warmup)) = stopped {
        (scenario.limit, scenario.warmup) = (at, Some(warmup));
    }
    let Watched { outcome, waits, timeline } = Watched::run(&scenario, seed, most, make)?;
    let differs = hash.is_some_and(|hash| hash != outcome.trace_hash && outcome.ending.is_sound());
    Ok(Some(Detail { name, scenario, outcome, differs, waits, timeline }))
}

/// A run that was watched while it was made.
#[derive(Debug)]
pub struct Watched {
    /// The outcome.
    pub outcome: Outcome,
    /// Every wait by its length.
    pub waits: WaitLengths,
    /// What happened, in as many slices and marks as asked for.
    pub timeline: Timeline,
}

impl Watched {
    /// Makes a run. If `most` slices and marks do not reach the longest wait, it makes the run once more, and the timeline begins
    /// shortly before that wait.
    ///
    /// # Errors
    /// If the world refuses the scenario.
    pub fn run(
        scenario: &Scenario,
        seed: u64,
        most: usize,
        make: MakeRun<'_>,
    ) -> Result<Self, Refused> {
        let mut observers =
            (Recorder::new(scenario, Picos::ZERO, most), WaitLengths::new(scenario));
        let outcome = make(scenario, seed, &mut observers)?;
        let (recorder, waits) = observers;
        let mut timeline = recorder.finish(&outcome);
        if let Some(worst) = outcome.worst_waits.first()
            && worst.since + worst.time > timeline.until
        {
            // A tenth of what fits shows how the wait came about.
            let before = Picos((timeline.until - timeline.from).0 / 10);
            let mut recorder = Recorder::new(scenario, worst.since.saturating_sub(before), most);
            let again = make(scenario, seed, &mut recorder)?;
            timeline = recorder.finish(&again);
        }
        Ok(Self { outcome, waits, timeline })
    }

    /// The only run of a record, in detail.
    #[must_use]
    pub fn of_record(self, scenario: &Scenario) -> Detail {
        let Self { outcome, waits, timeline } = self;
        let (name, scenario) = (String::new(), scenario.clone());
        Detail { name, scenario, outcome, differs: false, waits, timeline }
    }
}

/// A run to make again.
struct Wanted {
    name: String,
    scenario: Scenario,
    seed: u64,
    /// Its trace hash, if the record has it and the run was not stopped.
    hash: Option<u64>,
    /// The time at which it was stopped from outside, and its warm-up, which would follow from another limit.
    stopped: Option<(Picos, Picos)>,
}

fn wanted(record: &Record) -> Result<Option<Wanted>, String> {
    match record.kind {
        Kind::Run => {
            let Some((scenario, run)) = record.scenario.as_ref().zip(record.runs.first()) else {
                return Ok(None);
            };
            let scenario = (**scenario).clone();
            let is_stopped = matches!(run.ending, Some(Ending::Stopped { .. }));
            Ok(Some(Wanted {
                name: String::new(),
                seed: record.seed.or(run.seed).unwrap_or(scenario.seed),
                scenario,
                hash: run.trace_hash.filter(|_| !is_stopped),
                stopped: run.elapsed.filter(|_| is_stopped).map(|at| (at, run.warmup)),
            }))
        }
        Kind::Seeds | Kind::Sweep => Ok(explain::worst(record)?.map(|worst| Wanted {
            name: worst.name,
            scenario: worst.scenario,
            seed: worst.seed,
            hash: worst.trace_hash,
            stopped: None,
        })),
        Kind::Reproduction
        | Kind::Bench
        | Kind::BenchLocks
        | Kind::Schedbench
        | Kind::Noise
        | Kind::Calibration
        | Kind::Real
        | Kind::Validation => Ok(None),
    }
}
