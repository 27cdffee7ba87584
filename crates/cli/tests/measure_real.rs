//! `overspin measure` with real benchmarks: files, readers, mistakes, interruptions. How fast the machine is is not
//! tested.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

mod common;

fn overspin(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).args(args).env("NO_COLOR", "1").env("LANG", "C.UTF-8");
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    overspin(dir, args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a command that ended with 0.
#[track_caller]
fn fine(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn record(dir: &Path, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join(name)).unwrap()).unwrap()
}

const PFT: [&str; 8] = [
    "measure",
    "pft",
    "--memory=64",
    "--workers=processes-2,threads-1",
    "--runs=3",
    "--json=r.json",
    "--seconds=s.csv",
    "--out=d",
];

#[test]
fn every_reader_reads_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let out = fine(dir.path(), &PFT);
    assert!(out.contains("The machine meanwhile"), "{out}");
    let record = record(dir.path(), "r.json");
    assert_eq!((&record["kind"], &record["name"]), (&"real".into(), &"pft".into()));
    assert_eq!(record["runs"].as_array().unwrap().len(), 6, "two places, three times");
    let samples = record["samples"].as_array().unwrap();
    let of = |place: &str, metric: &str| -> Vec<f64> {
        let found = samples.iter().filter(|s| s["where"] == place && s["metric"] == metric);
        found.map(|s| s["value"].as_f64().unwrap()).collect()
    };
    for place in ["processes-2.packets-0", "threads-1.packets-0"] {
        assert_eq!(of(place, "faults").len(), 3);
        // Each page of 4 KiB is a fault, five times over.
        for (rate, elapsed) in of(place, "faults").iter().zip(of(place, "elapsed")) {
            assert!((rate * elapsed - 5.0 * 16384.0).abs() < 1.0, "{rate} {elapsed}");
        }
        // Some 16,000 faults five times over take several clock ticks.
        let shares = ["user", "system", "idle", "iowait", "steal"]
            .map(|part| of(&format!("{place}/machine"), &format!("{part}-share"))[0]);
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-6, "{shares:?}");
    }
    let seconds = std::fs::read_to_string(dir.path().join("s.csv")).unwrap();
    let columns = seconds.lines().next().unwrap().split(',').count();
    assert!(seconds.lines().all(|l| l.split(',').count() == columns), "{seconds}");
    assert!(seconds.lines().count() > 6, "a line for each run at least");
    assert_eq!(std::fs::read_dir(dir.path().join("d/raw")).unwrap().count(), 6);

    // The same command may measure again; then two results differ by chance only, which `compare` may not see.
    fine(dir.path(), &PFT);
    let compared = run(dir.path(), &["compare", "r.json", "d"]);
    assert!([Some(0), Some(4)].contains(&compared.status.code()), "{}", text(&compared.stderr));
    let compared = text(&compared.stdout);
    assert!(compared.contains("processes-2.packets-0: faults [1/s]"), "{compared}");
    let explained = fine(dir.path(), &["explain", "r.json"]);
    assert!(explained.contains("A record of a real benchmark"), "{explained}");
    fine(dir.path(), &["report", "r.json", "d", "-o", "r.html"]);
    let page = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(page.contains("The machine, second by second") && page.contains("std. dev."));
    // It is of no scenario that could run again.
    let again = run(dir.path(), &["run", "r.json"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
}

#[test]
fn a_tree_is_built_as_kernbench_does() {
    if !Path::new("/usr/bin/make").exists() {
        println!("skipped: there is no make");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("tree")).unwrap();
    let makefile = "all: a b\na b:\n\techo $@ > $@\nclean:\n\trm -f a b\n";
    std::fs::write(dir.path().join("tree/Makefile"), makefile).unwrap();
    let args = ["measure", "kernbench", "--tree=tree", "--runs=2", "-M", "--json=r.json"];
    let out = fine(dir.path(), &args);
    assert!(out.contains("Average Half load -j "), "{out}");
    assert!(out.contains("Elapsed Time ") && out.contains("Sleeps "), "{out}");
    assert!(!out.contains("maximal"), "-M leaves it out: {out}");
    assert_eq!(
        std::fs::read_dir(dir.path().join("tree")).unwrap().count(),
        1,
        "the tree is as it was"
    );
    assert_eq!(
        record(dir.path(), "r.json")["real"]["places"],
        serde_json::json!(["half", "optimal"])
    );
}

#[test]
fn a_lock_is_judged_by_a_program() {
    if std::env::var_os("OVERSPIN_PRELOAD").is_none()
        && !Path::new(env!("CARGO_BIN_EXE_overspin"))
            .with_file_name("liboverspin_preload.so")
            .exists()
    {
        println!("skipped: the preload library is not built");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "measure",
        "command",
        "--lock=none,mutex",
        "--runs=2",
        "--json=r.json",
        "--",
        "sleep",
        "0.05",
    ];
    let out = fine(dir.path(), &args);
    assert!(out.contains("change %") && out.contains("against `none`"), "{out}");
    // It says so when the lock had nothing to do.
    assert!(out.contains("took 0 pthread mutexes through `mutex`"), "{out}");
    let record = record(dir.path(), "r.json");
    assert_eq!(record["real"]["locks"], serde_json::json!(["none", "mutex"]));
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], code: i32, said: &str| {
        let output = run(dir.path(), args);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {err}");
        assert!(err.contains(said), "{args:?}: {err}");
    };
    refused(&["measure", "kernbench", "--tree=no-such"], 2, "there is no tree `no-such`");
    refused(&["measure", "kernbench", "--tree=.", "-H", "-O", "-M"], 2, "no load is left");
    refused(&["measure", "kernbench", "--tree=."], 2, "has no Makefile");
    refused(&["measure", "pft", "--workers=fibers-2"], 2, "processes-N or threads-N");
    refused(&["measure", "pft", "--workers=threads-0"], 2, "processes-N or threads-N");
    refused(&["measure", "dbench", "--length=1500ms"], 2, "whole seconds");
    refused(&["measure", "pft", "--runs=1", "--time=1s"], 2, "cannot be used with");
    refused(
        &["measure", "command", "--lock=no-such", "--", "true"],
        2,
        "there is no lock `no-such`",
    );
    refused(&["measure", "command", "--lock=none,none", "--", "true"], 2, "named twice");
    refused(&["measure", "command", "--", "no-such-program"], 2, "there is no program");
    refused(&["measure", "command", "--runs=1", "--", "false"], 3, "`false` failed");
    let nowhere = ["measure", "command", "--scratch=/proc/none", "--", "true"];
    refused(&nowhere, 3, "/proc/none");
    let mut no_path = overspin(dir.path(), &["measure", "dbench"]);
    let output = no_path.env("PATH", "/nowhere").output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("apt-get install dbench"), "{err}");
}

