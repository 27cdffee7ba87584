//! Measures the checks: puts each fault of `faults.toml` into a copy of the locks, alone or with faults that its
//! lock does not see, and runs all checks of `overspin check LOCK` for its lock. A surviving fault shows a blind
//! spot of the checks, unless it is no fault after all.
//!
//! ```sh
//! nice cargo run -p overspin-check --example faults -- --write fates.md     # twenty minutes on two cores
//! cargo run -p overspin-check --example faults -- --only mcs-2              # one fault, or all of a lock
//! cargo run -p overspin-check --example faults -- --survivors               # the survivors by faults.toml
//! cargo run -p overspin-check --example faults -- --again fates.md          # those not found in that run
//! cargo run -p overspin-check --example faults -- --unfaulted               # the unmodified locks: all survive
//! ```
//!
//! The copy, its build and the programs are in `target/faults`, or in `--dir DIR`. Each lock has ten minutes, or
//! `--limit SECONDS`. A lock that uses up this time shows that a check does not end.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

mod copy;

use copy::{Fault, batches, build, faults, root};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What becomes of a fault that no check finds.
const HUNG: &str = "HUNG";
const CRASHED: &str = "CRASHED";
const SURVIVED: &str = "SURVIVED";
const NOT_FOUND: [&str; 3] = [HUNG, CRASHED, SURVIVED];

/// The result of trying a fault.
struct Fate {
    name: &'static str,
    by: String,
    seconds: f64,
    message: String,
}

/// Runs all checks of the fault's lock.
fn check(program: &Path, fault: &Fault, limit: Duration) -> Result<Fate> {
    let start = Instant::now();
    let mut child = Command::new(program)
        .arg(&fault.lock)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(Duration::from_millis(50));
    };
    let seconds = start.elapsed().as_secs_f64();
    let mut rows = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut rows)?;
    let unfinished = rows.lines().filter(|row| row.starts_with("unfinished")).count();
    let last: Vec<&str> = rows.lines().last().unwrap_or_default().split('\t').collect();
    let (verdict, by, message) = match last[..] {
        [verdict, world, name, cpus, _, runs, _, message] => {
            (verdict, format!("{world}, {name}, {cpus} CPUs; {runs}"), message.into())
        }
        _ => ("", "nothing".into(), String::new()),
    };
    let what = |name, by, message| Ok(Fate { name, by, seconds, message });
    match status {
        None => what(HUNG, format!("after {by}"), message),
        Some(_) if verdict == "FAILS" => what("found", by, message),
        Some(status) if !status.success() => {
            what(CRASHED, format!("after {by}"), status.to_string())
        }
        Some(_) if unfinished > 0 => {
            what(SURVIVED, "no check".into(), format!("unfinished: {unfinished} checks"))
        }
        Some(_) => what(SURVIVED, "no check".into(), String::new()),
    }
}

/// The message of a check, as short as a table needs it.
fn short(message: &str) -> &str {
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

/// The command line.
struct Args {
    dir: PathBuf,
    limit: Duration,
    table: Option<PathBuf>,
    chosen: Vec<Fault>,
}

fn args() -> Result<Args> {
    let mut dir = root().join("target/faults");
    let (mut limit, mut table, mut chosen) = (Duration::from_secs(600), None, faults()?);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match &*arg {
            "--dir" => dir = std::path::absolute(value()?)?,
            "--limit" => limit = Duration::from_secs(value()?.parse()?),
            "--write" => table = Some(value()?.into()),
            "--only" => {
                let name = value()?;
                chosen.retain(|fault| fault.id == name || fault.lock == name);
            }
            "--survivors" => {
                let survives = |fate: &String| fate.starts_with("survives");
                chosen.retain(|fault| fault.fate.as_ref().is_some_and(survives));
            }
            "--again" => {
                let before = fs::read_to_string(value()?)?;
                let missed = |row: &str| NOT_FOUND.iter().any(|fate| row.contains(fate));
                let found = |id: &str| {
                    let is_it = |row: &&str| row.starts_with(&format!("| {id} |"));
                    before.lines().find(is_it).is_some_and(|row| !missed(row))
                };
                chosen.retain(|fault| !found(&fault.id));
            }
            "--unfaulted" => {
                let locks = overspin_locks::infos().iter();
                chosen = locks.map(|lock| Fault::none(lock.name)).collect();
            }
            _ => {
                return Err(format!("unknown option `{arg}`: see the head of main.rs").into());
            }
        }
    }
    Ok(Args { dir, limit, table, chosen })
}

fn main() -> Result<()> {
    let Args { dir, limit, table, chosen } = args()?;
    let all = chosen.len();
    let (send, built) = mpsc::sync_channel(0);
    let folder = dir.clone();
    let builder = thread::spawn(move || {
        for batch in batches(chosen) {
            let program = build(&folder, &batch)?;
            if send.send((program, batch)).is_err() {
                break;
            }
        }
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    let mut rows = vec![];
    let mut markdown =
        String::from("| Fault | What is wrong | Seen by, in which run | As |\n|---|---|---|---|\n");
    for (program, batch) in built {
        for fault in &batch {
            let Fate { name, by, seconds, message } = check(&program, fault, limit)?;
            println!("{:23} {name:8} {seconds:6.1} s  {by}\n{:43}{message}", fault.id, "");
            let seen = if NOT_FOUND.contains(&name) { name } else { short(&message) };
            writeln!(markdown, "| {} | {} | {by} | {seen} |", fault.id, fault.what)?;
            rows.push(name);
            if let Some(table) = &table {
                fs::write(table, &markdown)?;
            }
        }
        fs::remove_file(program)?;
    }
    builder.join().expect("it returns its errors")?;
    let count = |name| rows.iter().filter(|it| **it == name).count();
    let [found, crashed, hung] = ["found", CRASHED, HUNG].map(count);
    println!(
        "{found} of {all} found, {crashed} crashed, {hung} hung, {} survived",
        count(SURVIVED)
    );
    Ok(())
}

/// Fails if the text of a lock that a fault replaces has changed.
#[test]
fn each_fault_fits_and_each_lock_has_two() {
    let faults = faults().expect("faults.toml can be read");
    for fault in &faults {
        let source = fs::read_to_string(copy::source_of(fault)).expect("its file is there");
        assert!(
            fault.put_into(&source).expect("it fits") != source,
            "{} changes nothing",
            fault.id
        );
    }
    for lock in overspin_locks::infos() {
        let count = faults.iter().filter(|fault| fault.lock == lock.name).count();
        assert!(count >= 2, "{} has {count} faults", lock.name);
    }
}
