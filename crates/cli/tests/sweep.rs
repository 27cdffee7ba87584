//! Sweeps and results directories, as a user meets them: killed, resumed, in parts, on bad disks.

mod common;
#[path = "../../../tests/skip.rs"]
mod skip;

use common::until;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A run of some milliseconds.
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

/// 24 runs of it.
const SWEEP: [&str; 9] = [
    "sweep",
    "s.toml",
    "--no-report",
    "-L",
    "domain.guest.lock=ticket,mcs,mutex",
    "-P",
    "domain.guest.vcpus=2..8:2",
    "--seeds",
    "2",
];

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    dir
}

fn overspin(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_overspin"));
    command.current_dir(dir).env("NO_COLOR", "1").args(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[track_caller]
fn run(dir: &Path, args: &[&str]) -> Output {
    overspin(dir, args).output().unwrap()
}

#[track_caller]
fn fine(dir: &Path, args: &[&str]) -> (String, String) {
    let output = run(dir, args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{args:?}: {err}");
    (out, err)
}

/// The error of a command that must fail with this code.
#[track_caller]
fn fails(dir: &Path, args: &[&str], code: i32) -> String {
    let output = run(dir, args);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {err}");
    assert!(err.contains("help:"), "an error has a remedy: {err}");
    err
}

fn samples(dir: &Path) -> Vec<u8> {
    fs::read(dir.join("samples.parquet")).unwrap()
}

fn journal(dir: &Path) -> String {
    fs::read_to_string(dir.join("runs.jsonl")).unwrap_or_default()
}

#[test]
fn fifty_kills_lose_only_runs_under_way() {
    let dir = folder();
    // So many runs that fifty kills come before the end, also where runs are short or the killer is late.
    let sweep: Vec<&str> =
        SWEEP.into_iter().map(|arg| if arg == "2" { "150" } else { arg }).collect();
    fine(dir.path(), &[&sweep[..], &["--out", "whole"]].concat());
    let killed = [&sweep[..], &["--out", "killed", "--threads", "2"]].concat();
    let place = dir.path().join("killed");
    let kept = || journal(&place).matches('\n').count();
    let mut lines = 0;
    for kills in 0..50 {
        let mut child = overspin(dir.path(), &killed).spawn().unwrap();
        let waits_for_a_run = kills % 2 == 1;
        if waits_for_a_run {
            // However slow the machine is, this command has kept a run, and others are under way or being written.
            until("a run is kept", || kept() > lines || child.try_wait().unwrap().is_some());
            sleep(Duration::from_micros(373 * kills % 900));
        } else {
            // From before the command has opened its files to its first runs; on a slow machine always before them.
            sleep(Duration::from_micros(500 + 1_731 * kills % 17_000));
        }
        child.kill().unwrap();
        let ended = child.wait().unwrap();
        assert!(!ended.success(), "it ended before kill {kills}: the test needs more runs");
        let now = kept();
        assert!(
            now >= lines + usize::from(waits_for_a_run),
            "{now} runs after kill {kills}, {lines} before"
        );
        lines = now;
    }
    let (_, err) = fine(dir.path(), &killed);
    assert!(err.contains(&format!("{lines} are there already")), "{err}");
    assert_eq!(journal(&place), journal(&dir.path().join("whole")));
    assert_eq!(samples(&place), samples(&dir.path().join("whole")));
}

#[test]
fn parts_join_to_the_whole_and_a_missing_part_is_named() {
    let dir = folder();
    let (whole, _) = fine(dir.path(), &[&SWEEP[..], &["--out", "whole"]].concat());
    for i in 1..=3 {
        let (shard, out) = (format!("{i}/3"), format!("p{i}"));
        let (_, err) =
            fine(dir.path(), &[&SWEEP[..], &["--shard", &shard, "--out", &out]].concat());
        assert!(err.contains("overspin merge"), "{err}");
    }
    let output = run(dir.path(), &["merge", "p1", "p3", "-o", "two"]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(err.contains("8 runs are missing"), "{err}");
    let (merged, _) =
        fine(dir.path(), &["merge", "p2", "p1", "p3", "-o", "out", "--json", "m.json"]);
    assert_eq!(merged, whole);
    let place = |name: &str| dir.path().join(name);
    assert_eq!(journal(&place("out")), journal(&place("whole")));
    assert_eq!(samples(&place("out")), samples(&place("whole")));
    // The command goes on with what was merged from two parts.
    let (_, err) = fine(dir.path(), &[&SWEEP[..], &["--out", "two"]].concat());
    assert!(err.contains("16 are there already"), "{err}");
    assert_eq!(journal(&place("two")), journal(&place("whole")));
    // Each reader of records reads directories.
    let (explained, _) = fine(dir.path(), &["explain", "out"]);
    assert!(explained.contains("The worst run"), "{explained}");
    let (compared, _) = fine(dir.path(), &["compare", "out", "m.json", "--metric", "throughput"]);
    assert!(compared.contains("throughput"), "{compared}");
    let (_, err) = fine(dir.path(), &["top", "out", "--once"]);
    assert!(err.contains("the worst run of out"), "{err}");
    fine(dir.path(), &["report", "out", "m.json", "-o", "p.html"]);
    let (again, _) = fine(dir.path(), &["run", "whole"]);
    assert_eq!(again, whole);
    fails(dir.path(), &["merge", "p1", "s.toml", "-o", "x"], 3);
}

#[test]
fn a_sweep_says_first_how_much_it_is() {
    let dir = folder();
    let (out, _) = fine(dir.path(), &[&SWEEP[..], &["--dry-run", "--out", "none"]].concat());
    assert!(out.starts_with("24 runs: 3 lock x 4 vcpus, 2 seeds each\n"), "{out}");
    assert!(out.contains("lock: ticket, mcs, mutex\nvcpus: 2, 4, 6, 8\n"), "{out}");
    assert!(!dir.path().join("none").exists());
    let (_, err) = fine(dir.path(), &SWEEP);
    assert!(err.starts_with("24 runs: "), "{err}");
}

#[test]
fn seeds_are_added_until_the_interval_is_narrow() {
    let dir = folder();
    let args =
        ["sweep", "s.toml", "-L", "domain.guest.vcpus=2,8", "--json", "r.json", "--out", "d"];
    let until = |percent: &str| {
        fine(
            dir.path(),
            &[&args[..], &["--until-interval", percent, "--max-wall", "60s"]].concat(),
        );
        let text = fs::read_to_string(dir.path().join("r.json")).unwrap();
        fs::remove_dir_all(dir.path().join("d")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let of = |place: &str| {
            let all = record["over_seeds"].as_array().unwrap().iter();
            let mut found = all.filter(|s| s["where"] == place && s["metric"] == "throughput");
            let s = found.next().unwrap();
            let number = |v: &serde_json::Value| v.as_f64().unwrap();
            let mean = number(&s["mean"]);
            let width = number(&s["interval"]["high"]) - number(&s["interval"]["low"]);
            (number(&s["n"]) as usize, width / 2.0 / mean)
        };
        [of("2"), of("8")]
    };
    let (coarse, fine) = (until("20%"), until("8%"));
    for ([coarse, fine], point) in
        [[coarse[0], fine[0]], [coarse[1], fine[1]]].iter().zip(["2", "8"])
    {
        assert!(coarse.0 >= 5 && coarse.1 <= 0.2, "{point}: {coarse:?}");
        assert!(fine.0 > coarse.0 && fine.1 <= 0.08, "{point}: {fine:?} after {coarse:?}");
    }
}

#[test]
fn mistakes_are_refused_with_a_remedy() {
    let dir = folder();
    let d = dir.path();
    for (args, reason) in [
        (&["sweep", "s.toml"][..], "nothing is varied"),
        (&["sweep", "s.toml", "-L", "domain.guest.lock"], "has no `=`"),
        (&["sweep", "s.toml", "-L", "domain.guest.lock=tiket"], "`tiket`"),
        (&["sweep", "s.toml", "-L", "domain.guest.lok=ticket"], "lok"),
        (&["sweep", "s.toml", "-P", "domain.guest.vcpus=8..2"], "ends before it begins"),
        (&["run", "s.toml", "--svg", "c.svg"], "this is one run"),
        (&["run", "s.toml", "--seeds", "3", "--svg", "c.svg"], "nothing except the seed"),
        (&["merge", "nowhere", "-o", "x"], "nowhere"),
    ] {
        let output = run(d, args);
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && err.contains(reason), "{args:?}: {err}");
    }
    fs::create_dir(d.join("mine")).unwrap();
    fs::write(d.join("mine/thesis.tex"), "").unwrap();
    let err = fails(d, &[&SWEEP[..], &["--out", "mine"]].concat(), 2);
    assert!(err.contains("thesis.tex"), "{err}");
    fine(d, &["run", "s.toml", "--out", "one"]);
    assert!(d.join("one/report.html").exists());
    let err = fails(d, &[&SWEEP[..], &["--out", "one"]].concat(), 2);
    assert!(err.contains("holds another result"), "{err}");
    let err = fails(d, &["run", "s.toml", "--seed", "2", "--out", "one"], 2);
    assert!(err.contains("`command`"), "{err}");
    fine(d, &["run", "s.toml", "--out", "one"]);
}

/// A file system of a few pages, if this user may make one.
struct Small(std::path::PathBuf);

impl Small {
    fn mount(at: &Path, options: &str) -> Option<Self> {
        fs::create_dir(at).ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at);
        mount.succeeds().then(|| Self(at.to_owned()))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

trait Silent {
    fn succeeds(&mut self) -> bool;
}

impl Silent for Command {
    fn succeeds(&mut self) -> bool {
        self.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    }
}

#[test]
fn a_full_disk_keeps_what_fitted_and_a_read_only_one_is_refused_at_once() {
    let dir = folder();
    let Some(small) = Small::mount(&dir.path().join("small"), "size=24k") else {
        skip::skip("cannot mount a small file system");
        return;
    };
    let sweep = [&SWEEP[..], &["--out", "small/d"]].concat();
    let err = fails(dir.path(), &sweep, 3);
    assert!(err.contains("No space left"), "{err}");
    // With room, the same command goes on with the whole lines.
    assert!(Command::new("mount").args(["-o", "remount,size=4m"]).arg(&small.0).succeeds());
    fine(dir.path(), &sweep);
    fine(dir.path(), &[&SWEEP[..], &["--out", "whole"]].concat());
    assert_eq!(journal(&small.0.join("d")), journal(&dir.path().join("whole")));
    assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(&small.0).succeeds());
    let err = fails(dir.path(), &[&SWEEP[..], &["--out", "small/other"]].concat(), 3);
    assert!(err.contains("Read-only"), "{err}");
    let err = fails(dir.path(), &sweep, 3);
    assert!(err.contains("Read-only"), "{err}");
}

/// A reproduction is written as a whole, but its runs are kept as they end.
#[test]
fn a_killed_reproduction_goes_on() {
    let dir = folder();
    let args =
        ["reproduce", "2016-schedbench", "--seeds=1", "--no-progress", "--no-report", "--out"];
    let mut child = overspin(dir.path(), &[&args[..], &["killed"]].concat()).spawn().unwrap();
    let kept = dir.path().join("killed/outcomes.jsonl");
    let lines = || fs::read_to_string(&kept).unwrap_or_default().matches('\n').count();
    // The runs take seconds in this build: some are there long before all.
    until("three runs are kept", || lines() >= 3 || child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines();
    assert!(before >= 3, "{before} runs were kept");
    let (resumed, _) = fine(dir.path(), &[&args[..], &["killed"]].concat());
    assert!(!kept.exists(), "the result is written");
    let (whole, _) = fine(dir.path(), &[&args[..], &["whole"]].concat());
    assert_eq!(resumed, whole);
    let samples = |name: &str| samples(&dir.path().join(name));
    assert_eq!(samples("killed"), samples("whole"));
    let (explained, _) = fine(dir.path(), &["explain", "killed"]);
    assert!(explained.contains("2016-schedbench"), "{explained}");
}

#[test]
fn a_sweep_writes_its_page_by_default_and_says_where() {
    let dir = folder();
    let place = |name: &str| dir.path().join(name);
    let sweep: Vec<&str> = SWEEP.into_iter().filter(|arg| *arg != "--no-report").collect();
    let (out, _) = fine(dir.path(), &sweep);
    assert!(out.lines().last().unwrap().starts_with("s.html: "), "{out}");
    assert!(
        fs::read_to_string(place("s.html")).unwrap().to_lowercase().starts_with("<!doctype html>")
    );
    fine(dir.path(), &[&sweep[..], &["--out", "d"]].concat());
    assert!(place("d/report.html").exists());
    fs::remove_file(place("s.html")).unwrap();
    fine(dir.path(), &SWEEP);
    fine(dir.path(), &["run", "s.toml", "-L", "domain.guest.lock=ticket,mcs"]);
    assert!(!place("s.html").exists(), "`run` writes none");
    fine(dir.path(), &[&sweep[..], &["--report", "p.html", "--quiet"]].concat());
    assert!(place("p.html").exists() && !place("s.html").exists());
}
