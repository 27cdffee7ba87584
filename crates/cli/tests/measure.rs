//! `overspin measure`: its output, and its mistakes. The machine's behaviour is not tested.

use assert_cmd::Command;
use serde_json::Value;
use std::collections::BTreeSet;

fn measure_noise(args: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_overspin"))
        .env("NO_COLOR", "1")
        .args(["measure", "noise"])
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn the_three_files_tell_of_the_same_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (toml, json, raw) = (at("n.toml"), at("n.json"), at("n.csv"));
    let (out, err, code) =
        measure_noise(&["--duration=200ms", "--toml", &toml, "--json", &json, "--raw", &raw]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Gaps by kind") && out.contains("[host.noise]"), "{out}");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(
        (&record["schema"], &record["kind"]),
        (&"overspin-record/1".into(), &"noise".into())
    );
    let value = |place: &str, metric: &str| {
        let samples = record["samples"].as_array().unwrap();
        let found = samples.iter().find(|s| s["where"] == place && s["metric"] == metric);
        found.unwrap_or_else(|| panic!("{place}: {metric}"))["value"].as_f64().unwrap()
    };
    let toml = std::fs::read_to_string(toml).unwrap();
    assert_eq!(record["noise"]["toml"], toml.as_str());
    assert!(toml.contains("\nplacement = \"") && toml.lines().next().unwrap().starts_with('#'));
    // The output is a valid table of a scenario.
    let scenario = dir.path().join("host.toml");
    let guest = "\n[host]\ncores = 1\n[[domain]]\nname = \"guest\"\nvcpus = 1\nlock = \"ticket\"\nworkload = { kind = \"burn-wait\", burn = \"1ms\", wait = 0 }\n";
    std::fs::write(&scenario, toml + guest).unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_overspin"))
        .args(["run", "--set", "limit=10ms"])
        .arg(scenario)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let raw = std::fs::read_to_string(raw).unwrap();
    let cpus: BTreeSet<&str> = raw.lines().skip(1).filter_map(|l| l.split(',').next()).collect();
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
    let (out, err, code) =
        measure_noise(&["--duration=20ms", "--quantum=50us", "--cpus=0", "--toml=-"]);
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
        let (out, err, ended) = measure_noise(args);
        assert_eq!((ended, out.as_str()), (Some(code), ""), "{args:?}: {err}");
        assert!(err.contains(cause), "{args:?}: {err}");
    }
}
