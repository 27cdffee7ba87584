//! The faults, and a copy of the workspace with some of them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use overspin_check::threads::StdPlatform;
use overspin_locks::{RawLock, for_each_lock};
use serde::Deserialize;

use super::Result;

/// More locks use one of these files than the lock on which its fault is tried. Two faults that one lock sees
/// are never built together.
const SEEN_BY: &[(&str, &[&str])] = &[
    ("lock_byte.rs", &["lock-byte", "lock-byte-aligned"]),
    ("aligned.rs", &["lock-byte-aligned", "ticket-aligned"]),
    ("ticket.rs", &["ticket", "ticket-small", "ticket-aligned", "ticket-backoff", "i-spinlock"]),
    ("pv_ticket/", &["pv-ticket", "pv-ticket-2012", "pv-ticket-2012-small"]),
    ("qspinlock.rs", &["qspinlock", "qspinlock-tas", "qspinlock-unfair"]),
    ("qspinlock.rs", &["pv-qspinlock", "pv-qspinlock-4.2", "pv-qspinlock-4.5"]),
    ("pv_qspinlock/", &["pv-qspinlock", "pv-qspinlock-4.2", "pv-qspinlock-4.5"]),
];

/// Many locks use these files, so a fault in one of them is built alone.
const ALONE: &[&str] =
    &["nodes.rs", "lottery.rs", "delay.rs", "core_cells.rs", "padded.rs", "platform.rs", "lib.rs"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Faults {
    fault: Vec<Fault>,
}

/// A fault of `faults.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    #[serde(skip)]
    pub(crate) id: String,
    pub(crate) lock: String,
    file: String,
    from: String,
    to: String,
    pub(crate) what: String,
    /// The result of the last run, and the reason.
    pub(crate) fate: Option<String>,
}

impl Fault {
    /// A fault that leaves `lock` as it is.
    pub(crate) fn none(lock: &str) -> Self {
        let [id, lock] = [lock; 2].map(Into::into);
        let [file, from, to] = [(); 3].map(|()| String::new());
        Self { id, lock, file, from, to, what: "None.".into(), fate: None }
    }

    /// Returns `source` with the fault in it.
    pub(crate) fn put_into(&self, source: &str) -> Result<String> {
        match source.matches(&self.from).count() {
            1 => Ok(source.replace(&self.from, &self.to)),
            n => Err(format!("{}: its text occurs {n} times in {}", self.id, self.file).into()),
        }
    }

    fn is_seen_by(&self, lock: &str) -> bool {
        let by =
            |(file, locks): &(&str, &[&str])| self.file.starts_with(file) && locks.contains(&lock);
        self.lock == lock || SEEN_BY.iter().any(by)
    }

    fn may_share(&self, other: &Self) -> bool {
        let alone = |fault: &Self| ALONE.contains(&&*fault.file);
        let meet = self.is_seen_by(&other.lock) || other.is_seen_by(&self.lock);
        let same = !self.file.is_empty() && self.file == other.file;
        !(alone(self) || alone(other) || meet || same)
    }
}

/// Reads all of `faults.toml`.
pub(crate) fn faults() -> Result<Vec<Fault>> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/faults.toml"))?;
    let Faults { fault: mut faults } = toml::from_str(&text)?;
    let mut count = HashMap::new();
    for fault in &mut faults {
        let nth = count.entry(fault.lock.clone()).and_modify(|n| *n += 1).or_insert(1);
        fault.id = format!("{}-{nth}", fault.lock);
    }
    Ok(faults)
}

/// Puts each fault into the first batch in which it and the others do not meet.
pub(crate) fn batches(faults: Vec<Fault>) -> Vec<Vec<Fault>> {
    let mut batches: Vec<Vec<Fault>> = Vec::new();
    for fault in faults {
        match batches.iter_mut().find(|batch| batch.iter().all(|it| it.may_share(&fault))) {
            Some(batch) => batch.push(fault),
            None => batches.push(vec![fault]),
        }
    }
    batches
}

/// Copies only files that differ, so that cargo rebuilds as little as possible. Files in `changed` get their
/// new text.
fn copy(from: &Path, to: &Path, changed: &HashMap<PathBuf, String>) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            copy(&from.join(&name), &to.join(&name), changed)?;
        }
        // Remove files that are gone from the source, or moved files would exist twice.
        for entry in fs::read_dir(to)? {
            let old = entry?;
            match from.join(old.file_name()).exists() {
                true => {}
                false if old.path().is_dir() => fs::remove_dir_all(old.path())?,
                false => fs::remove_file(old.path())?,
            }
        }
        return Ok(());
    }
    let new = match changed.get(from) {
        Some(text) => text.clone(),
        None => fs::read_to_string(from)?,
    };
    if !fs::read_to_string(to).is_ok_and(|old| old == new) {
        fs::write(to, new)?;
    }
    Ok(())
}

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the file that contains the fault.
pub(crate) fn source_of(fault: &Fault) -> PathBuf {
    root().join("crates/locks/src").join(&fault.file)
}

/// Returns the registry with only the locks of a batch, because build time grows with the number of locks.
fn registry(batch: &[Fault]) -> Result<(PathBuf, String)> {
    macro_rules! names {
        ($($lock:ident)+) => {
            [$((stringify!($lock), <overspin_locks::$lock<StdPlatform> as RawLock<_>>::INFO.name)),+]
        };
    }
    let left_out = for_each_lock!(names)
        .into_iter()
        .filter(|(_, name)| batch.iter().all(|it| it.lock != *name));
    let left_out: Vec<_> = left_out.map(|(lock, _)| format!("    {lock}: ")).collect();
    let path = root().join("crates/locks/src/registry.rs");
    let text = fs::read_to_string(&path)?;
    let stays = |line: &&str| !left_out.iter().any(|start| line.starts_with(start));
    let lines: Vec<_> = text.lines().filter(stays).collect();
    Ok((path, lines.join("\n")))
}

/// Builds `check_one` with all faults of a batch. Returns the path of the program.
pub(crate) fn build(dir: &Path, batch: &[Fault]) -> Result<PathBuf> {
    let mut changed = HashMap::from([registry(batch)?]);
    for fault in batch.iter().filter(|fault| !fault.file.is_empty()) {
        let source = source_of(fault);
        let text = fault.put_into(&fs::read_to_string(&source)?)?;
        changed.insert(source, text);
    }
    fs::create_dir_all(dir.join("crates"))?;
    // The members of the workspace are the crates that exist.
    for part in ["Cargo.toml", "Cargo.lock", "crates/locks", "crates/check", "crates/testing"] {
        copy(&root().join(part), &dir.join(part), &changed)?;
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--offline", "-p", "overspin-check", "--example", "check_one"])
        .current_dir(dir)
        .env("CARGO_TARGET_DIR", dir.join("target"))
        // A fault may leave something unused.
        .env("RUSTFLAGS", "-Awarnings")
        .status()?;
    let ids: Vec<_> = batch.iter().map(|fault| &*fault.id).collect();
    if !built.success() {
        return Err(format!("one of these does not compile: {}", ids.join(", ")).into());
    }
    // The next batch is built while this one is checked.
    let program = dir.join(format!("check_one-{}", ids[0]));
    fs::copy(dir.join("target/debug/examples/check_one"), &program)?;
    Ok(program)
}
