//! Directories of results, filled by runs.

use overspin_record::results::*;
use overspin_record::{Record, Run};
use overspin_runs::scenario_file;
use overspin_runs::seeds::{self, Settings};
use overspin_scenario::{Ending, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

const SCENARIO: &str = "limit = \"2ms\"\n[host]\ncores = 2\n[[domain]]\nname = \"guest\"\nvcpus = 4\n\
    lock = \"ticket\"\nworkload = { kind = \"lock-loop\" }\n";

fn scenario(text: &str) -> Scenario {
    scenario_file::parse("t", "t", text, &[]).unwrap()
}

fn open(dir: &Path, scenario: &Scenario, list: &[u64]) -> Result<Results, ResultsError> {
    let plan = Plan { list: list.to_vec(), ..Plan::default() };
    Results::open(dir, Manifest::of(&overspin_runs::seeds::record_head(scenario, &[]), plan))
}

/// Runs these seeds with what `dir` has of them; the runs that were made, and the record.
fn run(dir: &Path, scenario: &Scenario, list: &[u64]) -> (usize, Record) {
    let results = open(dir, scenario, list).unwrap();
    let found = results.found();
    let settings = Settings { results: Some(&results), threads: 2, ..Settings::default() };
    let over = seeds::run(scenario, list, settings, &|_, _| {}).unwrap();
    let record = overspin_runs::seeds::record(&over, &[]);
    results.finish(&record, true).unwrap();
    (list.len() - found, record)
}

fn lines(dir: &Path) -> usize {
    fs::read_to_string(dir.join(JOURNAL)).unwrap().lines().count()
}

#[test]
fn a_directory_reads_back_as_its_record_and_goes_on_from_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let (made, first) = run(dir.path(), &scenario, &[1, 2, 3]);
    assert_eq!((made, lines(dir.path())), (3, 3));
    assert_eq!(read(dir.path()).unwrap(), first);
    // The same again makes nothing; more seeds go on.
    assert_eq!(run(dir.path(), &scenario, &[1, 2, 3]), (0, first));
    let (made, more) = run(dir.path(), &scenario, &[1, 2, 3, 4]);
    assert_eq!((made, more.runs.len(), lines(dir.path())), (1, 4, 4));
    let fewer = open(dir.path(), &scenario, &[1, 2]).unwrap_err().to_string();
    assert!(fewer.contains("not the first ones"), "{fewer}");
}

#[test]
fn what_a_kill_leaves_is_half_a_line_at_most() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let (_, whole) = run(dir.path(), &scenario, &[1, 2, 3]);
    let journal = dir.path().join(JOURNAL);
    let text = fs::read_to_string(&journal).unwrap();
    let second = text.match_indices('\n').nth(1).unwrap().0;
    fs::write(dir.path().join(".samples.parquet.1-0.tmp"), "half").unwrap();
    for cut in [second + 1, second + 2, second + 60, text.len() - 1] {
        fs::write(&journal, &text[..cut]).unwrap();
        assert_eq!(run(dir.path(), &scenario, &[1, 2, 3]), (1, whole.clone()), "{cut}");
        assert_eq!(fs::read_to_string(&journal).unwrap(), text);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "no temporary file is left");
    // A line that is broken in another way is no result of a kill.
    fs::write(&journal, text.replacen("\"run\"", "\"walk\"", 1)).unwrap();
    let broken = open(dir.path(), &scenario, &[1, 2, 3]).unwrap_err();
    assert!(matches!(broken, ResultsError::Broken { line: 1, .. }), "{broken}");
}

#[test]
fn another_result_is_refused_by_its_first_difference() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &scenario(SCENARIO), &[1]);
    let other = scenario(&SCENARIO.replace("vcpus = 4", "vcpus = 5"));
    let error = open(dir.path(), &other, &[1]).unwrap_err().to_string();
    assert!(error.contains("`scenario.domains.0.vcpus` is 4 there and 5 here"), "{error}");
    let path = dir.path().join(MANIFEST);
    let here = overspin_sim::MODEL_VERSION;
    let now = format!("\"model_version\": {here}");
    let old = fs::read_to_string(&path).unwrap().replace(&now, "\"model_version\": 1");
    fs::write(&path, old).unwrap();
    let error = open(dir.path(), &scenario(SCENARIO), &[1]).unwrap_err().to_string();
    assert!(error.contains(&format!("`model_version` is 1 there and {here} here")), "{error}");
}

