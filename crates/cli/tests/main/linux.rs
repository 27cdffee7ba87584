//! `overspin linux`: what it refuses, and guests with a kernel of ours, where there is one.

use crate::{json, overspin};
use overspin_testing::{signal, skip, until};
use std::process::Stdio;
use std::time::Duration;

/// `.ci/run linux` sets it, which compiles a kernel before.
fn there_is_a_kernel() -> bool {
    let there = std::env::var_os("OVERSPIN_LINUX").is_some();
    if !there {
        skip("no kernel with our locks is compiled: .ci/run linux does that");
    }
    there
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
    let overspin = overspin();
    for (args, words) in [
        (
            &["linux", "dup", "--lock=mcs"][..],
            &["`mcs` is no lock of a kernel's word", "ticket"][..],
        ),
        (&["linux", "torture", "stock"], &["`stock` is no lock", "xen-pv"]),
        (&["linux", "dup", "--cpus=first"], &["numbers and ranges of CPUs"]),
        (&["linux", "measure", "noise"], &["`noise` is no benchmark", "pgbench"]),
        (&["linux", "measure", "pgbench", "--clients=0"], &["0 is not in 1..=1000"]),
        (&["linux", "measure", "--lock=mcs", "pft"], &["`mcs` is no lock of a kernel's word"]),
        (&["linux", "kernbench", "--loads=quarter"], &["half, optimal, maximal"]),
        (&["linux", "dup", "--pcpus=2"], &["--pcpus is of guests of Xen", "--world xen"]),
        (
            &["linux", "dup", "--world=xen", "--scheduler=eevdf"],
            &["Xen has no scheduler `eevdf`", "credit, credit2"],
        ),
        (&["linux", "dup", "--world=xen", "--cpus=0"], &["CPUs of this machine", "--pcpus N"]),
        (&["linux", "torture", "--scheduler=null"], &["--scheduler is of guests of Xen"]),
        (&["reproduce", "--world=linux"], &["needs the name of an experiment", "2008-spinlocks"]),
        (
            &["reproduce", "2016-schedbench", "--world=linux"],
            &["is not an experiment of real guests", "2008-spinlocks and 2012-pv-ticketlocks are"],
        ),
        (
            &["reproduce", "2008-spinlocks", "--world=linux", "--full"],
            &["--full is for simulated experiments"],
        ),
    ] {
        let error = overspin.fails(args, 2);
        for word in words {
            assert!(error.contains(word), "{args:?}: {error}");
        }
    }
}

#[test]
fn a_machine_without_qemu_is_told_its_package() {
    let overspin = overspin();
    let empty = overspin.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let mut command = overspin.command(&["linux", "dup"]);
    let output = command.env("PATH", &empty).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("there is no `qemu-system-x86_64`"), "{error}");
    assert!(error.contains("apt-get install qemu-system-x86"), "{error}");
}

#[test]
fn guests_with_our_locks_run_and_say_what_they_did() {
    if !there_is_a_kernel() {
        return;
    }
    let overspin = overspin();
    let args = ["linux", "dup", "--lock=xen-pv,stock", "--length=2s", "--runs=1", "--vcpus=2"];
    overspin.fine(&[&args[..], &["--memory=256", "--json=r.json"]].concat());
    let record = json(&overspin.read("r.json"));
    let values = |place: &str, metric: &str| -> Vec<f64> {
        let samples = record["samples"].as_array().unwrap().iter();
        let of = samples.filter(|s| s["where"] == place && s["metric"] == metric);
        of.map(|s| s["value"].as_f64().unwrap()).collect()
    };
    for lock in ["xen-pv", "stock"] {
        let pairs = values(lock, "pairs");
        assert!(pairs.len() == 1 && pairs[0] > 0.0, "{lock}: {pairs:?}");
        for vcpu in ["v0", "v1"] {
            let ran = values(&format!("{lock}/{vcpu}"), "vcpu-time");
            assert!(ran.len() == 1 && ran[0] > 0.1 && ran[0] < 60.0, "{lock} {vcpu}: {ran:?}");
        }
    }
    // What it wrote is what other commands read.
    let (told, _) = overspin.fine(&["report", "r.json", "-o", "page.html"]);
    assert!(overspin.read("page.html").contains("xen-pv"), "{told}");
}

/// Whether the packages of emulated Xen are in the cache: `overspin xen-emulated --fetch` puts them there.
fn there_is_xen() -> bool {
    let there = overspin_xen::emulated::Cache::of_user().and_then(|cache| cache.unpacked());
    let there = matches!(there, Ok(Some(_)));
    if !there {
        skip("the packages of emulated Xen are not in the cache: overspin xen-emulated --fetch");
    }
    there
}

