//! Runs a state in the simulator, and makes the record that the page shows.

use crate::problem::Problem;
use crate::sources::What;
use crate::state::{Side, State};
use crate::work::Progress;
use overspin_experiment as experiment;
use overspin_host::Observer;
use overspin_page::{Entry, Watched, detail};
use overspin_runs::catalog::catalog;
use overspin_runs::record::{Again, Record, load_text, read};
use overspin_runs::run::{self, Beside};
use overspin_runs::runner::{Runner, Until};
use overspin_runs::scenario_file::{AxisArgument, Loaded};
use overspin_runs::{seeds, sweep};
use overspin_scenario::{Ending, MS, Scenario, Stopped};
use std::path::Path;
use std::time::Instant;

/// Most slices and marks of a live timeline. To watch, pack and send more takes longer than a hand on a control waits.
pub(crate) const LIVE_SLICES: usize = 25_000;

/// A result, with the runs beside it.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) entry: Entry,
    pub(crate) beside: Beside,
    /// Runs before whose end the limit came.
    pub(crate) cut: usize,
}

/// How much to make.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// All panels, with at most so many slices and marks of a timeline.
    Panels(usize),
    /// The answer of a single run, with the runs beside it. They take several times as long as the run.
    Answer,
    /// The record alone.
    Record,
}

/// Makes the runs of one side of a state.
pub(crate) fn run(
    state: &State,
    side: Side,
    extent: Extent,
    until: Until,
    progress: &Progress,
) -> Result<Made, Problem> {
    let text = state.source.text()?;
    let runner = Runner { world: catalog().simulator(), until };
    let counts = |done: usize, all: usize| progress.is(done as u64, all as u64);
    // The run of a record, once more, with everything about it.
    let make = |scenario: &Scenario, seed: u64, observer: &mut dyn Observer| {
        runner.run(scenario, seed, observer, &|_| {})
    };
    if state.source.what == What::Record {
        let record = read(&state.source.name, &text)?;
        let detail = match extent {
            Extent::Panels(slices) => detail(&record, slices, &make)?,
            Extent::Answer | Extent::Record => None,
        };
        return Ok(made(Entry { record, detail }));
    }
    if state.source.what == What::Experiment {
        let experiment = experiment::parse(&state.source.name, &text)?;
        // The list leaves out those that come with the program; a file may be a copy of one.
        if experiment.kind.measures_threads() {
            return Err(Problem::new(
                "this experiment measures threads of this machine, and the page only simulates",
                format!("overspin reproduce {}", state.source.name),
            ));
        }
        let settings = experiment::Settings { seeds: state.seeds, until, ..Default::default() };
        let result = experiment::reproduce(&experiment, settings, &counts)?;
        let record = experiment::record(&[result]);
        return Ok(made(Entry { record, detail: None }));
    }
    let sets = state.sets(side);
    let axes = Vec::from_iter(state.vary.clone().map(AxisArgument::List));
    let again = load_text(Path::new(&state.source.name), &text, &sets, &axes)?;
    let Again { loaded, set, .. } = again;
    let record = match loaded {
        Loaded::One(scenario) if state.seeds.is_none_or(|n| n < 2) => {
            return one(&scenario, &sets, extent, runner, progress);
        }
        Loaded::One(scenario) => {
            let list = seeds::seeds_from(scenario.seed, state.seeds.unwrap_or(1));
            many(&scenario, &list, &set, runner, &counts)?
        }
        Loaded::Seeds(scenario, list) => many(&scenario, &list, &set, runner, &counts)?,
        Loaded::Sweep(all) => {
            let seeds = state.seeds.filter(|n| *n > 1);
            let settings = sweep::Settings { seeds, runner, ..Default::default() };
            let outcome = sweep::run(&all, settings, &counts)?;
            sweep::record(&all, &outcome, &set, None)
        }
    };
    let is_whole = cut(&record) == 0;
    let detail = match extent {
        Extent::Panels(slices) if is_whole => detail(&record, slices, &make)?,
        _ => None,
    };
    let detail = detail.filter(|detail| detail.outcome.ending.is_sound());
    Ok(made(Entry { record, detail }))
}

