//! `overspin validate`: both sides of a few cases, the files that it writes, and misuse.

use crate::{json, overspin};
use overspin_testing::{Ended, Program, SCENARIO, deep, skip};

/// Samples of each figure, on each side.
fn samples() -> &'static str {
    if deep() { "2" } else { "1" }
}

/// Few and short runs of these cases.
fn short<'a>(world: &'a str, cases: &'a str) -> Vec<&'a str> {
    let size = [
        "--machine",
        "generic-2008",
        "--pcpus",
        "1",
        "--repeats",
        samples(),
        "--seeds",
        samples(),
        "--quick",
        "--no-progress",
    ];
    let mut args = vec!["validate", "--world", world, "--cases", cases];
    args.extend(size);
    args
}

/// Whether this machine cannot run the world; then it says so.
fn skipped(ended: &Ended) -> bool {
    let said = &ended.err;
    let lacks = ended.code == Some(3);
    if lacks {
        assert!(said.contains("help: "), "a remedy: {said}");
        skip(said.lines().next().unwrap_or_default());
    }
    lacks
}

/// The record is read by every reader of records, and has a sample of each figure for each run.
fn check_record(overspin: &Program, world: &str) {
    let record = json(&overspin.read("a.json"));
    assert_eq!(record["schema"], "overspin-record/1");
    assert_eq!(record["kind"], "validation");
    let compared = record["validation"]["compared"].as_array().unwrap();
    assert!(!compared.is_empty());
    for figure in compared {
        assert_eq!(figure["world"], world);
        for side in ["simulated", "measured"] {
            assert_eq!(figure[side]["n"].to_string(), samples(), "{figure}");
        }
        // The hogs of the case have one pCPU for two vCPUs: they never sleep, and share it.
        if figure["case"] == "hogs" && figure["metric"] == "running" {
            let share = figure["simulated"]["mean"].as_f64().unwrap();
            assert!((45.0..=50.0).contains(&share), "half of a pCPU each: {share}");
            let share = figure["measured"]["mean"].as_f64().unwrap();
            assert!(share > 0.0 && share <= 51.0, "at most half of a pCPU each: {share}");
        }
    }
    let compared = overspin.run(&["compare", "a.json", "a.json", "--quiet"]);
    // One sample on each side decides nothing.
    assert_eq!(compared.code, Some(if deep() { 0 } else { 4 }), "{}", compared.err);
    overspin.fine(&["report", "a.json", "-o", "a.html"]);
    let page = overspin.read("a.html");
    assert!(page.contains("Simulated beside measured") && page.contains("<svg"));
}

fn both_sides(world: &str) {
    let overspin = overspin();
    let mut args = short(world, "hogs,wake-0");
    args.extend(["--json", "a.json", "--svg", "a.svg", "--markdown", "a.md", "--out", "results"]);
    let ended = overspin.run(&args);
    if skipped(&ended) {
        return;
    }
    let (report, said) = ended.with(0);
    assert!(said.contains("measured runs, which take"), "the time is said first: {said}");
    assert!(report.contains("Agreement") && report.contains("hogs"), "{report}");
    check_record(&overspin, world);
    let svg = overspin.read("a.svg");
    assert!(svg.starts_with("<svg") && svg.contains("wake-0-hogs: wake-p50"), "{svg}");
    let markdown = overspin.read("a.md");
    assert!(markdown.contains("| hogs | throughput |"), "{markdown}");
    assert!(overspin.path("results/report.html").is_file());
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
    let overspin = overspin();
    overspin.write("s.toml", SCENARIO);
    if overspin.run(&["run", "s.toml", "--world", "hv", "--set", "host.cores=1"]).code == Some(0) {
        return skip("this machine has KVM");
    }
    assert!(skipped(&overspin.run(&short("hv", "hogs"))), "it is refused");
    let args: Vec<&str> =
        short("", "hogs").into_iter().filter(|a| !["--world", ""].contains(a)).collect();
    let (report, _) = overspin.fine(&args);
    assert!(report.contains("Not validated: the world `hv`"), "{report}");
}

#[test]
fn misuse_is_told_with_what_there_is() {
    let overspin = overspin();
    let refused = |args: &[&str], words: &[&str]| {
        let said = overspin.fails(args, 2);
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
    };
    // With a machine and a world, nothing is measured before the mistake is found.
    refused(&["validate", "--machine", "core-2", "--world", "sim"], &["sim", "threads"]);
    let vax = ["validate", "--machine", "core-2", "--cases", "vax", "--world", "threads"];
    refused(&vax, &["vax", "ticket-1x"]);
    refused(&["validate", "--machine", "vax", "--world", "threads"], &["vax", "generic-2008"]);
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
