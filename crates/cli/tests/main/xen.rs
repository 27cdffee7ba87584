//! `schedbench run --world xen` on a host that a script stands for, and what is refused without Xen.

use crate::{json, overspin};
use overspin_testing::{Ended, Program, root, signal, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PLAN: &str = r#"{ "Input": { "SimpleMatrix": { "Schedulers": ["credit2"], "Workers": ["P001"] } },
  "RunConfig": { "Pool": "bench", "Cpus": [1] } }"#;

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

fn planned() -> Program {
    let overspin = overspin();
    overspin.write("my.bench", PLAN);
    overspin.fine(&["schedbench", "plan", "my.bench"]);
    overspin
}

/// Fails with this code, and says these things.
fn refused(command: &mut Command, code: i32, said: &[&str]) {
    let (_, error) = Ended::of(command).with(code);
    for part in said {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn a_plan_runs_on_a_host_with_xl() {
    let overspin = planned();
    overspin.write("xl", XL);
    fs::set_permissions(overspin.path("xl"), fs::Permissions::from_mode(0o755)).unwrap();
    overspin.write("vmlinuz-test", "kernel");
    let path = std::env::var("PATH").unwrap();
    let run = ["schedbench", "run", "my.bench", "--world", "xen", "--kernel", "vmlinuz-test"];
    let mut command = overspin.command(&run);
    command.env("PATH", format!("{}:{path}", overspin.dir().display()));
    Ended::of(command.env("OVERSPIN_TEST_CALLS", overspin.path("calls"))).with(0);
    let file = json(&overspin.read("my.bench"));
    let run = &file["Runs"][0];
    assert_eq!(run["Completed"], true);
    assert_eq!(run["Results"]["Raw"][2]["Kops"], 300);
    assert_eq!(run["Overspin"]["World"], "xen");
    assert_eq!(run["Overspin"]["Machine"]["Host"]["Xen"], "4.17.7");
    let (report, _) = overspin.fine(&["schedbench", "report", "my.bench"]);
    assert!(report.contains("Runs on Xen 4.17.7 with guests of vmlinuz-test"), "{report}");
    // 100 kops in each second; from the first report to the last, 2 s of CPU time in 2 s.
    assert!(report.contains("100.00") && report.contains("2.00 ms"), "{report}");
    let calls = overspin.read("calls");
    assert!(calls.ends_with("cpupool-destroy bench\ncpupool-cpu-add Pool-0 1\n"), "{calls}");
}

#[test]
fn without_xen_the_environment_is_at_fault() {
    let overspin = planned();
    let mut command = overspin.command(&["schedbench", "run", "my.bench", "--world", "xen"]);
    command.env("PATH", overspin.dir());
    refused(&mut command, 3, &["`xl` cannot be started", "overspin xen-emulated"]);
}

#[test]
fn without_packages_the_environment_is_at_fault() {
    let overspin = planned();
    let mut command = overspin.command(&["xen-emulated", "my.bench"]);
    command.env("PATH", overspin.dir()).env("XDG_CACHE_HOME", overspin.dir());
    refused(&mut command, 3, &["apt-cache depends", "apt-get update"]);
}

#[test]
fn what_does_not_fit_is_wrong_usage() {
    let overspin = planned();
    let run = ["schedbench", "run", "my.bench", "--world", "xen"];
    let refused = |args: &[&str], said: &[&str]| refused(&mut overspin.command(args), 2, said);
    refused(&[&run[..], &["--machine", "m.toml"]].concat(), &["--machine is for simulated"]);
    refused(&["schedbench", "run", "my.bench", "--kernel", "k"], &["add --world xen"]);
    let scenario = root().join("examples/ticket-overcommit.toml");
    refused(
        &["run", scenario.to_str().unwrap(), "--world", "xen"],
        &["runs the plans of schedbench only", "schedbench run FILE.bench --world xen"],
    );
    refused(
        &["xen-emulated", "--spinlocks", "dup", "--schedulers", "eevdf"],
        &["Xen has no scheduler `eevdf`", "credit, credit2"],
    );
    overspin.write("my.bench", overspin.read("my.bench").replace("credit2", "eevdf"));
    refused(&run, &["Xen has no scheduler `eevdf`", "my.bench"]);
}

/// Stands for the loader of the packages, which starts every program of them. The emulator, the last one, goes on for ever.
const LOADER: &str = r#"#!/bin/sh
case "$*" in
    *--list*) ;;
    *--version) echo "QEMU emulator version 7.2.0" ;;
    *)
        echo '{"up":{"xen":"4.17.7"}}'
        echo $$ > "$OVERSPIN_TEST_CALLS.part" && mv "$OVERSPIN_TEST_CALLS.part" "$OVERSPIN_TEST_CALLS"
        exec sleep 1000 ;;
esac
"#;
/// An empty file, packed with gzip.
const EMPTY_GZ: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";

/// Packages of emulated Xen in the cache of this folder, which do nothing.
fn packages(cache: &Path) {
    let root = cache.join("overspin/xen/root");
    let write = |path: &str, content: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("boot/xen-4.17-amd64.gz", EMPTY_GZ);
    write("boot/vmlinuz-6.1.0", b"kernel");
    write("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", LOADER.as_bytes());
    write("usr/lib/modules/6.1.0/kernel/drivers/xen/xen-privcmd.ko", b"module");
    for program in ["xl", "xenstored", "xen-init-dom0", "xenconsoled", "xenconsole"] {
        write(&format!("usr/lib/xen-4.17/bin/{program}"), b"program");
    }
    write("../packages.txt", b"");
}

#[test]
fn a_signal_leaves_neither_an_emulator_nor_a_folder() {
    let overspin = planned();
    packages(overspin.dir());
    let temporary = overspin.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let calls = overspin.path("calls");
    for (name, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let mut command = overspin.command(&["xen-emulated", "my.bench"]);
        command.env("XDG_CACHE_HOME", overspin.dir()).env("TMPDIR", &temporary);
        command.env("OVERSPIN_TEST_CALLS", &calls);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the emulator runs", || calls.exists());
        let emulator = fs::read_to_string(&calls).unwrap();
        fs::remove_file(&calls).unwrap();
        assert!(fs::read_dir(&temporary).unwrap().count() > 0, "it has a folder");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), code, "{name}");
        until("nothing is left", || {
            let status = fs::read_to_string(format!("/proc/{}/status", emulator.trim()));
            // A process that has ended is a zombie until its parent waits for it.
            let lives = status.is_ok_and(|status| !status.contains("State:\tZ"));
            !lives && fs::read_dir(&temporary).unwrap().count() == 0
        });
    }
}
