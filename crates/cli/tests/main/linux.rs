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
        (&["linux", "dup", "--cpus=4095"], &["there is no CPU 4095 to use here"]),
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
        (
            &["linux", "dup", "--world=xen", "--lock-stat"],
            &["--lock-stat is not for guests of Xen"],
        ),
        (&["linux", "dup", "--kernel=6.12", "--lock-stat"], &["cannot be used with"]),
        (
            &["linux", "torture", "--world=xen", "--boots=2"],
            &["--boots counts boots", "--world xen"],
        ),
        (&["linux", "torture", "--boots=2", "--seconds=9"], &["cannot be used with"]),
        (&["linux", "torture", "--scheduler=null"], &["--scheduler is of guests of Xen"]),
        (&["linux", "dup", "--guest-type=pvh"], &["--guest-type is of guests of Xen"]),
        (
            &["linux", "dup", "--kernel=6.12", "--lock=ticket"],
            &["a stock kernel does not have the lock `ticket`", "stock or stock-fair"],
        ),
        (&["linux", "dup", "--suite=trixie"], &["--kernel"]),
        (&["linux", "dup", "--kernel=6.12", "--world=xen"], &["--kernel is not for guests of Xen"]),
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
        // As the guest sees itself: its threads hardly do anything but calls.
        let system = values(&format!("{lock}/guest"), "system-share");
        assert!(system.len() == 1 && system[0] > 50.0 && system[0] <= 100.0, "{lock}: {system:?}");
        let switches = values(&format!("{lock}/guest"), "switches");
        assert!(switches.len() == 1 && switches[0] > 0.0, "{lock}: {switches:?}");
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
    // The eleventh patch of 2012: with the processor's virtualisation, too, waiters sleep in Xen.
    let args =
        ["linux", "dup", "--world=xen", "--guest-type=pvh", "--lock=pv-ticket", "--length=3s"];
    overspin.fine(&[&args[..], &["--runs=1", "--json=pvh.json"]].concat());
    let record = json(&overspin.read("pvh.json"));
    let mut samples = record["samples"].as_array().unwrap().iter();
    let blocked = samples.find(|s| s["where"] == "pv-ticket" && s["metric"] == "vcpu-blocked");
    assert!(blocked.unwrap()["value"].as_f64().unwrap() > 0.0, "{blocked:?}");
    let overspin = overspin.fine(&["linux", "torture", "xen-pv", "--world=xen", "--seconds=5"]);
    assert!(overspin.0.contains("1 of 1 locks pass"), "{}", overspin.0);
}

/// Two domains, the first of which has work that ends: then the run ends, and the others' threads are stopped.
const TWO: &str = r#"
name = "two"
limit = "60s"
[host]
cores = 1
[[domain]]
name = "first"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop", section = "20us", outside = "60us", count = 200, irqs_off = true }
[[domain]]
name = "second"
vcpus = 1
lock = "xen-pv"
workload = { kind = "lock-loop", locks = 2, section = "10us", outside = "100us", idle = "1ms" }
"#;

#[test]
fn a_world_without_a_kernel_says_what_compiles_one() {
    let overspin = overspin();
    overspin.write("s.toml", TWO);
    let mut command = overspin.command(&["run", "s.toml", "--world", "linux"]);
    let output = command.env("XDG_CACHE_HOME", overspin.path("empty")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("no kernel with our locks"), "{error}");
    assert!(error.contains("overspin linux build"), "{error}");
    let mutex = ["run", "s.toml", "--world", "linux", "--set", "domain.first.lock=mutex"];
    let error = overspin.fails(&mutex, 2);
    assert!(error.contains("`mutex` is no lock of a kernel's word"), "{error}");
}

/// A kernel from before threads were told what to do by this file: here the file has another name.
#[test]
fn a_kernel_of_an_earlier_version_is_told() {
    if !there_is_a_kernel() {
        return;
    }
    let overspin = overspin();
    let cache = overspin_linux::cache().unwrap();
    let [earlier, tree] = ["overspin/linux", "overspin/linux/linux-source-6.1"].map(|folder| {
        let folder = overspin.path("earlier").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    });
    let mut kernel = std::fs::read(cache.join("linux-source-6.1/vmlinux")).unwrap();
    let name = b"overspin_work\0";
    let places: Vec<usize> = kernel
        .windows(name.len())
        .enumerate()
        .filter(|(_, w)| w == name)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        kernel[at..at + 8].copy_from_slice(b"earliest");
    }
    std::fs::write(tree.join("vmlinux"), kernel).unwrap();
    std::os::unix::fs::symlink(cache.join("init"), earlier.join("init")).unwrap();
    overspin.write("s.toml", TWO);
    let mut command = overspin.command(&["run", "s.toml", "--world", "linux"]);
    let output = command.env("XDG_CACHE_HOME", overspin.path("earlier")).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("the kernel is of an earlier version"), "{error}");
    assert!(error.contains("overspin linux build"), "{error}");
}

