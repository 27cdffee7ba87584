//! The text of records: what is written is read again, and what is wrong is told.

use overspin_experiment as experiment;
use overspin_experiment::Reproduction;
use overspin_lab::bench;
use overspin_runs::record::*;
use overspin_runs::run;
use overspin_runs::scenario_file::{self, Loaded};
use overspin_runs::seeds as over;
use overspin_runs::sweep::{self as sweeps, Settings};
use overspin_scenario::{Ending, Picos, SEC, WaitCauses};
use overspin_testing::{CORES, LOCKS, SCENARIO};
use overspin_watch::explain;
use proptest::collection::vec;
use proptest::prelude::{Just, any, prop_oneof, proptest};
use proptest::sample::Index;
use std::path::Path;
use std::sync::LazyLock;

fn back(record: &Record) -> Record {
    read("r.json", &record.to_json()).unwrap_or_else(|e| panic!("{e}\n{}", e.help))
}

fn two_threads() -> over::Settings<'static> {
    over::Settings { threads: 2, ..over::Settings::default() }
}

fn of_run() -> Record {
    let scenario = scenario_file::parse("t", "t", SCENARIO, &[]).unwrap();
    let outcome = overspin_sim::run(&scenario, 3).unwrap();
    run::record(&scenario, &["host.cores=2".into()], Some("t.pftrace".into()), &outcome)
}

fn of_seeds() -> Record {
    let scenario = scenario_file::parse("t", "t", SCENARIO, &[]).unwrap();
    let seeds_of = over::seeds_from(5, 3);
    let result = over::run(&scenario, &seeds_of, two_threads(), &|_, _| {}).unwrap();
    over::record(&result, &[])
}

fn of_sweep() -> Record {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{SCENARIO}{LOCKS}{CORES}")).unwrap();
    let Loaded::Sweep(loaded) = scenario_file::load(file.path(), &[]).unwrap() else { panic!() };
    let settings = Settings { seeds: Some(2), threads: 2, ..Settings::default() };
    let measured = sweeps::run(&loaded, settings, &|_, _| {}).unwrap();
    sweeps::record(&loaded, &measured, &[], None)
}

#[test]
fn records_come_back_as_they_were_written() {
    for record in [of_run(), of_seeds(), of_sweep()] {
        assert_eq!(back(&record), record, "{:?}", record.kind);
        assert_eq!(back(&record).to_json(), record.to_json());
        let plain = serde_json::to_string(&record).unwrap();
        assert_eq!(read("r.json", &plain).unwrap(), record, "on one line");
        let here = record.made_here("overspin run t.toml".into());
        assert_eq!(back(&here), here);
    }
}

#[test]
fn records_of_scenarios_run_again_to_the_digit() {
    let again = |record: &Record| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), record.to_json()).unwrap();
        load(file.path(), &[], &[]).unwrap()
    };
    let first = of_run();
    let Again { loaded: Loaded::One(scenario), set, .. } = again(&first) else { panic!() };
    assert_eq!((scenario.seed, set.as_slice()), (3, first.set.as_slice()));
    let outcome = overspin_sim::run(&scenario, scenario.seed).unwrap();
    assert_eq!(Some(&outcome), first.runs[0].outcome.as_deref());

    let first = of_seeds();
    let Again { loaded: Loaded::Seeds(scenario, numbers), .. } = again(&first) else { panic!() };
    assert_eq!(numbers, [5, 6, 7]);
    let result = over::run(&scenario, &numbers, two_threads(), &|_, _| {}).unwrap();
    assert_eq!(over::record(&result, &[]), first);

    let first = of_sweep();
    let Again { loaded: Loaded::Sweep(loaded), .. } = again(&first) else { panic!() };
    let settings = Settings { threads: 2, ..Settings::default() };
    let measured = sweeps::run(&loaded, settings, &|_, _| {}).unwrap();
    assert_eq!(sweeps::record(&loaded, &measured, &[], None), first);
}

#[test]
fn a_sweep_whose_points_have_seeds_of_their_own_runs_again() {
    let vary = "[[vary]]\nname = \"x\"\nset = \"seed / host.cores\"\nto = [\"3/1\", \"9/2\"]\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{SCENARIO}{vary}")).unwrap();
    let Loaded::Sweep(loaded) = scenario_file::load(file.path(), &[]).unwrap() else { panic!() };
    let settings = |seeds| Settings { seeds, threads: 2, ..Settings::default() };
    let measured = sweeps::run(&loaded, settings(Some(2)), &|_, _| {}).unwrap();
    let first = sweeps::record(&loaded, &measured, &[], None);
    let seeds: Vec<u64> = first.runs.iter().filter_map(|r| r.seed).collect();
    assert_eq!(seeds, [3, 4, 9, 10]);
    std::fs::write(file.path(), first.to_json()).unwrap();
    let again = load(file.path(), &[], &[]).unwrap();
    let Loaded::Sweep(loaded) = again.loaded else { panic!() };
    let measured = sweeps::run(&loaded, settings(again.seeds), &|_, _| {}).unwrap();
    assert_eq!(sweeps::record(&loaded, &measured, &[], None), first);
}

