//! `overspin advise`: the page, its files, and the commands that repeat its numbers.

use crate::{json, overspin};
use overspin_testing::{Ended, Program};
use serde_json::Value;

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

/// The small question; its options give way to those of `more`.
fn small(overspin: &Program, more: &[&str]) -> Ended {
    let own = SMALL[1..].chunks(2).filter(|pair| !more.contains(&pair[0])).flatten();
    let args: Vec<&str> = [SMALL[0]].iter().chain(own).chain(more).copied().collect();
    overspin.run(&args)
}

#[test]
fn a_number_can_be_repeated_with_the_command_that_is_printed() {
    let overspin = overspin();
    let files =
        ["--scenario", "mine.toml", "--json", "a.json", "--svg", "a.svg", "--markdown", "a.md"];
    let (page, _) = small(&overspin, &files).with(0);
    let record = json(&overspin.read("a.json"));
    assert_eq!(record["schema"], "overspin-advice/1");
    let points = record["points"].as_array().unwrap();
    let lines: Vec<&str> = page.lines().filter(|l| l.contains("overspin run mine.toml")).collect();
    assert_eq!(lines.len(), points.len(), "{page}");
    for (line, point) in lines.iter().zip(points) {
        let (_, command) = line.split_once("overspin ").unwrap();
        let mut args: Vec<&str> = command.split_whitespace().collect();
        args.extend(["--quiet", "--json", "-"]);
        let again = json(&overspin.fine(&args).0);
        let hashes = |runs: &Value| -> Vec<Value> {
            runs.as_array().unwrap().iter().map(|run| run["trace_hash"].clone()).collect()
        };
        assert_eq!(hashes(&again["runs"]), hashes(&point["runs"]), "{line}");
    }
    for words in [
        "What was asked",
        "Recommended: scheduler ",
        "How far to trust it",
        "2.0:1",
        "95 % interval",
        "assumed",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(overspin.read("a.svg").contains("2 pCPUs (yours)"));
    assert!(overspin.read("a.md").starts_with("# How far"));
}

#[test]
fn mistakes_are_said_before_anything_runs() {
    let overspin = overspin();
    for (args, words) in [
        (&["--machine", "vax"][..], "there is no machine `vax`"),
        (&["--lock", "tiket"], "did you mean `ticket`"),
        (&["--work", "mining"], "possible values: build, database, web, locks"),
        (&["--svg", "no/such/a.svg"], "create the directory first"),
        (&["--json", "-", "--svg", "-"], "two outputs have the same destination"),
    ] {
        let Ended { code, out, err, .. } = small(&overspin, args);
        assert!(code != Some(0) && err.contains(words), "{args:?}: {err}");
        assert!(out.is_empty(), "{args:?}");
    }
}

#[test]
fn a_limit_keeps_what_there_is() {
    let overspin = overspin();
    let (page, _) = small(&overspin, &["--length", "10s", "--max-wall", "100ms"]).with(4);
    assert!(page.contains("deadlocked or stopped") && page.contains("overspin run"), "{page}");
}
