//! Builds a copy with faults, and lets its checks or its tests judge them.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Result;
use super::copy::copy_with;
use super::fault::Fault;

/// Tests that compare results with those of before. They fail wherever a change is, and do not say what is wrong.
const COMPARES_ONLY: &str = "golden_hashes_hold_in_every_build";

/// What becomes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A check fails.
    Found,
    /// Nothing but a comparison with results of before fails.
    OnlyDiffers,
    /// No check ends in time.
    Hung,
    /// The checks end otherwise than by a failure.
    Crashed,
    /// All checks pass.
    Survived,
}

impl Name {
    /// All, in the order of a summary.
    pub(crate) const ALL: [Self; 5] =
        [Self::Found, Self::OnlyDiffers, Self::Crashed, Self::Hung, Self::Survived];

    /// In a word or two.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::OnlyDiffers => "differs",
            Self::Hung => "HUNG",
            Self::Crashed => "CRASHED",
            Self::Survived => "SURVIVED",
        }
    }
}

/// The result of trying a fault.
pub(crate) struct Fate {
    pub(crate) name: Name,
    /// The check that decided.
    pub(crate) by: String,
    pub(crate) seconds: f64,
    pub(crate) message: String,
}

/// A build of the copy, whose faults can be judged.
pub(crate) enum Built {
    /// The program that runs all checks of a lock: the next batch is built while it runs.
    Checks(PathBuf),
    /// The copy itself, for `cargo test`.
    Copy(PathBuf),
}

fn cargo(dir: &Path, action: &str) -> Command {
    let mut cargo = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()));
    cargo
        .args([action, "--quiet", "--offline"])
        .current_dir(dir)
        .env("CARGO_TARGET_DIR", dir.join("target"))
        // A fault may leave something unused.
        .env("RUSTFLAGS", "-Awarnings");
    cargo
}

/// Builds what judges all faults of a batch.
pub(crate) fn build(dir: &Path, batch: &[Fault]) -> Result<Built> {
    copy_with(dir, batch)?;
    let ids: Vec<_> = batch.iter().map(|fault| &*fault.id).collect();
    let compiled = |status: ExitStatus| match status.success() {
        true => Ok(()),
        false => Err(format!("one of these does not compile: {}", ids.join(", "))),
    };
    let tests = batch[0].kind.tests;
    for arguments in tests {
        let (of_cargo, _) = split(arguments);
        compiled(cargo(dir, "test").arg("--no-run").args(of_cargo).status()?)?;
    }
    if !tests.is_empty() {
        return Ok(Built::Copy(dir.into()));
    }
    compiled(
        cargo(dir, "build").args(["-p", "overspin-check", "--example", "check_one"]).status()?,
    )?;
    let program = dir.join(format!("check_one-{}", ids[0]));
    fs::copy(dir.join("target/debug/examples/check_one"), &program)?;
    Ok(Built::Checks(program))
}

/// The arguments of cargo, and those of the tests.
fn split<'a>(arguments: &'a [&'a str]) -> (&'a [&'a str], &'a [&'a str]) {
    let end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    (&arguments[..end], arguments.get(end + 1..).unwrap_or_default())
}

/// Judges a fault of a build.
pub(crate) fn judge(built: &Built, fault: &Fault, limit: Duration) -> Result<Fate> {
    match built {
        Built::Checks(program) => checks(program, fault, limit),
        Built::Copy(dir) => tests(dir, fault, limit),
    }
}

/// What a program printed, and how it ended, if it did in time.
fn outcome(command: &mut Command, limit: Duration) -> Result<(Option<ExitStatus>, String)> {
    // A group of its own: cargo does not end its tests when it is killed.
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child: Child = child.spawn()?;
    let mut stdout = child.stdout.take().expect("it is piped");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned())
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() >= limit {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status()?;
            child.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(50));
    };
    Ok((status, reader.join().expect("it returns its errors")?))
}

