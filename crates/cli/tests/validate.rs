//! `overspin validate`: both sides of a few cases, the files that it writes, and misuse.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn overspin(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_overspin"))
        .args(args)
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

/// Few and short runs of these cases.
fn short<'a>(world: &'a str, cases: &'a str) -> Vec<&'a str> {
    let size = [
        "--machine",
        "generic-2008",
        "--pcpus",
        "1",
        "--repeats",
        "2",
        "--seeds",
        "2",
        "--quick",
        "--no-progress",
    ];
    let mut args = vec!["validate", "--world", world, "--cases", cases];
    args.extend(size);
    args
}

/// Whether this machine cannot run the world; then it says so.
fn skipped(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let lacks = output.status.code() == Some(3);
    if lacks {
        assert!(said.contains("help: "), "a remedy: {said}");
        println!("skipped: {}", said.lines().next().unwrap_or_default());
    }
    lacks
}

/// The record is read by every reader of records, and has a sample of each figure for each run.
fn check_record(dir: &Path, world: &str) {
    let text = fs::read(dir.join("a.json")).unwrap();
    let record: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(record["schema"], "overspin-record/1");
    assert_eq!(record["kind"], "validation");
    let compared = record["validation"]["compared"].as_array().unwrap();
    assert!(!compared.is_empty());
    for figure in compared {
        assert_eq!(figure["world"], world);
        for side in ["simulated", "measured"] {
            assert_eq!(figure[side]["n"], 2, "{figure}");
        }
        // The hogs of the case have one pCPU for two vCPUs: they never sleep, and share it.
        if figure["case"] == "hogs" && figure["metric"] == "running" {
            let share = figure["simulated"]["mean"].as_f64().unwrap();
            assert!((45.0..=50.0).contains(&share), "half of a pCPU each: {share}");
            let share = figure["measured"]["mean"].as_f64().unwrap();
            assert!(share > 0.0 && share <= 51.0, "at most half of a pCPU each: {share}");
        }
    }
    let output = overspin(dir, &["compare", "a.json", "a.json", "--quiet"]);
    assert!(output.status.success(), "{output:?}");
    let output = overspin(dir, &["report", "a.json", "-o", "a.html"]);
    assert!(output.status.success(), "{output:?}");
    let page = fs::read_to_string(dir.join("a.html")).unwrap();
    assert!(page.contains("Simulated beside measured") && page.contains("<svg"));
}

fn both_sides(world: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut args = short(world, "hogs,wake-0");
    args.extend(["--json", "a.json", "--svg", "a.svg", "--markdown", "a.md", "--out", "results"]);
    let output = overspin(dir.path(), &args);
    if skipped(&output) {
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("measured runs, which take"), "the time is said first: {said}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("Agreement") && report.contains("hogs"), "{report}");
    check_record(dir.path(), world);
    let svg = fs::read_to_string(dir.path().join("a.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("wake-0-hogs: wake-p50"), "{svg}");
    let markdown = fs::read_to_string(dir.path().join("a.md")).unwrap();
    assert!(markdown.contains("| hogs | throughput |"), "{markdown}");
    assert!(dir.path().join("results/report.html").is_file());
}

#[test]
fn threads_beside_the_simulator() {
    both_sides("threads");
}

#[test]
fn the_micro_hypervisor_beside_the_simulator() {
    both_sides("hv");
}

/// Without KVM, only a user who named the world is refused.
#[test]
fn without_kvm_threads_still_validate() {
    let dir = tempfile::tempdir().unwrap();
    let alone = overspin(dir.path(), &short("hv", "hogs"));
    if !skipped(&alone) {
        return println!("skipped: this machine has KVM");
    }
    let args: Vec<&str> =
        short("", "hogs").into_iter().filter(|a| !["--world", ""].contains(a)).collect();
    let output = overspin(dir.path(), &args);
    assert!(output.status.success(), "{output:?}");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("Not validated: the world `hv`"), "{report}");
}

#[test]
fn misuse_is_told_with_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        let output = overspin(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
    };
    refused(&["validate", "--world", "sim"], &["sim", "threads"]);
    let vax = ["validate", "--machine", "core-2", "--cases", "vax", "--world", "threads"];
    refused(&vax, &["vax", "ticket-1x"]);
    refused(&["validate", "--machine", "vax"], &["vax", "generic-2008"]);
    let none = [
        "validate",
        "--machine",
        "core-2",
        "--world",
        "threads",
        "--schedulers",
        "vax",
        "--cases",
        "hogs",
    ];
    refused(&none, &["no case is left"]);
    refused(&["validate", "--json", "-", "--svg", "-"], &["same destination"]);
}
