//! The commands of README and docs/, run as a new user would: all commands of a document in order, in one
//! folder. A command must end with the exit code that its document implies, and must print the output that is
//! shown. Figures are not compared: they change with the model.
//!
//! Tools such as trycmd do not fit: they compare whole outputs, and the pages show excerpts, with `...` and without
//! figures of the machine.

use overspin_testing::{deep, root};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Commands that are not run here, by their beginnings, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("overspin validate --quick", "validate.rs runs it"),
    ("cargo ", "builds or tests the workspace, which is what runs this"),
    ("OVERSPIN_DEEP=1 cargo ", "runs the models of the locks; .ci/run does"),
    ("pip ", "builds the Python package; .ci/run does"),
    (
        "overspin reproduce",
        "minutes in a debug build; every release runs them, and crates/lab tests the parts",
    ),
    (
        "overspin run examples/container-quota.toml",
        "seconds, and of both CPUs in `threads`; worlds.rs runs another scenario",
    ),
    ("overspin run examples/pause-loop-exits-by-year.toml", "half a minute in a debug build"),
    ("overspin run examples/tlb-shootdown.toml", "a minute in a debug build"),
    ("overspin run examples/lock-map-machines.toml", "minutes in a debug build"),
    ("overspin check", "a minute in a debug build; check.rs runs it within bounds"),
    ("overspin bench sim", "a minute of measuring; this file checks its options only"),
    ("overspin bench sched", "half a minute of measuring; this file checks its options only"),
    ("overspin serve", "runs until it is stopped; serve.rs runs it"),
    ("overspin watch", "runs until it is stopped; watch.rs runs it"),
    (
        "overspin top examples/ticket-overcommit.toml --world",
        "seconds of both CPUs; worlds.rs runs another scenario",
    ),
    ("overspin exec", "needs the preload library beside the command; exec.rs runs it"),
    ("overspin bench locks --case condvar", "bench_locks.rs runs it; one thread is too few"),
    (
        "overspin bench locks --locks pthread,std",
        "of a section on `overspin exec`; minutes of measuring",
    ),
];

/// Commands that are shortened for a debug build, by their beginnings: options to leave out with their
/// values, and options to add.
const SHORTER: &[(&str, &[&str], &str)] = &[
    ("overspin run examples/lock-map.toml --seeds", &["--seeds"], "--seeds 2 --set limit=100us"),
    ("overspin run examples/lock-map.toml", &[], "--set limit=100us"),
    (
        "overspin run examples/preemption-notification.toml",
        &["--seeds"],
        "--seeds 2 --set limit=10ms",
    ),
    ("overspin run examples/io-beside-hog.toml", &[], "--set limit=1s"),
    ("overspin advise", &["--seeds", "--length"], "--seeds 2 --length 50ms"),
    ("overspin run examples/host-ratio.toml --seeds", &["--seeds"], "--seeds 2 --set limit=50ms"),
    ("overspin measure noise", &["--duration"], "--duration 200ms"),
    (
        "overspin bench locks",
        &["--threads", "--section", "--outside", "--time", "--runs"],
        // Spinning locks on more threads than CPUs take very long.
        "--threads 1,2 --time 1ms --runs 2",
    ),
    // Ends with 4 if the limit is reached.
    ("overspin schedbench run", &[], "--max-wall 3s"),
];

/// Shorter forms of commands that measure, or that simulate for seconds, unless the tests are to be deep.
const SHORT: &[(&str, &[&str], &str)] = &[
    ("overspin measure pft", &["--runs"], "--runs 2 --memory 16"),
    ("overspin validate --dry-run", &[], "--world threads"),
    ("overspin run examples/host-ratio.toml --set host.costs", &[], "--set limit=50ms"),
    ("overspin calibrate", &["--time"], "--time 100ms"),
];

/// Programs that a command needs besides this one; without them the command is not run.
const NEEDED: &[(&str, &str)] = &[("python3", "| python3"), ("less", "| less")];

/// A command, with the output that its document shows for it.
#[derive(Debug)]
struct Shown {
    line: usize,
    command: String,
    output: Vec<String>,
}

