//! Every kind of record that is made here, read by every reader of records: what `compare`, `explain`, `report` and
//! `run` do with the file.

use crate::{claims, load, one};
use overspin_experiment::schedbench_machine;
use overspin_host::Observer;
use overspin_lab::compare;
use overspin_lab::compare::Choice;
use overspin_native::bench::{Case, Plan, measure};
use overspin_native::measure::{NoisePlan, noise};
use overspin_page as page;
use overspin_page::{Entry, MOST_SLICES};
use overspin_runs::record::{self, Kind, Record, csv};
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file::Loaded;
use overspin_runs::schedbench::{self, BenchFile};
use overspin_runs::seeds;
use overspin_runs::sweep;
use overspin_scenario::Scenario;
use overspin_testing::{LOCKS, SCENARIO, skip};
use overspin_watch::explain;
use std::path::Path;
use std::time::Duration;

/// Runs what a file or a record asks for, each point of a sweep with two seeds unless the record says otherwise.
fn made(loaded: &Loaded, sets: &[String], seeds_of_sweep: Option<u32>) -> Record {
    match loaded {
        Loaded::One(scenario) => {
            let outcome = overspin_sim::run(scenario, scenario.seed).unwrap();
            overspin_runs::run::record(scenario, sets, None, &outcome)
        }
        Loaded::Seeds(scenario, all) => {
            let over = seeds::run(scenario, all, seeds::Settings::default(), &|_, _| {});
            overspin_runs::seeds::record(&over.unwrap(), sets)
        }
        Loaded::Sweep(axes) => {
            let settings = sweep::Settings { seeds: seeds_of_sweep, ..sweep::Settings::default() };
            let measured = sweep::run(axes, settings, &|_, _| {}).unwrap();
            overspin_runs::sweep::record(axes, &measured, sets, None)
        }
    }
}

/// Feeds a record to every reader.
fn read_by_all(record: &Record) {
    let (kind, text) = (record.kind, record.to_json());
    assert_eq!(record.schema, "overspin-record/1");
    assert_eq!(record::read("r.json", &text).unwrap(), *record, "{kind:?}");
    // On one line, as other tools write it, it is the same record.
    assert_eq!(record::read("r.json", &serde_json::to_string(record).unwrap()).unwrap(), *record);

    let input = || ("r.json".to_owned(), compare::read("r.json", &text, 1).unwrap());
    for metrics in [Vec::new(), vec!["all".to_owned()]] {
        let mut files = [input(), input()];
        let choice = Choice { metrics, places: Vec::new() };
        compare::choose(&choice, &mut files).unwrap();
        let all = compare::compare(&files, 0.95, None);
        let compared = overspin_report::text(&compare::report(&all, 0.95));
        assert!(!compared.contains("Difference at"), "{kind:?}: {compared}");
        assert!(compared.contains(" N "), "{kind:?}: {compared}");
    }
    let told = overspin_report::text(&explain::record(record, &Runner::default()).unwrap());
    assert!(told.lines().count() > 5, "{kind:?}: {told}");

    let make = |scenario: &Scenario, seed: u64, observer: &mut dyn Observer| {
        Runner::default().run(scenario, seed, observer, &|_| {})
    };
    let detail = page::detail(record, MOST_SLICES, &make).unwrap();
    let page = page::page(&[Entry { record: record.clone(), detail }]);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{kind:?}");
    assert!(page.contains("Where it comes from"), "{kind:?}");

    match record::load_text(Path::new("r.json"), &text, &[], &[]) {
        Ok(again) => {
            assert!(matches!(kind, Kind::Run | Kind::Seeds | Kind::Sweep), "{kind:?}");
            let again = made(&again.loaded, &again.set, again.seeds);
            assert_eq!(again, *record, "{kind:?}: the same to the digit");
        }
        Err(error) => {
            assert!(!matches!(kind, Kind::Run | Kind::Seeds | Kind::Sweep), "{kind:?}: {error}");
            assert!(error.message.contains("has no scenario") && !error.help.is_empty(), "{error}");
        }
    }

    let csv = csv(record);
    assert!(csv.starts_with("run,seed,where,metric,unit,value\n"), "{kind:?}: {csv}");
    assert_eq!(csv.lines().count(), 1 + record.samples.len(), "{kind:?}");
    assert!(!record.samples.is_empty(), "{kind:?}");
    // Every sample belongs to a run of the table.
    let runs: Vec<u32> = record.runs.iter().map(|run| run.number).collect();
    assert!(record.samples.iter().all(|s| runs.contains(&s.run)), "{kind:?}");
}

