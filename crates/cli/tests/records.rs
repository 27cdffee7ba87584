//! Every record that the program can write, read by every command that reads records.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

const SCENARIO: &str = r#"
limit = "20ms"
[host]
cores = 2
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

const LOCKS: &str = r#"
[[vary]]
name = "lock"
set = "domain.guest.lock"
to = ["ticket", "lock-byte"]
"#;

const PLAN: &str = r#"{
  "Input": {
    "WorkerPresets": { "A": { "Args": ["burnwait", "70", "200000"] } },
    "SimpleMatrix": { "Schedulers": ["credit2"], "Workers": ["A"], "Count": [] }
  },
  "RunConfig": { "Cpus": [0, 1] },
  "Runs": null
}"#;

fn overspin(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).env("NO_COLOR", "1").args(args).output().unwrap()
}

#[track_caller]
fn fine(dir: &Path, args: &[&str]) -> String {
    let output = overspin(dir, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    fs::write(dir.path().join("m.toml"), format!("{SCENARIO}{LOCKS}")).unwrap();
    fs::write(dir.path().join("p.bench"), PLAN).unwrap();
    dir
}

fn record(dir: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join(name)).unwrap()).unwrap()
}

/// Commands that write records, with the kind of record, and whether the record is of a scenario.
const WRITERS: &[(&str, &[&str], bool)] = &[
    ("run", &["run", "s.toml"], true),
    ("seeds", &["run", "s.toml", "--seeds", "2"], true),
    ("sweep", &["run", "m.toml", "--seeds", "2", "--set", "host.cores=1"], true),
    (
        "bench-locks",
        &[
            "bench",
            "locks",
            "--locks",
            "mutex,std",
            "--threads",
            "1",
            "--time",
            "1ms",
            "--runs",
            "2",
        ],
        false,
    ),
    ("noise", &["measure", "noise", "--duration", "20ms"], false),
    ("schedbench", &["schedbench", "run", "p.bench"], false),
    ("schedbench", &["schedbench", "report", "p.bench"], false),
];

/// Feeds a record to every command that reads records.
fn read_by_all(dir: &Path, file: &str, kind: &str, is_scenario: bool) {
    let written = record(dir, file);
    assert_eq!((&written["schema"], &written["kind"]), (&"overspin-record/1".into(), &kind.into()));
    for args in [&["compare", file, file][..], &["compare", file, file, "--metric", "all"]] {
        let output = overspin(dir, args);
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        // One sample each is too few to decide, which is not a fault.
        assert!(matches!(output.status.code(), Some(0 | 4)), "{kind}: {error}");
        assert!(!text.contains("Difference at") && text.contains(" N "), "{kind}: {text}");
    }
    let told = fine(dir, &["explain", file]);
    assert!(told.lines().count() > 5, "{kind}: {told}");
    let said = fine(dir, &["report", file]);
    assert!(said.starts_with("report.html: ") && said.lines().count() == 1, "{kind}: {said}");
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.ends_with("</html>\n") && page.contains("Where it comes from"), "{kind}");
    let output = overspin(dir, &["run", file, "--quiet", "--json", "again.json"]);
    let error = String::from_utf8_lossy(&output.stderr);
    if is_scenario {
        assert_eq!(output.status.code(), Some(0), "{kind}: {error}");
        let (mut first, mut again) = (written, record(dir, "again.json"));
        for record in [&mut first, &mut again] {
            record.as_object_mut().unwrap().remove("command");
        }
        assert_eq!(first, again, "{kind}: the same to the digit");
    } else {
        assert_eq!(output.status.code(), Some(2), "{kind}: {error}");
        assert!(error.contains("has no scenario") && error.contains("help"), "{kind}: {error}");
    }
    // On one line, as other tools write it, it is the same record.
    let text = fs::read_to_string(dir.join(file)).unwrap();
    let plain: Value = serde_json::from_str(&text).unwrap();
    fs::write(dir.join("plain.json"), plain.to_string()).unwrap();
    assert_eq!(fine(dir, &["explain", "plain.json"]), told, "{kind}");
}