#[test]
fn ctrl_c_and_a_kill_leave_no_process_and_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = dir.path().join("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let scratch_option = format!("--scratch={}", scratch.display());
    let (json, out) = ("--json=r.json", "--out=d");
    let args =
        ["measure", "command", json, out, &scratch_option, "--runs=1000", "--", "sleep", "0.1"];
    // From the second time on, there are files of the first one, so that the signal comes when the folder is a moment old.
    // Whatever moment that is, somebody must be there to remove it.
    for (signal, code) in [("-INT", Some(130))].into_iter().chain([("-KILL", None); 10]) {
        let mut child = overspin(dir.path(), &args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A later command writes over the files of the first.
        let runs = || std::fs::read_dir(dir.path().join("d/raw")).map_or(0, Iterator::count);
        let begun = || std::fs::read_dir(&scratch).unwrap().count() > 0;
        common::until("a run has ended", || runs() > 0 && begun());
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), code);
        // A killed process cleans up by its guardian, shortly after.
        common::until("nothing is left", || std::fs::read_dir(&scratch).unwrap().count() == 0);
    }
    let record = record(dir.path(), "r.json");
    let warnings = record["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w.as_str().unwrap().contains("stopped")), "{warnings:?}");
    assert!(!record["runs"].as_array().unwrap().is_empty(), "the finished runs are kept");
}

#[test]
fn a_time_limit_keeps_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let args = [
        "measure",
        "command",
        "--max-wall=1s",
        "--runs=1000",
        "--json=r.json",
        "--",
        "sleep",
        "0.1",
    ];
    let output = run(dir.path(), &args);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(record(dir.path(), "r.json")["runs"].is_array());
}
