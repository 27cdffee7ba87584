//! The tasks of this guest, and which vCPU runs which of them.
//!
//! Each task has a stack of its own. A vCPU runs a task until the task sleeps, waits for a semaphore or ends. Nothing
//! preempts it, because this guest has no ticks. Then the loop of the vCPU, on the vCPU's first stack, chooses the
//! next task, or lets the vCPU sleep.
//!
//! ```text
//!   spawn -> ready -> running -- sleeps, or waits for a semaphore --> waiting -- its time comes, or `up` --> ready
//!                        `------ its program returns --> gone
//! ```
//!
//! If no task starts others, each has a vCPU of its own, and stays there.

use crate::switch::{Stack, switch};
use crate::{cpu, env, job::Job, locks::Bank};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use overspin_guest_abi::{NEVER, TaskStats, event, port};
use overspin_workload::{First, Program};

/// What all vCPUs share.
pub struct World {
    /// The work of the domain.
    pub job: Job,
    /// The locks of the guest.
    pub locks: Box<dyn Bank>,
    vcpus: Box<[Vcpu]>,
    taken: AtomicBool,
    state: UnsafeCell<State>,
    /// Awaited tasks that have not ended.
    left: AtomicU32,
    /// Whether tasks share vCPUs, because some start others.
    shares: bool,
}

// SAFETY: `state` is touched only by the vCPU that has taken it (see `with`), and each element of `vcpus` only by its vCPU.
unsafe impl Sync for World {}

/// What only its vCPU touches.
#[derive(Default)]
struct Vcpu {
    /// The stack pointer of its loop, while a task runs.
    rest: Cell<usize>,
    task: Cell<Option<Box<Task>>>,
    /// The CPU time of this vCPU up to which it has been added to its tasks.
    charged: Cell<u64>,
    wants: Cell<Wants>,
}

/// What a task wants that gives its vCPU back.
#[derive(Clone, Copy, Default)]
enum Wants {
    #[default]
    End,
    /// To go on at this time.
    Time(u64),
    /// A unit of this semaphore.
    Unit(usize),
}

struct Task {
    /// Its stack pointer, while it does not run.
    rest: usize,
    stack: Stack,
    stats: &'static TaskStats,
    /// vCPUs that may run it; all if empty.
    vcpus: Arc<[u32]>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Box<Task>>,
    sleepers: Vec<(u64, Box<Task>)>,
    semaphores: Vec<(u32, VecDeque<Box<Task>>)>,
    /// vCPUs that sleep, or are about to, because they have no task.
    idle: Vec<bool>,
    /// Tasks so far.
    tasks: usize,
    /// Stacks of tasks that have ended.
    stacks: Vec<Stack>,
}

/// What a new stack begins with.
struct Begin {
    world: &'static World,
    number: usize,
    awaited: bool,
    /// vCPUs that the tasks which it starts may use.
    vcpus: Arc<[u32]>,
    program: Program,
}

/// The event that wakes a vCPU which has no task.
const READY: u32 = event::FIRST_FREE;
/// Looks at a taken state before the vCPU yields: its taker may have been descheduled.
const LOOKS: u32 = 100;

fn allows(vcpus: &[u32], id: usize) -> bool {
    vcpus.is_empty() || vcpus.contains(&(id as u32))
}

impl State {
    /// Makes a task ready. Returns the sleeping vCPU that has to be woken for it.
    fn make_ready(&mut self, task: Box<Task>) -> Option<usize> {
        let idle = (0..self.idle.len()).find(|id| self.idle[*id] && allows(&task.vcpus, *id));
        self.ready.push_back(task);
        idle.inspect(|id| self.idle[*id] = false)
    }

    /// Makes those ready whose time has come.
    fn wake(&mut self, now: u64) -> Vec<usize> {
        let mut to_wake = Vec::new();
        while let Some(i) = self.sleepers.iter().position(|(at, _)| *at <= now) {
            let (_, task) = self.sleepers.swap_remove(i);
            to_wake.extend(self.make_ready(task));
        }
        to_wake
    }

