//! `overspin calibrate`, and the profile that it writes.

use serde_json::Value;
use std::fs;
use std::process::Command;

fn overspin(dir: &std::path::Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    let output = command.current_dir(dir).env("NO_COLOR", "1").args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const SCENARIO: &str = r#"
limit = "5ms"
[host]
cores = 1
machine = "here.toml"
[[domain]]
name = "guest"
vcpus = 1
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

#[test]
fn a_measured_profile_is_a_machine_of_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (code, out, err) =
        overspin(dir, &["calibrate", "--time", "1ms", "-o", "here.toml", "--json", "c.json"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("context_switch") && out.contains("Not measured"), "{out}");
    let profile: String = fs::read_to_string(dir.join("here.toml")).unwrap();
    assert!(profile.contains("# migration = "), "{profile}");
    let record: Value = serde_json::from_slice(&fs::read(dir.join("c.json")).unwrap()).unwrap();
    assert_eq!(record["kind"], "calibration");
    let samples = record["samples"].as_array().unwrap();
    let of = |place: &str| samples.iter().filter(|s| s["where"] == place).count();
    assert!(of("atomic") >= 3 && of("sleep") >= 3, "{samples:?}");

    fs::write(dir.join("s.toml"), SCENARIO).unwrap();
    let (code, _, err) = overspin(dir, &["run", "s.toml", "--json", "r.json"]);
    assert_eq!(code, Some(0), "{err}");
    let record: Value = serde_json::from_slice(&fs::read(dir.join("r.json")).unwrap()).unwrap();
    let atomic = record["scenario"]["host"]["costs"]["atomic"].as_u64().unwrap();
    assert!(profile.contains(&format!("atomic = \"{atomic}ps\"")), "{atomic}: {profile}");
    assert_eq!(record["scenario"]["host"]["costs"]["migration"], 50_000_000, "generic-2008's");
    // Where guests run, their exits and kicks are measured too; elsewhere the report says why not.
    match out.contains("exit of a vCPU") && !profile.contains("# hypercall = ") {
        true => assert!(of("hypercall") >= 3, "{samples:?}"),
        false => println!("skipped: no guest runs here\n{out}"),
    }
}

#[test]
fn a_wrong_profile_is_an_error_with_a_place_and_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("s.toml"), SCENARIO).unwrap();
    let (code, _, err) = overspin(dir, &["run", "s.toml"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("here.toml") && err.contains("overspin calibrate"), "{err}");
    fs::write(dir.join("here.toml"), "[costs]\natomik = \"5ns\"\n").unwrap();
    let (code, _, err) = overspin(dir, &["run", "s.toml"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("here.toml:2: there is no cost `atomik`"), "{err}");
}
