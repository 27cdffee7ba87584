//! `overspin run --seeds`, and files that vary the seed.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

const SCENARIO: &str = r#"
limit = "20ms"
[host]
cores = 2
[[domain]]
name = "guest"
vcpus = 4
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

const VARY: &str = r#"
[[vary]]
name = "seed"
set = "seed"
to = ["5", "6", "7"]
"#;

const LOCKS: &str = r#"
[[vary]]
name = "lock"
set = "domain.guest.lock"
to = ["ticket", "lock-byte"]
"#;

fn run(dir: &Path, scenario: &str, args: &[&str]) -> (String, String, Option<i32>) {
    let path = dir.join("s.toml");
    std::fs::write(&path, scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_overspin"))
        .env("NO_COLOR", "1")
        .args(["run", path.to_str().unwrap()])
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

fn record(dir: &Path, scenario: &str, args: &[&str]) -> Value {
    let (out, err, code) = run(dir, scenario, &[args, &["--json", "-"]].concat());
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn all_samples_are_kept_with_their_seeds() {
    let dir = tempfile::tempdir().unwrap();
    let over = record(dir.path(), SCENARIO, &["--seed=5", "--seeds=3"]);
    assert_eq!((&over["schema"], &over["kind"]), (&"overspin-record/1".into(), &"seeds".into()));
    let of_section = |part: &str| -> Vec<Value> {
        let rate = |s: &&Value| s["where"] == "guest/section" && s["metric"] == "acquisitions";
        over[part].as_array().unwrap().iter().filter(rate).cloned().collect()
    };
    let rate = of_section("over_seeds").remove(0);
    assert_eq!(rate["seeds"], serde_json::json!([5, 6, 7]));
    let samples: Vec<f64> =
        of_section("samples").iter().map(|s| s["value"].as_f64().unwrap()).collect();
    assert_eq!(samples.len(), 3);
    let mean = rate["mean"].as_f64().unwrap();
    assert!((samples.iter().sum::<f64>() / 3.0 - mean).abs() < 1e-6 * mean);
    assert!(rate["interval"]["low"].as_f64().unwrap() <= mean);
    // The run with one of these seeds is the same run.
    let one = record(dir.path(), SCENARIO, &["--seed=6"]);
    assert_eq!(one["runs"][0]["trace_hash"], over["runs"][1]["trace_hash"]);
    // A file that varies only the seed is the same thing.
    let varied = record(dir.path(), &format!("{SCENARIO}{VARY}"), &[]);
    assert_eq!((&varied["runs"], &varied["samples"]), (&over["runs"], &over["samples"]));
    // --seed alone asks for one run of it.
    let alone = record(dir.path(), &format!("{SCENARIO}{VARY}"), &["--seed=6"]);
    assert_eq!(alone["runs"], one["runs"]);
}

#[test]
fn means_are_printed_and_can_be_compared() {
    let dir = tempfile::tempdir().unwrap();
    let (out, err, code) = run(dir.path(), SCENARIO, &["--seeds=6"]);
    assert_eq!(code, Some(0), "{err}");
    for words in ["6 runs", "seeds 1 to 6", "95 % from", "guest/section", "p99.9 wait"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let files = ["ticket", "lock-byte"].map(|lock| {
        let file = dir.path().join(format!("{lock}.json")).to_str().unwrap().to_owned();
        let set = format!("domain.guest.lock={lock}");
        let (_, err, code) =
            run(dir.path(), SCENARIO, &["--quiet", "--seeds=6", "--set", &set, "--json", &file]);
        assert_eq!(code, Some(0), "{err}");
        file
    });
    let compared = Command::new(env!("CARGO_BIN_EXE_overspin"))
        .arg("compare")
        .args(&files)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let compared = String::from_utf8(compared).unwrap();
    assert!(compared.contains("guest/section: acquisitions [1/s]"), "{compared}");
}

#[test]
fn sweeps_have_means_and_keep_each_run() {
    let dir = tempfile::tempdir().unwrap();
    let sweep = record(dir.path(), &format!("{SCENARIO}{LOCKS}"), &["--seed=5", "--seeds=3"]);
    assert_eq!(sweep["runs"].as_array().unwrap().len(), 6);
    // Six metrics for each of two points.
    assert_eq!(sweep["over_seeds"].as_array().unwrap().len(), 2 * 6);
    assert_eq!(sweep["over_seeds"][11]["seeds"], serde_json::json!([5, 6, 7]));
    let varied = record(dir.path(), &format!("{SCENARIO}{LOCKS}{VARY}"), &[]);
    for part in ["axes", "points", "runs", "samples", "over_seeds"] {
        assert_eq!(sweep[part], varied[part], "the seed is no axis");
    }
    let (out, ..) = run(dir.path(), &format!("{SCENARIO}{VARY}{LOCKS}"), &[]);
    assert!(out.contains("6 runs") && out.contains('±') && !out.contains("Columns: seed"), "{out}");
}

#[test]
fn mistakes() {
    let dir = tempfile::tempdir().unwrap();
    for (scenario, args, cause) in [
        (SCENARIO, &["--seeds=1"][..], "1 is not in 2..=10000"),
        (SCENARIO, &["--seeds=3", "--trace=t.pftrace"], "cannot be used with"),
        (&*format!("{SCENARIO}{VARY}"), &["--trace=t.pftrace"], "a trace is of one run"),
        (&*format!("{SCENARIO}{VARY}").replace("\"7\"", "\"x\""), &[], "`x` is not a seed"),
    ] {
        let (out, err, code) = run(dir.path(), scenario, args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
        assert!(err.contains(cause), "{args:?}: {err}");
    }
    assert!(!dir.path().join("t.pftrace").exists());
}

#[test]
fn a_file_that_varies_only_the_seed_is_explained_with_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.toml");
    std::fs::write(&path, format!("{SCENARIO}{VARY}")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_overspin")).arg("explain").arg(path).output();
    let output = output.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.to_lowercase().contains("seed 5"), "{text}");
}
