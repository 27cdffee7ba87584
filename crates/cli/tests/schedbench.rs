//! `overspin schedbench` and `overspin import`: a complete session, resuming, and every mistake.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

const PLAN: &str = r#"{
  "Input": {
    "WorkerPresets": {
      "A": { "Args": ["burnwait", "70", "200000"] },
      "B": { "Args": ["burnwait", "10", "300000"] }
    },
    "SimpleMatrix": { "Schedulers": ["credit2"], "Workers": ["A", "B"], "Count": [2] }
  },
  "WorkerType": 1,
  "RunConfig": { "Pool": "schedbench", "Cpus": [12, 13, 14, 15] },
  "Runs": null
}"#;

fn overspin(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).env("NO_COLOR", "1");
    command
}

/// Standard output, standard error and the exit code.
fn run(dir: &Path, args: &[&str]) -> (String, String, i32) {
    let output = overspin(dir).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

#[test]
fn plan_run_report_and_resume() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, file) = (dir.path(), "t.bench");
    fs::write(dir.join("plan.json"), PLAN).unwrap();
    let (out, _, code) = run(dir, &["schedbench", "plan", file, "--template", "plan.json"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("3 runs, 30 simulated seconds:\n  A baseline credit2\n"), "{out}");
    let (out, ..) = run(dir, &["schedbench", "report", file]);
    assert!(out.contains("Test [2] A 2 + B 2 credit2 not run"), "{out}");

    let (_, _, code) = run(dir, &["schedbench", "run", file, "--only", "A 2 + B 2 credit2"]);
    assert_eq!(code, 0);
    let (out, ..) = run(dir, &["schedbench", "run", file, "--dry-run"]);
    assert_eq!(out, "A baseline credit2\nB baseline credit2\n", "the rest is left");
    let (out, _, code) = run(dir, &["schedbench", "run", file]);
    assert_eq!(code, 0);
    assert!(!out.contains("not run"), "{out}");
    assert!(out.contains("== RUN A 2 + B 2 credit2 ==\nSet 0: burnwait 70 200000\n"), "{out}");
    let columns = [
        "ttotal", "tavgavg", "tstdev", "tavgmax", "tavgmin", "ttotmax", "ttotmin", "utotal",
        "uavgavg", "ustdev", "uavgmax", "uavgmin", "utotmax", "utotmin",
    ];
    assert!(out.contains(&columns.map(|c| format!(" {c:>9}")).concat()), "{out}");
    let (again, ..) = run(dir, &["schedbench", "run", file]);
    assert_eq!(again, out, "nothing is left to run");

    let (out, ..) = run(dir, &["schedbench", "report", file, "-v", "2", "--csv", "w.csv"]);
    assert!(out.contains("workerid") && out.contains("  1:1 "), "{out}");
    let csv = fs::read_to_string(dir.join("w.csv")).unwrap();
    // Nine reports of each worker of the three runs, with four numbers each; and four numbers of each set.
    assert_eq!(csv.lines().count(), 1 + 4 * 9 * (1 + 1 + 4) + 4 * (1 + 1 + 2));
    assert!(csv.starts_with("run,seed,where,metric,unit,value\n"), "{csv}");
    let (json, ..) = run(dir, &["schedbench", "report", file, "--json", "-"]);
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["runs"][2]["where"], "A 2 + B 2 credit2");
    assert_eq!(record["machine"], "2016-schedbench");
    // The file itself can be read wherever a record can.
    let (out, err, code) = run(dir, &["compare", file, file]);
    assert!(code == 0 && out.contains("A 2 + B 2 credit2.1:0: throughput [kops/s]"), "{out}{err}");
    let (out, _, code) = run(dir, &["explain", file]);
    assert!(code == 0 && out.contains("Its workers take no lock"), "{out}");
    let (_, err, code) = run(dir, &["schedbench", "run", file, "--quiet", "--json", "again.json"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read_to_string(dir.join("again.json")).unwrap(), json);
}