#[test]
fn a_sweep_keeps_of_its_points_what_differs() {
    let record = of_sweep();
    assert_eq!(record.points.len(), 4);
    assert_eq!(record.points[0].changes, Changes::default());
    let changes = serde_json::to_value(&record.points[3].changes).unwrap();
    assert_eq!(changes, serde_json::json!({"/domains/0/lock": "lock-byte", "/host/cores": 1}));
    assert_eq!(record.points[3].at, ["lock-byte", "1"]);
    assert_eq!(record.runs[7].place, "lock-byte.1");
    let scenario = record.scenario_of(&record.runs[7]).unwrap().unwrap();
    let outcome = overspin_sim::run(&scenario, record.runs[7].seed.unwrap());
    assert_eq!(Some(outcome.unwrap().trace_hash), record.runs[7].trace_hash);
}

#[test]
fn samples_are_as_csv_too() {
    let mut record = of_seeds();
    let text = csv(&record);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("run,seed,where,metric,unit,value"));
    assert_eq!(lines.clone().count(), record.samples.len());
    let s = &record.samples[0];
    let first = format!("0,5,{},{},{},{}", s.place, s.metric, s.unit, s.value);
    assert_eq!(lines.next(), Some(first.as_str()));
    record.samples[0].place = "a \"b\", c".into();
    assert!(csv(&record).contains(",\"a \"\"b\"\", c\","));
}

#[test]
fn json_has_a_line_for_each_sample() {
    let record = of_seeds();
    let text = record.to_json();
    let lines = text.lines().filter(|l| l.trim_start().starts_with("{\"run\": ")).count();
    assert_eq!(lines, record.samples.len());
    assert!(text.ends_with("}\n") && text.starts_with("{\n  \"schema\": \"overspin-record/1\",\n"));
}

#[test]
fn other_layouts_are_refused_with_what_to_do() {
    for (schema, says, help) in [
        ("overspin-run/2", "another version of the program", "write the record again"),
        ("overspin-reproduction/1", "another version of the program", "write the record again"),
        ("overspin-list/1", "not a measurement", "--json writes"),
        ("overspin-check/1", "not a measurement", "--json writes"),
        ("x/1", "is not known", "--json writes"),
    ] {
        let e = read("r.json", &format!("{{\n \"schema\": \"{schema}\"}}")).unwrap_err();
        assert!(e.message.contains(says) && e.help.contains(help), "{schema}: {e}: {}", e.help);
        assert_eq!(e.line, 2, "{schema}");
    }
    let e = read("r.json", "{\n  \"schema\": 5\n}").unwrap_err();
    assert_eq!((e.line, &*e.path), (2, "r.json"), "{e}");
    assert!(read("r.json", "{").is_err());
    assert!(read("r.json", "{\"x\": 1}").unwrap_err().message.contains("no `schema`"));
}

#[test]
fn a_cause_that_repeats_a_long_text_is_cut() {
    let long = "x".repeat(68_000);
    let text =
        of_seeds().to_json().replacen("\"runs\": [", &format!("\"runs\": \"{long}\", \"z\": ["), 1);
    let e = read("r.json", &text).unwrap_err();
    assert!(e.message.len() < 300 && e.message.contains("expected a sequence"), "{}", e.message);
}

#[test]
fn a_sweep_that_does_not_fit_together_is_refused() {
    let load_of = |record: &Record| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), record.to_json()).unwrap();
        load(file.path(), &[], &[]).map(drop).unwrap_err().to_string()
    };
    let mut record = of_sweep();
    record.points[1].at.pop();
    assert!(load_of(&record).contains("points[1].at has 1 values for 2 axes"));
    let mut record = of_sweep();
    record.points[1].at[0] = "no-such".into();
    assert!(load_of(&record).contains("points[1].at: `no-such` is not on axis `lock`"));
    let mut record = of_sweep();
    record.points[2].changes =
        serde_json::from_value(serde_json::json!({"/domains/9/lock": "ticket"})).unwrap();
    assert!(load_of(&record).contains("the scenario has no /domains/9/lock"));
    let mut record = of_sweep();
    record.points[2].changes = serde_json::from_value(serde_json::json!({"/limit": "x"})).unwrap();
    assert!(load_of(&record).contains("points[2].changes: invalid type"));
    let mut record = of_sweep();
    record.points.swap(0, 1);
    assert!(load_of(&record).contains("points[0] is out of order"));
    record.points.clear();
    assert!(load_of(&record).contains("there are 0 points for 4 combinations"));
    let mut record = of_seeds();
    record.runs.clear();
    assert!(load_of(&record).contains("no runs with seeds"));
    assert!(load(Path::new("no-such"), &[], &[]).is_err());
}