#[test]
fn only_a_directory_for_results_is_taken_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let taken = open(dir.path(), &scenario, &[1]).unwrap();
    assert!(matches!(open(dir.path(), &scenario, &[1]), Err(ResultsError::InUse { .. })));
    drop(taken);
    assert!(open(dir.path(), &scenario, &[1]).is_ok());
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("thesis.tex"), "").unwrap();
    let error = open(other.path(), &scenario, &[1]).unwrap_err();
    assert!(
        matches!(&error, ResultsError::NotEmpty { file, .. } if file == "thesis.tex"),
        "{error}"
    );
    assert!(matches!(read(other.path()), Err(ResultsError::NoResults { .. })));
}

#[test]
fn a_command_that_measures_as_a_whole_may_measure_again_but_no_other_command() {
    let dir = tempfile::tempdir().unwrap();
    let made = |command: &str| overspin_lab::bench::record("sim", &[]).made_here(command.into());
    Claim::new(dir.path(), "overspin bench sim")
        .unwrap()
        .finish(&made("overspin bench sim"))
        .unwrap();
    assert_eq!(read(dir.path()).unwrap(), made("overspin bench sim"));
    assert!(Claim::new(dir.path(), "overspin bench sim").is_ok());
    let error = Claim::new(dir.path(), "overspin bench sched").unwrap_err().to_string();
    assert!(error.contains("`command` is \"overspin bench sim\" there"), "{error}");
}

#[test]
fn parts_merge_to_the_whole() {
    let scenario = scenario(SCENARIO);
    let all = tempfile::tempdir().unwrap();
    let (_, whole) = run(&all.path().join("whole"), &scenario, &[1, 2, 3, 4]);
    let dirs: Vec<PathBuf> = (0..3).map(|i| all.path().join(format!("part{i}"))).collect();
    for (i, dir) in dirs.iter().enumerate() {
        let results = open(dir, &scenario, &[1, 2, 3, 4]).unwrap();
        let shard = format!("{}/3", i + 1).parse().ok();
        let settings = Settings { results: Some(&results), shard, ..Settings::default() };
        let over = seeds::run(&scenario, &[1, 2, 3, 4], settings, &|_, _| {}).unwrap();
        results.finish(&overspin_runs::seeds::record(&over, &[]), false).unwrap();
    }
    // In any order, with a part twice.
    let order = [2, 0, 1, 0].map(|i: usize| dirs[i].clone());
    let merged = merge(&order, &all.path().join("out")).unwrap();
    assert_eq!(merged.results.found(), 4);
    let settings = Settings { results: Some(&merged.results), ..Settings::default() };
    let over = seeds::run(&scenario, &merged.manifest.plan.list, settings, &|_, _| {}).unwrap();
    assert_eq!(overspin_runs::seeds::record(&over, &[]), whole);

    let stranger = all.path().join("stranger");
    run(&stranger, &scenario_file::parse("t", "t", SCENARIO, &["limit=3ms".into()]).unwrap(), &[1]);
    let error = merge(&[dirs[0].clone(), stranger], &all.path().join("out2")).unwrap_err();
    assert!(error.to_string().contains("`scenario.limit` is"), "{error}");
}

#[test]
fn a_run_that_was_stopped_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(SCENARIO);
    let results = open(dir.path(), &scenario, &[1]).unwrap();
    let by = overspin_scenario::Stopped::Interrupted;
    let run = Run { seed: Some(1), ending: Some(Ending::Stopped { by }), ..Run::default() };
    results.keep(&Finished { run, figures: Vec::new(), seconds: None }).unwrap();
    drop(results);
    assert_eq!(open(dir.path(), &scenario, &[1]).unwrap().found(), 0);
}
