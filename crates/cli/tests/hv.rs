//! The world `hv` from the command line. Without KVM these tests say that they are skipped.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn overspin(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).args(args).env("NO_COLOR", "1").env("LANG", "C.UTF-8");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The output of a command that worked; `None`, said aloud, if this machine lacks KVM or a second CPU.
fn fine(dir: &Path, args: &[&str]) -> Option<Output> {
    let output = overspin(dir, args).output().unwrap();
    if output.status.code() == Some(3) {
        println!("skipped: {}", text(&output.stderr));
        return None;
    }
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    Some(output)
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

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    dir
}

#[test]
fn a_record_says_where_it_was_measured_and_every_reader_reads_it() {
    let dir = folder();
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
    let Some(run) = fine(dir.path(), &args) else { return };
    assert!(text(&run.stdout).contains("Measured in the world `hv`"), "{}", text(&run.stdout));
    assert_eq!(text(&run.stderr).matches("warning:").count(), 1, "{}", text(&run.stderr));
    let json = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let record: Value = serde_json::from_str(&json).unwrap();
    assert!(json.contains("\"world\": \"hv\""), "{record}");
    assert!(std::fs::metadata(dir.path().join("t.pftrace")).unwrap().len() > 1_000);
    let explained = text(&fine(dir.path(), &["explain", "r.json"]).unwrap().stdout);
    assert!(explained.contains("seconds in the world `hv`, scheduler credit"), "{explained}");
    fine(dir.path(), &["report", "r.json", "d", "-o", "r.html"]).unwrap();
    let page = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    for told in [
        "What waits were spent on",
        "Where time went",
        "There is no timeline: its runs were measured",
    ] {
        assert!(page.contains(told), "the page has no `{told}`");
    }
    // One run on each side decides nothing.
    let compared = overspin(dir.path(), &["compare", "r.json", "d"]).output().unwrap();
    assert_eq!(compared.status.code(), Some(4), "{}", text(&compared.stderr));
    // What was measured cannot be repeated.
    let top = overspin(dir.path(), &["top", "r.json", "--once"]).output().unwrap();
    assert_eq!(top.status.code(), Some(2), "{}", text(&top.stderr));
}

#[test]
fn ctrl_c_ends_a_run_that_is_kept() {
    let dir = folder();
    let args = ["run", "s.toml", "--world", "hv", "--set", "limit=100s", "--json", "r.json"];
    let mut child =
        overspin(dir.path(), &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let since = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if since.elapsed() > Duration::from_secs(60) => {
                child.kill().unwrap();
                panic!("it did not end");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if code == Some(3) {
        println!("skipped: no KVM");
        return;
    }
    assert_eq!(code, Some(130));
    let json = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let record: Value = serde_json::from_str(&json).unwrap();
    assert!(json.contains("interrupted"), "{record}");
}

#[test]
fn a_machine_that_is_too_small_is_an_error_of_the_environment() {
    let dir = folder();
    let args = ["run", "s.toml", "--world", "hv", "--set", "host.cores=200"];
    let output = overspin(dir.path(), &args).output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("help:"), "{err}");
}

#[test]
fn what_a_guest_cannot_do_is_refused() {
    let dir = folder();
    let refused = |more: &[&str], why: &str| {
        let output = overspin(dir.path(), &[&["run", "s.toml"], more].concat()).output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(why) && err.contains("help:"), "{err}");
    };
    refused(
        &["--world", "hv", "--set", "domain.guest.workload.threads=3"],
        "one task on each vCPU",
    );
    refused(&["--guest", "s.toml"], "--world hv");
    refused(&["--world", "hv", "--guest", "s.toml"], "ELF");
    refused(&["--world", "hw"], "worlds are: sim, threads, processes, hv");
}
