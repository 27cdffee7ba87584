//! `schedbench run --world xen` on a host that a script stands for, and what is refused without Xen.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const PLAN: &str = r#"{ "Input": { "SimpleMatrix": { "Schedulers": ["credit2"], "Workers": ["P001"] } },
  "RunConfig": { "Pool": "bench", "Cpus": [1] } }"#;

const SCENARIO: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ticket-overcommit.toml");

/// Guests do 100,000 operations in a second, with half of a CPU.
const XL: &str = r#"#!/bin/sh
echo "$*" >> "$OVERSPIN_TEST_CALLS"
case "$1" in
    info) echo "xen_version            : 4.17.7" ;;
    cpupool-list) echo "Name CPU list"; echo "Pool-0             0,1" ;;
    console)
        echo 'overspin: {"ready":{"now":1000}}'
        read -r go at seconds
        for second in 1 2 3; do
            echo "overspin: {\"sample\":{\"vcpu\":0,\"at\":${second}000000000,\"operations\":${second}00000,\"max_delta\":2000000,\"cpu_time\":${second}500000000,\"deadlines\":0,\"missed\":0}}"
        done
        echo 'overspin: {"end":{"samples":3}}'
        exec sleep 60 ;;
esac
"#;

fn overspin(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("overspin").unwrap();
    command.current_dir(folder);
    command
}

fn planned() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my.bench"), PLAN).unwrap();
    overspin(folder.path()).args(["schedbench", "plan", "my.bench"]).assert().success();
    folder
}

/// Fails with this code, and says these things.
fn refused(command: &mut Command, code: i32, said: &[&str]) {
    let assert = command.assert().code(code);
    let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    for part in said {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn a_plan_runs_on_a_host_with_xl() {
    let folder = planned();
    let xl = folder.path().join("xl");
    fs::write(&xl, XL).unwrap();
    fs::set_permissions(&xl, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("vmlinuz-test"), "kernel").unwrap();
    let path = std::env::var("PATH").unwrap();
    overspin(folder.path())
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("OVERSPIN_TEST_CALLS", folder.path().join("calls"))
        .args(["schedbench", "run", "my.bench", "--world", "xen", "--kernel", "vmlinuz-test"])
        .assert()
        .success();
    let file: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("my.bench")).unwrap()).unwrap();
    let run = &file["Runs"][0];
    assert_eq!(run["Completed"], true);
    assert_eq!(run["Results"]["Raw"][2]["Kops"], 300);
    assert_eq!(run["Overspin"]["World"], "xen");
    assert_eq!(run["Overspin"]["Machine"]["Host"]["Xen"], "4.17.7");
    let report =
        overspin(folder.path()).args(["schedbench", "report", "my.bench"]).assert().success();
    let report = String::from_utf8(report.get_output().stdout.clone()).unwrap();
    assert!(report.contains("Runs on Xen 4.17.7 with guests of vmlinuz-test"), "{report}");
    // 100 kops in each second; from the first report to the last, 2 s of CPU time in 2 s.
    assert!(report.contains("100.00") && report.contains("2.00 ms"), "{report}");
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    assert!(calls.ends_with("cpupool-destroy bench\ncpupool-cpu-add Pool-0 1\n"), "{calls}");
}

#[test]
fn without_xen_the_environment_is_at_fault() {
    let folder = planned();
    let mut command = overspin(folder.path());
    command.env("PATH", folder.path()).args(["schedbench", "run", "my.bench", "--world", "xen"]);
    refused(&mut command, 3, &["`xl` cannot be started", "overspin xen-emulated"]);
}

#[test]
fn without_packages_the_environment_is_at_fault() {
    let folder = planned();
    let mut command = overspin(folder.path());
    command
        .env("PATH", folder.path())
        .env("XDG_CACHE_HOME", folder.path())
        .args(["xen-emulated", "my.bench"]);
    refused(&mut command, 3, &["apt-cache depends", "apt-get update"]);
}

#[test]
fn what_does_not_fit_is_wrong_usage() {
    let folder = planned();
    let path = folder.path();
    let run = ["schedbench", "run", "my.bench", "--world", "xen"];
    refused(
        overspin(path).args(run).args(["--machine", "m.toml"]),
        2,
        &["--machine is for simulated"],
    );
    refused(
        overspin(path).args(["schedbench", "run", "my.bench", "--kernel", "k"]),
        2,
        &["add --world xen"],
    );
    refused(
        overspin(path).args(["run", SCENARIO, "--world", "xen"]),
        2,
        &["runs the plans of schedbench only", "schedbench run FILE.bench --world xen"],
    );
    refused(
        overspin(path).args(["xen-emulated", "--spinlocks", "dup", "--schedulers", "eevdf"]),
        2,
        &["Xen has no scheduler `eevdf`", "credit, credit2"],
    );
    let text = fs::read_to_string(path.join("my.bench")).unwrap();
    fs::write(path.join("my.bench"), text.replace("credit2", "eevdf")).unwrap();
    refused(overspin(path).args(run), 2, &["Xen has no scheduler `eevdf`", "my.bench"]);
}
