//! Runs that seem to have no end: what they print, and what remains when they are stopped.

mod common;

use common::until;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Steps of a nanosecond during a simulated day.
const ENDLESS: &str = r#"
limit = "86400s"
[host]
cores = 1
[[domain]]
name = "guest"
vcpus = 1
lock = "ticket"
workload = { kind = "lock-loop", section = "1ns", outside = "1ns" }
"#;

fn overspin(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).env("NO_COLOR", "1").args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("endless.toml"), ENDLESS).unwrap();
    let vary =
        "[[vary]]\nname = \"lock\"\nset = \"domain.guest.lock\"\nto = [\"ticket\", \"mcs\"]\n";
    fs::write(dir.path().join("sweep.toml"), format!("{ENDLESS}{vary}")).unwrap();
    dir
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Starts a run with a record and a trace, and waits until it is well under way: it has begun to write both, and a
/// megabyte of the trace tells of more than a thousand acquisitions.
fn start(dir: &Path) -> Child {
    let args = ["run", "endless.toml", "--json", "r.json", "--trace", "t.pftrace"];
    let child = overspin(dir, &args).spawn().unwrap();
    let size = |name: &String| fs::metadata(dir.join(name)).map_or(0, |file| file.len());
    until("both outputs are being written", || {
        let begun: Vec<String> = names(dir).into_iter().filter(|n| n.ends_with(".tmp")).collect();
        begun.len() == 2 && begun.iter().any(|name| size(name) > 1 << 20)
    });
    child
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn record(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("r.json")).unwrap()).unwrap()
}

#[track_caller]
fn kept(dir: &Path, output: &Output, by: &str) {
    assert_eq!(names(dir), ["endless.toml", "r.json", "sweep.toml", "t.pftrace"]);
    let record = record(dir);
    assert_eq!(record["runs"][0]["ending"]["by"], by);
    assert!(
        record["runs"][0]["outcome"]["domains"][0]["locks"][0]["acquisitions"].as_u64()
            > Some(1000)
    );
    assert!(text(&output.stdout).contains("STOPPED BEFORE THE END"), "{}", text(&output.stdout));
}

#[test]
fn the_wall_clock_limit_keeps_what_there_is() {
    let dir = folder();
    let began = Instant::now();
    let args =
        ["run", "endless.toml", "--max-wall", "1s", "--json", "r.json", "--trace", "t.pftrace"];
    let output = overspin(dir.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(began.elapsed() < Duration::from_secs(30));
    kept(dir.path(), &output, "max-wall");
    let output =
        overspin(dir.path(), &["run", "sweep.toml", "--max-wall", "100ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(report.contains("-: not made, or stopped before its end"), "{report}");
    let output = overspin(dir.path(), &["run", "sweep.toml", "--max-wall", "10"]).output().unwrap();
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("10min"));
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let dir = folder();
    let child = start(dir.path());
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    kept(dir.path(), &output, "interrupted");
}

#[test]
#[cfg(target_os = "linux")]
fn a_termination_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt;
    let dir = folder();
    let child = start(dir.path());
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(15), "it ends as the signal ends processes");
    assert_eq!(names(dir.path()), ["endless.toml", "sweep.toml"]);
}

#[test]
fn a_long_run_says_how_far_it_is_unless_it_is_not_to() {
    let dir = folder();
    let args = ["run", "endless.toml", "--max-wall"];
    let silent = ["6s", "--no-progress"];
    let silent = overspin(dir.path(), &[&args[..], &silent].concat()).spawn().unwrap();
    // The line comes after five seconds, or later where the machine is busy.
    let mut tells = overspin(dir.path(), &[&args[..], &["300s"]].concat()).spawn().unwrap();
    let mut lines = BufReader::new(tells.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|l| l.contains("of 86400 simulated s after ")).expect("it tells");
    signal(&tells, "-INT");
    tells.wait().unwrap();
    assert!(line.contains(" a second, at most ") && line.contains(" left"), "{line}");
    let after = line.split(" after ").nth(1).and_then(|rest| rest.split(" s,").next()).unwrap();
    assert!(after.parse::<u32>().unwrap() >= 5, "{line}");
    let silent = text(&silent.wait_with_output().unwrap().stderr);
    assert!(!silent.contains("simulated s"), "{silent}");
    assert!(
        silent.contains("stopped before the end: the wall-clock limit was reached"),
        "{silent}"
    );
}
