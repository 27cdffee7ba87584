//! Which tasks of a recording to import.

use super::tasks::{Task, Tasks};
use overspin_located::LocatedError;

/// Tasks to import: those that any of these names. All, if there is nothing.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Their names; `*` stands for any text.
    pub names: Vec<String>,
    /// Their numbers, or those of their processes.
    pub pids: Vec<u32>,
    /// Their control groups, which contain the groups below them.
    pub groups: Vec<String>,
}

/// A choice that a recording cannot meet, and what to do.
pub(super) type Unmet = (String, String);

/// Programs that an error names at most.
const MOST_NAMED: usize = 8;

impl Choice {
    /// Whether it leaves nothing out.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.names.is_empty() && self.pids.is_empty() && self.groups.is_empty()
    }

    /// Whether each task is chosen.
    pub(super) fn of(&self, tasks: &Tasks) -> Result<Vec<bool>, Unmet> {
        if self.is_all() {
            return Ok(vec![true; tasks.all.len()]);
        }
        let any = |chosen: &dyn Fn(&Task) -> bool| tasks.all.iter().any(chosen);
        for name in &self.names {
            if !any(&|task| is_like(&task.name, name)) {
                let message = format!("no task of this recording is called `{name}`");
                return Err((message, format!("names of its tasks: {}", names(tasks))));
            }
        }
        for group in &self.groups {
            if !tasks.know_groups() {
                let help = "record with `perf record --all-cgroups` and write the text with `perf script -F +cgroup` (perf 6.5 \
                            or later), record `-e cgroup:cgroup_attach_task` too, or give --cgroup the file cgroup.procs or \
                            cgroup.threads of the group";
                let message = "this recording does not say in which control groups its tasks were";
                return Err((message.into(), help.into()));
            }
            if !any(&|task| is_in(task, group)) {
                let message =
                    format!("no task of this recording was in the control group `{group}`");
                let mut known: Vec<&str> =
                    tasks.all.iter().flat_map(|task| &task.groups).map(String::as_str).collect();
                known.sort_unstable();
                known.dedup();
                return Err((message, format!("its control groups: {}", known.join(", "))));
            }
        }
        let chosen: Vec<bool> = tasks.all.iter().map(|task| self.has(task)).collect();
        if !chosen.contains(&true) {
            let message =
                "no task of this recording, and no process, has a number that was asked for";
            return Err((message.into(), format!("numbers of its tasks: {}", numbered(tasks))));
        }
        Ok(chosen)
    }

    fn has(&self, task: &Task) -> bool {
        self.names.iter().any(|name| is_like(&task.name, name))
            || self.pids.iter().any(|pid| task.pid == *pid || task.process == Some(*pid))
            || self.groups.iter().any(|group| is_in(task, group))
    }
}

/// The numbers in a control group's file `cgroup.procs` or `cgroup.threads`, which messages call `path`.
///
/// # Errors
/// If it has anything else, or nothing.
pub fn numbers(path: &str, text: &str) -> Result<Vec<u32>, LocatedError> {
    let help = "give a control group's file cgroup.procs or cgroup.threads, or a copy of it, with a number on each line";
    let error = |span, message: &str| LocatedError::at(path, text, span, "", message, help);
    let (mut all, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        match line.trim() {
            "" => {}
            number => all.push(
                number.parse().map_err(|_| error(span, "this is not the number of a process"))?,
            ),
        }
    }
    if all.is_empty() {
        return Err(error(0..0, "there is no process in this control group"));
    }
    Ok(all)
}

fn is_in(task: &Task, group: &str) -> bool {
    let group = group.trim_end_matches('/');
    task.groups.iter().any(|of| {
        of.strip_prefix(group).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    })
}

/// Whether a name is like a pattern in which `*` stands for any text.
fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((begin, rest)) => name.strip_prefix(begin).is_some_and(|name| {
            (0..=name.len())
                .filter(|i| name.is_char_boundary(*i))
                .any(|i| is_like(&name[i..], rest))
        }),
    }
}

/// The programs with most CPU time.
fn names(tasks: &Tasks) -> String {
    let mut by_name = std::collections::BTreeMap::<&str, u64>::new();
    for task in &tasks.all {
        *by_name.entry(&task.name).or_default() += task.ran;
    }
    let mut all: Vec<(&str, u64)> = by_name.into_iter().collect();
    all.sort_by_key(|(_, ran)| std::cmp::Reverse(*ran));
    let shown: Vec<String> =
        all.iter().take(MOST_NAMED).map(|(name, _)| format!("`{name}`")).collect();
    let more = if all.len() > MOST_NAMED { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// The tasks with most CPU time, with their numbers.
fn numbered(tasks: &Tasks) -> String {
    let mut all: Vec<&Task> = tasks.all.iter().collect();
    all.sort_by_key(|task| std::cmp::Reverse(task.ran));
    let shown: Vec<String> =
        all.iter().take(MOST_NAMED).map(|task| format!("{} (`{}`)", task.pid, task.name)).collect();
    let more = if all.len() > MOST_NAMED { ", ... and others with less CPU time" } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (name, pattern, like) in [
            ("kworker/0:1", "kworker/*", true),
            ("kworker/0:1", "kworker", false),
            ("kworker/0:1", "*:1", true),
            ("kworker/0:1", "k*/*:*1", true),
            ("kworker/0:1", "k*/*:*2", false),
            ("", "*", true),
            ("äö", "*ö", true),
        ] {
            assert_eq!(is_like(name, pattern), like, "{name} {pattern}");
        }
    }

    #[test]
    fn files_of_control_groups() {
        assert_eq!(numbers("cgroup.procs", "7\n12\n\n").unwrap(), [7, 12]);
        let e = numbers("cgroup.procs", "7\nx\n").unwrap_err();
        assert_eq!(e.line, 2);
        numbers("cgroup.procs", "\n").unwrap_err();
    }
}
