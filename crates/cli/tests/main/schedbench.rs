//! `overspin schedbench` and `overspin import`: a complete session, resuming, and every mistake.

use crate::{json, overspin};
use overspin_testing::root;
use std::fs;

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

#[test]
fn plan_run_report_and_resume() {
    let (overspin, file) = (overspin(), "t.bench");
    overspin.write("plan.json", PLAN);
    let (out, _) = overspin.fine(&["schedbench", "plan", file, "--template", "plan.json"]);
    assert!(out.starts_with("3 runs, 30 simulated seconds:\n  A baseline credit2\n"), "{out}");
    let (out, _) = overspin.fine(&["schedbench", "report", file]);
    assert!(out.contains("Test [2] A 2 + B 2 credit2 not run"), "{out}");

    overspin.fine(&["schedbench", "run", file, "--only", "A 2 + B 2 credit2"]);
    let (out, _) = overspin.fine(&["schedbench", "run", file, "--dry-run"]);
    assert_eq!(out, "A baseline credit2\nB baseline credit2\n", "the rest is left");
    let (out, _) = overspin.fine(&["schedbench", "run", file]);
    assert!(!out.contains("not run"), "{out}");
    assert!(out.contains("== RUN A 2 + B 2 credit2 ==\nSet 0: burnwait 70 200000\n"), "{out}");
    let columns = [
        "ttotal", "tavgavg", "tstdev", "tavgmax", "tavgmin", "ttotmax", "ttotmin", "utotal",
        "uavgavg", "ustdev", "uavgmax", "uavgmin", "utotmax", "utotmin",
    ];
    assert!(out.contains(&columns.map(|c| format!(" {c:>9}")).concat()), "{out}");
    let (again, _) = overspin.fine(&["schedbench", "run", file]);
    assert_eq!(again, out, "nothing is left to run");

    let (out, _) = overspin.fine(&["schedbench", "report", file, "-v", "2", "--csv", "w.csv"]);
    assert!(out.contains("workerid") && out.contains("  1:1 "), "{out}");
    let csv = overspin.read("w.csv");
    // Nine reports of each worker of the three runs, with four numbers each; and of each set five numbers, and two of
    // fairness for each of its workers.
    let (workers, sets) = (1 + 1 + 4, 1 + 1 + 2);
    assert_eq!(csv.lines().count(), 1 + 4 * 9 * workers + 5 * sets + 2 * workers);
    assert!(csv.starts_with("run,seed,where,metric,unit,value\n"), "{csv}");
    let (text, _) = overspin.fine(&["schedbench", "report", file, "--json", "-"]);
    let record = json(&text);
    assert_eq!(record["runs"][2]["where"], "A 2 + B 2 credit2");
    assert_eq!(record["machine"], "2016-schedbench");
    // The file itself can be read wherever a record can.
    let (out, _) = overspin.fine(&["compare", file, file]);
    assert!(out.contains("A 2 + B 2 credit2.1:0: throughput, kops/s"), "{out}");
    let (out, _) = overspin.fine(&["explain", file]);
    assert!(out.contains("Its workers take no lock"), "{out}");
    overspin.fine(&["schedbench", "run", file, "--quiet", "--json", "again.json"]);
    assert_eq!(overspin.read("again.json"), text);
}

