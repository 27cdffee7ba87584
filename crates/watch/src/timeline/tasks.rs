//! The lanes of tasks that take locks in user mode.
//!
//! A task has a lane from its first event at such a lock on. While it is on a vCPU it does what the vCPU does; while it is
//! on none it sleeps, or waits for the guest's scheduler to give it one.

use super::recorder::{Recorder, Vcpu};
use super::{Doing, Lane};
use overspin_host::SleepEvent;
use overspin_scenario::{Outcome, Picos, Why};
use std::collections::BTreeMap;

/// The tasks of a run so far.
#[derive(Debug)]
pub(super) struct Tasks {
    /// The task on each vCPU, by its number in its domain.
    on: Vec<Option<u32>>,
    /// The numbers of tasks' lanes, after those of vCPUs, by domain and number of the task.
    lanes: BTreeMap<(u32, u32), u32>,
}

impl Tasks {
    pub(super) fn new(vcpus: usize) -> Self {
        Self { on: vec![None; vcpus], lanes: BTreeMap::new() }
    }

    /// Takes the lanes of all tasks out of `vcpus`, in the order of domains and numbers, with the names that reports use.
    pub(super) fn lanes(&self, vcpus: &mut Vec<Vcpu>, outcome: &Outcome) -> Vec<Lane> {
        let mut lanes = vcpus.split_off(self.on.len());
        let lane = |(&(domain, task), &number): (&(u32, u32), &u32)| {
            let mut lane = std::mem::take(&mut lanes[number as usize - self.on.len()].lane);
            if let Some(domain) = outcome.domains.get(domain as usize)
                && let Some(task) = domain.tasks.get(task as usize)
            {
                lane.name = format!("{}/{}", domain.name, task.name);
            }
            lane
        };
        self.lanes.iter().map(lane).collect()
    }
}

impl Recorder {
    /// The number of a task's lane, which it gets when it first takes a lock.
    pub(super) fn task(&mut self, at: Picos, domain: u32, task: u32) -> u32 {
        if let Some(known) = self.tasks.lanes.get(&(domain, task)) {
            return *known;
        }
        let number = self.vcpus.len() as u32;
        self.tasks.lanes.insert((domain, task), number);
        let name = format!("{}/t{task}", self.domains[domain as usize]);
        self.vcpus.push(Vcpu::new(domain, name));
        let doing = self.does(domain, task);
        self.set_state(at, number, doing);
        number
    }

    /// What a task that does not sleep does: the same as its vCPU, if it is on one.
    fn does(&self, domain: u32, task: u32) -> Option<Doing> {
        let is_on = |v: &usize| self.tasks.on[*v] == Some(task) && self.vcpus[*v].domain == domain;
        match (0..self.tasks.on.len()).find(is_on) {
            Some(v) => self.vcpus[v].state.map(|(_, doing)| doing),
            None => Some(Doing::Off(Some(Why::Guest))),
        }
    }

    /// The lane of the task on a vCPU, if it has one.
    fn task_on(&self, vcpu: u32) -> Option<u32> {
        let task = self.tasks.on[vcpu as usize]?;
        self.tasks.lanes.get(&(self.vcpus[vcpu as usize].domain, task)).copied()
    }

    /// A vCPU changes its runstate, and with it the task on it.
    pub(super) fn set_state_with_task(&mut self, at: Picos, vcpu: u32, doing: Option<Doing>) {
        self.set_state(at, vcpu, doing);
        if let Some(task) = self.task_on(vcpu) {
            self.set_state(at, task, doing);
        }
    }

    /// The guest's scheduler puts another task on a vCPU.
    pub(super) fn switches(&mut self, at: Picos, vcpu: u32, task: Option<u32>) {
        let leaves = self.task_on(vcpu);
        self.tasks.on[vcpu as usize] = task;
        if let Some(leaves) = leaves
            && !matches!(self.vcpus[leaves as usize].state, Some((_, Doing::Asleep)))
        {
            self.set_state(at, leaves, Some(Doing::Off(Some(Why::Guest))));
        }
        if let Some(comes) = self.task_on(vcpu) {
            let doing = self.vcpus[vcpu as usize].state.map(|(_, doing)| doing);
            self.set_state(at, comes, doing);
        }
    }

    /// A task sleeps or wakes in a wait for a lock.
    pub(super) fn sleeps(&mut self, at: Picos, domain: u32, task: u32, what: SleepEvent) {
        let lane = self.task(at, domain, task);
        let doing = match what {
            SleepEvent::Begins => Some(Doing::Asleep),
            // Until it runs, it is a woken task, and not one whose vCPU another task took.
            SleepEvent::Wakes => Some(Doing::Off(None)),
            SleepEvent::Returns => self.does(domain, task),
        };
        if self.vcpus[lane as usize].state.map(|(_, doing)| doing) != doing {
            self.set_state(at, lane, doing);
        }
    }
}
