//! Imports what `perf sched record` measured: a scenario of the recorded tasks, and the measured figures.
//!
//! Each recorded task becomes a vCPU of one domain, so that the host's scheduler takes the place of the scheduler that
//! ran the tasks. That is truer than a guest that runs them all: the recorded scheduler was Linux's, and `cfs` and
//! `eevdf` are that, while the guest kernel of the simulator has a scheduler of its own. The domain's workload,
//! `replay`, keeps what was woken by what.
//!
//! `line.rs` reads a line, `tasks.rs` follows the tasks, `holds.rs` makes sections of waits for spin locks, `write.rs`
//! writes the scenario, and `figures.rs` and `compare.rs` put it beside the recording.

mod compare;
mod figures;
mod holds;
mod line;
mod tasks;
mod write;

pub use compare::{beside, measured};
pub use figures::{Delays, TraceFigures, Watch};

use crate::rt_app::Imported;
use line::{EventKind, Line};
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

/// Imports the text of `perf sched script` or `perf script`, which messages call `path`.
///
/// # Errors
/// If a line is none of theirs, or if nothing was recorded in the part.
pub fn import(path: &str, text: &str, part: Part) -> Result<Recording, LocatedError> {
    let mut tasks: Option<(Tasks, u64)> = None;
    let has_waking = text.contains("sched_waking: ");
    let mut left_out = LeftOut::default();
    let (mut begin, mut last) = (None, 0);
    let (mut at, mut switches) = (0, 0);
    for line in text.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        let error = |message: String| {
            let help = "give the output of `perf sched script` or `perf script`, and nothing else";
            LocatedError::at(path, text, span.clone(), "", message, help)
        };
        let event = match line::read(line).map_err(error)? {
            Line::Event(event) => event,
            Line::Lost(n) => {
                left_out.lost += n;
                continue;
            }
            Line::Chatter => continue,
        };
        if event.at < last {
            let message =
                format!("this event is {} ns earlier than the line before", last - event.at);
            return Err(error(message));
        }
        last = event.at;
        let begin = *begin.get_or_insert(event.at);
        let since = event.at - begin;
        if since < part.from.0 / 1_000 || part.to.is_some_and(|to| since > to.0 / 1_000) {
            left_out.outside += 1;
            continue;
        }
        if let EventKind::Other { name } = event.what {
            *left_out.events.entry(name.to_owned()).or_default() += 1;
        }
        switches += u64::from(matches!(event.what, EventKind::Switch { .. }));
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
    tasks.end(end);
    Ok(write::recording(path, tasks, &left_out))
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
}

#[cfg(test)]
mod tests;
