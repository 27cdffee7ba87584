//! Shares of the CPUs by the kernel's control groups: a group has a cap, by the kernel's bandwidth control, and a weight.
//!
//! | Hierarchy | The threads of a group | Its cap | Its weight |
//! |---|---|---|---|
//! | version 1, controller `cpu` | `tasks` | `cpu.cfs_quota_us` in each `cpu.cfs_period_us` | `cpu.shares` |
//! | version 2 | `cgroup.threads` of a threaded group | `cpu.max`: quota and period | `cpu.weight` |
//!
//! The groups are made below the group of this process, and removed when the run is over. Those of a process that was
//! killed are removed by the next run. Source: Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v2.rst.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;

use crate::kernel_thread_id;

/// The period, in microseconds: the kernel's default, and that of the simulated schedulers.
const PERIOD_US: u64 = 100_000;
/// The first part of the names of groups.
const PREFIX: &str = "overspin";

/// What a group gets of the CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Percent of a CPU; 0: no limit.
    pub cap: u32,
    /// Its weight against what runs beside it, where a thread in no group has 1; nothing: 1, however many threads it has.
    pub weight: Option<f64>,
}

/// How often a group was stopped so far, as its `cpu.stat` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Throttling {
    /// Periods in which the group had something to run.
    pub periods: u64,
    /// Those in which it used up its quota.
    pub throttled: u64,
    /// Time for which it stood still, summed over the CPUs.
    pub throttled_ns: u64,
}

impl Throttling {
    /// Reads a `cpu.stat`; none if the group has no controller of CPU time.
    #[must_use]
    pub fn parse(stat: &str) -> Option<Self> {
        let value = |key: &str| {
            let line = stat.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' '))?;
            line.trim().parse::<u64>().ok()
        };
        // Version 1 has nanoseconds, version 2 microseconds.
        let ns = value("throttled_time")
            .or_else(|| value("throttled_usec").map(|us| us.saturating_mul(1000)));
        Some(Self {
            periods: value("nr_periods")?,
            throttled: value("nr_throttled")?,
            throttled_ns: ns.unwrap_or(0),
        })
    }

    /// That of the group in this folder.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(folder.join("cpu.stat")).ok()?)
    }

    /// What happened from `before` to `self`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            throttled_ns: self.throttled_ns.saturating_sub(before.throttled_ns),
        }
    }
}

/// A group of threads that together get no more than their share.
#[derive(Debug)]
pub struct ControlGroup {
    dir: PathBuf,
    /// The file that takes the numbers of its threads.
    threads: &'static str,
}

impl ControlGroup {
    /// A group with this share.
    ///
    /// # Errors
    /// Why this system refuses it, in words.
    pub fn new(share: Share) -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let Some(own) = own_group(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo")) else {
            return Err("this process is in no control group with a CPU controller".into());
        };
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        own.clear_leftovers();
        let dir = own.dir.join(format!("{PREFIX}-{}-{number}", std::process::id()));
        own.make(&dir, share).map_err(|(what, error)| {
            // Nothing is in it.
            let _ = fs::remove_dir(&dir);
            format!("{}: {error}", what.display())
        })
    }

    /// Puts the calling thread into it.
    pub(super) fn add_this_thread(&self) -> io::Result<()> {
        fs::write(self.dir.join(self.threads), kernel_thread_id().to_string())
    }

    /// How often its quota has stopped it.
    pub(super) fn throttling(&self) -> Option<Throttling> {
        Throttling::of(&self.dir)
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lets `command` begin as a member, with all its threads and children.
    ///
    /// # Errors
    /// If the group takes no processes.
    pub fn admit(&self, command: &mut Command) -> io::Result<()> {
        let members = File::options().write(true).open(self.dir.join("cgroup.procs"))?;
        let join = move || {
            // SAFETY: the bytes live longer than the call, which POSIX allows between fork and exec. 0 is the process itself.
            match unsafe { libc::write(members.as_raw_fd(), b"0".as_ptr().cast(), 1) } {
                1 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: it makes one system call, and allocates nothing.
        unsafe { command.pre_exec(join) };
        Ok(())
    }
}

impl Drop for ControlGroup {
    /// Its threads have ended.
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}

/// The group of this process.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    dir: PathBuf,
    is_v2: bool,
}

/// The group with a CPU controller in which `/proc/self/cgroup` says that a process is: in the first hierarchy of version 1 that
/// has that controller, or else in that of version 2.
fn own_group(cgroup: &str, mountinfo: &str) -> Option<Group> {
    // hierarchy:controllers:path
    let lines = || cgroup.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let has_cpu = |list: &str| list.split(',').any(|controller| controller == "cpu");
    let v1 = lines().find(|(controllers, _)| has_cpu(controllers));
    let v2 = lines().find(|(controllers, _)| controllers.is_empty());
    let ((_, path), is_v2) = v1.map(|found| (found, false)).or_else(|| Some((v2?, true)))?;
    // Fields of proc_pid_mountinfo(5): ... root, mount point, options, optional fields, "-", type, source, super options.
    let mount = mountinfo.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let (left, right): (Vec<&str>, Vec<&str>) =
            (left.split(' ').collect(), right.split(' ').collect());
        let is_it = match is_v2 {
            true => right.first() == Some(&"cgroup2"),
            false => right.first() == Some(&"cgroup") && has_cpu(right.last()?),
        };
        left.get(3).copied().zip(left.get(4).copied()).filter(|_| is_it)
    });
    let (root, point): (&str, &str) = mount?;
    // In a container the mount may show a part of the hierarchy.
    let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or(path);
    Some(Group { dir: Path::new(point).join(below.trim_start_matches('/')), is_v2 })
}

