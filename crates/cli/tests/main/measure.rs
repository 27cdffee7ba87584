//! `overspin measure`: its output, and its mistakes. The machine's behaviour is not tested.

use crate::{json, overspin};
use overspin_testing::{Ended, Program};
use std::collections::BTreeSet;

fn measure_noise(overspin: &Program, args: &[&str]) -> Ended {
    overspin.run(&[&["measure", "noise"], args].concat())
}

#[test]
fn the_three_files_tell_of_the_same_gaps() {
    let overspin = overspin();
    let files = ["--toml=n.toml", "--json=n.json", "--raw=n.csv"];
    let args = [&["--duration=200ms"], &files[..]].concat();
    let (out, _) = measure_noise(&overspin, &args).with(0);
    assert!(out.contains("Gaps by kind") && out.contains("[host.noise]"), "{out}");
    let record = json(&overspin.read("n.json"));
    assert_eq!(
        (&record["schema"], &record["kind"]),
        (&"overspin-record/1".into(), &"noise".into())
    );
    let value = |place: &str, metric: &str| {
        let samples = record["samples"].as_array().unwrap();
        let found = samples.iter().find(|s| s["where"] == place && s["metric"] == metric);
        found.unwrap_or_else(|| panic!("{place}: {metric}"))["value"].as_f64().unwrap()
    };
    let toml = overspin.read("n.toml");
    assert_eq!(record["noise"]["toml"], toml.as_str());
    assert!(toml.contains("\nplacement = \"") && toml.lines().next().unwrap().starts_with('#'));
    let raw = overspin.read("n.csv");
    let cpus: BTreeSet<&str> = raw.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
    // The output is a valid table of a scenario whose host has as many pCPUs.
    let cores = format!("\n[host]\ncores = {}\n", cpus.len());
    let guest = "[[domain]]\nname = \"guest\"\nvcpus = 1\nlock = \"ticket\"\nworkload = { kind = \"burn-wait\", burn = \"1ms\", wait = 0 }\n";
    overspin.write("host.toml", toml + &cores + guest);
    overspin.fine(&["run", "--set", "limit=10ms", "host.toml"]);
    assert!(!cpus.is_empty());
    for cpu in cpus {
        // A block of quanta may be late by as long as another process has the CPU, but none is missing.
        let place = format!("cpu-{cpu}");
        assert!(value(&place, "watched") > 0.0 && value(&place, "quanta") > 0.0, "{cpu}");
        for kind in ["thread", "taken", "short"] {
            let counted: u64 = raw
                .lines()
                .map(|l| l.split(',').collect::<Vec<_>>())
                .filter(|l| l[0] == cpu && l[1] == kind)
                .map(|l| l[4].parse::<u64>().unwrap())
                .sum();
            assert_eq!(counted as f64, value(&format!("{place}.{kind}"), "gaps"), "{kind}");
        }
    }
}

#[test]
fn one_cpu_and_standard_output() {
    let args = ["--duration=20ms", "--quantum=50us", "--cpus=0", "--toml=-"];
    let Ended { code, out, err, .. } = measure_noise(&overspin(), &args);
    // A process that may not use CPU 0 gets an error.
    if code == Some(0) {
        assert!(out.starts_with("# Measured by overspin") && out.contains("[host.noise]"), "{out}");
        assert!(!out.contains("Gaps by kind"), "{out}");
    } else {
        assert!(err.contains("cannot keep a thread to CPU 0"), "{err}");
    }
}

#[test]
fn mistakes() {
    for (args, cause, code) in [
        (&["--duration=0ms"][..], "longer than 0", 2),
        (&["--duration=5"], "a number with ns, us, ms or s", 2),
        (&["--quantum=2ms"], "from 1us to 1ms", 2),
        (&["--cpus=3-2"], "numbers of CPUs", 2),
        (&["--toml=-", "--raw=-"], "two outputs have the same destination, standard output", 2),
        (&["--cpus=4095", "--duration=10ms"], "cannot keep a thread to CPU 4095", 3),
        (&["--toml=no/such/n.toml"], "cannot write to", 3),
    ] {
        let Ended { code: ended, out, err, .. } = measure_noise(&overspin(), args);
        assert_eq!((ended, out.as_str()), (Some(code), ""), "{args:?}: {err}");
        assert!(err.contains(cause), "{args:?}: {err}");
    }
}
