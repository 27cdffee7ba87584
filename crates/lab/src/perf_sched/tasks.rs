//! From events to what each task did: run, sleep, wait for another task, wake one.
//!
//! A sleep ends in one of three ways. Another task woke the sleeper: it waits for that task. An interrupt did, or
//! nothing that the recording shows: it sleeps for as long as it did. The task was still awake: the wake-up changed
//! nothing. A task that is preempted goes on later: that is no end of its run.

use super::figures::Delays;
use super::holds::Holds;
use super::line::{Event, EventKind, Left, Who};
use super::printable;
use std::collections::BTreeMap;

/// Something that a task did. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Run(u64),
    Sleep(u64),
    /// Slept for so long until another task woke it.
    Wait {
        by: usize,
        slept: u64,
    },
    /// Woke a task. It was not asleep unless `real`.
    Wake {
        task: usize,
        real: bool,
    },
    /// Spun for `spun` until it had the lock, and then held it.
    Hold {
        lock: usize,
        spun: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known from before this event.
    Unknown,
    Running {
        since: u64,
    },
    Ready {
        since: u64,
        woken: bool,
    },
    Asleep {
        since: u64,
    },
    Gone,
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub pid: u32,
    pub name: String,
    /// Whether the name is from the fields of an event. Those before the CPU of a line may be of a later time.
    named: bool,
    /// The last known priority, and whether there were others.
    pub prio: Option<i32>,
    pub prio_changed: bool,
    /// Its process, if the recording says it.
    pub process: Option<u32>,
    /// The control groups in which it was.
    pub groups: Vec<String>,
    pub steps: Vec<Step>,
    /// Its CPU time.
    pub ran: u64,
    /// The times from when it could run until it ran.
    pub delays: Delays,
    /// The first CPU on which it ran, and whether it ran on others too.
    pub cpu: Option<(u32, bool)>,
    /// CPU time of its present run, which is not a step yet.
    work: u64,
    state: State,
    /// A wake-up that came while it seemed to be awake: the waker and its step, `None` if an interrupt came.
    early: Option<Option<(usize, usize)>>,
}

/// A switch from one task to another; `None` is the idle task.
pub(super) type Switch = (Option<usize>, Option<usize>);

/// What follows the events of a recording.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub all: Vec<Task>,
    pub holds: Holds,
    pub switches: Vec<Switch>,
    /// From the first event to the last.
    pub elapsed: u64,
    /// CPU time of each task by the kernel's own account.
    accounted: BTreeMap<u32, u64>,
    /// Processes of threads that were told beside the tasks.
    processes: BTreeMap<u32, u32>,
    moves: Vec<Move>,
    by_pid: BTreeMap<u32, usize>,
    cpus: BTreeMap<u32, Cpu>,
    begin: u64,
    /// Whether the recording has `sched_waking`, which tells the waker; otherwise `sched_wakeup` does.
    has_waking: bool,
    pub notes: Notes,
}

/// Something that changes the control groups of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Move {
    Attached { pid: u32, path: String },
    Forked { parent: u32, child: u32 },
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// The process that it runs, 0 if it idles; `None` before its first event.
    current: Option<u32>,
    /// Interrupts that it serves.
    interrupts: u32,
}

/// What an import cannot take over as it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// Sleeps whose end the recording does not show.
    pub unseen: u64,
    /// Wake-ups by interrupts and by idle CPUs.
    pub by_interrupt: u64,
    /// Wake-ups by tasks.
    pub by_task: u64,
    /// Switches that follow from other events and were not recorded themselves.
    pub unseen_switches: u64,
}

impl Tasks {
    pub(super) fn new(begin: u64, has_waking: bool) -> Self {
        Self { begin, has_waking, ..Self::default() }
    }

    /// The CPUs of the recording.
    pub(super) fn cpus(&self) -> impl Iterator<Item = u32> {
        self.cpus.keys().copied()
    }

