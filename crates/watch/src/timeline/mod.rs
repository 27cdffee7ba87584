//! Timelines: the slices and marks of one run, recorded while it runs, and packed for a report page.
//!
//! A slice belongs to a vCPU, or to a task that takes locks in user mode. It is a time in one runstate, a wait for a lock
//! or a hold of one. The lanes of pCPUs and of locks show the same slices again, so a page makes those lanes itself. A
//! mark is an instant: a kick, a notice, a pause-loop exit.
//!
//! `recorder.rs` makes a timeline from moments, with the tasks of `tasks.rs`; `pack.rs` turns it into the bytes of a page, and `waits.rs` counts waits
//! by their length.

mod pack;
mod recorder;
mod tasks;
mod waits;

pub use pack::deflate;
pub use pack::{Head, MOST_BYTES, Packed, pack};
pub use recorder::Recorder;
pub use waits::{Bars, WaitLengths};

use overspin_host::WindowEnd;
use overspin_scenario::{Picos, Why};

/// What a vCPU or a task does during a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It is on this pCPU.
    On(u32),
    /// It wants a pCPU and has none; if a decision took its pCPU away, the reason. A task that has no vCPU is off by
    /// [`Why::Guest`].
    Off(Option<Why>),
    /// It has blocked.
    Asleep,
    /// It waits for this lock.
    Waits(u32),
    /// It waits for this lock when the timeline ends.
    StillWaits(u32),
    /// It holds this lock.
    Holds(u32),
}

/// A time of one vCPU or task. Locks are numbered over all domains: see [`Timeline::locks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When it begins.
    pub start: Picos,
    /// When it ends, or the end of the timeline.
    pub end: Picos,
    /// What the vCPU or task does.
    pub doing: Doing,
}

/// What happens at a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The vCPU kicks this one.
    Kick(u32),
    /// The host opens a window for the vCPU: a notice before a preemption.
    Notice,
    /// The window of the vCPU ends.
    WindowEnds(WindowEnd),
    /// The vCPU exits because it spins.
    Exit,
    /// The host gives the pCPU of the vCPU to this one.
    DirectedYield(u32),
    /// The administrator carries out this event of the scenario; it belongs to no vCPU.
    Change(u32),
}

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its time.
    pub at: Picos,
    /// The vCPU that it happens to; 0 for a change.
    pub vcpu: u32,
    /// What happens.
    pub event: Event,
}

/// A vCPU or a task of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Its name: `guest/v0`, or `guest/t0` of a task.
    pub name: String,
    /// Runstates, in order of time and without overlaps. There is none while the vCPU is offline. A task that is on a vCPU
    /// has its runstate.
    pub states: Vec<Slice>,
    /// Waits and holds, ordered by their beginnings. They overlap if the vCPU holds several locks.
    pub locks: Vec<Slice>,
}

/// What happened in a part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The part begins here.
    pub from: Picos,
    /// The part ends here.
    pub until: Picos,
    /// The run ended here.
    pub end: Picos,
    /// Number of pCPUs.
    pub pcpus: u32,
    /// The vCPUs of all domains in scenario order, with those of the host's noise last.
    pub vcpus: Vec<Lane>,
    /// The tasks that took locks in user mode, by domain and number.
    pub tasks: Vec<Lane>,
    /// The names of the locks that vCPUs took: `guest/lock 0`.
    pub locks: Vec<String>,
    /// What the administrator did, by the number of the event in the scenario.
    pub changes: Vec<String>,
    /// Instants, in order of time.
    pub marks: Vec<Mark>,
}

impl Timeline {
    /// All lanes: those of vCPUs, then those of tasks.
    pub fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.vcpus.iter().chain(&self.tasks)
    }

    /// Number of slices.
    #[must_use]
    pub fn slices(&self) -> usize {
        self.lanes().map(|v| v.states.len() + v.locks.len()).sum()
    }

    /// Whether it lacks a part of the run.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.from > Picos::ZERO || self.until < self.end
    }
}

#[cfg(test)]
mod tests;