impl Group {
    /// Makes the group `dir` below it. An error comes with the file that refused.
    fn make(&self, dir: &Path, share: Share) -> Result<ControlGroup, (PathBuf, io::Error)> {
        let write = |path: PathBuf, text: &str| fs::write(&path, text).map_err(|e| (path, e));
        let quota = (u64::from(share.cap) * PERIOD_US / 100).max(1000);
        // What the kernel gives a thread is the usual number, and others are limited.
        let weight = |usual: f64, least, most| {
            share.weight.map(|w| (w * usual).round().clamp(least, most).to_string())
        };
        fs::create_dir(dir).map_err(|e| (dir.to_owned(), e))?;
        if self.is_v2 {
            write(dir.join("cgroup.type"), "threaded")?;
            write(self.dir.join("cgroup.subtree_control"), "+cpu")?;
            if share.cap > 0 {
                write(dir.join("cpu.max"), &format!("{quota} {PERIOD_US}"))?;
            }
            if let Some(weight) = weight(100.0, 1.0, 10_000.0) {
                write(dir.join("cpu.weight"), &weight)?;
            }
            return Ok(ControlGroup { dir: dir.to_owned(), threads: "cgroup.threads" });
        }
        if share.cap > 0 {
            write(dir.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
            write(dir.join("cpu.cfs_quota_us"), &quota.to_string())?;
        }
        if let Some(weight) = weight(1024.0, 2.0, 262_144.0) {
            write(dir.join("cpu.shares"), &weight)?;
        }
        Ok(ControlGroup { dir: dir.to_owned(), threads: "tasks" })
    }

    /// Removes the groups of processes that are no more.
    fn clear_leftovers(&self) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let mut parts = name.to_str().unwrap_or_default().split('-');
            let is_ours = parts.next() == Some(PREFIX);
            let process = parts.next().filter(|number| number.parse::<u32>().is_ok());
            if let Some(process) = process.filter(|_| is_ours)
                && !Path::new("/proc").join(process).exists()
            {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "3:cpuset:/\n2:cpuacct,cpu:/a\n0::/\n";
    const MOUNTS: &str = "30 24 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                          31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_group_of_a_process_is_found_in_both_hierarchies() {
        let of = |dir: &str, is_v2| Some(Group { dir: dir.into(), is_v2 });
        assert_eq!(own_group(V1, MOUNTS), of("/sys/fs/cgroup/cpu,cpuacct/a", false));
        assert_eq!(
            own_group("0::/user.slice/s\n", MOUNTS),
            of("/sys/fs/cgroup/unified/user.slice/s", true)
        );
        // A container sees its own group as the root of the mount.
        let inside = MOUNTS.replace("0:27 / ", "0:27 /docker/7 ");
        assert_eq!(own_group("0::/docker/7/b\n", &inside), of("/sys/fs/cgroup/unified/b", true));
        assert_eq!(own_group("3:cpuset:/\n", MOUNTS), None);
        assert_eq!(own_group(V1, ""), None);
    }

    #[test]
    fn a_group_of_version_2_is_threaded_and_has_its_quota() {
        let root = tempfile::tempdir().unwrap();
        let own = Group { dir: root.path().into(), is_v2: true };
        let dir = root.path().join("overspin-1-0");
        let share = Share { cap: 50, weight: Some(2.5) };
        let group = own.make(&dir, share).unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(dir.join("cgroup.type")), "threaded");
        assert_eq!(read(dir.join("cpu.max")), "50000 100000");
        assert_eq!(read(root.path().join("cgroup.subtree_control")), "+cpu");
        assert_eq!(read(dir.join("cpu.weight")), "250");
        group.add_this_thread().unwrap();
        assert_eq!(read(dir.join("cgroup.threads")), kernel_thread_id().to_string());
        // What refuses is named.
        let (what, _) = own.make(&dir, share).unwrap_err();
        assert_eq!(what, dir);
    }

    #[test]
    fn a_group_of_version_1_has_only_what_its_share_says() {
        let root = tempfile::tempdir().unwrap();
        let own = Group { dir: root.path().into(), is_v2: false };
        let made = |name: &str, cap, weight| {
            let dir = root.path().join(name);
            own.make(&dir, Share { cap, weight }).unwrap();
            let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
            (read("cpu.cfs_quota_us"), read("cpu.shares"))
        };
        // The group is gone when it is dropped, but not these files, which no kernel made.
        assert_eq!(made("a", 150, None), (Some("150000".into()), None));
        assert_eq!(made("b", 0, Some(0.5)), (None, Some("512".into())));
        // The kernel takes no more: MAX_SHARES in kernel/sched/core.c.
        assert_eq!(made("c", 0, Some(1e9)), (None, Some("262144".into())));
    }

    /// With the kernel's own files, where it lets us.
    #[test]
    fn a_program_begins_in_its_group() {
        let Ok(group) = ControlGroup::new(Share { cap: 50, weight: Some(0.5) }) else {
            return;
        };
        let mut command = Command::new("cat");
        group.admit(command.arg("/proc/self/cgroup")).unwrap();
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let name = group.dir().file_name().unwrap().to_str().unwrap();
        assert!(said.contains(name), "{said}");
        let dir = group.dir().to_owned();
        drop(group);
        assert!(!dir.exists());
    }

    #[test]
    fn only_groups_of_dead_processes_are_left_over() {
        let root = tempfile::tempdir().unwrap();
        let alive = format!("overspin-{}-3", std::process::id());
        for name in [&*alive, "overspin-4294967294-0", "overspin-x-0", "other-4294967294-0"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        Group { dir: root.path().into(), is_v2: true }.clear_leftovers();
        let mut left: Vec<String> = fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["other-4294967294-0", &alive, "overspin-x-0"]);
    }
}
