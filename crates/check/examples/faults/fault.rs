//! The faults, their kinds, and which of them may be in one build.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use super::Result;
use overspin_testing::root;

/// A kind of faults: those of one file below `crates/check/faults`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The name of the file, without its ending.
    pub(crate) name: &'static str,
    /// The tests that judge them, as arguments of `cargo test`; where there are none, the checks of the fault's lock do.
    pub(crate) tests: &'static [&'static [&'static str]],
    /// The locks that these tests need, where they do not need all: builds of few locks take a fraction of the time.
    pub(crate) locks: Option<&'static [&'static str]>,
}

/// All kinds.
pub(crate) const KINDS: &[Kind] = &[
    Kind { name: "locks", tests: &[], locks: Some(&[]) },
    Kind {
        name: "condvar-rwlock",
        tests: &[
            &["-p", "overspin-check", "--test", "main", "--", "condvar", "rwlock"],
            &[
                "-p",
                "overspin-native",
                "--test",
                "main",
                "--",
                "condvar",
                "rwlock",
                "time_limits",
                "readers_limit",
                "left_behind",
            ],
        ],
        locks: Some(&["mutex", "futex"]),
    },
    Kind { name: "preload", tests: &[&["-p", "overspin-preload"]], locks: None },
    Kind {
        name: "sched",
        tests: &[
            &["-p", "overspin-sched"],
            &["-p", "overspin-sim", "--test", "main", "--", "determinism"],
        ],
        locks: None,
    },
    Kind { name: "sim", tests: &[&["-p", "overspin-sim"]], locks: None },
];

/// More locks use one of these files than the lock on which its fault is tried. Two faults that one lock sees are never
/// built together.
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
const SHARED: &[&str] =
    &["nodes.rs", "lottery.rs", "delay.rs", "core_cells.rs", "padded.rs", "platform.rs", "lib.rs"];

/// Where files of locks are.
const LOCKS: &str = "crates/locks/src/";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Faults {
    fault: Vec<Fault>,
}

/// A fault of one of the files below `crates/check/faults`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    #[serde(skip)]
    pub(crate) id: String,
    #[serde(skip)]
    pub(crate) kind: &'static Kind,
    /// The lock whose checks judge it; only faults of the kind `locks` have one.
    #[serde(default)]
    pub(crate) lock: String,
    pub(crate) file: String,
    from: String,
    to: String,
    pub(crate) what: String,
    /// What a user would notice, if that is not plain.
    #[serde(default)]
    pub(crate) why: String,
    /// What kind of mistake it is.
    #[serde(default)]
    pub(crate) class: String,
    /// The result of the run before anything was mended for it.
    pub(crate) first: Option<String>,
    /// The result of the last run, and the reason.
    pub(crate) fate: Option<String>,
}

impl Default for &'static Kind {
    fn default() -> Self {
        &KINDS[0]
    }
}

impl Fault {
    /// No fault in `lock`.
    pub(crate) fn none(lock: &str) -> Self {
        Self { id: lock.into(), lock: lock.into(), what: "None.".into(), ..Self::default() }
    }

    /// Returns `source` with the fault in it.
    pub(crate) fn put_into(&self, source: &str) -> Result<String> {
        match source.matches(&self.from).count() {
            1 => Ok(source.replace(&self.from, &self.to)),
            n => Err(format!("{}: its text occurs {n} times in {}", self.id, self.file).into()),
        }
    }

    /// The file that contains it.
    pub(crate) fn source(&self) -> PathBuf {
        root().join(&self.file)
    }

    fn is_seen_by(&self, lock: &str) -> bool {
        let file = self.file.strip_prefix(LOCKS).unwrap_or(&self.file);
        let by =
            |(start, locks): &(&str, &[&str])| file.starts_with(start) && locks.contains(&lock);
        self.lock == lock || SEEN_BY.iter().any(by)
    }

    /// Whether the checks of one tell nothing about the other.
    fn may_share(&self, other: &Self) -> bool {
        let alone = |fault: &Self| {
            let file = fault.file.strip_prefix(LOCKS);
            !fault.kind.tests.is_empty() || file.is_some_and(|file| SHARED.contains(&file))
        };
        let meet = self.is_seen_by(&other.lock) || other.is_seen_by(&self.lock);
        let same = !self.file.is_empty() && self.file == other.file;
        !(alone(self) || alone(other) || meet || same)
    }
}

/// Reads the faults of all kinds.
pub(crate) fn faults() -> Result<Vec<Fault>> {
    let mut all = Vec::new();
    for kind in KINDS {
        let file = root().join(format!("crates/check/faults/{}.toml", kind.name));
        let Faults { fault: mut faults } = toml::from_str(&fs::read_to_string(file)?)?;
        let mut count = HashMap::new();
        for fault in &mut faults {
            let of = if fault.lock.is_empty() { kind.name } else { &*fault.lock };
            let nth = count.entry(of.to_owned()).and_modify(|n| *n += 1).or_insert(1);
            fault.id = format!("{of}-{nth}");
            fault.kind = kind;
        }
        all.append(&mut faults);
    }
    Ok(all)
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
