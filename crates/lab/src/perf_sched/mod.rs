//! Imports what `perf sched record` measured: a scenario of the recorded tasks, and the measured figures.
//!
//! Each recorded task becomes a vCPU of one domain, so that the host's scheduler takes the place of the scheduler that
//! ran the tasks. That is truer than a guest that runs them all: the recorded scheduler was Linux's, and `cfs` and
//! `eevdf` are that, while the guest kernel of the simulator has a scheduler of its own. The domain's workload,
//! `replay`, keeps what was woken by what.
//!
//! `source.rs` finds out whether there is a text, `line.rs` reads a line and `fields.rs` its fields, `tasks.rs` follows
//! the tasks, `choice.rs` chooses among them, `holds.rs` makes sections of waits for spin locks, `write.rs` writes the
//! scenario, and `figures.rs` and `compare.rs` put it beside the recording.

mod choice;
mod compare;
mod fields;
mod figures;
mod holds;
mod line;
mod source;
mod tasks;
mod write;

pub use choice::{Choice, numbers};
pub use compare::{beside, measured};
pub use figures::{Delays, TraceFigures, Watch};
pub use source::{Remedies, text};

use crate::rt_app::Imported;
use line::{EventKind, Line, Unreadable, WANTED};
use overspin_located::LocatedError;
use overspin_scenario::Picos;
use std::collections::BTreeMap;
use tasks::Tasks;

/// The part of a recording to import, from its first event on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// Its begin.
    pub from: Picos,
    /// Its end; `None`: that of the recording.
    pub to: Option<Picos>,
}

/// An imported recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The scenario, and what it leaves out.
    pub imported: Imported,
    /// The names of its tasks, in their order.
    pub names: Vec<String>,
    /// What was measured.
    pub measured: TraceFigures,
}

/// Imports a part of the text of `perf sched script`, `perf script`, `trace-cmd report` or the kernel's `trace`, which
/// messages call `path`.
///
/// # Errors
/// If a line is none of theirs, if nothing was recorded in the part, or if there is nothing to choose.
pub fn import(
    path: &str,
    text: &str,
    part: Part,
    choice: &Choice,
) -> Result<Recording, LocatedError> {
    let mut tasks: Option<(Tasks, u64)> = None;
    let has_waking = text.contains("sched_waking: ");
    let mut left_out = LeftOut::default();
    let (mut begin, mut last) = (None, 0);
    let (mut at, mut switches) = (0, 0);
    // The line before was one of a call chain; the task of the last event.
    let (mut in_chain, mut current) = (false, None);
    for line in text.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        let error = |Unreadable { message, help }| {
            LocatedError::at(path, text, span.clone(), "", message, help)
        };
        let read = line::read(line, in_chain)
            .map_err(|fault| error(other_output(line).unwrap_or(fault)))?;
        in_chain = read == Line::Chain;
        let event = match read {
            Line::Event(event) => event,
            Line::Lost(n) => {
                left_out.lost = left_out.lost.saturating_add(n);
                continue;
            }
            Line::Cpus(n) => {
                left_out.cpus = Some(n);
                continue;
            }
            Line::Thread { pid, process } => {
                left_out.processes.push((pid, process));
                continue;
            }
            Line::Group(group) => {
                if let (Some((tasks, _)), Some(pid)) = (&mut tasks, current) {
                    tasks.is_in_group(pid, group);
                }
                continue;
            }
            Line::Chain | Line::Chatter => continue,
        };
        if event.at < last {
            let message =
                format!("this event is {} ns earlier than the event before", last - event.at);
            let help = "give one recording, in the order of time: not of several files, and without `perf script --deltatime`";
            return Err(error(Unreadable { message, help }));
        }
        last = event.at;
        let begin = *begin.get_or_insert(event.at);
        let since = event.at - begin;
        if since < part.from.0 / 1_000 || part.to.is_some_and(|to| since > to.0 / 1_000) {
            left_out.outside += 1;
            current = None;
            continue;
        }
        if since - part.from.0 / 1_000 > LONGEST {
            let message = format!("this event is {} hours after the first one", since / HOUR);
            let help = "a scenario has times up to 1000 hours: give one recording, or choose a part with --from and --to";
            return Err(error(Unreadable { message, help }));
        }
        if let EventKind::Other { name } = event.what {
            *left_out.events.entry(printable(name)).or_default() += 1;
        }
        switches += u64::from(matches!(event.what, EventKind::Switch { .. }));
        current = event.current.map(|who| who.pid).filter(|pid| *pid != 0);
        let (tasks, end) =
            tasks.get_or_insert_with(|| (Tasks::new(event.at, has_waking), event.at));
        *end = event.at;
        tasks.follow(&event);
    }
    let nothing = |message: &str, help: &str| {
        Err(LocatedError::at(path, text, 0..text.len().min(1), "", message, help))
    };
    let Some((mut tasks, end)) = tasks.filter(|_| switches > 0) else {
        let help = "record with `perf sched record -- COMMAND`, and choose --from and --to within the recording";
        return nothing("there is no `sched_switch` in this part of the recording", help);
    };
    for (pid, process) in &left_out.processes {
        tasks.belongs(*pid, *process);
    }
    tasks.end(end);
    match choice.of(&tasks) {
        Ok(chosen) => Ok(write::recording(path, &tasks, &left_out, choice, &chosen)),
        Err((message, help)) => nothing(&message, &help),
    }
}

const HOUR: u64 = 3_600_000_000_000;
/// The longest time of a scenario, in nanoseconds.
const LONGEST: u64 = 1_000 * HOUR;

/// What to do with the output of another command of the same tools.
fn other_output(line: &str) -> Option<Unreadable> {
    let (what, help) = if line.contains("Avg delay ms") || line.contains("wait time  sch delay") {
        ("a summary of a recording", WANTED)
    } else if line.contains("contended   total wait") {
        ("the output of `perf lock contention`", "read it with `overspin import perf-lock`")
    } else if line.contains(": count ") && line.contains("distribution")
        || line.starts_with("@usecs")
    {
        ("a histogram of run-queue latencies", "read it with `overspin import runqlat`")
    } else {
        return None;
    };
    Some(Unreadable { message: format!("this is {what}, and no recording"), help })
}

/// A name without characters that act on a terminal or that a comment of TOML must not have.
pub(crate) fn printable(name: &str) -> String {
    name.replace(char::is_control, "?")
}

/// Lines that were read and not used.
#[derive(Clone, Debug, Default)]
struct LeftOut {
    /// Events that the recorder itself dropped.
    lost: u64,
    /// Events before and after the part.
    outside: u64,
    /// Events without a meaning here, by name.
    events: BTreeMap<String, u64>,
    /// The CPUs of the machine, if the text says how many there were.
    cpus: Option<u32>,
    /// Threads and their processes, of records whose time may be any.
    processes: Vec<(u32, u32)>,
}

#[cfg(test)]
mod tests;
