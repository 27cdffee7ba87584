//! Sweeps and results directories, as a user meets them: killed, resumed, in parts, on bad disks.

use crate::{json, with_scenario};
use overspin_testing::{Ended, Program, deep, skip, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

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

/// The error of a command that must fail with this code.
#[track_caller]
fn fails(overspin: &Program, args: &[&str], code: i32) -> String {
    let err = overspin.fails(args, code);
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
    let overspin = with_scenario();
    // In the short form they are twelve. So many runs that all kills come before the end, also where runs are short or
    // the killer is late.
    let (all, seeds) = if deep() { (50, "150") } else { (12, "60") };
    let sweep: Vec<&str> =
        SWEEP.into_iter().map(|arg| if arg == "2" { seeds } else { arg }).collect();
    overspin.fine(&[&sweep[..], &["--out", "whole"]].concat());
    let killed = [&sweep[..], &["--out", "killed", "--threads", "2"]].concat();
    let place = overspin.path("killed");
    let kept = || journal(&place).matches('\n').count();
    let mut lines = 0;
    for kills in 0..all {
        let mut child = overspin.start(&killed);
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
    let (_, err) = overspin.fine(&killed);
    assert!(err.contains(&format!("{lines} are there already")), "{err}");
    assert_eq!(journal(&place), journal(&overspin.path("whole")));
    assert_eq!(samples(&place), samples(&overspin.path("whole")));
}

#[test]
fn parts_join_to_the_whole_and_a_missing_part_is_named() {
    let overspin = with_scenario();
    let (whole, _) = overspin.fine(&[&SWEEP[..], &["--out", "whole"]].concat());
    for i in 1..=3 {
        let (shard, out) = (format!("{i}/3"), format!("p{i}"));
        let (_, err) = overspin.fine(&[&SWEEP[..], &["--shard", &shard, "--out", &out]].concat());
        assert!(err.contains("overspin merge"), "{err}");
    }
    let err = overspin.fails(&["merge", "p1", "p3", "-o", "two"], 4);
    assert!(err.contains("8 runs are missing"), "{err}");
    let (merged, _) = overspin.fine(&["merge", "p2", "p1", "p3", "-o", "out", "--json", "m.json"]);
    assert_eq!(merged, whole);
    let place = |name: &str| overspin.path(name);
    assert_eq!(journal(&place("out")), journal(&place("whole")));
    assert_eq!(samples(&place("out")), samples(&place("whole")));
    // The command goes on with what was merged from two parts.
    let (_, err) = overspin.fine(&[&SWEEP[..], &["--out", "two"]].concat());
    assert!(err.contains("16 are there already"), "{err}");
    assert_eq!(journal(&place("two")), journal(&place("whole")));
    // Each reader of records reads directories.
    let (explained, _) = overspin.fine(&["explain", "out"]);
    assert!(explained.contains("The worst run"), "{explained}");
    let (compared, _) = overspin.fine(&["compare", "out", "m.json", "--metric", "throughput"]);
    assert!(compared.contains("throughput"), "{compared}");
    let (_, err) = overspin.fine(&["top", "out", "--once"]);
    assert!(err.contains("the worst run of out"), "{err}");
    overspin.fine(&["report", "out", "m.json", "-o", "p.html"]);
    let (again, _) = overspin.fine(&["run", "whole"]);
    assert_eq!(again, whole);
    fails(&overspin, &["merge", "p1", "s.toml", "-o", "x"], 3);
}

#[test]
fn a_sweep_says_first_how_much_it_is() {
    let overspin = with_scenario();
    let (out, _) = overspin.fine(&[&SWEEP[..], &["--dry-run", "--out", "none"]].concat());
    assert!(out.starts_with("24 runs: 3 lock x 4 vcpus, 2 seeds each\n"), "{out}");
    assert!(out.contains("lock: ticket, mcs, mutex\nvcpus: 2, 4, 6, 8\n"), "{out}");
    assert!(!overspin.path("none").exists());
    let (_, err) = overspin.fine(&SWEEP);
    assert!(err.starts_with("24 runs: "), "{err}");
}

#[test]
fn seeds_are_added_until_the_interval_is_narrow() {
    let overspin = with_scenario();
    let args =
        ["sweep", "s.toml", "-L", "domain.guest.vcpus=2,8", "--json", "r.json", "--out", "d"];
    let until = |percent: &str| {
        overspin.fine(&[&args[..], &["--until-interval", percent, "--max-wall", "60s"]].concat());
        fs::remove_dir_all(overspin.path("d")).unwrap();
        let record = json(&overspin.read("r.json"));
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
    let (coarse, fine) = (until("20%"), until("3%"));
    for ([coarse, fine], point) in
        [[coarse[0], fine[0]], [coarse[1], fine[1]]].iter().zip(["2", "8"])
    {
        assert!(coarse.0 >= 5 && coarse.1 <= 0.2, "{point}: {coarse:?}");
        assert!(fine.0 > coarse.0 && fine.1 <= 0.03, "{point}: {fine:?} after {coarse:?}");
    }
}

#[test]
fn mistakes_are_refused_with_a_remedy() {
    let overspin = with_scenario();
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
        let Ended { code, err, .. } = overspin.run(args);
        assert!(code != Some(0) && err.contains(reason), "{args:?}: {err}");
    }
    fs::create_dir(overspin.path("mine")).unwrap();
    overspin.write("mine/thesis.tex", "");
    let err = fails(&overspin, &[&SWEEP[..], &["--out", "mine"]].concat(), 2);
    assert!(err.contains("thesis.tex"), "{err}");
    overspin.fine(&["run", "s.toml", "--out", "one"]);
    assert!(overspin.path("one/report.html").exists());
    let err = fails(&overspin, &[&SWEEP[..], &["--out", "one"]].concat(), 2);
    assert!(err.contains("holds another result"), "{err}");
    let err = fails(&overspin, &["run", "s.toml", "--seed", "2", "--out", "one"], 2);
    assert!(err.contains("`command`"), "{err}");
    overspin.fine(&["run", "s.toml", "--out", "one"]);
}

/// A file system of a few pages, if this user may make one.
struct Small(PathBuf);

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
    let overspin = with_scenario();
    let Some(small) = Small::mount(&overspin.path("small"), "size=24k") else {
        return skip("cannot mount a small file system");
    };
    let sweep = [&SWEEP[..], &["--out", "small/d"]].concat();
    let err = fails(&overspin, &sweep, 3);
    assert!(err.contains("No space left"), "{err}");
    // With room, the same command goes on with the whole lines.
    assert!(Command::new("mount").args(["-o", "remount,size=4m"]).arg(&small.0).succeeds());
    overspin.fine(&sweep);
    overspin.fine(&[&SWEEP[..], &["--out", "whole"]].concat());
    assert_eq!(journal(&small.0.join("d")), journal(&overspin.path("whole")));
    assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(&small.0).succeeds());
    let err = fails(&overspin, &[&SWEEP[..], &["--out", "small/other"]].concat(), 3);
    assert!(err.contains("Read-only"), "{err}");
    let err = fails(&overspin, &sweep, 3);
    assert!(err.contains("Read-only"), "{err}");
}

