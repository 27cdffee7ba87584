//! Records a timeline from the moments of a run.

use super::tasks::Tasks;
use super::{Doing, Event, Lane, Mark, Slice, Timeline};
use overspin_host::{Interest, LockEvent, Moment, Observer, Timed, VcpuState};
use overspin_scenario::{DomainOutcome, Outcome, Picos, Scenario, Why};
use std::collections::BTreeMap;

/// A vCPU or a task while the run goes on.
#[derive(Debug)]
pub(super) struct Vcpu {
    pub domain: u32,
    pub lane: Lane,
    /// The runstate and its beginning; `None` while it is offline.
    pub state: Option<(Picos, Doing)>,
    /// Its cap keeps it from running.
    throttled: bool,
    /// Waits and holds that have not ended, by lock, with their beginnings.
    open: BTreeMap<u32, (Picos, Doing)>,
}

/// An observer that keeps the slices and marks of a run, up to a number of both together.
///
/// It keeps none that end before `from`. After the last one that fits, it keeps nothing more.
#[derive(Debug)]
pub struct Recorder {
    from: Picos,
    most: usize,
    /// Slices and marks so far.
    kept: usize,
    /// The time at which the recorder became full.
    full: Option<Picos>,
    /// The vCPUs, then the tasks in the order in which they first took a lock.
    pub(super) vcpus: Vec<Vcpu>,
    pub(super) tasks: Tasks,
    /// Numbers of locks by domain and by number in the domain.
    locks: BTreeMap<(u32, u32), u32>,
    marks: Vec<Mark>,
    pcpus: u32,
    changes: Vec<String>,
    pub(super) domains: Vec<String>,
}

impl Vcpu {
    /// One that has not done anything yet.
    pub(super) fn new(domain: u32, name: String) -> Self {
        let lane = Lane { name, ..Lane::default() };
        Self { domain, lane, state: None, throttled: false, open: BTreeMap::new() }
    }
}

impl Recorder {
    /// For a run of `scenario`: at most `most` slices and marks that end at `from` or later.
    #[must_use]
    pub fn new(scenario: &Scenario, from: Picos, most: usize) -> Self {
        let all = overspin_workload::with_noise(scenario);
        let mut vcpus = Vec::new();
        for (domain, d) in (0..).zip(&all.domains) {
            vcpus.extend((0..d.vcpus).map(|v| Vcpu::new(domain, format!("{}/v{v}", d.name))));
        }
        Self {
            from,
            most,
            kept: 0,
            full: None,
            tasks: Tasks::new(vcpus.len()),
            vcpus,
            locks: BTreeMap::new(),
            marks: Vec::new(),
            pcpus: scenario.host.pcpus(),
            changes: scenario.events.iter().map(|e| e.change.describe(scenario)).collect(),
            domains: all.domains.iter().map(|d| d.name.clone()).collect(),
        }
    }

    /// Ends the recording with the outcome of the run, which has the names of its locks.
    #[must_use]
    pub fn finish(mut self, outcome: &Outcome) -> Timeline {
        let until = self.full.unwrap_or(outcome.elapsed);
        for v in &mut self.vcpus {
            let state = v.state.take().map(|open| (open, false));
            let locks = std::mem::take(&mut v.open).into_values().map(|open| (open, true));
            for ((start, doing), is_lock) in state.into_iter().chain(locks) {
                let start = start.max(self.from);
                let doing = match doing {
                    Doing::Waits(lock) => Doing::StillWaits(lock),
                    doing => doing,
                };
                if start < until {
                    let lane = if is_lock { &mut v.lane.locks } else { &mut v.lane.states };
                    lane.push(Slice { start, end: until, doing });
                }
            }
            v.lane.locks.sort_by_key(|slice| slice.start);
        }
        let mut names: Vec<((u32, u32), u32)> = self.locks.into_iter().collect();
        names.sort_by_key(|(_, number)| *number);
        let name = |(domain, number): (u32, u32)| {
            let of = |d: &DomainOutcome| d.locks.get(number as usize).map(|l| l.name.clone());
            let lock = outcome.domains.get(domain as usize).and_then(of);
            // The host's noise has run queues too, which no outcome names.
            let lock = lock.unwrap_or_else(|| format!("lock {number}"));
            format!("{}/{lock}", self.domains[domain as usize])
        };
        Timeline {
            from: self.from.min(until),
            until,
            end: outcome.elapsed,
            pcpus: self.pcpus,
            locks: names.iter().map(|(of, _)| name(*of)).collect(),
            tasks: self.tasks.lanes(&mut self.vcpus, outcome),
            vcpus: self.vcpus.into_iter().map(|v| v.lane).collect(),
            changes: self.changes,
            marks: self.marks,
        }
    }

    /// Counts a slice or a mark that ends now. Returns whether there is room for it.
    fn count(&mut self, at: Picos) -> bool {
        if at < self.from || self.full.is_some() {
            return false;
        }
        if self.kept >= self.most {
            self.full = Some(at);
            return false;
        }
        self.kept += 1;
        true
    }

    pub(super) fn set_state(&mut self, at: Picos, vcpu: u32, doing: Option<Doing>) {
        let new = doing.map(|doing| (at, doing));
        let old = std::mem::replace(&mut self.vcpus[vcpu as usize].state, new);
        let Some((start, doing)) = old else { return };
        let start = start.max(self.from);
        if at > start && self.count(at) {
            self.vcpus[vcpu as usize].lane.states.push(Slice { start, end: at, doing });
        }
    }

