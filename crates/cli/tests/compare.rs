//! `overspin compare`: its output, and its exit codes.

use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn compare(dir: &Path, args: &[&str], input: &str) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    let command = command.current_dir(dir).env("NO_COLOR", "1").arg("compare").args(args);
    let output = command.write_stdin(input).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

/// ministat's own example, and a set that differs for certain.
fn files() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("iguana", "50\n200\n150\n400\n750\n400\n150\n"),
        ("chameleon", "150\n400\n720\n500\n930\n"),
        ("slow", "1 9050\n2 9000\n3 9100\n4 9020\n5 9080\n"),
        ("one", "7\n"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

#[test]
fn ministats_example() {
    let dir = files();
    let (out, _, code) = compare(dir.path(), &["iguana", "chameleon"], "");
    assert_eq!(code, 0);
    assert!(out.contains("No difference proven at 95% confidence."), "{out}");
    // As on the manual page: 7 50 750 200 300 238.04761; 5 150 930 500 540 299.08193.
    assert!(out.contains("238.0") && out.contains("299.1") && out.contains("540.0"), "{out}");
    assert!(out.contains("A |---") && out.contains("M"), "{out}");
    let (out, _, code) = compare(dir.path(), &["iguana", "-"], "150 400 720 500 930");
    assert_eq!(code, 4, "one line is one sample of each column: {out}");
    let (out, ..) = compare(dir.path(), &["iguana", "-", "-c", "80"], "150\n400\n720\n500\n930\n");
    assert!(out.contains("proven") || out.contains("Difference at 80%"), "{out}");
}

#[test]
fn exit_codes_tell_of_regressions() {
    let dir = files();
    let of = |args: &[&str]| compare(dir.path(), args, "");
    let (out, _, code) = of(&["iguana", "slow", "--column", "1", "--better", "lower"]);
    assert_eq!(code, 0, "small numbers are better here: {out}");
    let slow = "iguana2";
    fs::write(dir.path().join(slow), "0 50\n0 200\n0 150\n0 400\n0 750\n").unwrap();
    let (out, _, code) = of(&[slow, "slow", "--column", "2", "--better", "lower"]);
    assert!(code == 1 && out.contains("REGRESSED"), "{out}");
    let (out, _, code) = of(&[slow, "slow", "--column", "2", "--better", "higher"]);
    assert!(code == 0 && out.contains("Improved"), "{out}");
    let (out, _, code) = of(&["iguana", "one"]);
    assert!(code == 4 && out.contains("Undecided") && out.contains("only 1 samples"), "{out}");
    let (json, ..) = of(&["iguana", "chameleon", "--json", "-"]);
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["comparisons"][0]["finding"], "same");
    let (csv, ..) = of(&["iguana", "chameleon", "--csv", "-"]);
    // The means are those of ministat's manual page.
    assert!(csv.starts_with("run,seed,where,metric,unit,value\n0,,,n-a,,7\n"), "{csv}");
    assert!(csv.contains("0,,,mean-a,,300\n0,,,mean-b,,540\n"), "{csv}");
}

#[test]
fn records_of_different_machines_are_told_apart() {
    let dir = files();
    let record = |cpu: &str, model: u32| {
        let samples: Vec<Value> = (1..=5)
            .map(|n| json!({"run": n - 1, "where": "x", "metric": "time", "unit": "s", "value": n}))
            .collect();
        let record = json!({
            "schema": "overspin-record/1", "version": "1", "model_version": model, "kind": "bench",
            "name": "x", "description": "", "seed": null, "runs": [], "samples": samples,
            "environment": {
                "overspin": "1", "model_version": model, "debug_build": false, "cpu": cpu, "cpus": 2,
                "usable_cpus": 2, "cores": 1, "kernel": "Linux 6", "hypervisor": null,
            },
        });
        record.to_string()
    };
    fs::write(dir.path().join("a.json"), record("Abacus", 1)).unwrap();
    fs::write(dir.path().join("b.json"), record("Babbage", 2)).unwrap();
    let (out, ..) = compare(dir.path(), &["a.json", "b.json"], "");
    assert!(out.contains("WARNING: a.json and b.json are of different machines: Abacus"), "{out}");
    assert!(out.contains("simulated by different models, of version 1 and 2"), "{out}");
    let (out, ..) = compare(dir.path(), &["a.json", "a.json"], "");
    assert!(!out.contains("WARNING"), "{out}");
    let (json, ..) = compare(dir.path(), &["a.json", "b.json", "--json", "-"], "");
    let record: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["warnings"].as_array().unwrap().len(), 2);
}

#[test]
fn mistakes_have_a_place_and_exit_code_2() {
    let dir = files();
    fs::write(dir.path().join("bad"), "1\n2\nx\n").unwrap();
    let (_, err, code) = compare(dir.path(), &["iguana", "bad"], "");
    assert!(code == 2 && err.contains("bad:3:1: `x` is not a number"), "{err}");
    let (_, err, code) = compare(dir.path(), &["iguana", "slow", "-c", "200"], "");
    assert!(code == 2 && err.contains("50 to 99.99"), "{err}");
    let (_, err, code) = compare(dir.path(), &["iguana"], "");
    assert!(code == 2, "{err}");
    let hyperfine = r#"{"results":[{"command":"ls","times":[1,2]}]}"#;
    fs::write(dir.path().join("h.json"), hyperfine).unwrap();
    let (_, err, code) = compare(dir.path(), &["iguana", "h.json"], "");
    assert!(code == 2 && err.contains("no measurement in common"), "{err}");
    assert!(err.contains("h.json has ls: time"), "{err}");
    let (_, err, code) = compare(dir.path(), &["h.json", "h.json", "--metric", "speed"], "");
    assert!(code == 2 && err.contains("h.json has no metric `speed`"), "{err}");
    assert!(err.contains("the file has: time"), "{err}");
}
