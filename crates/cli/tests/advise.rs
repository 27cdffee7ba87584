//! `overspin advise`: the page, its files, and the commands that repeat its numbers.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A small question: half a second of work.
const SMALL: &[&str] = &[
    "advise",
    "--pcpus",
    "2",
    "--guests",
    "2",
    "--vcpus",
    "2",
    "--work",
    "locks",
    "--schedulers",
    "credit",
    "--seeds",
    "2",
    "--length",
    "50ms",
];

fn overspin(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_overspin"))
        .args(args)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

/// The small question; its options give way to those of `more`.
fn small(dir: &Path, more: &[&str]) -> Output {
    let own = SMALL[1..].chunks(2).filter(|pair| !more.contains(&pair[0])).flatten();
    let args: Vec<&str> = [SMALL[0]].iter().chain(own).chain(more).copied().collect();
    overspin(dir, &args)
}

#[test]
fn a_number_can_be_repeated_with_the_command_that_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let files =
        ["--scenario", "mine.toml", "--json", "a.json", "--svg", "a.svg", "--markdown", "a.md"];
    let output = small(dir.path(), &files);
    assert!(output.status.success(), "{output:?}");
    let page = String::from_utf8(output.stdout).unwrap();
    let record: Value =
        serde_json::from_slice(&fs::read(dir.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(record["schema"], "overspin-advice/1");
    let points = record["points"].as_array().unwrap();
    let lines: Vec<&str> = page.lines().filter(|l| l.contains("overspin run mine.toml")).collect();
    assert_eq!(lines.len(), points.len(), "{page}");
    for (line, point) in lines.iter().zip(points) {
        let (_, command) = line.split_once("overspin ").unwrap();
        let mut args: Vec<&str> = command.split_whitespace().collect();
        args.extend(["--quiet", "--json", "-"]);
        let again = overspin(dir.path(), &args);
        let again: Value = serde_json::from_slice(&again.stdout).unwrap();
        let hashes = |runs: &Value| -> Vec<Value> {
            runs.as_array().unwrap().iter().map(|run| run["trace_hash"].clone()).collect()
        };
        assert_eq!(hashes(&again["runs"]), hashes(&point["runs"]), "{line}");
    }
    for words in ["In short", "How far to trust it", "2.0:1", "95 % interval", "assumed"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(fs::read_to_string(dir.path().join("a.svg")).unwrap().contains("2 pCPUs (yours)"));
    assert!(fs::read_to_string(dir.path().join("a.md")).unwrap().starts_with("# How far"));
}

#[test]
fn mistakes_are_said_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    for (args, words) in [
        (&["--machine", "vax"][..], "there is no machine `vax`"),
        (&["--lock", "tiket"], "did you mean `ticket`"),
        (&["--work", "mining"], "possible values: build, database, web, locks"),
        (&["--svg", "no/such/a.svg"], "create the directory first"),
        (&["--json", "-", "--svg", "-"], "two outputs have the same destination"),
    ] {
        let output = small(dir.path(), args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(words), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_limit_keeps_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let output = small(dir.path(), &["--length", "10s", "--max-wall", "100ms"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let page = String::from_utf8_lossy(&output.stdout);
    assert!(page.contains("deadlocked or stopped") && page.contains("overspin run"), "{page}");
}