/// Several commands may fill one file. The file records the machine of each run, and the report names it if
/// the machines differ.
#[test]
fn runs_of_different_machines_do_not_stand_side_by_side_without_a_word() {
    let (overspin, file) = (overspin(), "t.bench");
    let machine = "limit = \"1s\"\n[host]\ncores = 2\n[[domain]]\nvcpus = 1\nlock = \"ticket\"\n\
        workload = { kind = \"schedbench\", worker = \"burnwait 70 200000\", rate = 700 }\n";
    overspin.write("m.toml", machine);
    overspin.write(file, PLAN);
    overspin.fine(&["schedbench", "plan", file]);
    let only = |label: &str, more: &[&str]| {
        let args = [&["schedbench", "run", file, "--only", label][..], more].concat();
        let (out, _) = overspin.fine(&args);
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
    let saved = json(&overspin.read(file));
    let origin = &saved["Runs"][2]["Overspin"];
    assert_eq!((&origin["Seed"], &origin["Machine"]["Rate"]), (&1.into(), &700.into()));
    assert!(origin["Command"].as_str().unwrap().ends_with("--machine m.toml"), "{origin}");
    assert!(origin["ModelVersion"].is_u64() && origin["Environment"]["kernel"].is_string());
}

#[test]
fn a_run_can_be_traced_and_put_on_another_machine() {
    let overspin = overspin();
    overspin.write("t.bench", PLAN);
    overspin.fine(&["schedbench", "plan", "t.bench"]);
    let machine = "limit = \"1s\"\n[host]\ncores = 2\n[[domain]]\nvcpus = 1\nlock = \"ticket\"\n\
        workload = { kind = \"schedbench\", worker = \"burnwait 70 200000\", rate = 700 }\n";
    overspin.write("m.toml", machine);
    let only = ["schedbench", "run", "t.bench", "--only", "A baseline credit2"];
    let more = ["--machine", "m.toml", "--trace", "t.pftrace"];
    let (out, _) = overspin.fine(&[&only[..], &more[..]].concat());
    assert!(fs::metadata(overspin.path("t.pftrace")).unwrap().len() > 10_000);
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
    let overspin = overspin();
    for (from, to, cause, remedy) in cases {
        overspin.write("t.bench", PLAN.replacen(from, to, 1));
        let err = overspin.fails(&["schedbench", "plan", "t.bench"], 2);
        assert!(err.contains("error: t.bench:") && err.contains(cause), "{to}: {err}");
        assert!(err.contains(remedy), "{to}: {err}");
    }
    overspin.write("t.bench", PLAN.replace("credit2", "credit3"));
    // "a plan may be for a machine that has it"
    overspin.fine(&["schedbench", "plan", "t.bench"]);
    let err = overspin.fails(&["schedbench", "run", "t.bench"], 2);
    assert!(
        err.contains("there is no scheduler `credit3`") && err.contains("did you mean"),
        "{err}"
    );
    let err = overspin.fails(&["schedbench", "plan", "t.bench"], 2);
    assert!(err.contains("already has runs"), "{err}");
    let err = overspin.fails(&["schedbench", "run", "t.bench", "--only", "nothing"], 2);
    assert!(err.contains("A baseline credit3"), "{err}");
    overspin.write("empty.bench", PLAN);
    let err = overspin.fails(&["schedbench", "run", "empty.bench"], 2);
    assert!(err.contains("overspin schedbench plan"), "{err}");
}

#[test]
fn rt_app_files_become_scenarios_that_run() {
    let overspin = overspin();
    let workload = r#"{ "tasks": { "t": { "run": 2000, "lock": "m", "timer": { "period": 10000 } } },
        "global": { "duration": 1 } }"#;
    overspin.write("w.json", workload);
    let (_, err) = overspin.fine(&["import", "rt-app", "w.json", "-o", "w.toml"]);
    assert!(err.contains("dropped: w.json:1:") && err.contains("lock"), "{err}");
    overspin.fine(&["run", "w.toml"]);
    overspin.write("bad.json", workload.replace("run", "rum"));
    let err = overspin.fails(&["import", "rt-app", "bad.json"], 2);
    assert!(err.contains("bad.json:1:21: `rum` is not a key"), "{err}");
}

#[test]
fn recordings_become_scenarios_that_are_compared() {
    let overspin = overspin();
    let recording = root().join("examples/hackbench.perf.txt");
    let recording = recording.to_str().unwrap();
    let (out, err) = overspin.fine(&["import", "perf-sched", recording, "-o", "h.toml"]);
    assert!(
        err.contains("dropped: the real-time priority of") && out.contains("switches"),
        "{out}{err}"
    );
    overspin.fine(&["run", "h.toml"]);
    let compare = ["import", "perf-sched", recording, "--compare", "--set", "host.scheduler=cfs"];
    let (out, _) = overspin.fine(&compare);
    assert!(out.contains("under `cfs` in `sim`") && out.contains("gap"), "{out}");
    overspin.write("w.json", "{}");
    let err = overspin.fails(&["import", "rt-app", "w.json", "--compare"], 2);
    assert!(err.contains("--compare is for `perf-sched`"), "{err}");
    overspin.write("bad.txt", "\nhello\n");
    let err = overspin.fails(&["import", "perf-sched", "bad.txt"], 2);
    assert!(err.contains("bad.txt:2:1: this is no line of `perf sched script`"), "{err}");
}

