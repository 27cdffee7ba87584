//! `overspin check`: its printed output, its files, and its exit codes.

use assert_cmd::Command;

fn overspin() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.env("NO_COLOR", "1");
    command
}

/// Small enough for a test.
const SMALL: [&str; 5] = ["check", "--cpus=2", "--pairs=1", "--preemptions=2", "--schedules=100"];

#[test]
fn every_world_has_its_lines_and_its_json() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ticket.json");
    let assert = overspin().args(SMALL).arg("ticket").arg("--json").arg(&file).assert().success();
    let out = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    for part in ["model", "schedules", "threads", "caught", "NoRelease", "Not covered", "passes"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    // Progress is for terminals; the table reports the panics of caught bugs.
    assert_eq!(String::from_utf8_lossy(&assert.get_output().stderr), "");

    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(json["schema"], "overspin-check/1");
    let lock = &json["locks"][0];
    assert_eq!(lock["name"], "ticket");
    let checks = lock["checks"].as_array().unwrap();
    let model = &checks[0];
    assert_eq!(model["bound"], "1 pair each, preemptions: 2");
    assert!(model["runs"].as_u64() > Some(1), "two CPUs interleave in more than one way: {model}");
    assert!(checks.iter().all(|check| check["verdict"] == "passes"));
    assert!(lock["seeded"].as_array().unwrap().iter().all(|bug| bug["caught"] == true));
}

#[test]
fn a_known_flaw_is_shown_and_is_no_failure() {
    let out = overspin().args(SMALL).arg("xen-pv").assert().success().get_output().stdout.clone();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("known flaw model     access after release"), "{out}");
    assert!(out.contains("access to a freed lock"), "{out}");
}

#[test]
fn json_on_standard_output_is_alone_there() {
    let out = overspin().args(SMALL).args(["byte", "--json", "-"]).assert().success();
    let json: serde_json::Value = serde_json::from_slice(&out.get_output().stdout).unwrap();
    assert_eq!(json["locks"][0]["name"], "lock-byte", "an alias is told by its name");
}

#[test]
fn a_model_out_of_time_is_undecided() {
    // A million times more than fits into a second.
    let args = ["check", "xen-pv", "--cpus=4", "--pairs=4", "--preemptions=16", "--time-limit=1"];
    let out = overspin().args(args).arg("--schedules=1").assert().code(4);
    let out = String::from_utf8(out.get_output().stdout.clone()).unwrap();
    assert!(out.contains("unfinished"), "{out}");
}

#[test]
fn mistakes_are_usage_errors() {
    let error = overspin().args(["check", "mutes"]).assert().code(2).get_output().stderr.clone();
    let error = String::from_utf8(error).unwrap();
    assert!(error.contains("there is no lock `mutes`"), "{error}");
    assert!(error.contains("lock-byte, ") && error.contains("flexguard"), "{error}");
    for args in [
        &["check"][..],
        &["check", "ticket", "--all"],
        &["check", "ticket", "--cpus", "5"],
        &["check", "ticket", "--pairs", "0"],
        &["check", "ticket", "--preemptions", "x"],
    ] {
        overspin().args(args).assert().code(2);
    }
}
