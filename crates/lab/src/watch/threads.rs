//! The threads of a program: what each has had of the CPUs, and how long it was ready and had none.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Most threads that are read: three files of each take some 50 us on a busy machine, so reading more each second would take
/// 1 % of a CPU.
pub(super) const MOST: usize = 128;

/// Counters of a thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Thread {
    pub(super) running_ns: u64,
    /// Ready, without a CPU (run delay).
    pub(super) waiting_ns: u64,
    /// Involuntary switches.
    pub(super) preempted: u64,
    /// Voluntary switches.
    pub(super) slept: u64,
}

impl Thread {
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            running_ns: self.running_ns.saturating_sub(before.running_ns),
            waiting_ns: self.waiting_ns.saturating_sub(before.waiting_ns),
            preempted: self.preempted.saturating_sub(before.preempted),
            slept: self.slept.saturating_sub(before.slept),
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.running_ns += other.running_ns;
        self.waiting_ns += other.waiting_ns;
        self.preempted += other.preempted;
        self.slept += other.slept;
    }

    /// From its `schedstat` and its `status`; none if the kernel keeps no run delay.
    fn parse(schedstat: &str, status: &str) -> Option<Self> {
        let mut numbers = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
        let (running_ns, waiting_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let count = |key: &str| value(status, key).and_then(|v| v.parse().ok()).unwrap_or(0);
        Some(Self {
            running_ns,
            waiting_ns,
            preempted: count("nonvoluntary_ctxt_switches"),
            slept: count("voluntary_ctxt_switches"),
        })
    }
}

/// The value of a key in a `status`.
fn value<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}

/// How many CPUs a list like `0-3,8` has.
fn listed(list: &str) -> Option<usize> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let range = |part: &str| match part.split_once('-') {
        Some((from, to)) => Some(number(to)?.checked_sub(number(from)?)? + 1),
        None => number(part).map(|_| 1),
    };
    list.split(',').map(range).sum()
}

/// A program at a moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    pub(super) all: BTreeMap<u32, Thread>,
    /// Its processes, in ascending order.
    pub(super) processes: BTreeSet<u32>,
    /// Threads that were not read: there are more than [`MOST`].
    pub(super) left_out: usize,
    /// CPUs that its threads may use: the largest set of any.
    pub(super) allowed: Option<usize>,
    /// Threads whose kernel keeps no run delay.
    pub(super) untold: usize,
}

impl Threads {
    /// Those of these processes and of all that they have started.
    pub(super) fn of(root: &Path, processes: &[u32]) -> Self {
        let proc = root.join("proc");
        let mut this = Self::default();
        let mut parents = None;
        let mut next = processes.to_vec();
        while let Some(process) = next.pop() {
            let folder = proc.join(process.to_string());
            if this.processes.contains(&process) || !folder.is_dir() {
                continue;
            }
            this.processes.insert(process);
            for entry in fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
                let Some(number) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
                    continue;
                };
                if this.all.len() >= MOST && number != process {
                    this.left_out += 1;
                    continue;
                }
                let children = fs::read_to_string(entry.path().join("children"));
                match children {
                    Ok(list) => {
                        next.extend(
                            list.split_ascii_whitespace().filter_map(|n| n.parse::<u32>().ok()),
                        );
                    }
                    // A kernel without these lists: all processes name their parents.
                    Err(_) if number == process => {
                        let parents = parents.get_or_insert_with(|| parents_in(&proc));
                        next.extend(parents.iter().filter(|(_, p)| *p == process).map(|(c, _)| c));
                    }
                    Err(_) => {}
                }
                this.read(&entry.path(), number);
            }
        }
        this
    }

    fn read(&mut self, folder: &Path, number: u32) {
        if self.all.len() >= MOST {
            self.left_out += 1;
            return;
        }
        // A thread that has ended meanwhile has no files.
        let Ok(status) = fs::read_to_string(folder.join("status")) else { return };
        let schedstat = fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
        let allowed = value(&status, "Cpus_allowed_list").and_then(listed);
        self.allowed = self.allowed.max(allowed);
        match Thread::parse(&schedstat, &status) {
            Some(thread) => drop(self.all.insert(number, thread)),
            None => self.untold += 1,
        }
    }

    /// What happened since `before`. A thread that was not there then has begun meanwhile; the last moments of one that is
    /// no longer there are lost.
    pub(super) fn since(&self, before: &Self) -> Thread {
        let mut sum = Thread::default();
        for (number, thread) in &self.all {
            let then = before.all.get(number);
            // With threads left out, one that is new here may be an old one.
            if then.is_some() || before.left_out == 0 {
                sum.add(thread.since(then.copied().unwrap_or_default()));
            }
        }
        sum
    }
}