    /// CPU time of a task by the kernel's own account.
    pub(super) fn accounted(&self, i: usize) -> u64 {
        self.accounted.get(&self.all[i].pid).copied().unwrap_or_default()
    }

    /// A thread belongs to a process.
    pub(super) fn belongs(&mut self, pid: u32, process: u32) {
        self.processes.insert(pid, process);
    }

    /// The task of the event before is in a control group.
    pub(super) fn is_in_group(&mut self, pid: u32, group: &str) {
        if let Some(i) = self.by_pid.get(&pid) {
            let groups = &mut self.all[*i].groups;
            if !groups.iter().any(|known| known == group) {
                groups.push(group.to_owned());
            }
        }
    }

    /// Whether the recording says of any task in which control group it was.
    pub(super) fn know_groups(&self) -> bool {
        self.moves.iter().any(|m| matches!(m, Move::Attached { .. }))
            || self.all.iter().any(|task| !task.groups.is_empty())
    }

    /// Whether the recording says of any task to which process it belongs.
    pub(super) fn know_processes(&self) -> bool {
        !self.processes.is_empty() || self.all.iter().any(|task| task.process.is_some())
    }

    pub(super) fn follow(&mut self, event: &Event<'_>) {
        let now = event.at;
        let cpu = self.cpus.entry(event.cpu).or_default();
        if let EventKind::Interrupt { begins } = event.what {
            cpu.interrupts =
                if begins { cpu.interrupts + 1 } else { cpu.interrupts.saturating_sub(1) };
            return;
        }
        let nested = cpu.interrupts > 0;
        if let Some(who) = event.current {
            self.runs(who, event);
            if who.pid != 0 {
                if event.process.is_some() {
                    let i = self.task(who);
                    self.all[i].process = event.process;
                }
                if let Some(group) = event.group {
                    self.is_in_group(who.pid, group);
                }
            }
        }
        let current = self.cpus[&event.cpu].current.filter(|pid| *pid != 0);
        let current = current.and_then(|pid| self.by_pid.get(&pid).copied());
        let waker = current.filter(|_| !event.in_interrupt && !nested);
        match event.what {
            EventKind::Switch { prev, left, next } => {
                self.runs(prev, event);
                let [from, to] = [prev, next].map(|who| (who.pid != 0).then(|| self.task(who)));
                self.switches.push((from, to));
                if let Some(prev) = from {
                    self.leaves(prev, left, now);
                }
                if let Some(next) = to {
                    self.enters(next, event.cpu, now);
                }
                self.cpus.entry(event.cpu).or_default().current = Some(next.pid);
            }
            EventKind::Waking(who) => self.wakes(waker, who, now),
            EventKind::Wakeup(who) if !self.has_waking => self.wakes(waker, who, now),
            EventKind::WakeupNew(who) => {
                // A process number may come again.
                if let Some(known) = self.by_pid.get(&who.pid)
                    && self.all[*known].state == State::Gone
                {
                    self.by_pid.remove(&who.pid);
                }
                self.wakes(waker, who, now);
            }
            EventKind::Runtime { pid, ns } if pid != 0 => {
                let all = self.accounted.entry(pid).or_default();
                *all = all.saturating_add(ns);
            }
            EventKind::Attached { pid, path } => {
                self.moves.push(Move::Attached { pid, path: path.to_owned() });
            }
            EventKind::Forked { parent, child } => {
                self.moves.push(Move::Forked { parent, child });
            }
            EventKind::ContentionBegin { lock, flags } => match waker {
                Some(task) => {
                    self.account(task, now);
                    self.flush(task);
                    self.holds.begins(task, lock, flags, now);
                }
                None => self.holds.in_interrupts += 1,
            },
            EventKind::ContentionEnd { lock } => {
                if let Some(task) = waker {
                    self.account(task, now);
                    let step = self.all[task].steps.len();
                    if let Some((lock, spun)) = self.holds.ends(task, lock, step, now) {
                        let task = &mut self.all[task];
                        task.work = 0;
                        task.steps.push(Step::Hold { lock, spun });
                    }
                }
            }
            _ => {}
        }
    }