/// The experiment of 2008: a paravirtual guest of real Xen has four vCPUs and one pCPU.
#[test]
fn waiters_of_a_guest_of_xen_sleep_and_those_of_a_ticket_lock_spin() {
    if !there_is_a_kernel() || !there_is_xen() {
        return;
    }
    let overspin = overspin();
    let args = ["linux", "dup", "--world=xen", "--lock=pv-ticket,ticket", "--length=3s"];
    overspin.fine(&[&args[..], &["--runs=1", "--json=r.json"]].concat());
    let record = json(&overspin.read("r.json"));
    let value = |place: &str, metric: &str| -> f64 {
        let mut samples = record["samples"].as_array().unwrap().iter();
        let of = samples.find(|s| s["where"] == place && s["metric"] == metric);
        of.unwrap_or_else(|| panic!("{place}: no {metric}"))["value"].as_f64().unwrap()
    };
    for lock in ["pv-ticket", "ticket"] {
        assert!(value(lock, "pairs") > 0.0, "{lock}");
        // Four vCPUs share one pCPU.
        let ran = value(lock, "vcpu-time");
        assert!(ran > 1.0 && ran < 6.0, "{lock}: {ran}");
    }
    // The threads never sleep: what blocks a vCPU is the poll of a waiter, and the ticket lock has none.
    let [polls, spins] = ["pv-ticket", "ticket"].map(|lock| value(lock, "vcpu-blocked"));
    assert!(polls > 5.0 * spins, "{polls} s and {spins} s");
    let overspin = overspin.fine(&["linux", "torture", "xen-pv", "--world=xen", "--seconds=5"]);
    assert!(overspin.0.contains("1 of 1 locks pass"), "{}", overspin.0);
}

#[test]
fn a_program_of_this_machine_runs_in_a_guest() {
    if !there_is_a_kernel() {
        return;
    }
    let overspin = overspin();
    let (out, err) = overspin.fine(&[
        "linux",
        "exec",
        "--lock=xen-pv",
        "--",
        "sh",
        "-c",
        "cd / && cat /proc/cmdline",
    ]);
    assert!(out.contains("overspin_lock=xen-pv"), "{out}");
    assert!(err.contains("in a guest with xen-pv: exit status 0"), "{err}");
    let (quiet, _) = overspin.fine(&["linux", "exec", "--quiet", "--", "echo", "heard"]);
    assert_eq!(quiet, "heard\n");
    let error = overspin.fails(&["linux", "exec", "--", "no-such-program"], 3);
    assert!(error.contains("`no-such-program`"), "{error}");
    overspin.fails(&["linux", "exec", "--", "false"], 1);
}

/// One guest of each lock runs all places of a round, and each place has its own figures.
#[test]
fn a_benchmark_of_the_host_runs_in_guests() {
    if !there_is_a_kernel() {
        return;
    }
    let overspin = overspin();
    let args = ["linux", "measure", "--lock=xen-pv,ticket", "--vcpus=2", "--", "pft", "--memory=8"];
    let more = ["--workers=threads-1,processes-2", "--repeats=1", "--runs=2", "--json=r.json"];
    overspin.fine(&[&args[..], &more].concat());
    let record = json(&overspin.read("r.json"));
    assert_eq!((&record["kind"], &record["name"]), (&"real".into(), &"pft".into()));
    let samples = record["samples"].as_array().unwrap();
    for lock in ["xen-pv", "ticket"] {
        for workers in ["threads-1", "processes-2"] {
            let place = format!("{lock}.{workers}.packets-0");
            let of = samples.iter().filter(|s| s["where"] == place && s["metric"] == "faults");
            let rates: Vec<f64> = of.map(|s| s["value"].as_f64().unwrap()).collect();
            assert!(rates.len() == 2 && rates.iter().all(|rate| *rate > 0.0), "{place}: {rates:?}");
        }
    }
    let (told, _) = overspin.fine(&[
        "linux",
        "measure",
        "--lock=xen-pv",
        "--",
        "command",
        "--runs=1",
        "--",
        "echo",
        "--runs",
    ]);
    assert!(told.contains("`xen-pv`"), "{told}");
    let error =
        overspin.fails(&["linux", "measure", "--lock=xen-pv", "--", "command", "--", "false"], 3);
    assert!(error.contains("command ended with 3 in the guest"), "{error}");
}

/// A killed command leaves neither a guest nor its folder.
#[test]
fn a_guest_ends_with_the_command() {
    if !there_is_a_kernel() {
        return;
    }
    let overspin = overspin();
    let scratch = overspin.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let guests = || {
        // It takes a while, and the guest needs the CPU, too.
        std::thread::sleep(Duration::from_millis(50));
        let tasks = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = tasks.filter_map(|task| std::fs::read(task.path().join("cmdline")).ok());
        let of = scratch.to_str().unwrap().as_bytes();
        lines
            .filter(|line| {
                line.starts_with(b"qemu-system-x86_64") && line.windows(of.len()).any(|w| w == of)
            })
            .count()
    };
    for (name, code) in [("KILL", None), ("TERM", Some(143)), ("INT", Some(130))] {
        let mut command = overspin.command(&["linux", "dup", "--lock=xen-pv", "--length=600s"]);
        command.env("TMPDIR", &scratch).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        until("a guest runs", || guests() == 1);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), code, "{name}");
        until("the guest is gone", || guests() == 0);
        until("nothing is left", || std::fs::read_dir(&scratch).unwrap().count() == 0);
    }
}
