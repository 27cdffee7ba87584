//! Reads an input of each kind, and looks at what came of it.

use overspin_experiment as experiment;
use overspin_host::Refused;
use overspin_lab::advise::host::HostFound;
use overspin_lab::perf_sched::{self, Choice, Part, Remedies};
use overspin_lab::xen_spinlocks::{Comparison, KernelWork};
use overspin_lab::{compare, fit, perf_lock, rt_app, runqlat};
use overspin_linux::talk::Say;
use overspin_located::LocatedError;
use overspin_page::Entry;
use overspin_report::Block;
use overspin_runs::record::{self, Record, results};
use overspin_runs::scenario_file::{self, Loaded};
use overspin_runs::schedbench::{self, BenchFile};
use overspin_scenario::{Outcome, Scenario};
use overspin_watch::explain::{self, Repeat};
use overspin_xl::{Line, Message, Reports, Start};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Most samples that are compared.
const MOST_SAMPLES: usize = 1000;
/// The name of all inputs in messages.
const NAME: &str = "input";

/// An error names a place that exists and a remedy, and can be drawn.
fn refused(error: &LocatedError, text: &str) {
    // A `[[vary]]` makes arguments of the command line.
    let text = if &*error.path == "--set" { &*error.text } else { text };
    assert!(["--set", NAME].contains(&&*error.path), "{error}");
    assert!((1..=text.lines().count() + 1).contains(&error.line), "{error}");
    assert!(error.text.get(error.span.clone()).is_some(), "{error}");
    assert!(!error.message.is_empty() && !error.help.is_empty(), "{error}");
    assert!(!overspin_located::plain(error).is_empty(), "{error}");
}

fn shown(blocks: &[Block]) {
    assert!(!overspin_report::text(blocks).is_empty());
}

