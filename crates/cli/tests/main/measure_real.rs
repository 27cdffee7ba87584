//! `overspin measure` with real benchmarks: files, readers, mistakes, interruptions. How fast the machine is is not
//! tested.

use crate::{json, overspin, preload};
use overspin_testing::{Ended, deep, signal, skip, until};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// MiB that pft touches.
fn memory() -> u32 {
    if deep() { 64 } else { 32 }
}

#[test]
fn every_reader_reads_the_record() {
    let overspin = overspin();
    let memory = memory();
    let size = format!("--memory={memory}");
    let files = ["--json=r.json", "--seconds=s.csv", "--out=d"];
    let pft = ["measure", "pft", &size, "--workers=processes-2,threads-1", "--runs=3"];
    let pft = [&pft[..], &files].concat();
    let (out, _) = overspin.fine(&pft);
    assert!(out.contains("The machine meanwhile"), "{out}");
    let record = json(&overspin.read("r.json"));
    assert_eq!((&record["kind"], &record["name"]), (&"real".into(), &"pft".into()));
    assert_eq!(record["runs"].as_array().unwrap().len(), 6, "two places, three times");
    let samples = record["samples"].as_array().unwrap();
    let of = |place: &str, metric: &str| -> Vec<f64> {
        let found = samples.iter().filter(|s| s["where"] == place && s["metric"] == metric);
        found.map(|s| s["value"].as_f64().unwrap()).collect()
    };
    for place in ["processes-2.packets-0", "threads-1.packets-0"] {
        assert_eq!(of(place, "faults").len(), 3);
        // Each page of 4 KiB is a fault, five times over.
        for (rate, elapsed) in of(place, "faults").iter().zip(of(place, "elapsed")) {
            assert!(
                (rate * elapsed - 5.0 * f64::from(memory * 256)).abs() < 1.0,
                "{rate} {elapsed}"
            );
        }
        // So many faults five times over take several clock ticks.
        let shares = ["user", "system", "idle", "iowait", "steal"]
            .map(|part| of(&format!("{place}/machine"), &format!("{part}-share"))[0]);
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-6, "{shares:?}");
    }
    let seconds = overspin.read("s.csv");
    let columns = seconds.lines().next().unwrap().split(',').count();
    assert!(seconds.lines().all(|l| l.split(',').count() == columns), "{seconds}");
    assert!(seconds.lines().count() > 6, "a line for each run at least");
    assert_eq!(std::fs::read_dir(overspin.path("d/raw")).unwrap().count(), 6);

    // The same command may measure again; then two results differ by chance only, which `compare` may not see.
    overspin.fine(&pft);
    let Ended { code, out: compared, err, .. } = overspin.run(&["compare", "r.json", "d"]);
    assert!([Some(0), Some(4)].contains(&code), "{err}");
    assert!(compared.contains("processes-2.packets-0: faults, 1/s"), "{compared}");
    let (explained, _) = overspin.fine(&["explain", "r.json"]);
    assert!(explained.contains("A record of a real benchmark"), "{explained}");
    overspin.fine(&["report", "r.json", "d", "-o", "r.html"]);
    let page = overspin.read("r.html");
    assert!(page.contains("The machine, second by second") && page.contains("std. dev."));
    // It is of no scenario that could run again.
    overspin.fails(&["run", "r.json"], 2);
}

#[test]
fn a_tree_is_built_as_kernbench_does() {
    if !Path::new("/usr/bin/make").exists() {
        return skip("there is no make");
    }
    let overspin = overspin();
    std::fs::create_dir(overspin.path("tree")).unwrap();
    let makefile = "all: a b\na b:\n\techo $@ > $@\nclean:\n\trm -f a b\n";
    overspin.write("tree/Makefile", makefile);
    let args = ["measure", "kernbench", "--tree=tree", "--runs=2", "-M", "--json=r.json"];
    let (out, _) = overspin.fine(&args);
    assert!(out.contains("Average Half load -j "), "{out}");
    assert!(out.contains("Elapsed Time ") && out.contains("Sleeps "), "{out}");
    assert!(!out.contains("maximal"), "-M leaves it out: {out}");
    assert_eq!(
        std::fs::read_dir(overspin.path("tree")).unwrap().count(),
        1,
        "the tree is as it was"
    );
    assert_eq!(
        json(&overspin.read("r.json"))["real"]["places"],
        serde_json::json!(["half", "optimal"])
    );
}

