//! Runs that seem to have no end: what they print, and what remains when they are stopped.

use crate::{json, overspin};
use overspin_testing::{Ended, Program, deep, signal, until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
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

fn folder() -> Program {
    let overspin = overspin();
    overspin.write("endless.toml", ENDLESS);
    let vary =
        "[[vary]]\nname = \"lock\"\nset = \"domain.guest.lock\"\nto = [\"ticket\", \"mcs\"]\n";
    overspin.write("sweep.toml", format!("{ENDLESS}{vary}"));
    overspin
}

/// Starts a run with a record and a trace, and waits until it is well under way: it has begun to write both, and a
/// megabyte of the trace tells of more than a thousand acquisitions.
fn start(overspin: &Program) -> Child {
    let args = ["run", "endless.toml", "--json", "r.json", "--trace", "t.pftrace"];
    let child = overspin.start(&args);
    let size = |name: &String| fs::metadata(overspin.path(name)).map_or(0, |file| file.len());
    until("both outputs are being written", || {
        let begun: Vec<String> =
            overspin.names().into_iter().filter(|n| n.ends_with(".tmp")).collect();
        begun.len() == 2 && begun.iter().any(|name| size(name) > 1 << 20)
    });
    child
}

#[track_caller]
fn kept(overspin: &Program, report: &str, by: &str) {
    assert_eq!(overspin.names(), ["endless.toml", "r.json", "sweep.toml", "t.pftrace"]);
    let record = json(&overspin.read("r.json"));
    assert_eq!(record["runs"][0]["ending"]["by"], by);
    assert!(
        record["runs"][0]["outcome"]["domains"][0]["locks"][0]["acquisitions"].as_u64()
            > Some(1000)
    );
    assert!(report.contains("STOPPED BEFORE THE END"), "{report}");
}

#[test]
fn the_wall_clock_limit_keeps_what_there_is() {
    let overspin = folder();
    let began = Instant::now();
    let args =
        ["run", "endless.toml", "--max-wall", "1s", "--json", "r.json", "--trace", "t.pftrace"];
    let (report, _) = overspin.run(&args).with(4);
    assert!(began.elapsed() < Duration::from_secs(30));
    kept(&overspin, &report, "max-wall");
    let (report, _) = overspin.run(&["run", "sweep.toml", "--max-wall", "100ms"]).with(4);
    assert!(report.contains("-: not made, or stopped before its end"), "{report}");
    let err = overspin.fails(&["run", "sweep.toml", "--max-wall", "10"], 2);
    assert!(err.contains("10min"), "{err}");
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let overspin = folder();
        let child = start(&overspin);
        signal(&child, name);
        let (report, _) = Ended::wait(child).with(code);
        kept(&overspin, &report, "interrupted");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_termination_leaves_nothing_of_a_command_that_keeps_nothing() {
    let overspin = folder();
    let child = overspin.start(&["measure", "noise", "--duration=300s", "--json=r.json"]);
    until("its output is being written", || overspin.names().iter().any(|n| n.ends_with(".tmp")));
    signal(&child, "TERM");
    assert_eq!(Ended::wait(child).signal, Some(15), "it ends as the signal ends processes");
    assert_eq!(overspin.names(), ["endless.toml", "sweep.toml"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_hangup_that_nohup_ignores_stops_nothing() {
    let overspin = folder();
    let command = overspin.command(&["run", "endless.toml", "--max-wall=2s"]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]);
    shell.arg(command.get_program()).args(command.get_args()).current_dir(overspin.dir());
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let handled = || {
        let path = format!("/proc/{}/status", child.id());
        let status = fs::read_to_string(path).unwrap_or_default();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or_default();
        // SIGTERM is the fifteenth.
        u64::from_str_radix(caught.trim(), 16).is_ok_and(|set| set & (1 << 14) != 0)
    };
    until("it handles signals", handled);
    signal(&child, "HUP");
    Ended::wait(child).with(4);
}

/// The line comes after five seconds, or later where the machine is busy. The short form leaves out that nothing is said
/// in those seconds with --no-progress; `progress.rs` tests why.
#[test]
fn a_long_run_says_how_far_it_is_unless_it_is_not_to() {
    let overspin = folder();
    let args = ["run", "endless.toml", "--max-wall"];
    let silent = if deep() { "6s" } else { "200ms" };
    let silent = overspin.start(&[&args[..], &[silent, "--no-progress"]].concat());
    let mut tells = overspin.start(&[&args[..], &["300s"]].concat());
    let mut lines = BufReader::new(tells.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|l| l.contains("of 86400 simulated s after ")).expect("it tells");
    signal(&tells, "INT");
    tells.wait().unwrap();
    assert!(line.contains(" a second, at most ") && line.contains(" left"), "{line}");
    let after = line.split(" after ").nth(1).and_then(|rest| rest.split(" s,").next()).unwrap();
    assert!(after.parse::<u32>().unwrap() >= 5, "{line}");
    let silent = Ended::wait(silent).err;
    assert!(!silent.contains("simulated s"), "{silent}");
    assert!(
        silent.contains("stopped before the end: the wall-clock limit was reached"),
        "{silent}"
    );
}
