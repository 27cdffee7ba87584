//! What commands print and write, and what they do if they cannot.

use assert_cmd::Command;
use std::fs;
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

fn overspin() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.env("NO_COLOR", "1");
    command
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn list_has_a_table_and_json() {
    let text = overspin().args(["list"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap();
    for name in ["ticket", "lock-byte", "xen-pv", "credit-2008", "kernbench", "2008-spinlocks"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let json = overspin()
        .args(["list", "locks", "--json", "-"])
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert!(json["locks"].as_array().unwrap().iter().any(|l| l["name"] == "ticket"));
}

#[test]
fn machines_are_listed_together_and_one_by_one() {
    let list = |args: &[&str]| {
        let out = overspin().arg("list").args(args).assert().success().get_output().stdout.clone();
        String::from_utf8(out).unwrap()
    };
    let all = list(&["machines"]);
    for word in ["generic-2008", "xeon-x5570", "hypercall", "smt_permille", "47.3ns"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    let one = list(&["machines", "xeon-x5570"]);
    for word in ["2000 cycles", "SplitX", "assumed: ", "3000 to 10500 cycles", "as generic-2008"] {
        assert!(one.contains(word), "{word}: {one}");
    }
    assert!(!one.contains("graviton2") && one.lines().all(|l| l.chars().count() <= 140), "{one}");

    let json: serde_json::Value =
        serde_json::from_str(&list(&["machines", "skylake-sp", "--json", "-"])).unwrap();
    let machines = json["machines"].as_array().unwrap();
    assert_eq!((machines.len(), &machines[0]["name"]), (1, &"skylake-sp".into()));
    // 142 cycles of 3 GHz.
    assert_eq!(machines[0]["costs_ps"]["spin_iteration"], 47_333);
    let values = machines[0]["values"].as_array().unwrap();
    let of = |key: &str| values.iter().find(|v| v["key"] == key).unwrap();
    assert_eq!(
        (&of("hypercall")["value"], &of("hypercall")["unit"]),
        (&1559.0.into(), &"cycles".into())
    );
    assert!(of("hypercall")["source"].is_string() && of("fence")["high"].is_number());

    for (args, word) in
        [(["machines", "vax"], "machines are: generic-2008"), (["locks", "mcs"], "only machines")]
    {
        let output = overspin().arg("list").args(args).assert().code(2).get_output().stderr.clone();
        assert!(String::from_utf8(output).unwrap().contains(word), "{args:?}");
    }
}

#[test]
fn completions_and_manual_are_written() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let out =
            overspin().args(["completions", shell]).assert().success().get_output().stdout.clone();
        assert!(String::from_utf8(out).unwrap().contains("overspin"), "{shell}");
    }
    for (args, word) in [(&["man"][..], "Exit codes"), (&["man", "run"], "\\-\\-trace")] {
        let out = overspin().args(args).assert().success().get_output().stdout.clone();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains(word) && out.contains(".TH"), "{out}");
    }
    let help = overspin().arg("--help").assert().success().get_output().stdout.clone();
    let help = String::from_utf8(help).unwrap();
    assert!(
        help.contains("4  undecided") && help.contains("A benchmark that ran ends with 0"),
        "{help}"
    );
}

#[test]
fn a_run_is_the_same_to_the_byte_and_its_json_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.toml");
    fs::write(&path, SCENARIO).unwrap();
    let scenario = path.to_str().unwrap();
    let run = |more: &[&str]| {
        let mut args = vec!["run", scenario, "--seed", "7"];
        args.extend(more);
        overspin().args(&args).assert().success().get_output().stdout.clone()
    };
    let json = run(&["--json", "-"]);
    assert_eq!(json, run(&["--json", "-"]));
    let record: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((&record["seed"], &record["runs"][0]["seed"]), (&7.into(), &7.into()));
    assert_eq!(record["scenario"]["domains"][0]["lock"], "ticket");
    let hash = record["runs"][0]["outcome"]["trace_hash"].as_str().unwrap();
    assert!(hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok(), "{hash}");
    let changed = run(&["--json", "-", "--set", "domain.guest.lock=xen-pv"]);
    let changed: serde_json::Value = serde_json::from_slice(&changed).unwrap();
    assert_eq!(changed["scenario"]["domains"][0]["lock"], "xen-pv");
    let trace = dir.path().join("t.pftrace");
    assert!(run(&["--quiet", "--trace", trace.to_str().unwrap()]).is_empty());
    assert!(fs::metadata(&trace).unwrap().len() > 0);
    assert_eq!(names(dir.path()), ["s.toml", "t.pftrace"]);
    assert!(String::from_utf8(run(&[])).unwrap().contains("Domain guest (ticket)"));
}

#[test]
fn two_outputs_to_one_place_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    fs::create_dir(dir.path().join("d")).unwrap();
    for args in [
        &["run", "s.toml", "--json", "same", "--trace", "same"][..],
        &["run", "s.toml", "--json", "same", "--markdown", "d/../same"],
        &["run", "s.toml", "--json", "-", "--markdown", "-"],
        &["reproduce", "2008-spinlocks", "--json", "same", "--svg", "same"],
        &["schedbench", "report", "s.bench", "--csv", "same", "--json", "./same"],
        &["schedbench", "run", "s.bench", "--only", "x", "--trace", "s.bench"],
    ] {
        let output = overspin().current_dir(dir.path()).args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(
            stderr.contains("two outputs have the same destination") && stderr.contains("help:"),
            "{stderr}"
        );
        assert_eq!(names(dir.path()), ["d", "s.toml"]);
    }
}