#[test]
fn a_lock_is_judged_by_a_program() {
    let overspin = overspin();
    let args = [
        "measure",
        "command",
        "--lock=none,mutex",
        "--runs=2",
        "--json=r.json",
        "--",
        "sleep",
        "0.05",
    ];
    let (out, _) = Ended::of(overspin.command(&args).env("OVERSPIN_PRELOAD", preload())).with(0);
    assert!(out.contains("change %") && out.contains("against `none`"), "{out}");
    // It says so when the lock had nothing to do.
    assert!(out.contains("took 0 pthread mutexes through `mutex`"), "{out}");
    let record = json(&overspin.read("r.json"));
    assert_eq!(record["real"]["locks"], serde_json::json!(["none", "mutex"]));
}

#[test]
fn a_program_without_a_loader_is_told_before_it_starts_as_exec_does() {
    let overspin = overspin();
    overspin.write("p.c", "int main(void) { return 0; }");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-static", "p.c", "-o", "p"]).current_dir(overspin.dir());
    if !compiler.output().is_ok_and(|output| output.status.success()) {
        return skip("there is no C compiler with a static library");
    }
    let run = |args: &[&str]| {
        let preload = preload();
        Ended::of(overspin.command(args).env("OVERSPIN_PRELOAD", preload)).with(0)
    };
    let (_, exec) = run(&["exec", "--lock=mcs-tp", "--", "./p"]);
    let args = ["measure", "command", "--lock=none,mcs-tp", "--runs=1", "--", "./p"];
    let (out, err) = run(&args);
    assert!(exec.contains("runs without `mcs-tp`") && err.starts_with(&exec), "{exec}\n{err}");
    // The report says it too, and not that the program took no mutex.
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("`./p` runs without these locks") && !out.contains("took 0"), "{out}");
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    let overspin = overspin();
    let refused = |args: &[&str], code: i32, said: &str| {
        let err = overspin.fails(args, code);
        assert!(err.contains(said), "{args:?}: {err}");
    };
    refused(&["measure", "kernbench", "--tree=no-such"], 2, "there is no tree `no-such`");
    refused(&["measure", "kernbench", "--tree=.", "-H", "-O", "-M"], 2, "no load is left");
    refused(&["measure", "kernbench", "--tree=."], 2, "has no Makefile");
    refused(&["measure", "pft", "--workers=fibers-2"], 2, "processes-N or threads-N");
    refused(&["measure", "pft", "--workers=threads-0"], 2, "processes-N or threads-N");
    refused(&["measure", "dbench", "--length=1500ms"], 2, "whole seconds");
    refused(&["measure", "pft", "--runs=1", "--time=1s"], 2, "cannot be used with");
    refused(
        &["measure", "command", "--lock=no-such", "--", "true"],
        2,
        "there is no lock `no-such`",
    );
    refused(&["measure", "command", "--lock=none,none", "--", "true"], 2, "named twice");
    refused(&["measure", "command", "--", "no-such-program"], 2, "there is no program");
    refused(&["measure", "command", "--runs=1", "--", "false"], 3, "`false` failed");
    let nowhere = ["measure", "command", "--scratch=/proc/none", "--", "true"];
    refused(&nowhere, 3, "/proc/none");
    let mut no_path = overspin.command(&["measure", "dbench"]);
    let (_, err) = Ended::of(no_path.env("PATH", "/nowhere")).with(3);
    assert!(err.contains("apt-get install dbench"), "{err}");
}

#[test]
fn a_program_that_fails_is_quoted() {
    let overspin = overspin();
    let script = "echo to all; echo no such thing >&2; exit 7";
    let args = ["measure", "command", "--json=r.json", "--", "sh", "-c", script];
    let err = overspin.fails(&args, 3);
    let said = "its standard error with:\n  no such thing\nand its standard output with:\n  to all";
    assert!(err.contains(said), "{err}");
    let err = overspin.fails(&["measure", "command", "--", "false"], 3);
    assert!(err.contains("`false` failed (exit status: 1); it printed nothing"), "{err}");
}