/// Runs all checks of the fault's lock.
fn checks(program: &Path, fault: &Fault, limit: Duration) -> Result<Fate> {
    let start = Instant::now();
    let (status, rows) = outcome(Command::new(program).arg(&fault.lock), limit)?;
    let unfinished = rows.lines().filter(|row| row.starts_with("unfinished")).count();
    let last: Vec<&str> = rows.lines().last().unwrap_or_default().split('\t').collect();
    let (verdict, by, message) = match last[..] {
        [verdict, world, name, cpus, _, runs, _, message] => {
            (verdict, format!("{world}, {name}, {cpus} CPUs; {runs}"), message.to_owned())
        }
        _ => ("", "nothing".into(), String::new()),
    };
    let (name, by, message) = match status {
        None => (Name::Hung, format!("after {by}"), message),
        Some(_) if verdict == "FAILS" => (Name::Found, by, message),
        Some(status) if !status.success() => {
            (Name::Crashed, format!("after {by}"), status.to_string())
        }
        Some(_) if unfinished > 0 => {
            (Name::Survived, "no check".into(), format!("unfinished: {unfinished} checks"))
        }
        Some(_) => (Name::Survived, "no check".into(), String::new()),
    };
    Ok(Fate { name, by, seconds: start.elapsed().as_secs_f64(), message })
}

/// Runs the tests of the fault's kind, up to the first command that fails.
fn tests(dir: &Path, fault: &Fault, limit: Duration) -> Result<Fate> {
    let start = Instant::now();
    let fate = |name, by: &str, message| {
        Ok(Fate { name, by: by.into(), seconds: start.elapsed().as_secs_f64(), message })
    };
    for arguments in fault.kind.tests {
        let (of_cargo, of_tests) = split(arguments);
        let mut command = cargo(dir, "test");
        command.arg("--no-fail-fast").args(of_cargo).arg("--").args(of_tests);
        let left = limit.saturating_sub(start.elapsed());
        let (status, printed) = outcome(&mut command, left)?;
        let failed: Vec<&str> = printed.lines().filter_map(failed_test).collect();
        let only = failed.iter().all(|name| name.ends_with(COMPARES_ONLY));
        let message = format!("{} tests fail", failed.len());
        match (status, &failed[..]) {
            (_, [first, ..]) if only => return fate(Name::OnlyDiffers, first, message),
            (_, all @ [..]) if !all.is_empty() => {
                let says_why = all.iter().find(|name| !name.ends_with(COMPARES_ONLY));
                return fate(Name::Found, says_why.unwrap_or(&all[0]), message);
            }
            (None, _) => return fate(Name::Hung, &arguments.join(" "), String::new()),
            (Some(status), _) if !status.success() => {
                return fate(Name::Crashed, &arguments.join(" "), status.to_string());
            }
            (Some(_), _) => {}
        }
    }
    fate(Name::Survived, "no test", String::new())
}

/// The name of the test that a line of its program says failed: a line of the list below `failures:`.
fn failed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    ")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// The message of a check, as short as a table needs it.
pub(crate) fn short(message: &str) -> &str {
    match message {
        _ if message.contains("Causality violation") => "data race",
        _ if message.starts_with("deadlock") => "deadlock",
        _ if message.contains("exceeded maximum") => "no end",
        _ => {
            let reason = message.rsplit("failed: ").next().unwrap_or(message);
            reason.split(": ").next().unwrap_or(reason)
        }
    }
}

#[test]
fn failed_tests_are_read_from_what_their_program_prints() {
    let printed = "running 2 tests\n.F\nfailures:\n\n---- credit::steals stdout ----\n\
                   thread 'credit::steals' panicked at src/a.rs:1:2:\n    left: 5\n\nfailures:\n    credit::steals\n\n\
                   test result: FAILED. 1 passed; 1 failed\n";
    assert_eq!(printed.lines().filter_map(failed_test).collect::<Vec<_>>(), ["credit::steals"]);
    assert_eq!(split(&["-p", "a", "--", "b"]), (&["-p", "a"][..], &["b"][..]));
    assert_eq!(split(&["-p", "a"]), (&["-p", "a"][..], &[][..]));
}
