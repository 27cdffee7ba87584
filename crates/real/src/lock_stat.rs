//! The kernel's own statistics of its locks, `/proc/lock_stat`, where it is built with them (`CONFIG_LOCK_STAT`): for
//! each class of locks, how often it was taken and contended, and how long it was waited for and held. It is what
//! lockmeter was in 2001.

use std::fs;
use std::path::{Path, PathBuf};

/// Statistics that began with this, for one run.
#[derive(Debug)]
pub(crate) struct LockStat {
    table: PathBuf,
    switch: PathBuf,
    /// What the switch was before.
    was: String,
}

impl LockStat {
    /// Switches them on, and clears them; `None` if the kernel has none, or does not let us. `root` is `/`.
    pub(crate) fn begin(root: &Path) -> Option<Self> {
        let (table, switch) = (root.join("proc/lock_stat"), root.join("proc/sys/kernel/lock_stat"));
        let was = fs::read_to_string(&switch).ok()?;
        if !table.exists() {
            return None;
        }
        let this = Self { table, switch, was };
        fs::write(&this.switch, "1").ok()?;
        // A zero clears the table.
        fs::write(&this.table, "0").ok()?;
        Some(this)
    }

    /// The table, as the kernel prints it.
    pub(crate) fn text(&self) -> Option<String> {
        fs::read_to_string(&self.table).ok()
    }
}

impl Drop for LockStat {
    fn drop(&mut self) {
        // Statistics that stay on cost some time, and do no harm.
        let _ = fs::write(&self.switch, self.was.trim());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_cleared_before_and_switched_back_after() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        assert!(LockStat::begin(root.path()).is_none(), "most kernels have none");
        fs::create_dir_all(at("proc/sys/kernel")).unwrap();
        fs::write(at("proc/sys/kernel/lock_stat"), "0\n").unwrap();
        assert!(LockStat::begin(root.path()).is_none(), "no table");
        fs::write(at("proc/lock_stat"), "old").unwrap();
        let lock_stat = LockStat::begin(root.path()).unwrap();
        assert_eq!(fs::read_to_string(at("proc/sys/kernel/lock_stat")).unwrap(), "1");
        // In a real kernel, the zero clears the table.
        assert_eq!(lock_stat.text().unwrap(), "0");
        drop(lock_stat);
        assert_eq!(fs::read_to_string(at("proc/sys/kernel/lock_stat")).unwrap(), "0");
    }
}