fn utf8(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What an import made of an input is a legal scenario.
#[track_caller]
fn legal(text: &str) {
    if let Err(error) = scenario_file::parse("s.toml", "s", text, &[]) {
        panic!("{error}\n{text}");
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) use overspin_hv::fuzz::{hypercalls, image};

/// Only where there is the world `hv`.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(super) fn image(_: &[u8]) {}

/// Only where there is the world `hv`.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(super) fn hypercalls(_: &[u8]) {}

pub(super) fn perf_sched(bytes: &[u8]) {
    let text = match perf_sched::text(NAME, bytes, Remedies::PERF_SCHED) {
        Ok(text) => text,
        Err(error) => return refused(&error, ""),
    };
    match perf_sched::import(NAME, &text, Part::default(), &Choice::default()) {
        Ok(all) => {
            legal(&all.imported.scenario);
            shown(&perf_sched::measured(&all.measured));
        }
        Err(error) => refused(&error, &text),
    }
}

pub(super) fn perf_lock(bytes: &[u8]) {
    let text = utf8(bytes);
    let measurement = perf_lock::Measurement { elapsed_ns: 2_000_000_000, tasks: 2, lock: None };
    match perf_lock::import(NAME, &text, &measurement) {
        Ok(fitted) => {
            legal(&fitted.imported.scenario);
            shown(&perf_lock::report(&fitted));
        }
        Err(error) => refused(&error, &text),
    }
}

pub(super) fn runqlat(bytes: &[u8]) {
    let text = utf8(bytes);
    match runqlat::read(NAME, &text) {
        Ok(latencies) => {
            let buckets = [1, 500, 1000].map(|rank| latencies.of(rank));
            assert!(buckets.iter().all(|b| b.is_some_and(|(from, to)| from < to)), "{buckets:?}");
            shown(&runqlat::report(&latencies, None));
        }
        Err(error) => refused(&error, &text),
    }
}

pub(super) fn rt_app(bytes: &[u8]) {
    let text = utf8(bytes);
    match rt_app::import(NAME, &text) {
        Ok(imported) => legal(&imported.scenario),
        Err(error) => assert!(!error.message.is_empty(), "{error}"),
    }
}

pub(super) fn recording(bytes: &[u8]) {
    let text = utf8(bytes);
    match fit::read(NAME, &text, &[]) {
        Ok(recording) => {
            let hottest = &recording.mutexes[recording.hottest()];
            let fitted = fit::scenario(NAME, &recording, hottest);
            // Its numbers of CPUs and threads may be such that no scenario has them.
            if let Err(error) = scenario_file::parse(NAME, "s", &fitted.text, &[]) {
                refused(&error, &fitted.text);
            }
        }
        Err(error) => refused(&error, &text),
    }
}

pub(super) fn bench(bytes: &[u8]) {
    let text = utf8(bytes);
    let mut file = match BenchFile::parse(NAME, &text) {
        Ok(file) => file,
        Err(error) => return refused(&error, &text),
    };
    if file.runs.is_empty()
        && let Err(error) = file.plan()
    {
        refused(&error, &text);
    }
    let machine = experiment::schedbench_machine().expect("a machine of this project");
    for run in file.runs.iter().take(4) {
        if let Err(error) = schedbench::scenario(&file, run, &machine) {
            refused(&error, &text);
        }
    }
    assert!(!file.to_json().is_empty());
    let _ = schedbench::report(&file, 2);
    told(&schedbench::record(&file, NAME));
}

pub(super) fn record(bytes: &[u8]) {
    let text = utf8(bytes);
    match record::read(NAME, &text) {
        Ok(record) => {
            told(&record);
            if let Err(error) = record::load_text(Path::new(NAME), &text, &[], &[]) {
                refused(&error, &text);
            }
        }
        Err(error) => refused(&error, &text),
    }
}

/// Nothing is run again: what a run does is another question.
struct Never;

impl Repeat for Never {
    fn run(&self, _: &Scenario, _: u64) -> Result<Outcome, Refused> {
        Err(Refused::Invalid("no run is made".into()))
    }

    fn drawing(&self, _: &Scenario, _: &Outcome) -> Result<Vec<Block>, Refused> {
        Ok(Vec::new())
    }
}

/// Gives a record to all that read records.
fn told(record: &Record) {
    if let Ok(blocks) = explain::record(record, &Never) {
        let _ = overspin_report::text(&blocks);
    }
    let _ = record::csv(record);
    assert!(!overspin_page::page(&[Entry { record: record.clone(), detail: None }]).is_empty());
    let text = record.to_json();
    record::read(NAME, &text).expect("what was read once can be read again");
}

/// A folder of this thread for inputs that are read as files.
fn folder(use_it: impl FnOnce(&Path)) {
    thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir().expect("a folder"));
    FOLDER.with(|folder| use_it(folder.path()));
}

/// A directory of results: its manifest, a line with a zero, and its runs.
pub(super) fn results(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |b| *b == 0);
    folder(|folder| {
        for file in ["manifest.json", "runs.jsonl"] {
            std::fs::write(folder.join(file), parts.next().unwrap_or_default()).expect("a file");
        }
        match results::read(folder) {
            Ok(record) => told(&record),
            Err(error) => assert!(!error.to_string().is_empty() && !error.remedy().is_empty()),
        }
    });
}

pub(super) fn scenario(bytes: &[u8]) {
    let text = utf8(bytes);
    match scenario_file::load_text(Path::new(NAME), &text, &[], &[]) {
        Ok(Loaded::One(scenario) | Loaded::Seeds(scenario, _)) => {
            let again = scenario_file::toml(&scenario);
            legal(&again);
        }
        Ok(Loaded::Sweep(sweep)) => assert!(!sweep.points.is_empty()),
        Err(error) => refused(&error, &text),
    }
}

