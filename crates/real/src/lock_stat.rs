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

/// What the kernel tells of a class of locks.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name; with `-R` or `-W` at its end, one side of locks of readers and writers.
    pub name: String,
    /// Acquisitions that had to wait.
    pub contentions: f64,
    /// Seconds of waiting, of all together.
    pub wait_s: f64,
    /// Seconds during which such locks were held, of all together.
    pub hold_s: f64,
}

/// The classes of a table that were waited for, the longest waits first.
#[must_use]
pub fn contended(table: &str) -> Vec<Class> {
    let mut classes: Vec<Class> =
        table.lines().filter_map(class).filter(|class| class.contentions > 0.0).collect();
    classes.sort_by(|a, b| b.wait_s.total_cmp(&a.wait_s));
    classes
}

/// A line of a class: its name, a colon and twelve numbers; times are in microseconds.
fn class(line: &str) -> Option<Class> {
    const MICROSECOND: f64 = 1e-6;
    let (name, numbers) = line.rsplit_once(':')?;
    let numbers: Vec<f64> =
        numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [_, contentions, _, _, waits, _, _, _, _, _, holds, _] = numbers[..] else { return None };
    Some(Class {
        name: name.trim().to_owned(),
        contentions,
        wait_s: waits * MICROSECOND,
        hold_s: holds * MICROSECOND,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_told_by_their_waits() {
        // From Documentation/locking/lockstat.rst, where columns are narrower.
        let table = "lock_stat version 0.4\n-----\n class name con-bounces contentions waittime-min\n\n\
            &mm->mmap_sem-W: 46 84 0.26 939.10 16371.53 194.90 47291 2922365 0.16 2220301.69 17464026916.32 5975.99\n\
            &mm->mmap_sem-R: 37 100 1.31 299502.61 325629.52 3256.30 212344 34316685 0.10 7744.91 95016910.20 2.77\n\
            ---------------\n\
            &mm->mmap_sem 1 [<ffffffff811502a7>] khugepaged_scan_mm_slot+0x57/0x280\n\
            unlink: 0 0 0.00 0.00 0.00 0.00 1 5 0.10 1.00 2.00 0.40\n";
        let classes = contended(table);
        let names: Vec<&str> = classes.iter().map(|class| &*class.name).collect();
        assert_eq!(names, ["&mm->mmap_sem-R", "&mm->mmap_sem-W"]);
        assert!((classes[0].wait_s - 0.325_629_52).abs() < 1e-12);
        assert!((classes[1].contentions - 84.0).abs() < 1e-12);
        assert!((classes[1].hold_s - 17_464.026_916_32).abs() < 1e-9);
    }

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
