//! The world `hv` from the command line. Without KVM these tests say that they are skipped.

use crate::{json, overspin};
use overspin_testing::{Ended, Program, signal, skip};
use std::thread::sleep;
use std::time::Duration;

/// Both outputs of a command that worked; `None` and a line if this machine lacks KVM or a second CPU.
fn fine(overspin: &Program, args: &[&str]) -> Option<(String, String)> {
    let Ended { code, out, err, .. } = overspin.run(args);
    if code == Some(3) {
        skip(&err);
        return None;
    }
    assert_eq!(code, Some(0), "{args:?}: {err}");
    Some((out, err))
}

/// Long enough for several waits to end: a wait for a lock whose holder lost the pCPU takes two slices of 30 ms and
/// more, and only a wait that has ended is in the results.
const SCENARIO: &str = r#"
name = "real"
limit = "1s"
[host]
cores = 1
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
[domain.workload]
kind = "lock-loop"
section = "50us"
outside = "20us"
"#;

fn folder() -> Program {
    let overspin = overspin();
    overspin.write("s.toml", SCENARIO);
    overspin
}

#[test]
fn a_record_says_where_it_was_measured_and_every_reader_reads_it() {
    let overspin = folder();
    let args = [
        "run",
        "s.toml",
        "--world",
        "hv",
        "--json",
        "r.json",
        "--trace",
        "t.pftrace",
        "--out",
        "d",
    ];
    let Some((out, err)) = fine(&overspin, &args) else { return };
    assert!(out.contains("Measured in the world `hv`"), "{out}");
    assert_eq!(err.matches("warning:").count(), 1, "{err}");
    let text = overspin.read("r.json");
    assert!(text.contains("\"world\": \"hv\""), "{}", json(&text));
    assert!(std::fs::metadata(overspin.path("t.pftrace")).unwrap().len() > 1_000);
    let (explained, _) = overspin.fine(&["explain", "r.json"]);
    assert!(explained.contains("seconds in the world `hv`, scheduler credit"), "{explained}");
    overspin.fine(&["report", "r.json", "d", "-o", "r.html"]);
    let page = overspin.read("r.html");
    for told in [
        "What waits were spent on",
        "Where time went",
        "There is no timeline: its runs were measured",
    ] {
        assert!(page.contains(told), "the page has no `{told}`");
    }
    // One run on each side decides nothing.
    overspin.fails(&["compare", "r.json", "d"], 4);
    // What was measured cannot be repeated.
    overspin.fails(&["top", "r.json", "--once"], 2);
}

#[test]
fn ctrl_c_ends_a_run_that_is_kept() {
    let overspin = folder();
    let args = ["run", "s.toml", "--world", "hv", "--set", "limit=100s", "--json", "r.json"];
    let child = overspin.start(&args);
    sleep(Duration::from_millis(700));
    signal(&child, "INT");
    let Ended { code, err, .. } = Ended::wait(child);
    if code == Some(3) {
        return skip(&err);
    }
    assert_eq!(code, Some(130), "{err}");
    let text = overspin.read("r.json");
    assert!(text.contains("interrupted"), "{text}");
}

#[test]
fn a_machine_that_is_too_small_is_an_error_of_the_environment() {
    let overspin = folder();
    let args = ["run", "s.toml", "--world", "hv", "--set", "host.cores=200"];
    let err = overspin.fails(&args, 3);
    assert!(err.contains("help:"), "{err}");
}

#[test]
fn what_a_guest_cannot_do_is_refused() {
    let overspin = folder();
    let refused = |more: &[&str], why: &str| {
        let err = overspin.fails(&[&["run", "s.toml"], more].concat(), 2);
        assert!(err.contains(why) && err.contains("help:"), "{err}");
    };
    let spins = ["workload.mode=user", "workload.threads=3", "kernel.hz=0"];
    let spins = spins.map(|key| format!("domain.guest.{key}"));
    let spins: Vec<&str> = spins.iter().flat_map(|key| ["--set", key.as_str()]).collect();
    refused(&[&["--world", "hv"], &*spins].concat(), "set `kernel.hz`");
    refused(&["--guest", "s.toml"], "--world hv");
    refused(&["--world", "hv", "--guest", "s.toml"], "ELF");
    refused(&["--world", "hw"], "worlds are: sim, threads, processes, hv");
}