#[test]
fn a_benchmark_cannot_be_run_as_a_scenario() {
    let record = bench::record("sim", &[]).made_here("overspin bench sim".into());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), record.to_json()).unwrap();
    let LoadError::File(scenario_file::LoadError::Invalid(e)) =
        load(file.path(), &[], &[]).unwrap_err()
    else {
        panic!()
    };
    assert!(
        e.message.contains("a benchmark of the program") && e.help.contains("overspin bench sim")
    );
}

/// An experiment with a simulated run, and one that is not simulated.
fn of_experiment(samples: Vec<Sample>) -> Reproduction {
    let causes = WaitCauses { own_preemption: Picos(7), ..WaitCauses::default() };
    let simulated = Run {
        place: "ticket.half".into(),
        seed: Some(4),
        ending: Some(Ending::Limit),
        elapsed: Some(2 * SEC),
        vcpu_time: Some(4 * SEC),
        wait_causes: Some(causes),
        trace_hash: Some(255),
        ..Run::default()
    };
    Reproduction {
        experiment: Experiment {
            id: "e".into(),
            title: "An experiment".into(),
            ..Experiment::default()
        },
        runs: vec![simulated, Run { place: "threads-2".into(), ..Run::default() }],
        samples,
        ..Reproduction::default()
    }
}

#[test]
fn places_of_an_experiment_begin_with_its_name() {
    let record = experiment::record(&[of_experiment(Vec::new())]);
    assert_eq!(back(&record), record);
    let runs: Vec<(u32, &str)> = record.runs.iter().map(|r| (r.number, r.place.as_str())).collect();
    assert_eq!(runs, [(0, "e.ticket.half"), (1, "e.threads-2")]);
    assert_eq!(record.runs[0].wait_causes.map(|c| c.own_preemption), Some(Picos(7)));
}

#[test]
fn samples_of_experiments_are_in_one_table() {
    let sample = Sample {
        run: 1,
        place: "byte.half".into(),
        metric: "elapsed".into(),
        unit: "s".into(),
        value: 1.0,
    };
    let of = || of_experiment(vec![sample.clone()]);
    let record = experiment::record(&[of(), of()]);
    let rows: Vec<(u32, &str)> = record.samples.iter().map(|s| (s.run, s.place.as_str())).collect();
    assert_eq!(
        rows,
        [(1, "e.byte.half"), (3, "e.byte.half")],
        "runs of the second follow the first's"
    );
    assert_eq!(record.runs.len(), 4);
    assert_eq!(record.experiments.len(), 2);
}

/// Everything that a reader does with a record, whatever it contains.
fn read_all(text: &str) {
    let Ok(record) = read("r.json", text) else { return };
    let _ = (record.groups(), csv(&record), record.to_json(), explain::samples(&record));
    let _ = (explain::many(&record), explain::worst(&record).is_ok());
    let _ = explain::reproduction(&record);
    let run = record.runs.first().and_then(|run| run.outcome.as_ref());
    if let Some((scenario, outcome)) = record.scenario.as_ref().zip(run) {
        let _ = explain::run(scenario, outcome, None);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let _ = load(file.path(), &[], &[]).is_ok();
}

/// Texts of records, to be corrupted.
static TEXTS: LazyLock<[String; 4]> = LazyLock::new(|| {
    let experiment = experiment::record(&[of_experiment(Vec::new())]);
    [of_run(), of_seeds(), of_sweep(), experiment].map(|record| record.to_json())
});

proptest! {
    #[test]
    fn a_spoiled_record_is_refused_or_read_and_never_a_panic(
        which in 0..4_usize,
        spoiled in vec((any::<Index>(), prop_oneof![
            Just(""), Just("9"), Just("-"), Just("\""), Just("}"), Just("[]"), Just("null"), Just("0."),
        ]), 1..4),
    ) {
        let mut text = TEXTS[which].clone();
        for (at, with) in spoiled {
            let at = at.index(text.len());
            // Names of our scenario are ASCII.
            text.replace_range(at..=at, with);
        }
        read_all(&text);
    }
}