#[test]
fn every_record_is_read_by_every_command() {
    let dir = folder();
    let dir = dir.path();
    fine(dir, &["schedbench", "plan", "p.bench", "--quiet"]);
    for (kind, args, is_scenario) in WRITERS {
        let files = ["--quiet", "--json", "r.json", "--csv", "r.csv"];
        fine(dir, &[args, &files[..]].concat());
        read_by_all(dir, "r.json", kind, *is_scenario);
        let (csv, record) = (fs::read_to_string(dir.join("r.csv")).unwrap(), record(dir, "r.json"));
        assert!(csv.starts_with("run,seed,where,metric,unit,value\n"), "{kind}: {csv}");
        let samples = record["samples"].as_array().unwrap();
        assert_eq!(csv.lines().count(), 1 + samples.len(), "{kind}");
        assert!(!samples.is_empty(), "{kind}");
        // Every sample belongs to a run of the table.
        let runs: Vec<&Value> =
            record["runs"].as_array().unwrap().iter().map(|r| &r["number"]).collect();
        assert!(samples.iter().all(|s| runs.contains(&&s["run"])), "{kind}");
    }
    // A .bench file is read as the record of its runs.
    fine(dir, &["compare", "p.bench", "r.json"]);
    fine(dir, &["explain", "p.bench"]);
}

/// The experiment that runs fastest.
#[test]
fn an_experiment_is_read_by_every_command() {
    let dir = folder();
    let dir = dir.path();
    let args = [
        "reproduce",
        "2016-schedbench",
        "--seeds",
        "2",
        "--quiet",
        "--json",
        "r.json",
        "--csv",
        "r.csv",
    ];
    let output = overspin(dir, &args);
    // It ran to the end: whatever its claims say, it is not strict.
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    read_by_all(dir, "r.json", "reproduction", false);
    // It writes its page by default.
    let page = fs::read_to_string(dir.join("2016-schedbench.html")).unwrap();
    assert!(page.contains("Published beside simulated") && page.contains("2016-schedbench.toml"));
    let record = record(dir, "r.json");
    assert_eq!(record["experiments"][0]["id"], "2016-schedbench");
    let begins = |s: &Value| s["where"].as_str().unwrap().starts_with("2016-schedbench.");
    assert!(record["samples"].as_array().unwrap().iter().all(begins));
}

#[test]
fn a_sweep_record_takes_seeds_but_no_set() {
    let dir = folder();
    let dir = dir.path();
    fine(dir, &["run", "m.toml", "--quiet", "--json", "m.json"]);
    fine(dir, &["run", "m.json", "--quiet", "--seed", "9", "--json", "nine.json"]);
    fine(dir, &["run", "m.toml", "--quiet", "--seed", "9", "--json", "direct.json"]);
    assert_eq!(record(dir, "nine.json")["runs"], record(dir, "direct.json")["runs"]);
    let output = overspin(dir, &["run", "m.json", "--set", "host.cores=1"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("this is a record"), "{error}");
}

#[test]
fn a_mistake_in_a_record_of_one_long_line_is_quoted_in_a_window() {
    let dir = folder();
    let dir = dir.path();
    fine(dir, &["run", "s.toml", "--quiet", "--seeds", "30", "--json", "r.json"]);
    let plain = record(dir, "r.json").to_string();
    assert!(plain.len() > 20_000 && plain.lines().count() == 1);
    let at = plain.rfind("\"value\":").unwrap();
    fs::write(dir.join("bad.json"), format!("{}\"value\":x{}", &plain[..at], &plain[at + 8..]))
        .unwrap();
    for args in
        [&["explain", "bad.json"][..], &["compare", "bad.json", "r.json"], &["run", "bad.json"]]
    {
        let output = overspin(dir, args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.len() < 2000, "{args:?}: {} characters", error.len());
        assert!(error.contains(&format!("bad.json:1:{}", at + 9)), "{args:?}: {error}");
        assert!(error.contains("\"value\":x") && error.contains("here"), "{args:?}: {error}");
    }
}