#[test]
fn a_measurement_without_a_run_leaves_an_earlier_result_as_it_was() {
    let overspin = overspin();
    let outputs = ["--json=r.json", "--csv=r.csv", "--seconds=s.csv", "--out=d", "--runs=1"];
    // A program that works once, under one command.
    let once = ["--", "sh", "-c", "test ! -e broken"];
    let args = [&["measure", "command"][..], &outputs, &once].concat();
    overspin.fine(&args);
    let files = ["r.json", "r.csv", "s.csv", "d/runs.jsonl", "d/manifest.json"];
    let good = files.map(|file| overspin.read(file));
    overspin.write("broken", "");
    let err = overspin.fails(&args, 3);
    let said = "no run ended: nothing is written to `s.csv`, `r.json`, `r.csv`, `d`";
    assert!(err.contains(said), "{err}");
    assert_eq!(files.map(|file| overspin.read(file)), good);
    assert_eq!(json(&good[0])["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_time_limit_ends_a_build_within_seconds_though_it_wants_to_go_on() {
    if !Path::new("/usr/bin/make").exists() {
        return skip("there is no make");
    }
    let overspin = overspin();
    for folder in ["tree", "scratch"] {
        std::fs::create_dir(overspin.path(folder)).unwrap();
    }
    overspin.write("tree/Makefile", "all:\n\ttrap '' INT; sleep 1000\nclean:\n");
    let began = Instant::now();
    let args = ["measure", "kernbench", "--tree=tree", "--scratch=scratch", "--max-wall=1s"];
    overspin.fails(&args, 4);
    // 5 s for the program, and some for what comes before and after.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let scratch = overspin.path("scratch");
    until("nothing is left", || std::fs::read_dir(&scratch).unwrap().count() == 0);
}

/// A disk may take a millisecond and more for each file, and a kernel's tree has 84,000.
#[test]
fn a_large_tree_is_removed_by_several_processes_at_once() {
    if !Path::new("/usr/bin/make").exists() {
        return skip("there is no make");
    }
    let overspin = overspin();
    for folder in ["bin", "scratch", "tree"] {
        std::fs::create_dir(overspin.path(folder)).unwrap();
    }
    for folder in 0..40 {
        std::fs::create_dir_all(overspin.path(&format!("tree/sub/{folder}"))).unwrap();
    }
    overspin.write("tree/Makefile", "all:\n\nclean:\n");
    let log = overspin.path("log");
    // An `rm` that waits for another one; for ten seconds, if there is none.
    let rm = format!(
        "#!/bin/sh\necho begins >> {log}\nn=0\nuntil [ $(grep -c begins {log}) -gt 1 ] || [ $n -gt 100 ]\n\
         do sleep 0.1; n=$((n + 1)); done\necho removes >> {log}\nexec /bin/rm \"$@\"\n",
        log = log.display()
    );
    overspin.write("bin/rm", rm);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(overspin.path("bin/rm"), mode).unwrap();
    let path = format!("{}:{}", overspin.path("bin").display(), std::env::var("PATH").unwrap());
    let args = ["measure", "kernbench", "--tree=tree", "--scratch=scratch", "--loads=1"];
    let args = [&args[..], &["--runs=1"]].concat();
    Ended::of(overspin.command(&args).env("PATH", path)).with(0);
    let scratch = overspin.path("scratch");
    until("nothing is left", || std::fs::read_dir(&scratch).unwrap().count() == 0);
    assert!(overspin.read("log").starts_with("begins\nbegins\n"), "{}", overspin.read("log"));
}

#[test]
fn a_program_has_its_signals_though_a_script_started_us_in_its_background() {
    let overspin = overspin();
    // As `nohup overspin .. &` does.
    let in_background = |args: &[&str]| {
        let command = overspin.command(args);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "trap '' INT HUP; exec \"$@\"", "sh"]);
        shell.arg(command.get_program()).args(command.get_args()).current_dir(overspin.dir());
        Ended::of(&mut shell)
    };
    let all = ["measure", "command", "--runs=1", "--out=d", "--", "cat", "/proc/self/status"];
    in_background(&all).with(0);
    let raw = std::fs::read_dir(overspin.path("d/raw")).unwrap().next().unwrap().unwrap();
    let status = std::fs::read_to_string(raw.path()).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    // SIGHUP and SIGINT are the first two.
    assert_eq!(ignored & 0b11, 0, "{ignored:x}");
    let began = Instant::now();
    in_background(&["measure", "command", "--max-wall=1s", "--", "sleep", "1000"]).with(4);
    // A second to the limit, and five to the kill, if SIGINT did not end it.
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
}

