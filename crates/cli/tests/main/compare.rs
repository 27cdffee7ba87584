//! `overspin compare`: its output, and its exit codes.

use crate::overspin;
use overspin_testing::{Ended, Program};
use serde_json::json;
use std::fs::File;

/// Compares, with this text on standard input; returns both outputs and the exit code.
fn compare(overspin: &Program, args: &[&str], input: &str) -> (String, String, i32) {
    overspin.write("input", input);
    let mut command = overspin.command(&[&["compare"], args].concat());
    let Ended { code, out, err, .. } =
        Ended::of(command.stdin(File::open(overspin.path("input")).unwrap()));
    (out, err, code.unwrap())
}

/// ministat's own example, and a set that differs for certain.
fn files() -> Program {
    let overspin = overspin();
    for (name, text) in [
        ("iguana", "50\n200\n150\n400\n750\n400\n150\n"),
        ("chameleon", "150\n400\n720\n500\n930\n"),
        ("slow", "1 9050\n2 9000\n3 9100\n4 9020\n5 9080\n"),
        ("one", "7\n"),
    ] {
        overspin.write(name, text);
    }
    overspin
}

/// `crates/page/tests/main/compare.rs` tests what is found and printed.
#[test]
fn files_and_standard_input_are_compared() {
    let overspin = files();
    let (out, _, code) = compare(&overspin, &["iguana", "chameleon"], "");
    assert_eq!(code, 0);
    assert!(
        out.contains("No difference is proven at 95 % confidence in the only figure."),
        "{out}"
    );
    let (out, _, code) = compare(&overspin, &["iguana", "-"], "150 400 720 500 930");
    assert_eq!(code, 4, "one line is one sample of each column: {out}");
    let (out, ..) = compare(&overspin, &["iguana", "-", "-c", "80"], "150\n400\n720\n500\n930\n");
    assert!(out.contains("proven") || out.contains("Proven at 80 %"), "{out}");
}

#[test]
fn exit_codes_tell_of_regressions() {
    let overspin = files();
    let of = |args: &[&str]| compare(&overspin, args, "");
    let (out, _, code) = of(&["iguana", "slow", "--column", "1", "--better", "lower"]);
    assert_eq!(code, 0, "small numbers are better here: {out}");
    let slow = "iguana2";
    overspin.write(slow, "0 50\n0 200\n0 150\n0 400\n0 750\n");
    let (out, _, code) = of(&[slow, "slow", "--column", "2", "--better", "lower"]);
    assert!(
        code == 1 && out.contains("B, `slow`, is WORSE than A, `iguana2`: 29.2 times"),
        "{out}"
    );
    let (out, _, code) = of(&[slow, "slow", "--column", "2", "--better", "higher"]);
    assert!(code == 0 && out.contains("is better than A, `iguana2`"), "{out}");
    let (out, _, code) = of(&["iguana", "one", "--verbose"]);
    assert!(
        code == 4 && out.contains("1 with too few") && out.contains("too few samples\n"),
        "{out}"
    );
    assert!(out.contains("Undecided") && out.contains("only 1 samples"), "{out}");
    let (json, ..) = of(&["iguana", "chameleon", "--json", "-"]);
    let record = crate::json(&json);
    assert_eq!(record["comparisons"][0]["finding"], "same");
    let (csv, ..) = of(&["iguana", "chameleon", "--csv", "-"]);
    // The means are those of ministat's manual page.
    assert!(csv.starts_with("run,seed,where,metric,unit,value\n0,,,n-a,,7\n"), "{csv}");
    assert!(csv.contains("0,,,mean-a,,300\n0,,,mean-b,,540\n"), "{csv}");
}

#[test]
fn warnings_are_printed_and_written() {
    let overspin = overspin();
    let record = |cpu: &str| {
        let record = json!({
            "schema": "overspin-record/1", "version": "1", "model_version": 1, "kind": "bench",
            "name": "x", "description": "", "seed": null, "runs": [],
            "samples": [{"run": 0, "where": "x", "metric": "time", "unit": "s", "value": 1}],
            "environment": {
                "overspin": "1", "model_version": 1, "debug_build": false, "cpu": cpu, "cpus": 2,
                "usable_cpus": 2, "cores": 1, "kernel": "Linux 6", "hypervisor": null,
            },
        });
        record.to_string()
    };
    overspin.write("a.json", record("Abacus"));
    overspin.write("b.json", record("Babbage"));
    let (out, ..) = compare(&overspin, &["a.json", "b.json"], "");
    assert!(out.contains("WARNING: a.json and b.json are of different machines: Abacus"), "{out}");
    let (out, ..) = compare(&overspin, &["a.json", "a.json"], "");
    assert!(!out.contains("WARNING"), "{out}");
    let (json, ..) = compare(&overspin, &["a.json", "b.json", "--json", "-"], "");
    assert_eq!(crate::json(&json)["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn mistakes_have_a_place_and_exit_code_2() {
    let overspin = files();
    overspin.write("bad", "1\n2\nx\n");
    let (_, err, code) = compare(&overspin, &["iguana", "bad"], "");
    assert!(code == 2 && err.contains("bad:3:1: `x` is not a number"), "{err}");
    let (_, err, code) = compare(&overspin, &["iguana", "slow", "-c", "200"], "");
    assert!(code == 2 && err.contains("50 to 99.99"), "{err}");
    let (_, err, code) = compare(&overspin, &["iguana"], "");
    assert!(code == 2, "{err}");
    let hyperfine = r#"{"results":[{"command":"ls","times":[1,2]}]}"#;
    overspin.write("h.json", hyperfine);
    let (_, err, code) = compare(&overspin, &["iguana", "h.json"], "");
    assert!(code == 2 && err.contains("no measurement in common"), "{err}");
    assert!(err.contains("h.json has ls: time"), "{err}");
    let (_, err, code) = compare(&overspin, &["h.json", "h.json", "--metric", "speed"], "");
    assert!(code == 2 && err.contains("h.json has no metric `speed`"), "{err}");
    assert!(err.contains("the file has: time"), "{err}");
}