/// Several commands may fill one file. The file records the machine of each run, and the report names it if
/// the machines differ.
#[test]
fn runs_of_different_machines_do_not_stand_side_by_side_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, file) = (dir.path(), "t.bench");
    let machine = "limit = \"1s\"\n[host]\ncores = 2\n[[domain]]\nvcpus = 1\nlock = \"ticket\"\n\
        workload = { kind = \"schedbench\", worker = \"burnwait 70 200000\", rate = 700 }\n";
    fs::write(dir.join("m.toml"), machine).unwrap();
    fs::write(dir.join(file), PLAN).unwrap();
    run(dir, &["schedbench", "plan", file]);
    let only = |label: &str, more: &[&str]| {
        let args = [&["schedbench", "run", file, "--only", label][..], more].concat();
        let (out, err, code) = run(dir, &args);
        assert_eq!(code, 0, "{err}");
        out
    };
    let out = only("A baseline credit2", &["--seed", "3"]);
    assert!(
        out.starts_with("Runs on 2016-schedbench (") && out.contains("seed 3, Overspin "),
        "{out}"
    );
    only("B baseline credit2", &["--seed", "3"]);
    let of_alone = |out: &str| out.lines().any(|l| l.contains("of alone"));
    let out = only("A 2 + B 2 credit2", &["--seed", "3"]);
    assert!(!out.contains("WARNING") && of_alone(out.split("== RUN A 2").nth(1).unwrap()), "{out}");
    let out = only("A 2 + B 2 credit2", &["--machine", "m.toml"]);
    assert!(
        out.starts_with("WARNING: the runs of this file are of different machines, seeds."),
        "{out}"
    );
    assert!(
        out.contains("  m.toml (2 cores of 1 threads") && out.contains("    A 2 + B 2 credit2\n")
    );
    assert!(!of_alone(out.split("== RUN A 2").nth(1).unwrap()), "alone on another machine: {out}");
    let saved: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(dir.join(file)).unwrap()).unwrap();
    let origin = &saved["Runs"][2]["Overspin"];
    assert_eq!((&origin["Seed"], &origin["Machine"]["Rate"]), (&1.into(), &700.into()));
    assert!(origin["Command"].as_str().unwrap().ends_with("--machine m.toml"), "{origin}");
    assert!(origin["ModelVersion"].is_u64() && origin["Environment"]["kernel"].is_string());
}