/// The commands in a document's blocks of `console` and `sh`; blocks of `bash` are scripts over several
/// lines. In a block with prompts, lines without one are output.
fn commands(text: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let (mut inside, mut prompts, mut continued) = (false, false, false);
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        if let Some(kind) = line.strip_prefix("```") {
            inside = !inside && matches!(kind, "console" | "sh");
            let block = lines[i + 1..].iter().take_while(|l| !l.starts_with("```"));
            prompts = inside && block.clone().any(|l| l.starts_with("$ "));
            continued = false;
        } else if inside && continued {
            let shown = all.last_mut().unwrap();
            continued = line.ends_with('\\');
            shown.command += &format!(" {}", line.trim().trim_end_matches('\\'));
        } else if inside && (!prompts || line.starts_with("$ ")) {
            continued = line.ends_with('\\');
            let command = line.strip_prefix("$ ").unwrap_or(line).trim_end_matches('\\').to_owned();
            all.push(Shown { line: i + 1, command, output: Vec::new() });
        } else if inside {
            all.last_mut().unwrap().output.push((*line).to_owned());
        }
    }
    for shown in &mut all {
        // A remark after the command.
        let end = shown.command.find(" #").unwrap_or(shown.command.len());
        shown.command = shown.command[..end].trim().to_owned();
    }
    all
}

/// The command to run, or the reason not to run it.
fn as_run(command: &str) -> Result<String, &'static str> {
    if let Some((_, why)) = NOT_RUN.iter().find(|(start, _)| command.starts_with(start)) {
        return Err(why);
    }
    for (program, used) in NEEDED {
        if command.contains(used) && Command::new(program).arg("--version").output().is_err() {
            return Err("another program that it needs is not installed");
        }
    }
    let short = if deep() { &[] } else { SHORT };
    let mut shorter = SHORTER.iter().chain(short);
    let Some((_, without, more)) = shorter.find(|(start, ..)| command.starts_with(start)) else {
        return Ok(command.to_owned());
    };
    let mut words = command.split_whitespace();
    let mut shorter = String::new();
    while let Some(word) = words.next() {
        match without.contains(&word) {
            true => _ = words.next(),
            false => shorter += &format!("{word} "),
        }
    }
    Ok(shorter + more)
}

/// A folder of a new user: with the examples, and with the command in the path.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["examples", "experiments"] {
            std::os::unix::fs::symlink(root().join(name), dir.path().join(name)).unwrap();
        }
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_overspin"), bin.join("overspin")).unwrap();
        Self { dir }
    }

    /// The whole output of a command, and its exit code.
    fn run(&self, command: &str) -> (String, i32) {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.dir.path().join("bin").display());
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.dir.path())
            .envs([("PATH", path.as_str()), ("NO_COLOR", "1"), ("PAGER", "cat")])
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8_lossy(&text).into_owned(), output.status.code().unwrap_or(-1))
    }
}

/// Runs the commands of a document; `prepare` makes the files that it presupposes.
fn document(name: &str, prepare: impl FnOnce(&Path, &str)) {
    let text = fs::read_to_string(root().join(name)).unwrap();
    let place = Place::new();
    prepare(place.dir.path(), &text);
    let mut ran = 0;
    for shown in commands(&text) {
        let Ok(command) = as_run(&shown.command) else { continue };
        let (out, code) = place.run(&command);
        let expected = if shown.output.iter().any(|l| l.starts_with("error: ")) { 2 } else { 0 };
        let at = format!("{name}:{}: {command}", shown.line);
        // 1 and 4 are answers of a comparison, and 4 also means that the wall-clock limit was reached: these
        // are not failures.
        let answers = command.starts_with("overspin compare") && matches!(code, 1 | 4);
        let cut = command.contains("--max-wall") && code == 4;
        assert!(code == expected || answers || cut, "{at}: exit code {code}\n{out}");
        assert!(!out.contains("panicked"), "{at}\n{out}");
        for line in shown.output.iter().filter(|l| *l != "...") {
            assert!(out.contains(line.trim()), "{at}: the output lacks `{line}`:\n{out}");
        }
        if let Some((_, trace)) = command.split_once("--trace ") {
            let trace = place.dir.path().join(trace.split(' ').next().unwrap());
            assert!(fs::metadata(trace).unwrap().len() > 10_000, "{at}: an empty trace");
        }
        ran += 1;
    }
    assert!(ran > 0, "{name}: no command was run");
}