/// All processes and their parents.
fn parents_in(proc: &Path) -> Vec<(u32, u32)> {
    let of = |entry: fs::DirEntry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // `7 (a name) S 1`: the name may have parentheses and spaces.
        let rest = stat.rsplit_once(')')?.1;
        Some((process, rest.split_ascii_whitespace().nth(1)?.parse().ok()?))
    };
    fs::read_dir(proc).into_iter().flatten().flatten().filter_map(of).collect()
}

/// The name of a process.
pub(super) fn name(root: &Path, process: u32) -> Option<String> {
    let text = fs::read_to_string(root.join(format!("proc/{process}/comm"))).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    // proc_pid_schedstat(5): time on the CPU, time on a run queue, timeslices. The status is cut.
    const STATUS: &str = "Name:\tapp\nPid:\t7\nCpus_allowed:\tf\nCpus_allowed_list:\t0-1,3\n\
                          voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";

    #[test]
    fn a_thread_is_read_from_two_files() {
        let expected =
            Thread { running_ns: 5_000_000, waiting_ns: 47_100, preempted: 545, slept: 150 };
        assert_eq!(Thread::parse("5000000 47100 12\n", STATUS), Some(expected));
        assert_eq!(Thread::parse("", STATUS), None, "a kernel without run delay");
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(listed("0-1,3"), Some(3));
        assert_eq!(listed("5"), Some(1));
        assert_eq!(listed("3-1"), None);
        assert_eq!(listed("x"), None);
    }

    #[test]
    fn a_program_is_its_processes_with_their_children() {
        let root = tempfile::tempdir().unwrap();
        let thread = |process: u32, number: u32, schedstat: &str, children: &str| {
            let folder = root.path().join(format!("proc/{process}/task/{number}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("schedstat"), schedstat).unwrap();
            fs::write(folder.join("status"), STATUS).unwrap();
            fs::write(folder.join("children"), children).unwrap();
        };
        thread(7, 7, "100 10 1", "9 ");
        thread(7, 8, "200 20 1", "");
        thread(9, 9, "400 40 1", "");
        thread(11, 11, "800 80 1", "");
        let before = Threads::of(root.path(), &[7]);
        assert_eq!(before.processes.iter().copied().collect::<Vec<_>>(), [7, 9]);
        assert_eq!(before.all.keys().copied().collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(before.allowed, Some(3));
        // Thread 8 has ended, thread 10 is new.
        thread(7, 7, "150 10 1", "9 ");
        fs::remove_dir_all(root.path().join("proc/7/task/8")).unwrap();
        thread(7, 10, "1 5 1", "");
        let since = Threads::of(root.path(), &[7]).since(&before);
        assert_eq!((since.running_ns, since.waiting_ns), (50 + 1, 5));
    }

    #[test]
    fn parents_are_found_where_children_are_not_listed() {
        let root = tempfile::tempdir().unwrap();
        for (process, stat) in [(7, "7 (a) b) S 1 7"), (9, "9 (c d) R 7 7"), (11, "11 (e) S 1 1")] {
            let folder = root.path().join(format!("proc/{process}/task/{process}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("schedstat"), "1 2 3").unwrap();
            fs::write(folder.join("status"), STATUS).unwrap();
            fs::write(root.path().join(format!("proc/{process}/stat")), stat).unwrap();
        }
        let found = Threads::of(root.path(), &[7]);
        assert_eq!(found.processes.iter().copied().collect::<Vec<_>>(), [7, 9]);
    }
}
