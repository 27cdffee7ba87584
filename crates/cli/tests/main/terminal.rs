//! What reaches the terminal: widths, characters, errors, manual pages, the diagnosis.

use crate::{json, overspin, with_scenario};
use overspin_testing::{Ended, Program, SCENARIO};
use std::fs;

/// A command with these variables of the environment, in a folder with the scenario `s.toml`.
fn in_environment(overspin: &Program, args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let mut command = overspin.command(args);
    for name in ["COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(name);
    }
    Ended::of(command.envs(environment.iter().copied()))
}

#[test]
fn tables_fit_the_width_that_is_asked_for() {
    let overspin = overspin();
    // Here no vCPU waits for a lock, so `explain` draws nothing. The caption of a drawing is not broken.
    overspin.write("s.toml", SCENARIO.replace("cores = 2", "cores = 1").replace("= 4", "= 2"));
    let file = "s.toml";
    for args in
        [&["run", file][..], &["explain", file], &["list", "locks"], &["top", "--once", file]]
    {
        let wide = in_environment(&overspin, args, &[]).out;
        let narrow = in_environment(&overspin, args, &[("COLUMNS", "60")]).out;
        let longest = narrow.lines().max_by_key(|l| l.chars().count()).unwrap();
        // A line of a story is indented text that is not broken; tables and running text fit.
        let fits = longest.chars().count() <= 60 || longest.starts_with("  ");
        assert!(fits, "{args:?}: {longest}\n{narrow}");
        // Nothing is lost but the places of the breaks, and the rules between tables.
        let numbers = |text: &str| -> Vec<String> {
            let mut all: Vec<String> = text
                .split_whitespace()
                .filter(|w| w.parse::<f64>().is_ok() && w.contains('.'))
                .map(str::to_owned)
                .collect();
            all.sort();
            all.dedup();
            all
        };
        assert_eq!(numbers(&wide), numbers(&narrow), "{args:?}");
    }
}

/// Into a file, where other reports have any width.
#[test]
fn explanations_fits_and_diagnoses_are_as_wide_as_a_page() {
    let overspin = with_scenario();
    overspin.write("rec.json", include_str!("../../../../examples/recorded-mutex.json"));
    for args in [&["explain", "s.toml"][..], &["fit", "rec.json"], &["doctor"]] {
        let out = in_environment(&overspin, args, &[]).out;
        // Paths are not broken, and a line of a story is indented.
        let fits = |l: &&str| l.chars().count() <= 80 || l.contains('/') || l.starts_with("  ");
        let wide: Vec<&str> = out.lines().filter(|l| !fits(l)).collect();
        assert!(!out.is_empty() && wide.is_empty(), "{args:?}: {wide:#?}");
        let rules = out.lines().filter(|l| l.starts_with('─')).map(|l| l.chars().count());
        assert!(rules.max().is_some_and(|longest| longest <= 80), "{args:?}:\n{out}");
    }
}

#[test]
fn the_c_locale_has_only_ascii() {
    let overspin = with_scenario();
    let file = "s.toml";
    overspin.write("bad.toml", SCENARIO.replace("cores", "core"));
    let seeds = ["run", file, "--seeds", "2"];
    for args in [&["run", file][..], &seeds, &["explain", file], &["list"], &["run", "bad.toml"]] {
        for locale in [("LC_ALL", "C"), ("LANG", "POSIX")] {
            let Ended { out, err, .. } = in_environment(&overspin, args, &[locale]);
            let all = out + &err;
            assert!(all.is_ascii(), "{args:?} {locale:?}: {all}");
        }
    }
    // LC_ALL wins over LANG, and other locales keep their rules.
    let both = [("LC_ALL", "C.UTF-8"), ("LANG", "C")];
    assert!(in_environment(&overspin, &["run", file], &both).out.contains('─'));
}

#[test]
fn an_error_is_said_once() {
    let overspin = overspin();
    overspin.write("bad.toml", SCENARIO.replace("vcpus = 4", "vcpus = 0"));
    let stderr = overspin.fails(&["run", "bad.toml"], 2);
    assert_eq!(stderr.matches("is out of range").count(), 1, "{stderr}");
    for words in ["bad.toml:7:9", "vcpus = 0", "help: "] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
}

#[test]
fn check_names_the_option_for_all_locks() {
    let overspin = overspin();
    let (help, _) = overspin.fine(&["check", "--help"]);
    assert!(help.contains("`--all` checks all locks"), "{help}");
    let err = overspin.fails(&["check"], 2);
    assert!(err.contains("--all"), "{err}");
}

#[test]
fn every_command_has_a_manual_page() {
    let overspin = overspin();
    overspin.fine(&["man", "--out", "man1"]);
    for name in [
        "overspin",
        "overspin-run",
        "overspin-bench-locks",
        "overspin-schedbench-plan",
        "overspin-top",
    ] {
        let page = overspin.read(&format!("man1/{name}.1"));
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains(&name.replace('-', "\\-")),
            "{name}: {page}"
        );
    }
    let left: Vec<_> =
        fs::read_dir(overspin.path("man1")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|n| n.to_string_lossy().ends_with(".1")), "{left:?}");
    for args in [&["man", "bench", "locks"][..], &["man", "bench locks"]] {
        let (page, _) = overspin.fine(args);
        assert!(page.contains("overspin bench locks") && page.contains("\\-\\-section"), "{page}");
    }
    let stderr = overspin.fails(&["man", "bench", "clocks"], 2);
    let known = "commands of `overspin bench` are: sim, sched, hv, locks";
    assert!(stderr.contains(known), "{stderr}");
}

#[test]
fn the_doctor_looks_at_any_machine() {
    let overspin = overspin();
    // The path of the library may need much of a page, and then other words are broken.
    let (shown, _) = in_environment(&overspin, &["doctor"], &[("COLUMNS", "300")]).with(0);
    for words in ["CPUs", "clock speed", "preload library", "other load", "KVM's parameters", "Xen"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // The answer comes first.
    assert_eq!(
        shown.lines().nth(3).map(|l| l.starts_with("Simulations run here")),
        Some(true),
        "{shown}"
    );
    let without = [("PATH", ""), ("OVERSPIN_PYTHON", "python3")];
    let record = json(&in_environment(&overspin, &["doctor", "--json", "-"], &without).out);
    assert_eq!(record["schema"], "overspin-doctor/1");
    let findings = record["findings"].as_array().unwrap();
    let python = findings.iter().find(|f| f["what"] == "Python").unwrap();
    // Without a path there is no Python.
    assert_eq!(python["state"], "missing");
    for finding in findings.iter().filter(|f| f["state"] == "missing") {
        assert!(finding["cost"] != "" && finding["remedy"] != "", "{finding}");
    }
}