#[test]
fn a_run_can_be_traced_and_put_on_another_machine() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("t.bench"), PLAN).unwrap();
    run(dir, &["schedbench", "plan", "t.bench"]);
    let machine = "limit = \"1s\"\n[host]\ncores = 2\n[[domain]]\nvcpus = 1\nlock = \"ticket\"\n\
        workload = { kind = \"schedbench\", worker = \"burnwait 70 200000\", rate = 700 }\n";
    fs::write(dir.join("m.toml"), machine).unwrap();
    let only = ["schedbench", "run", "t.bench", "--only", "A baseline credit2"];
    let more = ["--machine", "m.toml", "--trace", "t.pftrace"];
    let (out, err, code) = run(dir, &[&only[..], &more[..]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(fs::metadata(dir.join("t.pftrace")).unwrap().len() > 10_000);
    // 100 us at 700 million a second and 200 us of wait, less the cost of wake-ups.
    let line = out.lines().find(|l| l.starts_with("    0 ")).unwrap();
    let throughput: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((70.0 / 310e-6..70.0 / 300e-6).contains(&throughput), "{throughput}");
}

#[test]
fn mistakes_have_a_place_a_remedy_and_exit_code_2() {
    let cases = [
        ("\"70\"", "\"x\"", "`x` is not work in kops", "1 to"),
        ("\"Count\": [2]", "\"Count\": [0]", "0 workers", "10,000"),
        ("\"Count\": [2]", "\"Count\": \"2\"", "invalid type", "docs/schedbench.md"),
        ("\"Workers\": [\"A\"", "\"Workers\": [\"Z\"", "preset `Z` is missing", "A, B"),
        ("\"Runs\": null", "\"Runs\": ", "expected value", "docs/schedbench.md"),
        ("[12, 13, 14, 15]", "[]", "no pCPU", "pool"),
    ];
    for (from, to, cause, remedy) in cases {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("t.bench"), PLAN.replacen(from, to, 1)).unwrap();
        let (_, err, code) = run(dir.path(), &["schedbench", "plan", "t.bench"]);
        assert_eq!(code, 2, "{to}: {err}");
        assert!(err.contains("error: t.bench:") && err.contains(cause), "{to}: {err}");
        assert!(err.contains(remedy), "{to}: {err}");
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("t.bench"), PLAN.replace("credit2", "credit3")).unwrap();
    let (_, _, code) = run(dir, &["schedbench", "plan", "t.bench"]);
    assert_eq!(code, 0, "a plan may be for a machine that has it");
    let (_, err, code) = run(dir, &["schedbench", "run", "t.bench"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("there is no scheduler `credit3`") && err.contains("did you mean"),
        "{err}"
    );
    let (_, err, code) = run(dir, &["schedbench", "plan", "t.bench"]);
    assert!(code == 2 && err.contains("already has runs"), "{err}");
    let (_, err, code) = run(dir, &["schedbench", "run", "t.bench", "--only", "nothing"]);
    assert!(code == 2 && err.contains("A baseline credit3"), "{err}");
    fs::write(dir.join("empty.bench"), PLAN).unwrap();
    let (_, err, code) = run(dir, &["schedbench", "run", "empty.bench"]);
    assert!(code == 2 && err.contains("overspin schedbench plan"), "{err}");
}

#[test]
fn rt_app_files_become_scenarios_that_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let workload = r#"{ "tasks": { "t": { "run": 2000, "lock": "m", "timer": { "period": 10000 } } },
        "global": { "duration": 1 } }"#;
    fs::write(dir.join("w.json"), workload).unwrap();
    let (_, err, code) = run(dir, &["import", "rt-app", "w.json", "-o", "w.toml"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("dropped: w.json:1:") && err.contains("lock"), "{err}");
    let (_, err, code) = run(dir, &["run", "w.toml"]);
    assert_eq!(code, 0, "{err}");
    fs::write(dir.join("bad.json"), workload.replace("run", "rum")).unwrap();
    let (_, err, code) = run(dir, &["import", "rt-app", "bad.json"]);
    assert!(code == 2 && err.contains("bad.json:1:21: `rum` is not a key"), "{err}");
}

#[test]
fn recordings_become_scenarios_that_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hackbench.perf.txt");
    let (out, err, code) = run(dir, &["import", "perf-sched", recording, "-o", "h.toml"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("dropped: the real-time priority of") && out.contains("switches"),
        "{out}{err}"
    );
    let (_, err, code) = run(dir, &["run", "h.toml"]);
    assert_eq!(code, 0, "{err}");
    let compare = ["import", "perf-sched", recording, "--compare", "--set", "host.scheduler=cfs"];
    let (out, err, code) = run(dir, &compare);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("under `cfs` in `sim`") && out.contains("gap"), "{out}");
    fs::write(dir.join("w.json"), "{}").unwrap();
    let (_, err, code) = run(dir, &["import", "rt-app", "w.json", "--compare"]);
    assert!(code == 2 && err.contains("are for `perf-sched`"), "{err}");
    fs::write(dir.join("bad.txt"), "\nhello\n").unwrap();
    let (_, err, code) = run(dir, &["import", "perf-sched", "bad.txt"]);
    assert!(
        code == 2 && err.contains("bad.txt:2:1: this is no line of `perf sched script`"),
        "{err}"
    );
}