#[test]
fn every_record_has_the_versions_and_those_of_many_runs_where_they_were_made() {
    let dir = tempfile::tempdir().unwrap();
    let vary = "[[vary]]\nname = \"lock\"\nset = \"domain.guest.lock\"\nto = [\"ticket\"]\n";
    fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    fs::write(dir.path().join("m.toml"), format!("{SCENARIO}{vary}")).unwrap();
    fs::write(dir.path().join("n"), "1\n2\n3\n").unwrap();
    let many = ["run", "m.toml", "--set", "host.cores=1", "--seed", "3", "--json", "-"];
    let bench =
        ["bench", "locks", "--locks", "mutex", "--threads", "1", "--time", "1ms", "--json", "-"];
    let check =
        ["check", "ticket", "--cpus", "1", "--pairs", "1", "--schedules", "1", "--json", "-"];
    for (args, made_here) in [
        (&["run", "s.toml", "--json", "-"][..], false),
        (&["list", "--json", "-"], false),
        (&["compare", "n", "n", "--json", "-"], false),
        (&many, true),
        (&bench, true),
        (&check, true),
    ] {
        let output = overspin().current_dir(dir.path()).args(args).output().unwrap();
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let keys: Vec<&String> = record.as_object().unwrap().keys().take(3).collect();
        assert_eq!(keys, ["schema", "version", "model_version"], "{args:?}");
        assert!(record["model_version"].as_u64() >= Some(1), "{args:?}");
        assert_eq!(record["environment"]["kernel"].is_string(), made_here, "{args:?}");
        let command = made_here.then(|| format!("overspin {}", args.join(" ")));
        assert_eq!(record["command"].as_str(), command.as_deref());
        if args == many {
            assert_eq!((&record["set"][0], &record["seed"]), (&"host.cores=1".into(), &3.into()));
        }
    }
}

#[test]
fn a_record_and_its_scenario_are_explained_alike() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (scenario, json, trace) = (at("s.toml"), at("r.json"), at("t.pftrace"));
    fs::write(&scenario, SCENARIO).unwrap();
    overspin()
        .args(["run", &scenario, "--quiet", "--json", &json, "--trace", &trace])
        .assert()
        .success();
    let explain = |what: &str| {
        let out = overspin().args(["explain", what]).assert().success().get_output().stdout.clone();
        String::from_utf8(out).unwrap()
    };
    let (of_record, of_scenario) = (explain(&json), explain(&scenario));
    assert!(of_record.contains("Domain guest (ticket)"), "{of_record}");
    for words in ["own preemption", "1. guest/v", "10. guest/v", "in the trace: ts "] {
        assert!(of_record.contains(words), "{words}: {of_record}");
    }
    // Everything except the place of the trace.
    let story = |text: &str| text.split("Times in the trace").next().unwrap().to_owned();
    assert_eq!(story(&of_record), story(&of_scenario));
    assert!(of_record.contains(&trace) && of_scenario.contains("--trace FILE"));
}

#[test]
fn what_cannot_be_explained_ends_with_2() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text, says) in [
        ("old.json", "{\"schema\": \"overspin-run/2\"}", "write the record again"),
        ("list.json", "{\"schema\": \"overspin-list/1\"}", "not a measurement"),
        ("broken.json", "{\"schema\":\n 1}", "broken.json"),
        ("bad.toml", "[host]\ncoers = 2\n", "cores"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        let output = overspin().arg("explain").arg(&path).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(stderr.contains(says) && stderr.contains("help"), "{name}: {stderr}");
    }
    let missing = overspin().args(["explain", "no-such-file.json"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn outputs_that_cannot_be_written_end_with_3_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.toml");
    fs::write(&path, SCENARIO).unwrap();
    let scenario = path.to_str().unwrap();
    let nowhere = dir.path().join("no/such/x.json");
    let nowhere = nowhere.to_str().unwrap();
    let folder = dir.path().to_str().unwrap();
    for args in [
        &["run", scenario, "--json", nowhere][..],
        &["run", scenario, "--trace", nowhere],
        &["run", scenario, "--json", folder],
        &["reproduce", "--json", nowhere],
        &["reproduce", "--markdown", nowhere],
        &["list", "--json", nowhere],
    ] {
        let output = overspin().args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}: {stderr}");
        assert!(stderr.contains("cannot write to") && stderr.contains("help:"), "{stderr}");
        assert_eq!(names(dir.path()), ["s.toml"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_with_3() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.toml");
    fs::write(&path, SCENARIO).unwrap();
    let scenario = path.to_str().unwrap();
    for args in [
        &["list", "--json", "/dev/full"][..],
        &["run", scenario, "--json", "/dev/full"],
        &["run", scenario, "--trace", "/dev/full"],
    ] {
        let output = overspin().args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}: {stderr}");
        assert!(stderr.contains("space") && stderr.contains("help:"), "{stderr}");
        assert!(output.stdout.is_empty(), "no report is printed for a run whose result was lost");
    }
    // Standard output itself is full.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_overspin"))
        .arg("list")
        .stdout(full)
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    for args in
        [&["list"][..], &["list", "--json", "-"], &["completions", "bash"], &["man"], &["--help"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_overspin"))
            .args(args)
            .stdout(writer)
            .stderr(std::process::Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}
