//! Tasks that take locks in user mode, as threads of their domain's process.
//!
//! A task gets its thread with its first event at such a lock. The thread shows on which vCPU the task is; what that vCPU
//! does stands in the vCPU's own tracks.

use super::messages::{ProcessTree, Thread, TracePacket};
use super::tracks::{self, Lane};
use super::{PerfettoSink, pid, tid};
use overspin_host::{LockEvent, SleepEvent};
use overspin_scenario::{Picos, Scenario, WaitCauses};
use std::collections::BTreeMap;
use std::io::Write;

/// A task with a thread.
#[derive(Clone, Copy, Debug)]
struct Task {
    thread: usize,
    asleep: bool,
    /// Whether it waits for a lock.
    waits: bool,
}

/// The tasks of a run so far.
#[derive(Debug)]
pub(super) struct Tasks {
    /// The task on each vCPU, by its domain and its number there.
    on: Vec<Option<(usize, u32)>>,
    known: BTreeMap<(usize, u32), Task>,
    /// The names of the tasks with which each domain starts.
    names: Vec<Vec<String>>,
}

impl Tasks {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let names = overspin_runs::catalog::names();
        Self {
            on: vec![None; scenario.vcpus() as usize],
            known: BTreeMap::new(),
            names: scenario.domains.iter().map(|d| names.first_tasks_of(d)).collect(),
        }
    }

    /// The vCPU that a task is on.
    fn vcpu_of(&self, task: (usize, u32)) -> Option<usize> {
        self.on.iter().position(|on| *on == Some(task))
    }
}

impl<W: Write> PerfettoSink<W> {
    /// A task, which gets its thread if it has none.
    fn task(&mut self, at: Picos, task: (usize, u32)) -> Task {
        if let Some(known) = self.tasks.known.get(&task) {
            return *known;
        }
        let thread = self.tracks.add_thread();
        let new = Task { thread, asleep: false, waits: false };
        self.tasks.known.insert(task, new);
        let (domain, number) = task;
        let name = match self.tasks.names.get(domain).and_then(|names| names.get(number as usize)) {
            Some(name) => format!("{}/{name}", self.domains[domain]),
            None => format!("{}/task {number}", self.domains[domain]),
        };
        let entry =
            Thread { tid: Some(tid(thread)), name: Some(name.clone()), tgid: Some(pid(domain)) };
        let tree = ProcessTree { threads: vec![entry], ..ProcessTree::default() };
        self.write(TracePacket { process_tree: Some(tree), ..TracePacket::default() });
        self.describe(tracks::thread(thread, pid(domain), tid(thread), name));
        self.show(at, task);
        new
    }

    /// Begins the slice of what a task does now.
    fn show(&mut self, at: Picos, task: (usize, u32)) {
        let Some(Task { thread, asleep, .. }) = self.tasks.known.get(&task).copied() else {
            return;
        };
        self.end_slice(at, thread, Lane::State);
        let name = match self.tasks.vcpu_of(task) {
            Some(vcpu) => format!("on {}", self.vcpus[vcpu].comm),
            None if asleep => "asleep".into(),
            None => "wants a vCPU".into(),
        };
        self.begin_slice(at, thread, Lane::State, &name);
    }

    /// The guest's scheduler puts another task on a vCPU. A vCPU spins while the task on it waits.
    pub(super) fn switches(&mut self, at: Picos, vcpu: u32, task: Option<u32>) {
        let vcpu = vcpu as usize;
        let new = task.map(|task| (self.vcpus[vcpu].domain, task));
        let old = std::mem::replace(&mut self.tasks.on[vcpu], new);
        let waits = |tasks: &Tasks, task| tasks.known.get(&task).is_some_and(|t| t.waits);
        if let Some(old) = old {
            if waits(&self.tasks, old) {
                self.counters.got(vcpu);
            }
            self.show(at, old);
        }
        if let Some(new) = new {
            if waits(&self.tasks, new) {
                self.counters.waits(vcpu);
            }
            self.show(at, new);
        }
    }

    /// A task sleeps in a wait for a lock, or wakes.
    pub(super) fn task_sleeps(&mut self, at: Picos, task: (usize, u32), what: SleepEvent) {
        self.task(at, task);
        let asleep = what == SleepEvent::Begins;
        if let Some(known) = self.tasks.known.get_mut(&task)
            && std::mem::replace(&mut known.asleep, asleep) != asleep
            && self.tasks.vcpu_of(task).is_none()
        {
            self.show(at, task);
        }
    }

    /// A task does something at a lock.
    pub(super) fn task_locks(
        &mut self,
        at: Picos,
        task: (usize, u32),
        lock: u32,
        what: LockEvent,
        waited: Option<&WaitCauses>,
    ) {
        let Task { thread, .. } = self.task(at, task);
        let vcpu = self.tasks.vcpu_of(task);
        match what {
            LockEvent::Waits { .. } => {
                vcpu.into_iter().for_each(|v| self.counters.waits(v));
                self.set_waits(task, true);
                self.wait_begins(at, thread, task.0, lock);
            }
            LockEvent::Acquired { .. } => {
                if waited.is_some() {
                    vcpu.into_iter().for_each(|v| self.counters.got(v));
                    self.set_waits(task, false);
                }
                self.hold_begins(at, thread, task.0, lock, waited);
            }
            LockEvent::Released { .. } => self.end_slice(at, thread, Lane::Hold(lock)),
            LockEvent::Freed { .. } => {}
        }
    }

    fn set_waits(&mut self, task: (usize, u32), waits: bool) {
        if let Some(known) = self.tasks.known.get_mut(&task) {
            known.waits = waits;
        }
    }
}