/// Recordings that the tests of the reader use too.
fn recorded(name: &str) -> String {
    let folder = root().join("crates/lab/src/perf_sched/recordings");
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn binary_recordings_name_the_command_that_converts_them() {
    let overspin = overspin();
    let (perf, trace_cmd) = (&b"PERFILE2h\0\0\0"[..], &b"\x17\x08\x44tracing7\0"[..]);
    for (format, bytes, command) in [
        ("perf-sched", perf, "perf script --ns -i r.data"),
        ("perf-sched", trace_cmd, "trace-cmd report -i r.data"),
        // What these read, `perf script` does not write.
        ("perf-lock", perf, "perf lock contention -i r.data"),
        ("perf-lock", trace_cmd, "perf lock contention"),
        ("runqlat", perf, "`runqlat 2 1` prints"),
        ("rt-app", perf, "`rt-app` runs, in JSON"),
    ] {
        overspin.write("r.data", bytes);
        let err = overspin.fails(&["import", format, "r.data"], 2);
        assert!(err.contains("r.data:1:1: ") && err.contains(command), "{err}");
    }
}

#[test]
fn a_folder_an_empty_file_and_a_mark_of_utf_8() {
    let overspin = overspin();
    let err = overspin.fails(&["import", "perf-sched", "."], 2);
    assert!(err.contains("`.` is a directory") && err.contains("name a file"), "{err}");
    overspin.write("empty.txt", "");
    let err = overspin.fails(&["import", "perf-sched", "empty.txt"], 2);
    assert!(err.contains("this file is empty"), "{err}");
    let recording = std::fs::read(recorded("perf-6.1-task-events.txt")).unwrap();
    overspin.write("marked.txt", [b"\xef\xbb\xbf", &recording[..]].concat());
    overspin.fine(&["import", "perf-sched", "marked.txt", "-o", "r.toml"]);
}

#[test]
fn a_sweep_of_a_recording_has_its_elapsed_times() {
    let overspin = overspin();
    let recording = root().join("examples/hackbench.perf.txt");
    overspin.fine(&["import", "perf-sched", recording.to_str().unwrap(), "-o", "h.toml"]);
    let sweep = ["sweep", "h.toml", "-L", "host.scheduler=cfs,eevdf-6.18", "--no-report"];
    let (out, _) = overspin.fine(&sweep);
    assert!(out.contains("Elapsed") && !out.contains("best, 1000/s"), "{out}");
    for scheduler in ["cfs", "eevdf-6.18"] {
        let set = format!("host.scheduler={scheduler}");
        overspin.fine(&["run", "h.toml", "--set", &set, "--json", "r.json"]);
        let elapsed = json(&overspin.read("r.json"))["runs"][0]["elapsed"].as_f64().unwrap() / 1e9;
        // The first table with this row is that of times.
        let row = out.lines().map(str::trim).find_map(|line| line.strip_prefix(scheduler));
        let shown: f64 = row.unwrap().trim().parse().unwrap();
        assert!((shown / elapsed - 1.0).abs() < 0.01, "{scheduler}: {shown} {elapsed}\n{out}");
    }
}

#[test]
fn some_tasks_of_a_recording() {
    let overspin = overspin();
    let recording = recorded("perf-6.1-task-events.txt");
    let import = |more: &[&str]| {
        let args = [&["import", "perf-sched", &recording, "-o", "r.toml"], more].concat();
        let (_, err) = overspin.fine(&args);
        assert!(err.contains("tasks that were not chosen"), "{err}");
        let scenario = std::fs::read_to_string(overspin.path("r.toml")).unwrap();
        overspin.fine(&["run", "r.toml"]);
        scenario.lines().filter(|line| line.starts_with("    \"")).count()
    };
    let of_name = import(&["--task", "a ==> *"]);
    // Two names of one program are more than one of them, and a process has all its threads.
    let of_process = import(&["--pid", "8044"]);
    assert!(of_name == 1 && of_process > 3, "{of_name} {of_process}");
    overspin.write("cgroup.procs", "8044\n");
    assert_eq!(import(&["--cgroup", "cgroup.procs"]), of_process);
    for (args, message) in [
        (["--task", "nobody"], "no task of this recording is called `nobody`"),
        (["--cgroup", "/web"], "does not say in which control groups"),
        (["--pid", "1,2"], "has a number that was asked for"),
    ] {
        let args = [&["import", "perf-sched", &recording], &args[..]].concat();
        let err = overspin.fails(&args, 2);
        let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(message), "{err}");
    }
}

#[test]
fn waits_for_locks_and_cpus() {
    let overspin = overspin();
    let example = |name: &str| root().join("examples").join(name).to_str().unwrap().to_owned();
    let locks = example("locks.perf.txt");
    let import = ["import", "perf-lock", &locks, "-o", "l.toml"];
    let (out, _) = overspin.fine(&[&import[..], &["--elapsed", "2s", "--tasks", "2"]].concat());
    assert!(out.contains("swake_up_one+0x35") && out.contains("as a lock-loop"), "{out}");
    overspin.fine(&["run", "l.toml"]);
    let err = overspin.fails(&import, 2);
    assert!(err.contains("--elapsed 10s --tasks 4"), "{err}");
    let linear = recorded("runqlat-bpftrace-lhist.txt");
    for latencies in [example("runqlat.txt"), recorded("runqlat-bpftrace.txt"), linear] {
        let (out, _) = overspin.fine(&["import", "runqlat", &latencies]);
        assert!(out.contains("p99.9"), "{out}");
        let (out, _) = overspin.fine(&["import", "runqlat", &latencies, "--scenario", "l.toml"]);
        assert!(out.contains("under `eevdf-6.18` in `sim`") && out.contains("the run is"), "{out}");
        let err = overspin.fails(&["import", "runqlat", &latencies, "-o", "x.toml"], 2);
        assert!(err.contains("makes no scenario"), "{err}");
    }
    let err = overspin.fails(&["import", "perf-sched", &locks], 2);
    let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("import perf-lock"), "{err}");
}