    fn lock(&mut self, vcpu: u32, lock: u32) -> u32 {
        let next = u32::try_from(self.locks.len()).unwrap_or(u32::MAX);
        *self.locks.entry((self.vcpus[vcpu as usize].domain, lock)).or_insert(next)
    }

    fn begin(&mut self, at: Picos, vcpu: u32, lock: u32, doing: Doing) {
        self.vcpus[vcpu as usize].open.insert(lock, (at, doing));
    }

    fn end(&mut self, at: Picos, vcpu: u32, lock: u32) {
        let Some((start, doing)) = self.vcpus[vcpu as usize].open.remove(&lock) else { return };
        let start = start.max(self.from);
        if self.count(at) {
            self.vcpus[vcpu as usize].lane.locks.push(Slice { start, end: at, doing });
        }
    }

    fn waits(&mut self, at: Picos, vcpu: u32, lock: u32) {
        let lock = self.lock(vcpu, lock);
        self.begin(at, vcpu, lock, Doing::Waits(lock));
    }

    fn acquires(&mut self, at: Picos, vcpu: u32, lock: u32) {
        let lock = self.lock(vcpu, lock);
        self.end(at, vcpu, lock);
        self.begin(at, vcpu, lock, Doing::Holds(lock));
    }

    fn releases(&mut self, at: Picos, vcpu: u32, lock: u32) {
        let lock = self.lock(vcpu, lock);
        self.end(at, vcpu, lock);
    }

    fn mark(&mut self, at: Picos, vcpu: u32, event: Event) {
        if self.count(at) {
            self.marks.push(Mark { at, vcpu, event });
        }
    }

    fn record(&mut self, at: Picos, moment: &Moment) {
        match *moment {
            Moment::Switch { pcpu, prev, prev_state, why, next } => {
                if let Some(prev) = prev {
                    self.set_state_with_task(at, prev, off(prev_state, why));
                }
                if let Some(next) = next {
                    self.set_state_with_task(at, next, Some(Doing::On(pcpu)));
                }
            }
            Moment::Wake { vcpu, runnable: true, .. } => {
                // A vCPU that has not left its pCPU yet stays on it.
                if !matches!(self.vcpus[vcpu as usize].state, Some((_, Doing::On(_)))) {
                    let why = self.vcpus[vcpu as usize].throttled.then_some(Why::Parked);
                    self.set_state_with_task(at, vcpu, Some(Doing::Off(why)));
                }
            }
            // It begins or ceases while the vCPU is off its pCPU; a switch says for itself why.
            Moment::Throttle { vcpu, on } => {
                self.vcpus[vcpu as usize].throttled = on;
                if let Some((_, Doing::Off(_))) = self.vcpus[vcpu as usize].state {
                    let why = if on { Why::Parked } else { Why::Scheduler };
                    self.set_state_with_task(at, vcpu, Some(Doing::Off(Some(why))));
                }
            }
            Moment::LockWait { vcpu, lock, .. } => self.waits(at, vcpu, lock),
            Moment::LockAcquired { vcpu, lock, .. } => self.acquires(at, vcpu, lock),
            Moment::LockReleased { vcpu, lock, .. } => self.releases(at, vcpu, lock),
            Moment::TaskLock { domain, task, lock, what } => {
                let task = self.task(at, domain.into(), task);
                match what {
                    LockEvent::Waits { .. } => self.waits(at, task, lock),
                    LockEvent::Acquired { .. } => self.acquires(at, task, lock),
                    LockEvent::Released { .. } => self.releases(at, task, lock),
                    LockEvent::Freed { .. } => {}
                }
            }
            Moment::TaskSleep { domain, task, what } => self.sleeps(at, domain.into(), task, what),
            Moment::Task { vcpu, task } => self.switches(at, vcpu, task),
            Moment::Kick { from, to } => self.mark(at, from, Event::Kick(to)),
            Moment::WindowOpens { vcpu, .. } => self.mark(at, vcpu, Event::Notice),
            Moment::WindowCloses { vcpu, end } => self.mark(at, vcpu, Event::WindowEnds(end)),
            Moment::PauseLoopExit { vcpu } => self.mark(at, vcpu, Event::Exit),
            Moment::DirectedYield { from, to } => self.mark(at, from, Event::DirectedYield(to)),
            Moment::Change { event } => self.mark(at, 0, Event::Change(event)),
            Moment::Counts
            | Moment::Wake { .. }
            | Moment::Runs { .. }
            | Moment::Sleeps { .. }
            | Moment::Returns { .. }
            | Moment::PollBegins { .. }
            | Moment::PollEnds { .. }
            | Moment::Yield { .. }
            | Moment::Interrupt { .. }
            | Moment::InterruptEnds { .. }
            | Moment::LockFreed { .. } => {}
        }
    }
}

/// What a vCPU does in this state, which is not on a pCPU; `None` if it is offline.
fn off(state: VcpuState, why: Option<Why>) -> Option<Doing> {
    match state {
        VcpuState::Blocked => Some(Doing::Asleep),
        VcpuState::Offline => None,
        VcpuState::Running | VcpuState::Runnable => Some(Doing::Off(why)),
    }
}

impl Observer for Recorder {
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            if self.full.is_some() {
                return;
            }
            self.record(*at, moment);
        }
    }
}