#[test]
fn guests_of_a_scenario_are_kernels() {
    if !there_is_a_kernel() {
        return;
    }
    let overspin = overspin();
    overspin.write("s.toml", TWO);
    let (out, _) = overspin.fine(&["run", "s.toml", "--world", "linux", "--json", "r.json"]);
    assert!(out.contains("Measured in the world `linux`"), "{out}");
    let record = json(&overspin.read("r.json"));
    let outcome = &record["runs"][0]["outcome"];
    assert_eq!(outcome["ending"]["how"], "finished");
    let number = |v: &serde_json::Value| v.as_u64().unwrap();
    // 400 sections of 20 us are 8 ms of one lock, at the very least.
    let elapsed = number(&outcome["elapsed"]);
    assert!((8_000_000_000..60_000_000_000_000).contains(&elapsed), "{elapsed}");
    let domains = outcome["domains"].as_array().unwrap();
    assert_eq!(
        domains[0]["tasks"].as_array().unwrap().iter().map(|t| number(&t["items"])).sum::<u64>(),
        400
    );
    let lock = &domains[0]["locks"][0];
    assert_eq!(number(&lock["acquisitions"]), 400);
    // Descheduled holders make it longer; the clocks of emulation are right to a few percent.
    assert!(number(&lock["hold_total"]) > 400 * 18_000_000, "{lock}");
    assert!(number(&lock["hold_max"]) <= number(&lock["hold_total"]), "{lock}");
    assert!(number(&lock["wait_p99"]) <= number(&lock["wait_max"]), "{lock}");
    // Where switches can be recorded, each wait has its causes.
    let missing = outcome["measurement"]["missing"].to_string();
    let causes: u64 = lock["wait_causes"].as_object().unwrap().values().map(number).sum();
    if missing.contains("perf_event_open") {
        overspin_testing::skip("this kernel does not let the switches of a process be recorded");
    } else {
        assert!(!missing.contains("causes"), "{missing}");
        // A wait that began in the warm-up has a part of its causes in it.
        let total = number(&lock["wait_total"]);
        assert!(causes.abs_diff(total) <= total / 5 + 2_000_000_000, "{causes} of {total}: {lock}");
    }
    for vcpu in domains[0]["vcpus"].as_array().unwrap() {
        assert!(number(&vcpu["running"]) > 0, "{vcpu}");
    }
    let others = domains[1]["locks"].as_array().unwrap();
    assert_eq!(others.len(), 2);
    assert!(others.iter().all(|lock| number(&lock["acquisitions"]) > 0), "{others:?}");
    assert!(domains[1]["finished"].is_null());
}

/// What was done until a signal is kept.
#[test]
fn a_run_of_kernels_is_stopped() {
    if !there_is_a_kernel() {
        return;
    }
    let overspin = overspin();
    // The first run after a change compiles the guests' first process, which may take longer than the limit below.
    overspin.write("first.toml", TWO.replace("60s", "10ms"));
    overspin.fine(&["run", "first.toml", "--world", "linux"]);
    overspin.write("s.toml", TWO.replace("60s", "1h").replace("count = 200, ", ""));
    let args = ["run", "s.toml", "--world", "linux", "--json", "r.json", "--max-wall", "20s"];
    assert_eq!(overspin.run(&args).code, Some(4));
    let record = json(&overspin.read("r.json"));
    let outcome = &record["runs"][0]["outcome"];
    assert_eq!(outcome["ending"]["by"], "max-wall");
    assert!(outcome["elapsed"].as_u64().unwrap() < 20_000_000_000_000, "{}", outcome["elapsed"]);
    for domain in outcome["domains"].as_array().unwrap() {
        assert!(domain["locks"][0]["acquisitions"].as_u64().unwrap() > 0, "{domain}");
        assert!(domain["vcpus"][0]["running"].as_u64().unwrap() > 0, "{domain}");
    }
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
    assert!(told.contains("`xen-pv.program`: elapsed"), "{told}");
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