/// A machine's profile, which a scenario names.
pub(super) fn machine(bytes: &[u8]) {
    // Each file is read once in a process.
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    folder(|folder| {
        let file = folder.join(format!("{}.toml", NUMBER.replace(NUMBER.get() + 1)));
        std::fs::write(&file, bytes).expect("a file");
        let text = format!("machine = {file:?}");
        let text = overspin_testing::SCENARIO.replace("[host]", &format!("[host]\n{text}"));
        if let Err(error) = scenario_file::parse(NAME, "s", &text, &[]) {
            refused(&error, &text);
        }
        std::fs::remove_file(&file).expect("the file");
    });
}

pub(super) fn experiment(bytes: &[u8]) {
    let text = utf8(bytes);
    if let Err(error) = experiment::parse(NAME, &text) {
        assert!(!error.message.is_empty() && error.text.get(error.span.clone()).is_some());
    }
}

pub(super) fn samples(bytes: &[u8]) {
    let text = utf8(bytes);
    let read = || Ok((NAME.to_owned(), compare::read(NAME, &text, 1)?));
    match read() {
        // Of many samples each change of ranks and means takes its time, which is not reading.
        Ok((_, input)) if input.samples.iter().any(|s| s.values.len() > MOST_SAMPLES) => {}
        Ok(input) => {
            let mut files = [input.clone(), input];
            let choice = compare::Choice { metrics: vec!["all".into()], places: Vec::new() };
            if compare::choose(&choice, &mut files).is_ok() {
                let all = compare::compare(&files, 0.95, None);
                shown(&compare::report(&all, 0.95));
                let _ = compare::csv(&all);
            }
        }
        Err(error) => refused(&error, &text),
    }
}

/// What `advise` reads of a host.
pub(super) fn host(bytes: &[u8]) {
    folder(|folder| {
        let file: PathBuf = folder.join("host");
        std::fs::write(&file, bytes).expect("a file");
        match HostFound::read(&[file], folder, 4) {
            Ok(found) => assert!(!found.guests.is_empty()),
            Err(error) => assert!(!error.cause.is_empty() && !error.remedy.is_empty()),
        }
    });
}

/// What guests of Xen say on their consoles.
pub(super) fn xen_console(bytes: &[u8]) {
    let text = utf8(bytes);
    let mut reports = Reports::new();
    for line in text.lines() {
        match Line::of_text(line) {
            Some(Line::Sample(sample)) => reports.push(sample),
            Some(line) => assert_eq!(Line::of_text(&line.to_text()), Some(line)),
            None => {}
        }
        let _ = Start::of_text(line);
        let _ = serde_json::from_str::<Message>(line);
    }
    let comparison = Comparison {
        works: vec![KernelWork::Dup],
        schedulers: vec!["credit".into()],
        guests: 2,
        vcpus: 2,
        cpus: 1,
        seconds: 1,
        seed: 1,
    };
    let guests = vec![reports.clone(), reports];
    let worker = |count| schedbench::WorkerSet { count, ..Default::default() };
    let run = schedbench::Run { worker_sets: vec![worker(2)], ..Default::default() };
    assert!(schedbench::xen_done(&run, &guests).completed);
    // Guests that did not report have nothing to compare.
    assert!(comparison.measured(0, guests).is_none_or(|m| m.per_second >= 0.0 && m.cpus >= 0.0));
}

/// What guests of the world `linux` say through their port.
pub(super) fn guest_lines(bytes: &[u8]) {
    for line in bytes.split(|b| *b == b'\n') {
        let _ = serde_json::from_slice::<Say>(line);
    }
}

/// `--set` arguments, one a line.
pub(super) fn set(bytes: &[u8]) {
    let text = utf8(bytes);
    let sets: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Err(error) = scenario_file::parse("s.toml", "s", overspin_testing::GOOD, &sets) {
        assert!(error.text.get(error.span.clone()).is_some(), "{error}");
        assert!(!error.message.is_empty() && !error.help.is_empty(), "{error}");
    }
}