    /// Ends the recording.
    pub(super) fn end(&mut self, now: u64) {
        for i in 0..self.all.len() {
            self.account(i, now);
            self.flush(i);
            let task = &mut self.all[i];
            task.process = task.process.or_else(|| self.processes.get(&task.pid).copied());
        }
        let groups = self.groups_of_moves();
        for task in &mut self.all {
            // What moves a process moves its threads.
            for moved in [Some(task.pid), task.process].into_iter().flatten() {
                task.groups.extend(groups.get(&moved).cloned().unwrap_or_default());
            }
        }
        self.elapsed = now - self.begin;
    }

    /// The control groups of processes that moved, and of those that they made later. The last group of each is the one
    /// in which it is.
    fn groups_of_moves(&self) -> BTreeMap<u32, Vec<String>> {
        let process = |pid: u32| {
            let known = self.by_pid.get(&pid).and_then(|i| self.all[*i].process);
            known.or_else(|| self.processes.get(&pid).copied())
        };
        let mut groups: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for moved in &self.moves {
            let (pid, path) = match moved {
                Move::Attached { pid, path } => (*pid, path.clone()),
                Move::Forked { parent, child } => {
                    let of = |pid: u32| groups.get(&pid)?.last().cloned();
                    match of(*parent).or_else(|| of(process(*parent)?)) {
                        Some(path) => (*child, path),
                        None => continue,
                    }
                }
            };
            let groups = groups.entry(pid).or_default();
            groups.retain(|known| *known != path);
            groups.push(path);
        }
        groups
    }

    fn task(&mut self, who: Who<'_>) -> usize {
        let all = &mut self.all;
        let i = *self.by_pid.entry(who.pid).or_insert_with(|| {
            all.push(Task {
                pid: who.pid,
                name: String::new(),
                named: false,
                prio: None,
                prio_changed: false,
                process: None,
                groups: Vec::new(),
                steps: Vec::new(),
                ran: 0,
                delays: Delays::default(),
                cpu: None,
                work: 0,
                state: State::Unknown,
                early: None,
            });
            all.len() - 1
        });
        let task = &mut all[i];
        // Fields have a priority beside the name. A program that is executed renames its task; the last name is the one
        // that people know.
        let of_fields = who.prio.is_some();
        if task.name != who.comm && !who.comm.is_empty() && (of_fields || !task.named) {
            task.name = printable(who.comm);
        }
        task.named |= of_fields;
        task.prio_changed |= task.prio.zip(who.prio).is_some_and(|(was, is)| was != is);
        task.prio = who.prio.or(task.prio);
        i
    }

    /// The recording shows a task on the CPU of an event. If it is another than the last one there, the switch between
    /// them was not recorded.
    fn runs(&mut self, who: Who<'_>, event: &Event<'_>) {
        let cpu = self.cpus.entry(event.cpu).or_default();
        let was = cpu.current.replace(who.pid);
        if was == Some(who.pid) {
            return;
        }
        // The kernel's account says since when the task runs.
        let since = match event.what {
            EventKind::Runtime { pid, ns } if pid == who.pid => event.at.saturating_sub(ns),
            _ => event.at,
        };
        let to = (who.pid != 0).then(|| self.task(who));
        if let Some(was) = was {
            let from = self.by_pid.get(&was).copied().filter(|_| was != 0);
            self.notes.unseen_switches += 1;
            self.switches.push((from, to));
            if let Some(was) = from {
                self.leaves(was, Left::Asleep, since);
            }
        }
        if let Some(i) = to {
            match was {
                Some(_) => self.enters(i, event.cpu, since),
                // It was there at the beginning.
                None => {
                    self.all[i].state = State::Running { since: self.begin };
                    self.ran_on(i, event.cpu);
                }
            }
        }
    }

