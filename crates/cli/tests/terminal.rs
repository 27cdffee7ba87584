//! What reaches the terminal: widths, characters, errors, manual pages, the diagnosis.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
limit = "30ms"
[host]
cores = 1
[[domain]]
name = "guest"
vcpus = 2
lock = "ticket"
workload = { kind = "lock-loop" }
"#;

/// The output of a command with these variables of the environment.
fn overspin(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    for name in ["COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(name);
    }
    command.args(args).env("NO_COLOR", "1").envs(environment.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn scenario(dir: &Path) -> String {
    let file = dir.join("s.toml");
    fs::write(&file, SCENARIO).unwrap();
    file.display().to_string()
}

#[test]
fn tables_fit_the_width_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = scenario(dir.path());
    for args in
        [&["run", &file][..], &["explain", &file], &["list", "locks"], &["top", "--once", &file]]
    {
        let wide = text(&overspin(args, &[]).stdout);
        let narrow = text(&overspin(args, &[("COLUMNS", "60")]).stdout);
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

#[test]
fn the_c_locale_has_only_ascii() {
    let dir = tempfile::tempdir().unwrap();
    let file = scenario(dir.path());
    fs::write(dir.path().join("bad.toml"), SCENARIO.replace("cores", "core")).unwrap();
    let bad = dir.path().join("bad.toml").display().to_string();
    let seeds = ["run", &file, "--seeds", "2"];
    for args in [&["run", &file][..], &seeds, &["explain", &file], &["list"], &["run", &bad]] {
        for locale in [("LC_ALL", "C"), ("LANG", "POSIX")] {
            let output = overspin(args, &[locale]);
            let all = text(&[output.stdout, output.stderr].concat());
            assert!(all.is_ascii(), "{args:?} {locale:?}: {all}");
        }
    }
    // LC_ALL wins over LANG, and other locales keep their rules.
    let output = overspin(&["run", &file], &[("LC_ALL", "C.UTF-8"), ("LANG", "C")]);
    assert!(text(&output.stdout).contains('─'));
}

#[test]
fn an_error_is_said_once() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.toml");
    fs::write(&bad, SCENARIO.replace("vcpus = 2", "vcpus = 0")).unwrap();
    let output = overspin(&["run", &bad.display().to_string()], &[]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.matches("is out of range").count(), 1, "{stderr}");
    for words in ["bad.toml:7:9", "vcpus = 0", "help: "] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
}

#[test]
fn check_names_the_option_for_all_locks() {
    let help = text(&overspin(&["check", "--help"], &[]).stdout);
    assert!(help.contains("`--all` checks all locks"), "{help}");
    let output = overspin(&["check"], &[]);
    assert!(
        output.status.code() == Some(2) && text(&output.stderr).contains("--all"),
        "{output:?}"
    );
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("man1");
    let output = overspin(&["man", "--out", &folder.display().to_string()], &[]);
    assert!(output.status.success(), "{output:?}");
    for name in [
        "overspin",
        "overspin-run",
        "overspin-bench-locks",
        "overspin-schedbench-plan",
        "overspin-top",
    ] {
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains(&name.replace('-', "\\-")),
            "{name}: {page}"
        );
    }
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|n| n.to_string_lossy().ends_with(".1")), "{left:?}");
    for args in [&["man", "bench", "locks"][..], &["man", "bench locks"]] {
        let page = text(&overspin(args, &[]).stdout);
        assert!(page.contains("overspin bench locks") && page.contains("\\-\\-section"), "{page}");
    }
    let output = overspin(&["man", "bench", "clocks"], &[]);
    let stderr = text(&output.stderr);
    assert!(
        output.status.code() == Some(2)
            && stderr.contains("commands of `overspin bench` are: sim, sched, hv, locks"),
        "{stderr}"
    );
}

#[test]
fn the_doctor_looks_at_any_machine() {
    let output = overspin(&["doctor"], &[]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for words in
        ["CPUs", "clock speed", "preload library", "other load", "Simulated results depend on none"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let output =
        overspin(&["doctor", "--json", "-"], &[("PATH", ""), ("OVERSPIN_PYTHON", "python3")]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["schema"], "overspin-doctor/1");
    let findings = record["findings"].as_array().unwrap();
    let python = findings.iter().find(|f| f["what"] == "Python").unwrap();
    // Without a path there is no Python.
    assert_eq!(python["state"], "missing");
    for finding in findings.iter().filter(|f| f["state"] == "missing") {
        assert!(finding["cost"] != "" && finding["remedy"] != "", "{finding}");
    }
}
