//! A kernel: what is changed in its source, how it is configured and compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{file, make, succeeds};
use crate::{Guard, LinuxError};

const HEADER: &str = include_str!("../kernel/overspin.h");
const CODE: &str = include_str!("../kernel/overspin.c");
const WORK: &str = include_str!("../kernel/overspin_work.c");
const CONFIG: &str = include_str!("../kernel/guest.config");
const LOCK_STAT: &str = include_str!("../kernel/lock-stat.config");

/// Which kernel is made of a source. Each has a tree of its own: another configuration compiles everything again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// The one that is measured.
    #[default]
    Plain,
    /// One that keeps account of each of its locks, `/proc/lock_stat`, and is slower for it.
    LockStat,
}

impl Variant {
    /// Its configuration.
    fn config(self) -> String {
        match self {
            Self::Plain => CONFIG.into(),
            Self::LockStat => format!("{CONFIG}{LOCK_STAT}"),
        }
    }
}

/// Lines that are inserted: a file, the line before it, and the line.
const INSERTED: [(&str, &str, &str); 4] = [
    ("arch/x86/include/asm/spinlock.h", "#include <asm/qspinlock.h>", "#include <asm/overspin.h>"),
    (
        "kernel/locking/Makefile",
        "obj-y += mutex.o semaphore.o rwsem.o percpu-rwsem.o",
        "obj-y += overspin.o overspin_locks.o",
    ),
    (
        "kernel/locking/Makefile",
        "obj-$(CONFIG_LOCK_SPIN_ON_OWNER) += osq_lock.o",
        "obj-y += overspin_work.o",
    ),
    (
        "init/main.c",
        // From here on vector registers may be used, with which records are made, and still one CPU runs.
        "\tarch_cpu_finalize_init();",
        "\toverspin_boot();",
    ),
];

/// Puts our side and the locks of `object` into the source `tree`, configures and compiles it, and returns the kernel. What is
/// up to date is not compiled again. The compiler's output is in `overspin.log` of the tree.
///
/// # Errors
/// If the changes do not fit the source; if a program is missing or fails; if there is no space.
pub fn build(
    tree: &Path,
    object: &Path,
    variant: Variant,
    guard: Guard<'_>,
) -> Result<PathBuf, LinuxError> {
    for (name, line, inserted) in INSERTED {
        insert(&tree.join(name), line, inserted)?;
    }
    put(&tree.join("arch/x86/include/asm/overspin.h"), HEADER.as_bytes())?;
    put(&tree.join("kernel/locking/overspin.c"), CODE.as_bytes())?;
    put(&tree.join("kernel/locking/overspin_work.c"), WORK.as_bytes())?;
    let bytes = fs::read(object).map_err(|cause| file(object, cause))?;
    put(&tree.join("kernel/locking/overspin_locks.o_shipped"), &bytes)?;
    // Make looks for it beside every object.
    put(&tree.join("kernel/locking/.overspin_locks.o.cmd"), b"")?;
    let log = tree.join("overspin.log");
    let make = |targets: &[&str]| make(tree, targets, &log, guard);
    // Before another configuration is made, the one at hand is looked at: making it anew would compile everything again.
    let config = variant.config();
    if put(&tree.join("overspin.config"), config.as_bytes())? || !tree.join(".config").exists() {
        make(&["tinyconfig"])?;
        let mut merge = Command::new("./scripts/kconfig/merge_config.sh");
        merge.args(["-m", ".config", "overspin.config"]).current_dir(tree);
        succeeds(&mut merge, &log, guard)?;
        make(&["olddefconfig"])?;
    }
    make(&["vmlinux"])?;
    Ok(tree.join("vmlinux"))
}

/// Makes a copy of a changed source what it was, as far as the kernel's own files go.
pub(crate) fn take_back(copy: &Path) -> Result<(), LinuxError> {
    for (name, _, inserted) in INSERTED {
        let path = copy.join(name);
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let kept: String =
            text.lines().filter(|line| *line != inserted).map(|line| format!("{line}\n")).collect();
        put(&path, kept.as_bytes())?;
    }
    Ok(())
}

/// Writes a file if it is not there with this content: make looks at the time of each. Returns whether it did.
fn put(path: &Path, content: &[u8]) -> Result<bool, LinuxError> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(false);
    }
    fs::write(path, content).map_err(|cause| file(path, cause))?;
    Ok(true)
}

/// Whether the changes fit the source in `tree`.
///
/// # Errors
/// The first file that lacks the line behind which something is inserted.
pub(crate) fn fits(tree: &Path) -> Result<(), LinuxError> {
    INSERTED.iter().try_for_each(|(name, line, _)| with_line(&tree.join(name), line).map(|_| ()))
}

/// The text of a file that has this line.
fn with_line(path: &Path, line: &'static str) -> Result<String, LinuxError> {
    let missing = || LinuxError::Source { file: path.display().to_string(), line: line.trim() };
    let text = fs::read_to_string(path).map_err(|_| missing())?;
    text.lines().find(|found| *found == line).ok_or_else(missing)?;
    Ok(text)
}

/// Inserts a line behind another one, and nowhere else: an earlier version may have had it at another place.
fn insert(path: &Path, line: &'static str, inserted: &str) -> Result<(), LinuxError> {
    let text = with_line(path, line)?;
    let mut changed = String::with_capacity(text.len() + inserted.len() + 1);
    for found in text.lines().filter(|found| *found != inserted) {
        changed += found;
        changed.push('\n');
        if found == line {
            changed += inserted;
            changed.push('\n');
        }
    }
    put(path, changed.as_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_inserted_once_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("Makefile");
        fs::write(&path, "a\nobj-y += x\nb\n").unwrap();
        for _ in 0..2 {
            insert(&path, "obj-y += x", "obj-y += y").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "a\nobj-y += x\nobj-y += y\nb\n");
        }
        let error = insert(&path, "obj-y += z", "obj-y += w").unwrap_err();
        assert!(error.to_string().contains("Makefile: there is no line `obj-y += z`"), "{error}");
        assert!(error.remedy().contains("6.1"));
        // An earlier version had it elsewhere.
        fs::write(&path, "obj-y += y\na\nobj-y += x\nb\n").unwrap();
        insert(&path, "obj-y += x", "obj-y += y").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\nobj-y += x\nobj-y += y\nb\n");
    }

    #[test]
    fn a_folder_without_a_kernel_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = fits(folder.path()).unwrap_err();
        assert!(
            error.to_string().contains("spinlock.h: there is no line `#include <asm/qspinlock.h>`"),
            "{error}"
        );
    }

    #[test]
    fn what_is_there_keeps_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert!(put(&path, b"1").unwrap());
        assert!(!put(&path, b"1").unwrap());
        assert!(put(&path, b"2").unwrap());
    }
}