/// A reproduction is written as a whole, but its runs are kept as they end.
#[test]
fn a_killed_reproduction_goes_on() {
    let overspin = with_scenario();
    let args =
        ["reproduce", "2016-schedbench", "--seeds=1", "--no-progress", "--no-report", "--out"];
    let mut child = overspin.start(&[&args[..], &["killed"]].concat());
    let kept = overspin.path("killed/outcomes.jsonl");
    let lines = || fs::read_to_string(&kept).unwrap_or_default().matches('\n').count();
    // The runs take seconds in this build: some are there long before all.
    until("three runs are kept", || lines() >= 3 || child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines();
    assert!(before >= 3, "{before} runs were kept");
    let (resumed, _) = overspin.fine(&[&args[..], &["killed"]].concat());
    assert!(!kept.exists(), "the result is written");
    let (whole, _) = overspin.fine(&[&args[..], &["whole"]].concat());
    assert_eq!(resumed, whole);
    let samples = |name: &str| samples(&overspin.path(name));
    assert_eq!(samples("killed"), samples("whole"));
    let (explained, _) = overspin.fine(&["explain", "killed"]);
    assert!(explained.contains("2016-schedbench"), "{explained}");
}

#[test]
fn a_sweep_writes_its_page_by_default_and_says_where() {
    let overspin = with_scenario();
    let place = |name: &str| overspin.path(name);
    let sweep: Vec<&str> = SWEEP.into_iter().filter(|arg| *arg != "--no-report").collect();
    let (out, _) = overspin.fine(&sweep);
    assert!(out.lines().last().unwrap().starts_with("s.html: "), "{out}");
    assert!(overspin.read("s.html").to_lowercase().starts_with("<!doctype html>"));
    overspin.fine(&[&sweep[..], &["--out", "d"]].concat());
    assert!(place("d/report.html").exists());
    fs::remove_file(place("s.html")).unwrap();
    overspin.fine(&SWEEP);
    overspin.fine(&["run", "s.toml", "-L", "domain.guest.lock=ticket,mcs"]);
    assert!(!place("s.html").exists(), "`run` writes none");
    overspin.fine(&[&sweep[..], &["--report", "p.html", "--quiet"]].concat());
    assert!(place("p.html").exists() && !place("s.html").exists());
}
