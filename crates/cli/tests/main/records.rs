//! The records that commands write into files, read by the commands that read records.

use crate::{json, overspin, with_scenario};
use overspin_testing::{Ended, LOCKS, Program, SCENARIO, root};
use serde_json::Value;

const PLAN: &str = r#"{
  "Input": {
    "WorkerPresets": { "A": { "Args": ["burnwait", "70", "200000"] } },
    "SimpleMatrix": { "Schedulers": ["credit2"], "Workers": ["A"], "Count": [] }
  },
  "RunConfig": { "Cpus": [0, 1] },
  "Runs": null
}"#;

fn folder() -> Program {
    let overspin = with_scenario();
    overspin.write("m.toml", format!("{SCENARIO}{LOCKS}"));
    overspin.write("p.bench", PLAN);
    overspin
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
fn read_by_all(overspin: &Program, file: &str, kind: &str, is_scenario: bool) {
    let written = json(&overspin.read(file));
    assert_eq!((&written["schema"], &written["kind"]), (&"overspin-record/1".into(), &kind.into()));
    for args in [&["compare", file, file][..], &["compare", file, file, "--metric", "all"]] {
        let Ended { code, out: text, err: error, .. } = overspin.run(args);
        // One sample each is too few to decide, which is not a fault.
        assert!(matches!(code, Some(0 | 4)), "{kind}: {error}");
        assert!(
            text.contains("Nothing differs between A, ") && text.contains(" equal"),
            "{kind}: {text}"
        );
    }
    let (told, _) = overspin.fine(&["explain", file]);
    assert!(told.lines().count() > 5, "{kind}: {told}");
    let (said, _) = overspin.fine(&["report", file]);
    assert!(said.starts_with("report.html: ") && said.lines().count() == 1, "{kind}: {said}");
    let page = overspin.read("report.html");
    assert!(page.ends_with("</html>\n") && page.contains("Where it comes from"), "{kind}");
    let again = ["run", file, "--quiet", "--json", "again.json"];
    if is_scenario {
        overspin.fine(&again);
        let (mut first, mut again) = (written, json(&overspin.read("again.json")));
        for record in [&mut first, &mut again] {
            record.as_object_mut().unwrap().remove("command");
            // A record of a single run has no environment. Of others, the second one is made later.
            if let Some(environment) = record.get_mut("environment") {
                let date = environment.as_object_mut().unwrap().remove("date");
                assert!(date.unwrap().as_str().unwrap().ends_with('Z'));
            }
        }
        assert_eq!(first, again, "{kind}: the same to the digit");
    } else {
        let error = overspin.fails(&again, 2);
        assert!(error.contains("has no scenario") && error.contains("help"), "{kind}: {error}");
    }
    // On one line, as other tools write it, it is the same record.
    overspin.write("plain.json", json(&overspin.read(file)).to_string());
    assert_eq!(overspin.fine(&["explain", "plain.json"]).0, told, "{kind}");
}

/// What each reader makes of each kind of record is tested in `crates/page/tests/main/records.rs`.
#[test]
fn every_record_is_read_by_every_command() {
    let overspin = folder();
    overspin.fine(&["schedbench", "plan", "p.bench", "--quiet"]);
    for (kind, args, is_scenario) in WRITERS {
        let files = ["--quiet", "--json", "r.json", "--csv", "r.csv"];
        overspin.fine(&[args, &files[..]].concat());
        let (csv, record) = (overspin.read("r.csv"), json(&overspin.read("r.json")));
        assert_eq!(
            (&record["schema"], &record["kind"]),
            (&"overspin-record/1".into(), &(*kind).into())
        );
        assert!(csv.starts_with("run,seed,where,metric,unit,value\n"), "{kind}: {csv}");
        assert_eq!(csv.lines().count(), 1 + record["samples"].as_array().unwrap().len(), "{kind}");
        // One of each sort: with a scenario and without.
        if ["sweep", "bench-locks"].contains(kind) {
            read_by_all(&overspin, "r.json", kind, *is_scenario);
        }
    }
    // A .bench file is read as the record of its runs.
    overspin.fine(&["compare", "p.bench", "r.json"]);
    overspin.fine(&["explain", "p.bench"]);
}

/// A small experiment of a user, in a file.
#[test]
fn an_experiment_is_read_by_every_command() {
    let overspin = folder();
    let mine = root().join("crates/page/tests/main/mine.toml");
    std::fs::copy(mine, overspin.path("mine.toml")).unwrap();
    let files = ["--json", "r.json", "--csv", "r.csv"];
    // It runs to the end: whatever its claims say, it is not strict.
    overspin.fine(&[&["reproduce", "mine.toml", "--quiet"], &files[..]].concat());
    read_by_all(&overspin, "r.json", "reproduction", false);
    // It writes its page by default.
    let page = overspin.read("my-spinlocks.html");
    assert!(page.contains("Published beside simulated") && page.contains("mine.toml"));
    let record = json(&overspin.read("r.json"));
    assert_eq!(record["experiments"][0]["id"], "my-spinlocks");
    let begins = |s: &Value| s["where"].as_str().unwrap().starts_with("my-spinlocks.");
    assert!(record["samples"].as_array().unwrap().iter().all(begins));
}

#[test]
fn a_sweep_record_takes_seeds_but_no_set() {
    let overspin = folder();
    overspin.fine(&["run", "m.toml", "--quiet", "--json", "m.json"]);
    overspin.fine(&["run", "m.json", "--quiet", "--seed", "9", "--json", "nine.json"]);
    overspin.fine(&["run", "m.toml", "--quiet", "--seed", "9", "--json", "direct.json"]);
    let runs = |file| json(&overspin.read(file))["runs"].clone();
    assert_eq!(runs("nine.json"), runs("direct.json"));
    let error = overspin.fails(&["run", "m.json", "--set", "host.cores=1"], 2);
    assert!(error.contains("this is a record"), "{error}");
}

#[test]
fn a_mistake_in_a_record_of_one_long_line_is_quoted_in_a_window() {
    let overspin = folder();
    overspin.fine(&["run", "s.toml", "--quiet", "--seeds", "30", "--json", "r.json"]);
    let plain = json(&overspin.read("r.json")).to_string();
    assert!(plain.len() > 20_000 && plain.lines().count() == 1);
    let at = plain.rfind("\"value\":").unwrap();
    overspin.write("bad.json", format!("{}\"value\":x{}", &plain[..at], &plain[at + 8..]));
    for args in
        [&["explain", "bad.json"][..], &["compare", "bad.json", "r.json"], &["run", "bad.json"]]
    {
        let error = overspin.fails(args, 2);
        assert!(error.len() < 2000, "{args:?}: {} characters", error.len());
        assert!(error.contains(&format!("bad.json:1:{}", at + 9)), "{args:?}: {error}");
        assert!(error.contains("\"value\":x") && error.contains("here"), "{args:?}: {error}");
    }
}

#[test]
fn examples_run_from_any_folder() {
    let overspin = overspin();
    let (out, _) = overspin.fine(&["run", "examples/tick-thief.toml", "--set", "limit=10ms"]);
    assert!(out.starts_with("tick-thief\n"), "{out}");
    // The file of a user who has one comes first.
    std::fs::create_dir(overspin.dir().join("examples")).unwrap();
    overspin.write("examples/tick-thief.toml", "limit = 7");
    overspin.fails(&["run", "examples/tick-thief.toml"], 2);
    overspin.fails(&["run", "examples/no-such.toml"], 2);
}