fn one(
    scenario: &Scenario,
    sets: &[String],
    extent: Extent,
    runner: Runner,
    progress: &Progress,
) -> Result<Made, Problem> {
    let all = (scenario.limit / MS).max(1);
    let make = |scenario: &Scenario, seed: u64, observer: &mut dyn Observer| {
        runner.run(scenario, seed, observer, &|now| progress.is(now / MS, all))
    };
    let seed = scenario.seed;
    let slices = match extent {
        Extent::Panels(slices) => slices,
        Extent::Answer | Extent::Record => {
            let begun = Instant::now();
            let outcome = make(scenario, seed, &mut ())?;
            let record = run::record(scenario, sets, None, &outcome);
            let beside = match extent {
                Extent::Answer => {
                    let domain = run::subject(&outcome);
                    Beside::of(runner, scenario, seed, domain, begun.elapsed())
                }
                _ => Beside::default(),
            };
            return Ok(Made { beside, ..made(Entry { record, detail: None }) });
        }
    };
    let watched = Watched::run(scenario, seed, slices, &make)?;
    let record = run::record(scenario, sets, None, &watched.outcome);
    Ok(made(Entry { record, detail: Some(watched.of_record(scenario)) }))
}

fn many(
    scenario: &Scenario,
    list: &[u64],
    set: &[String],
    runner: Runner,
    counts: &(dyn Fn(usize, usize) + Sync),
) -> Result<Record, Problem> {
    let settings = seeds::Settings { shard: None, threads: 0, runner, results: None };
    let over = seeds::run(scenario, list, settings, counts)?;
    Ok(seeds::record(&over, set))
}

fn made(entry: Entry) -> Made {
    let cut = cut(&entry.record);
    Made { entry, beside: Beside::default(), cut }
}

fn cut(record: &Record) -> usize {
    let by_limit = |ending: &Ending| matches!(ending, Ending::Stopped { by: Stopped::MaxWall });
    record.runs.iter().filter(|run| run.ending.as_ref().is_some_and(by_limit)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Sources;
    use overspin_runs::record::Kind;

    fn made(query: &str, until: Until) -> Made {
        let (state, side) = State::read(query, &Sources::new(&[], None).unwrap()).unwrap();
        run(&state, side, Extent::Panels(LIVE_SLICES), until, &Progress::default()).unwrap()
    }

    const TICKET: &str = "scenario=examples/ticket-overcommit.toml&set=limit=100ms";

    #[test]
    fn each_kind_of_question_has_its_record() {
        for (rest, kind, runs) in [
            ("", Kind::Run, 1),
            ("&seeds=2", Kind::Seeds, 2),
            ("&vary=host.cores=1,2,3,4,5,6,7,8", Kind::Sweep, 8),
            ("&vary=host.cores=1,2,3,4,5,6,7,8&seeds=2", Kind::Sweep, 16),
        ] {
            let made = made(&format!("{TICKET}{rest}"), Until::default());
            let record = &made.entry.record;
            assert_eq!((record.kind, record.runs.len()), (kind, runs), "{rest}");
            assert!(made.entry.detail.is_some() && made.cut == 0, "{rest}");
        }
    }

    #[test]
    fn the_run_is_that_of_the_command() {
        let made = made(&format!("{TICKET}&set=domain.guest.lock=mcs"), Until::default());
        let example = overspin_testing::root().join("examples/ticket-overcommit.toml");
        let sets = ["limit=100ms".to_owned(), "domain.guest.lock=mcs".into()];
        let again = overspin_runs::record::load(&example, &sets, &[]).unwrap();
        let Loaded::One(scenario) = again.loaded else { panic!("one run") };
        let outcome = Runner::default().run(&scenario, scenario.seed, &mut (), &|_| {}).unwrap();
        assert_eq!(
            made.entry.record.to_json(),
            run::record(&scenario, &sets, None, &outcome).to_json()
        );
    }

    #[test]
    fn an_experiment_that_measures_this_machine_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy.toml");
        std::fs::write(&copy, experiment::text("2012-pv-ticketlocks").unwrap()).unwrap();
        let sources = Sources::new(&[copy], None).unwrap();
        let (state, side) = State::read("", &sources).unwrap();
        let made = run(&state, side, Extent::Record, Until::default(), &Progress::default());
        assert!(made.unwrap_err().cause.contains("measures threads"));
    }

    #[test]
    fn a_run_beyond_the_limit_is_cut() {
        let deadline = Some(Instant::now());
        let until = Until { deadline, interrupted: None };
        assert_eq!(made(TICKET, until).cut, 1);
        assert_eq!(made(&format!("{TICKET}&seeds=2"), until).cut, 2);
    }
}