#[test]
fn ctrl_c_and_a_kill_leave_no_process_and_no_file() {
    let overspin = overspin();
    let scratch = overspin.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let scratch_option = format!("--scratch={}", scratch.display());
    let (record, out) = ("--json=r.json", "--out=d");
    let args =
        ["measure", "command", record, out, &scratch_option, "--runs=1000", "--", "sleep", "0.1"];
    // From the second time on, there are files of the first one, so that the signal comes when the folder is a moment old.
    // Whatever moment that is, somebody must be there to remove it.
    for (name, code) in
        [("INT", Some(130))].into_iter().chain(vec![("KILL", None); if deep() { 10 } else { 2 }])
    {
        // Nobody reads what it prints.
        let mut command = overspin.command(&args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // A later command writes over the files of the first.
        let runs = || std::fs::read_dir(overspin.path("d/raw")).map_or(0, Iterator::count);
        let begun = || std::fs::read_dir(&scratch).unwrap().count() > 0;
        until("a run has ended", || runs() > 0 && begun());
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), code);
        // A killed process cleans up by its guardian, shortly after.
        until("nothing is left", || std::fs::read_dir(&scratch).unwrap().count() == 0);
    }
    let record = json(&overspin.read("r.json"));
    let warnings = record["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w.as_str().unwrap().contains("stopped")), "{warnings:?}");
    assert!(!record["runs"].as_array().unwrap().is_empty(), "the finished runs are kept");
}

/// A script whose process in a session of its own, a daemon, tells its number with a file and lives on. Then the script
/// does `then`.
fn daemonises(traps: &str, then: &str) -> String {
    let daemon = format!("{traps} : > pids/$$; exec sleep 1000");
    format!("setsid sh -c '{daemon}' & until [ -e pids/$! ]; do sleep 0.01; done; {then}")
}

/// The numbers of the daemons that have begun.
fn daemons(overspin: &overspin_testing::Program) -> Vec<u32> {
    let files = std::fs::read_dir(overspin.path("pids")).unwrap();
    files.map(|f| f.unwrap().file_name().into_string().unwrap().parse().unwrap()).collect()
}

fn lives(pid: u32) -> bool {
    // A zombie has none.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"))
}

#[test]
fn what_a_program_leaves_behind_is_ended_after_each_run_and_named() {
    let overspin = overspin();
    std::fs::create_dir(overspin.path("pids")).unwrap();
    let mut ours = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let script = daemonises("", "true");
    let args = ["measure", "command", "--runs=1", "--", "sh", "-c", &script];
    let (out, err) = overspin.fine(&args);
    let pids = daemons(&overspin);
    assert_eq!(pids.len(), 2, "the warm-up, and the run");
    let err = err.replace('\n', " ");
    assert!(err.contains("note: ended 2 processes that `sh` left behind: sleep (pid "), "{err}");
    assert!(pids.iter().all(|pid| !lives(*pid) && err.contains(&format!("(pid {pid})"))), "{err}");
    assert!(out.replace('\n', " ").contains("left 2 processes behind"), "{out}");
    assert!(lives(ours.id()), "others are not touched");
    ours.kill().unwrap();
    ours.wait().unwrap();
}

