//! What commands print and write, and what they do if they cannot.

use crate::{json, overspin, with_scenario};
use overspin_testing::{Ended, SCENARIO};
use std::fs;
use std::process::Stdio;

#[test]
fn list_has_a_table_and_json() {
    let (text, _) = overspin().fine(&["list"]);
    for name in ["ticket", "lock-byte", "xen-pv", "credit-2008", "kernbench", "2008-spinlocks"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    let json = json(&overspin().fine(&["list", "locks", "--json", "-"]).0);
    assert!(json["locks"].as_array().unwrap().iter().any(|l| l["name"] == "ticket"));
}

#[test]
fn machines_are_listed_together_and_one_by_one() {
    let overspin = overspin();
    let list = |args: &[&str]| overspin.fine(&[&["list"], args].concat()).0;
    let all = list(&["machines"]);
    for word in ["generic-2008", "xeon-x5570", "hypercall", "smt_permille", "47.3ns"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    let one = list(&["machines", "xeon-x5570"]);
    for word in [
        "2000 cycles",
        "SplitX",
        "assumed: ",
        "3000 to 10500 cycles",
        "values are those of generic-2008",
    ] {
        assert!(one.contains(word), "{word}: {one}");
    }
    assert!(!one.contains("graviton2") && one.lines().all(|l| l.chars().count() <= 140), "{one}");

    let json = json(&list(&["machines", "skylake-sp", "--json", "-"]));
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
        let err = overspin.fails(&[&["list"], &args[..]].concat(), 2);
        assert!(err.contains(word), "{args:?}: {err}");
    }
}

#[test]
fn completions_and_manual_are_written() {
    let overspin = overspin();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(overspin.fine(&["completions", shell]).0.contains("overspin"), "{shell}");
    }
    for (args, word) in [(&["man"][..], "Exit codes"), (&["man", "run"], "\\-\\-trace")] {
        let (out, _) = overspin.fine(args);
        assert!(out.contains(word) && out.contains(".TH"), "{out}");
    }
    let (help, _) = overspin.fine(&["--help"]);
    assert!(
        help.contains("4  undecided") && help.contains("A benchmark that ran ends with 0"),
        "{help}"
    );
}

#[test]
fn a_run_is_the_same_to_the_byte_and_its_json_stands_alone() {
    let overspin = with_scenario();
    let run = |more: &[&str]| overspin.fine(&[&["run", "s.toml", "--seed", "7"], more].concat()).0;
    let text = run(&["--json", "-"]);
    assert_eq!(text, run(&["--json", "-"]));
    let record = json(&text);
    assert_eq!((&record["seed"], &record["runs"][0]["seed"]), (&7.into(), &7.into()));
    assert_eq!(record["scenario"]["domains"][0]["lock"], "ticket");
    let hash = record["runs"][0]["outcome"]["trace_hash"].as_str().unwrap();
    assert!(hash.len() == 16 && u64::from_str_radix(hash, 16).is_ok(), "{hash}");
    let changed = json(&run(&["--json", "-", "--set", "domain.guest.lock=xen-pv"]));
    assert_eq!(changed["scenario"]["domains"][0]["lock"], "xen-pv");
    assert!(run(&["--quiet", "--trace", "t.pftrace"]).is_empty());
    assert!(fs::metadata(overspin.path("t.pftrace")).unwrap().len() > 0);
    assert_eq!(overspin.names(), ["s.toml", "t.pftrace"]);
    let (answer, whole) = (run(&[]), run(&["--verbose"]));
    assert!(whole.contains("Domain guest (ticket)") && whole.contains("dispatches"), "{whole}");
    assert!(
        answer.contains("lock of `guest` was taken ") && !answer.contains("dispatches"),
        "{answer}"
    );
    assert!(answer.lines().count() <= 24, "{answer}");
    assert!(
        answer.lines().all(|l| l.chars().count() <= 80 || l.starts_with("  overspin ")),
        "{answer}"
    );
}