    fn ran_on(&mut self, i: usize, cpu: u32) {
        let was = self.all[i].cpu.get_or_insert((cpu, false));
        was.1 |= was.0 != cpu;
    }

    /// Counts the time up to now of a task that runs.
    fn account(&mut self, i: usize, now: u64) {
        if let State::Running { since } = &mut self.all[i].state {
            let ran = now.saturating_sub(*since);
            *since = now;
            // The kernel's account of a task may begin before that of the recording.
            let add = |to: &mut u64| *to = to.saturating_add(ran);
            add(&mut self.all[i].work);
            add(&mut self.all[i].ran);
        }
    }

    fn flush(&mut self, i: usize) {
        let task = &mut self.all[i];
        if task.work > 0 {
            task.steps.push(Step::Run(task.work));
            task.work = 0;
        }
    }

    fn slept(&mut self, i: usize, since: u64, now: u64) {
        if now > since {
            self.all[i].steps.push(Step::Sleep(now - since));
        }
    }

    fn leaves(&mut self, i: usize, left: Left, now: u64) {
        self.account(i, now);
        self.holds.leaves(i);
        self.all[i].state = match left {
            Left::Ready => State::Ready { since: now, woken: false },
            Left::Gone => State::Gone,
            Left::Asleep => State::Asleep { since: now },
        };
        if !matches!(self.all[i].state, State::Ready { .. }) {
            self.flush(i);
        }
    }

    fn enters(&mut self, i: usize, cpu: u32, now: u64) {
        let early = self.all[i].early.take();
        match (self.all[i].state, early) {
            (State::Ready { since, woken }, _) => {
                self.all[i].delays.add(now.saturating_sub(since), woken);
            }
            (State::Asleep { since }, Some(waker)) => {
                // The wake-up came just before the task left its CPU.
                self.all[i].delays.add(now.saturating_sub(since), true);
                match waker {
                    Some((waker, step)) => {
                        if let Some(Step::Wake { real, .. }) = self.all[waker].steps.get_mut(step) {
                            *real = true;
                        }
                        self.notes.by_task += 1;
                        // It was woken before it slept.
                        self.all[i].steps.push(Step::Wait { by: waker, slept: 0 });
                    }
                    None => self.notes.by_interrupt += 1,
                }
            }
            (State::Asleep { since }, None) => {
                self.notes.unseen += 1;
                self.slept(i, since, now);
            }
            _ => {}
        }
        self.all[i].state = State::Running { since: now };
        self.ran_on(i, cpu);
    }

    fn wakes(&mut self, waker: Option<usize>, who: Who<'_>, now: u64) {
        if who.pid == 0 {
            return;
        }
        let i = self.task(who);
        if waker == Some(i) {
            return;
        }
        let since = match self.all[i].state {
            State::Asleep { since } => since,
            State::Unknown => self.begin,
            _ => {
                let step = waker.map(|waker| (waker, self.woke(waker, i, false, now)));
                self.all[i].early = Some(step);
                return;
            }
        };
        match waker {
            Some(waker) => {
                self.woke(waker, i, true, now);
                self.notes.by_task += 1;
                let slept = now.saturating_sub(since);
                self.all[i].steps.push(Step::Wait { by: waker, slept });
            }
            None => {
                self.notes.by_interrupt += 1;
                self.slept(i, since, now);
            }
        }
        self.all[i].state = State::Ready { since: now, woken: true };
        self.all[i].early = None;
    }

    /// Adds a wake-up to the steps of the waker; returns its place.
    fn woke(&mut self, waker: usize, task: usize, real: bool, now: u64) -> usize {
        self.account(waker, now);
        self.flush(waker);
        self.all[waker].steps.push(Step::Wake { task, real });
        self.all[waker].steps.len() - 1
    }
}