    /// The next task of vCPU `id`; otherwise the time at which one may be ready.
    fn next(&mut self, id: usize) -> Result<Box<Task>, u64> {
        match self.ready.iter().position(|task| allows(&task.vcpus, id)) {
            Some(i) => Ok(self.ready.remove(i).expect("it was just found")),
            None => {
                let mine = self.sleepers.iter().filter(|(_, task)| allows(&task.vcpus, id));
                Err(mine.map(|(at, _)| *at).min().unwrap_or(NEVER))
            }
        }
    }
}

impl World {
    /// With these first tasks. `shares`: some of them start others. It lives for ever, because tasks refer to it.
    pub fn new(
        job: Job,
        locks: Box<dyn Bank>,
        vcpus: usize,
        first: Vec<First>,
        shares: bool,
    ) -> &'static Self {
        let state = State { idle: (0..vcpus).map(|_| false).collect(), ..State::default() };
        let world: &'static Self = Box::leak(Box::new(Self {
            job,
            locks,
            vcpus: (0..vcpus).map(|_| Vcpu::default()).collect(),
            taken: AtomicBool::new(false),
            state: UnsafeCell::new(state),
            left: AtomicU32::new(0),
            shares,
        }));
        for (number, first) in first.into_iter().enumerate() {
            let own = first.start.vcpu.unwrap_or(number as u32);
            let on = if shares { Arc::clone(&first.vcpus) } else { Arc::from([own]) };
            world.add(&first.start.name, on, first.vcpus, first.awaited, first.start.program);
        }
        world
    }

    /// Makes a task that `on` may run, and is ready. The tasks that it starts may use `vcpus`.
    fn add(
        &'static self,
        name: &str,
        on: Arc<[u32]>,
        vcpus: Arc<[u32]>,
        awaited: bool,
        program: Program,
    ) {
        self.left.fetch_add(u32::from(awaited), Ordering::Relaxed);
        let (number, stack) = self.with(|state| {
            state.tasks += 1;
            (state.tasks - 1, state.stacks.pop())
        });
        let stats = env::stats_of(number);
        if self.shares {
            stats.set_name(name);
        }
        let stack = stack.unwrap_or_default();
        let begin = Box::new(Begin { world: self, number, awaited, vcpus, program });
        let rest = stack.begin_with(begin_task, Box::into_raw(begin) as usize);
        let task = Box::new(Task { rest, stack, stats, vcpus: on });
        self.wake(self.with(|state| state.make_ready(task)));
    }

    /// Starts a task.
    pub fn spawn(&'static self, by: &env::Task, name: &str, program: Program) {
        self.add(name, Arc::clone(&by.vcpus), Arc::clone(&by.vcpus), by.awaited, program);
    }

    /// A new semaphore.
    pub fn semaphore(&self, count: u32) -> usize {
        self.with(|state| {
            state.semaphores.push((count, VecDeque::new()));
            state.semaphores.len() - 1
        })
    }

    /// Takes a unit of a semaphore, waiting for it if need be.
    pub fn down(&self, semaphore: usize) {
        let has = self.with(|state| {
            let count = &mut state.semaphores[semaphore].0;
            let has = *count > 0;
            *count -= u32::from(has);
            has
        });
        if !has {
            self.give_back(Wants::Unit(semaphore));
        }
    }

    /// Gives a unit to the first waiter of a semaphore, or to the semaphore.
    pub fn up(&self, semaphore: usize) {
        let to_wake = self.with(|state| {
            let (count, waiters) = &mut state.semaphores[semaphore];
            match waiters.pop_front() {
                Some(task) => state.make_ready(task),
                None => {
                    *count += 1;
                    None
                }
            }
        });
        self.wake(to_wake);
    }

    /// Lets the task of this vCPU wait until `end`.
    pub fn sleep_until(&self, end: u64) {
        if self.shares {
            self.give_back(Wants::Time(end));
            return;
        }
        // No other task may run here.
        while cpu::now() < end {
            cpu::block_until(end);
        }
    }

    /// Runs tasks on this vCPU for ever.
    pub fn run(&self) -> ! {
        let id = cpu::id();
        loop {
            let mut to_wake = Vec::new();
            let next = self.with(|state| {
                to_wake = state.wake(cpu::now());
                let next = state.next(id);
                state.idle[id] = next.is_err();
                next
            });
            self.wake(to_wake.into_iter().filter(|other| *other != id));
            match next {
                Ok(task) => self.dispatch(id, task),
                Err(until) => {
                    // If the event has come already, this returns at once.
                    cpu::block_until(until);
                    cpu::page().pending.fetch_and(!READY, Ordering::AcqRel);
                }
            }
        }
    }

    /// Runs a task until it gives the vCPU back.
    fn dispatch(&self, id: usize, mut task: Box<Task>) {
        let vcpu = &self.vcpus[id];
        vcpu.charged.set(cpu::cpu_time());
        let rest = task.rest;
        let stats = task.stats;
        vcpu.task.set(Some(task));
        // SAFETY: `rest` is what the task, which no vCPU runs, left when it began or last gave its vCPU back.
        unsafe { switch(vcpu.rest.as_ptr(), rest) };
        self.charge(stats);
        task = vcpu
            .task
            .take()
            .expect("the task of a vCPU stays there until it has given the vCPU back");
        match vcpu.wants.take() {
            Wants::End => self.with(|state| state.stacks.push(task.stack)),
            Wants::Time(end) => self.with(|state| state.sleepers.push((end, task))),
            Wants::Unit(semaphore) => self.with(|state| {
                // A unit may have come since the task looked.
                let (count, waiters) = &mut state.semaphores[semaphore];
                match *count {
                    0 => waiters.push_back(task),
                    _ => {
                        *count -= 1;
                        state.ready.push_front(task);
                    }
                }
            }),
        }
    }

    /// Adds to the task that runs on this vCPU the CPU time since the last time.
    fn charge(&self, stats: &TaskStats) {
        let (charged, now) = (&self.vcpus[cpu::id()].charged, cpu::cpu_time());
        TaskStats::add(&stats.cpu, now.saturating_sub(charged.replace(now)));
    }

    /// Gives this vCPU back to its loop. Returns when some vCPU runs the task again.
    fn give_back(&self, wants: Wants) {
        let vcpu = &self.vcpus[cpu::id()];
        vcpu.wants.set(wants);
        let mut task = vcpu.task.take().expect("a vCPU that runs a task has it");
        // The box stays where it is when it moves.
        let rest = &raw mut task.rest;
        vcpu.task.set(Some(task));
        // SAFETY: the loop of this vCPU left its stack pointer when it dispatched this task, and nobody frees the
        // task before the loop has it back.
        unsafe { switch(rest, vcpu.rest.get()) };
    }

    /// Wakes vCPUs that have no task.
    fn wake(&self, vcpus: impl IntoIterator<Item = usize>) {
        for id in vcpus {
            cpu::hypercall(port::SEND, id as u32 | READY.trailing_zeros() << 24);
        }
    }

    /// Takes the state, for a few instructions.
    fn with<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        let mut looks = 0;
        while self.taken.swap(true, Ordering::Acquire) {
            while self.taken.load(Ordering::Relaxed) {
                looks += 1;
                match looks % LOOKS {
                    0 => cpu::hypercall(port::YIELD, 0),
                    _ => core::hint::spin_loop(),
                }
            }
        }
        // SAFETY: this vCPU has taken it, and others wait. `look` does not come here again.
        let result = look(unsafe { &mut *self.state.get() });
        self.taken.store(false, Ordering::Release);
        result
    }
}

/// The first function on a new stack.
extern "C" fn begin_task(begin: usize) -> ! {
    // SAFETY: `add` has made it of a box, for this stack alone.
    let begin = unsafe { Box::from_raw(begin as *mut Begin) };
    let Begin { world, number, awaited, vcpus, program } = *begin;
    let task = env::Task { world, number, awaited, vcpus };
    task.stats().begun.store(1, Ordering::Relaxed);
    program(&task);
    // Before anybody can know that it has ended: the end of the last task is the end of the run.
    world.charge(task.stats());
    task.stats().ended.store(cpu::now() + 1, Ordering::Relaxed);
    if awaited && world.left.fetch_sub(1, Ordering::AcqRel) == 1 {
        cpu::hypercall(port::SHUTDOWN, 0);
    }
    drop(task);
    world.give_back(Wants::End);
    // The loop gives this stack to another task, and never comes back here.
    cpu::idle()
}