#[test]
fn every_record_of_a_scenario_is_read_by_every_reader_and_runs_again() {
    let set = "host.cores=1";
    read_by_all(&made(&load(SCENARIO, &[]), &[], None));
    let scenario = Box::new(one(SCENARIO, &[]));
    read_by_all(&made(&Loaded::Seeds(scenario, seeds::seeds_from(1, 2)), &[], None));
    let sweep = load(&format!("{SCENARIO}{LOCKS}"), &[set]);
    read_by_all(&made(&sweep, &[set.to_owned()], Some(2)));
}

#[test]
fn every_record_of_a_benchmark_is_read_by_every_reader() {
    let plan = Plan {
        locks: vec!["mutex".into(), "std".into()],
        own: Vec::new(),
        cases: vec![Case::Plain],
        threads: vec![1],
        sections: vec![Duration::from_nanos(100)],
        outsides: vec![Duration::from_nanos(200)],
        long: Duration::from_micros(100),
        cpus: Vec::new(),
        time: Duration::from_millis(1),
        runs: 2,
        seed: 1,
    };
    read_by_all(&overspin_lab::bench::record_of_locks(
        &measure(&plan, &mut |_, _| {}).unwrap(),
        &plan,
    ));
    let (quantum, duration) = (Duration::from_micros(10), Duration::from_millis(20));
    match noise(&NoisePlan { cpus: Vec::new(), quantum, duration }, None) {
        Ok(noise) => read_by_all(&overspin_lab::measure::record(&noise)),
        Err(error) => skip(&error.to_string()),
    }
}

#[test]
fn a_bench_file_is_read_as_the_record_of_its_runs() {
    let text = r#"{ "Input": { "WorkerPresets": { "A": { "Args": ["burnwait", "70", "200000"] } },
        "SimpleMatrix": { "Schedulers": ["credit2"], "Workers": ["A"], "Count": [] } },
        "RunConfig": { "Cpus": [0, 1] }, "Runs": null }"#;
    let mut file = BenchFile::parse("p.bench", text).unwrap();
    file.plan().unwrap();
    let machine = schedbench_machine().unwrap();
    file.runs[0] = schedbench::simulate(&file, &file.runs[0], &machine, 1, None).unwrap().0;
    let made = overspin_runs::schedbench::record(&file, "p.bench");
    read_by_all(&made);
    let read = record::read("p.bench", &file.to_json()).unwrap();
    assert_eq!((read.kind, &read.samples), (Kind::Schedbench, &made.samples));
    let compared = compare::read("p.bench", &file.to_json(), 1).unwrap();
    assert_eq!(compared.samples, compare::read("r.json", &made.to_json(), 1).unwrap().samples);
    // As a scenario it is refused for what it is.
    let told = record::load_text(Path::new("p.bench"), &file.to_json(), &[], &[]).unwrap_err();
    assert!(told.message.starts_with("this is a record of runs of schedbench"), "{}", told.message);
}

#[test]
fn an_experiment_is_read_by_every_reader() {
    let record = overspin_experiment::record(&[claims::run(claims::MINE)]);
    read_by_all(&record);
    assert_eq!(record.experiments[0].id, "my-spinlocks");
    assert!(record.samples.iter().all(|s| s.place.starts_with("my-spinlocks.")));
    let page = page::page(&[Entry { record, detail: None }]);
    assert!(page.contains("Published beside simulated"));
}