#[test]
fn what_has_left_the_group_of_a_program_ends_however_the_measurement_ends() {
    let moments = [
        ("--max-wall=1s", None, Some(4)),
        ("--runs=2", Some("INT"), Some(130)),
        ("--runs=2", Some("TERM"), Some(143)),
        ("--runs=2", Some("KILL"), None),
    ];
    for (option, signalled, code) in moments {
        let overspin = overspin();
        for folder in ["pids", "scratch"] {
            std::fs::create_dir(overspin.path(folder)).unwrap();
        }
        // Even the guardian must not rely on its good will.
        let traps = if code.is_none() { "trap \"\" INT TERM;" } else { "" };
        let script = daemonises(traps, "sleep 1000");
        let args = ["measure", "command", option, "--scratch=scratch", "--", "sh", "-c", &script];
        let child = overspin.start(&args);
        until("the daemon has begun", || daemons(&overspin).iter().any(|pid| lives(*pid)));
        if let Some(name) = signalled {
            signal(&child, name);
        }
        let Ended { code: found, err, .. } = Ended::wait(child);
        assert_eq!(found, code, "{err}");
        let pid = daemons(&overspin)[0];
        if code.is_some() {
            let said = format!("ended 1 process that `sh` left behind: sleep (pid {pid})");
            assert!(err.contains(&said) && !lives(pid), "{err}");
        }
        until("it has ended", || !lives(pid));
        let scratch = overspin.path("scratch");
        until("nothing is left", || std::fs::read_dir(&scratch).unwrap().count() == 0);
    }
}

/// A killed process has no chance to write anything, so what it leaves was written as each run ended.
#[test]
fn the_same_command_goes_on_after_a_kill_with_the_runs_that_had_ended() {
    let overspin = overspin();
    let args = ["measure", "command", "--runs=6", "--out=d", "--", "sleep", "0.2"];
    for (name, code) in [("KILL", None), ("TERM", Some(143))] {
        let mut command = overspin.command(&args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let lines = || {
            let journal = std::fs::read_to_string(overspin.path("d/runs.jsonl"));
            let journal = journal.unwrap_or_default();
            journal.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let manifest = || std::fs::read_to_string(overspin.path("d/manifest.json"));
        let unfinished = || manifest().is_ok_and(|text| text.contains("\"finished\": false"));
        until("two runs have ended", || unfinished() && lines().len() >= 2);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), code);
        let kept = lines();
        assert!(kept.len() < 6, "{name} came too late: {kept:?}");
        // Until it goes on, the directory is a result with the runs that it has.
        let (told, _) = overspin.fine(&["explain", "d"]);
        assert!(told.contains("A record of a real benchmark"), "{told}");
        let (report, err) = overspin.fine(&args);
        assert!(err.contains(&format!("after {} runs of an earlier command", kept.len())), "{err}");
        assert!(
            report.contains(&format!("{} of its runs were made before", kept.len())),
            "{report}"
        );
        let whole = lines();
        assert_eq!(whole.len(), 6, "{name}");
        for (number, (before, after)) in kept.iter().zip(&whole).enumerate() {
            let (before, after) = (json(before), json(after));
            assert_eq!(before["figures"], after["figures"], "it was not measured again");
            assert_eq!(after["run"]["number"], number);
        }
        let seconds = json(&manifest().unwrap())["record"]["real"]["seconds"].clone();
        let began: Vec<f64> =
            seconds.as_array().unwrap().iter().map(|s| s["began_s"].as_f64().unwrap()).collect();
        assert!(began.len() == 6 && began.is_sorted(), "time goes on: {began:?}");
        // The kill may have left the beginning of a file, which is a hidden one.
        let raw = std::fs::read_dir(overspin.path("d/raw")).unwrap();
        let names = raw.map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| !name.starts_with('.')).count(), 6);
    }
}

#[test]
fn a_time_limit_keeps_what_there_is() {
    let overspin = overspin();
    let began = Instant::now();
    let args = [
        "measure",
        "command",
        "--max-wall=1s",
        "--runs=1000",
        "--json=r.json",
        "--",
        "sleep",
        "0.1",
    ];
    overspin.fails(&args, 4);
    assert!(began.elapsed() < Duration::from_secs(60));
    assert!(json(&overspin.read("r.json"))["runs"].is_array());
}