#[test]
fn two_outputs_to_one_place_are_refused() {
    let overspin = with_scenario();
    fs::create_dir(overspin.path("d")).unwrap();
    for args in [
        &["run", "s.toml", "--json", "same", "--trace", "same"][..],
        &["run", "s.toml", "--json", "same", "--markdown", "d/../same"],
        &["run", "s.toml", "--json", "-", "--markdown", "-"],
        &["reproduce", "2008-spinlocks", "--json", "same", "--svg", "same"],
        &["schedbench", "report", "s.bench", "--csv", "same", "--json", "./same"],
        &["schedbench", "run", "s.bench", "--only", "x", "--trace", "s.bench"],
    ] {
        let stderr = overspin.fails(args, 2);
        assert!(
            stderr.contains("two outputs have the same destination") && stderr.contains("help:"),
            "{stderr}"
        );
        assert_eq!(overspin.names(), ["d", "s.toml"]);
    }
}

#[test]
fn every_record_has_the_versions_and_those_of_many_runs_where_they_were_made() {
    let overspin = with_scenario();
    let vary = "[[vary]]\nname = \"lock\"\nset = \"domain.guest.lock\"\nto = [\"ticket\"]\n";
    overspin.write("m.toml", format!("{SCENARIO}{vary}"));
    overspin.write("n", "1\n2\n3\n");
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
        let record = json(&overspin.run(args).out);
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
    let overspin = with_scenario();
    let trace = overspin.path("t.pftrace").to_str().unwrap().to_owned();
    overspin.fine(&["run", "s.toml", "--quiet", "--json", "r.json", "--trace", &trace]);
    let explain = |what: &str| overspin.fine(&["explain", what]).0;
    let (of_record, of_scenario) = (explain("r.json"), explain("s.toml"));
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
    let overspin = overspin();
    for (name, text, says) in [
        ("old.json", "{\"schema\": \"overspin-run/2\"}", "write the record again"),
        ("list.json", "{\"schema\": \"overspin-list/1\"}", "not a measurement"),
        ("broken.json", "{\"schema\":\n 1}", "broken.json"),
        ("bad.toml", "[host]\ncoers = 2\n", "cores"),
    ] {
        overspin.write(name, text);
        let stderr = overspin.fails(&["explain", name], 2);
        assert!(stderr.contains(says) && stderr.contains("help"), "{name}: {stderr}");
    }
    overspin.fails(&["explain", "no-such-file.json"], 2);
}

#[test]
fn outputs_that_cannot_be_written_end_with_3_and_leave_nothing() {
    let overspin = with_scenario();
    let (nowhere, folder) = ("no/such/x.json", overspin.dir().to_str().unwrap());
    for args in [
        &["run", "s.toml", "--json", nowhere][..],
        &["run", "s.toml", "--trace", nowhere],
        &["run", "s.toml", "--json", folder],
        &["reproduce", "--json", nowhere],
        &["reproduce", "--markdown", nowhere],
        &["list", "--json", nowhere],
    ] {
        let stderr = overspin.fails(args, 3);
        assert!(stderr.contains("cannot write to") && stderr.contains("help:"), "{stderr}");
        assert_eq!(overspin.names(), ["s.toml"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_with_3() {
    let overspin = with_scenario();
    for args in [
        &["list", "--json", "/dev/full"][..],
        &["run", "s.toml", "--json", "/dev/full"],
        &["run", "s.toml", "--trace", "/dev/full"],
    ] {
        let Ended { code, out, err, .. } = overspin.run(args);
        assert_eq!(code, Some(3), "{args:?}: {err}");
        assert!(err.contains("space") && err.contains("help:"), "{err}");
        assert!(out.is_empty(), "no report is printed for a run whose result was lost");
    }
    // Standard output itself is full.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = overspin.command(&["list"]).stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(3));
}

#[test]
fn a_reader_that_goes_away_is_not_an_error() {
    let overspin = overspin();
    for args in
        [&["list"][..], &["list", "--json", "-"], &["completions", "bash"], &["man"], &["--help"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let Ended { code, err, .. } = Ended::of(overspin.command(args).stdout(writer));
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}");
    }
}