#[test]
fn readme() {
    document("README.md", |_, _| {});
}

#[test]
fn tutorial() {
    document("docs/tutorial.md", |_, _| {});
}

#[test]
fn schedbench() {
    document("docs/schedbench.md", |dir, text| {
        let plan = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
        fs::write(dir.join("my.bench"), plan).unwrap();
    });
}

#[test]
fn compare_native_and_lock_map() {
    for name in [
        "docs/2005-preemption-notification-explained.md",
        "docs/compare.md",
        "docs/report.md",
        "docs/sweep.md",
        "docs/native-measured.md",
        "docs/lock-map.md",
    ] {
        document(name, |_, _| {});
    }
}

#[test]
fn measure_and_machines() {
    for name in [
        "docs/measure.md",
        "docs/real-benchmarks.md",
        "docs/machines.md",
        "docs/pause-loop-exits.md",
    ] {
        document(name, |_, _| {});
    }
}

#[test]
fn advise_doctor_and_top() {
    for name in ["docs/advise.md", "docs/doctor.md"] {
        document(name, |_, _| {});
    }
}

#[test]
fn worlds_and_calibration() {
    for name in ["docs/worlds.md", "docs/calibrate.md", "docs/validate.md"] {
        document(name, |_, _| {});
    }
}

#[test]
fn how_to_and_explanation() {
    for name in [
        "docs/ratio.md",
        "docs/timeline.md",
        "docs/preemption.md",
        "docs/trust.md",
        "docs/import.md",
        "docs/fit.md",
    ] {
        document(name, |_, _| {});
    }
}

/// Every command of every document is run by a test above, or has a reason not to be. All commands of this
/// program use options that exist.
#[test]
fn every_command_is_known_and_parses() {
    let run = [
        "README.md",
        "docs/tutorial.md",
        "docs/schedbench.md",
        "docs/compare.md",
        "docs/report.md",
        "docs/sweep.md",
        "docs/native-measured.md",
        "docs/2005-preemption-notification-explained.md",
        "docs/lock-map.md",
        "docs/measure.md",
        "docs/real-benchmarks.md",
        "docs/machines.md",
        "docs/pause-loop-exits.md",
        "docs/advise.md",
        "docs/doctor.md",
        "docs/ratio.md",
        "docs/timeline.md",
        "docs/preemption.md",
        "docs/trust.md",
        "docs/worlds.md",
        "docs/calibrate.md",
        "docs/validate.md",
        "docs/import.md",
        "docs/fit.md",
    ];
    let mut documents = vec![root().join("README.md")];
    documents.extend(fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().path()));
    documents.retain(|path| path.extension().is_some_and(|e| e == "md"));
    let place = Place::new();
    let mut parsed = 0;
    for path in documents {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        for shown in commands(&text) {
            let at = format!("{name}:{}: {}", shown.line, shown.command);
            if !run.contains(&name.as_str()) {
                assert!(as_run(&shown.command).is_err(), "{at}: run it, or say why not");
            }
            // clap handles --help only after it has read everything before it.
            let ours = shown.command.split(" -- ").next().unwrap();
            let ours = ours.split(" | ").next().unwrap();
            let ours = match shown.command.strip_prefix("cargo run --release -- ") {
                Some(rest) => format!("overspin {rest}"),
                None => ours.to_owned(),
            };
            if ours.starts_with("overspin ") {
                let (out, code) = place.run(&format!("{ours} --help"));
                assert!(code == 0 && out.contains("Usage:"), "{at}\n{out}");
                parsed += 1;
            }
        }
    }
    assert!(parsed > 30, "{parsed} commands");
}
