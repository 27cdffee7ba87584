//! Measures the checks: puts each fault of `crates/check/faults` into a copy of the workspace, and runs what judges its kind: all
//! checks of `overspin check LOCK` for a lock, tests for the rest. A surviving fault shows a blind spot, unless it is no fault
//! after all.
//!
//! ```sh
//! nice cargo run -p overspin-check --example faults -- --write fates.md     # all of them
//! cargo run -p overspin-check --example faults -- --only mcs-2              # one fault, all of a lock, or of a kind
//! cargo run -p overspin-check --example faults -- --sample                  # the first of each kind that was found
//! cargo run -p overspin-check --example faults -- --survivors               # those that were not found at their last run
//! cargo run -p overspin-check --example faults -- --again fates.md          # those not found in that run
//! cargo run -p overspin-check --example faults -- --unfaulted               # the unmodified locks: all survive
//! ```
//!
//! The copy, its build and the programs are in `target/faults`, or in `--dir DIR`. Each fault has ten minutes, or
//! `--limit SECONDS`. A fault that uses up this time shows that a check does not end. `--strict` ends with an error unless
//! all are found.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

mod copy;
mod fault;
mod judge;

use fault::{Fault, KINDS, batches, faults};
use judge::{Built, Fate, Name, build, judge, short};
use overspin_testing::root;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The command line.
struct Args {
    dir: PathBuf,
    limit: Duration,
    table: Option<PathBuf>,
    strict: bool,
    chosen: Vec<Fault>,
}

fn args() -> Result<Args> {
    let mut dir = root().join("target/faults");
    let (mut limit, mut table, mut chosen) = (Duration::from_secs(600), None, faults()?);
    let mut strict = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match &*arg {
            "--dir" => dir = std::path::absolute(value()?)?,
            "--limit" => limit = Duration::from_secs(value()?.parse()?),
            "--write" => table = Some(value()?.into()),
            "--strict" => strict = true,
            "--only" => {
                let name = value()?;
                chosen
                    .retain(|fault| [&*fault.id, &*fault.lock, fault.kind.name].contains(&&*name));
                if chosen.is_empty() {
                    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
                    let kinds = kinds.join(", ");
                    return Err(
                        format!("no fault, lock or kind is `{name}`; kinds are {kinds}").into()
                    );
                }
            }
            "--sample" => {
                let is_found = |fault: &&Fault| {
                    fault.fate.as_ref().is_some_and(|fate| fate.starts_with("found"))
                };
                let first = |kind| chosen.iter().filter(is_found).find(|fault| fault.kind == kind);
                let sample: Vec<String> =
                    KINDS.iter().filter_map(first).map(|fault| fault.id.clone()).collect();
                chosen.retain(|fault| sample.contains(&fault.id));
            }
            "--survivors" => {
                let found = |fate: &String| fate.starts_with("found");
                chosen.retain(|fault| fault.fate.as_ref().is_none_or(|fate| !found(fate)));
            }
            "--again" => {
                let before = fs::read_to_string(value()?)?;
                let found = |row: &str| row.ends_with(&format!("| {} |", Name::Found.words()));
                let is_of = |row: &&str, id: &str| row.starts_with(&format!("| {id} |"));
                let was_found =
                    |id: &str| before.lines().find(|row| is_of(row, id)).is_some_and(found);
                chosen.retain(|fault| !was_found(&fault.id));
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
    Ok(Args { dir, limit, table, strict, chosen })
}

fn main() -> Result<()> {
    let Args { dir, limit, table, strict, chosen } = args()?;
    let all = chosen.len();
    let (send, built) = mpsc::sync_channel::<(Built, Vec<Fault>)>(0);
    let (judged, may_build) = mpsc::channel();
    let folder = dir.clone();
    let builder = thread::spawn(move || {
        for batch in batches(chosen) {
            let built = build(&folder, &batch)?;
            // Tests run in the copy, which must then stay as it is.
            let waits = matches!(built, Built::Copy(_));
            if send.send((built, batch)).is_err() || (waits && may_build.recv().is_err()) {
                break;
            }
        }
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    let mut fates: Vec<(&str, Name)> = vec![];
    let mut markdown = String::from(
        "| Fault | What is wrong | Class | Seen by, in which run | As | First run | Fate |\n|---|---|---|---|---|---|---|\n",
    );
    for (built, batch) in built {
        for fault in &batch {
            let Fate { name, by, seconds, message } = judge(&built, fault, limit)?;
            println!(
                "{:23} {:8} {seconds:6.1} s  {by}\n{:43}{message}",
                fault.id,
                name.words(),
                ""
            );
            if name != Name::Found {
                println!("{:43}{} {}", "", fault.what, fault.why);
            }
            let (what, class, seen) = (&fault.what, &fault.class, short(&message));
            let first = fault.first.as_deref().unwrap_or_default();
            writeln!(
                markdown,
                "| {} | {what} | {class} | {by} | {seen} | {first} | {} |",
                fault.id,
                name.words()
            )?;
            fates.push((fault.kind.name, name));
            if let Some(table) = &table {
                fs::write(table, &markdown)?;
            }
        }
        match built {
            Built::Checks(program) => fs::remove_file(program)?,
            Built::Copy(_) => judged.send(())?,
        }
    }
    builder.join().expect("it returns its errors")?;
    for kind in KINDS.iter().map(|kind| kind.name) {
        let of = || fates.iter().filter(|(of, _)| *of == kind);
        let count = |name| of().filter(|(_, it)| *it == name).count();
        let counts: Vec<String> =
            Name::ALL.map(|name| format!("{} {}", count(name), name.words())).into();
        if of().count() > 0 {
            println!("{kind}: {} faults: {}", of().count(), counts.join(", "));
        }
    }
    let found = fates.iter().filter(|(_, name)| *name == Name::Found).count();
    println!("{found} of {all} found");
    match strict && found < all {
        true => Err("not all were found".into()),
        false => Ok(()),
    }
}

/// Fails if the text that a fault replaces has changed.
#[test]
fn each_fault_fits_and_each_lock_has_two() {
    let faults = faults().expect("their files can be read");
    for fault in &faults {
        let source = fs::read_to_string(fault.source()).expect("its file is there");
        let faulted = fault.put_into(&source).expect("it fits");
        assert!(faulted != source, "{} changes nothing", fault.id);
        assert_eq!(fault.lock.is_empty(), !fault.kind.tests.is_empty(), "{}: its lock", fault.id);
    }
    for lock in overspin_locks::infos() {
        let count = faults.iter().filter(|fault| fault.lock == lock.name).count();
        assert!(count >= 2, "{} has {count} faults", lock.name);
    }
}
