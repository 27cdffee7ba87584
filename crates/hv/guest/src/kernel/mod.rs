//! The kernel of this guest: tasks on a run queue for each vCPU, as in the simulator's guests.
//!
//! `overspin_sched` has the policy; this is what carries it out. Kernel code runs on the stack of the task that it serves or
//! interrupts. An upcall of the host is an interrupt; while upcalls are masked, interrupts are off.
//!
//! ```text
//!   started -> ready <--- another task takes over --- running -- sleeps, or waits --> waiting --> ready
//!                `------------ is chosen ------------>   `---- its program returns --> gone
//! ```
//!
//! Another task takes over only where the running one returns to user mode, or computes in it, and under some kinds of
//! preemption in kernel work. If each task has a vCPU of its own, that never happens, and the guest has no ticks.
//!
//! # The lock of the state
//! All queues are behind one lock, which is held for a few instructions, with upcalls masked. It stays held across a
//! switch: the task that leaves takes it, and the one that comes releases it. So nobody sees a task that has left and
//! whose registers are not saved yet.
//!
//! Files: this one has the state; `policy` asks the scheduler; `switching` has the switch from task to task, and the start
//! and end of tasks; `wake` puts tasks on queues; `sleep` has waits; `tick` has interrupts; `unmap` has calls between vCPUs.

mod policy;
mod sleep;
mod switching;
mod tick;
mod unmap;
mod wake;

use crate::job::Job;
use crate::local::Local;
use crate::locks::Bank;
use crate::switch::Stack;
use crate::{cpu, env, upcall};
use alloc::boxed::Box;
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};
use core::cmp::Reverse;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use overspin_guest_abi::{TaskStats, event, port};
use overspin_workload::First;
use policy::Policy;
pub use unmap::CALL;
use unmap::Calls;

/// What all vCPUs share.
pub struct World {
    /// The work of the domain.
    pub job: Job,
    /// The locks of the guest.
    pub locks: Box<dyn Bank>,
    cpus: Box<[Cpu]>,
    calls: Box<[Calls]>,
    taken: AtomicBool,
    state: UnsafeCell<State>,
    /// Awaited tasks that have not ended.
    left: AtomicU32,
}

// SAFETY: `state` is touched only by the vCPU that has taken it (see `take`); `resched` is an atomic, and the other parts of an
// element of `cpus` are touched only by its vCPU.
unsafe impl Sync for World {}

/// What belongs to a vCPU.
#[derive(Default)]
struct Cpu {
    /// The stack pointer of its idle loop, while a task runs.
    rest: Cell<usize>,
    /// What the idle loop has of its own.
    idle: Local,
    /// Whether another task should take over: one of [`NO`], [`LAZY`], [`NOW`].
    resched: AtomicU32,
    /// The time for which its timer is set.
    armed: Cell<u64>,
    ticks: Cell<u64>,
    /// Where a task that ends leaves its stack pointer, which nobody needs.
    scrap: Cell<usize>,
}

/// No other task should take over.
const NO: u32 = 0;
/// One should on the return to user mode; it becomes [`NOW`] at the next tick.
const LAZY: u32 = 1;
/// One should as soon as the kernel may be preempted.
const NOW: u32 = 2;

/// What is behind the lock.
struct State {
    policy: Policy,
    /// By their numbers; `None` when they have ended.
    // The boxes matter: their addresses do not change.
    tasks: Vec<Option<Box<Task>>>,
    queues: Vec<Queue>,
    semaphores: Vec<(u32, VecDeque<u32>)>,
    /// Tasks that sleep until a wake-up at an address, in order of arrival.
    waiters: VecDeque<(u64, u32)>,
    /// Stacks of tasks that have ended.
    stacks: Vec<Stack>,
}

/// The tasks of one vCPU.
#[derive(Default)]
struct Queue {
    /// Those that wait for the vCPU.
    waiting: Vec<u32>,
    current: Option<u32>,
    /// When, and which task. The number in the middle keeps those of one time in order.
    sleepers: BinaryHeap<Reverse<(u64, u64, u32)>>,
    slept: u64,
    /// When the running task was last charged.
    charged_at: u64,
    /// A task that has ended, on whose stack its vCPU still is.
    ended: Option<Box<Task>>,
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    /// For nothing: it runs, or waits for its vCPU.
    Runnable,
    /// For a semaphore or a time.
    Waiting,
    /// For a lock, in a system call.
    Parked,
    /// It has ended.
    Ended,
}

struct Task {
    local: Local,
    /// Its stack pointer, while it does not run.
    rest: Cell<usize>,
    stack: Stack,
    stats: &'static TaskStats,
    /// vCPUs that may run it; all if empty.
    vcpus: Arc<[u32]>,
    status: Status,
    /// The vCPU to whose queue it belongs or last belonged; none before it is first queued.
    home: Option<usize>,
}

impl Task {
    fn may_use(&self, id: usize) -> bool {
        self.vcpus.is_empty() || self.vcpus.contains(&(id as u32))
    }
}

/// The event that says that a vCPU should look at its queue.
const READY: u32 = event::FIRST_FREE;
/// Looks at a taken state before the vCPU yields: its taker may have been descheduled.
const LOOKS: u32 = 100;

impl State {
    fn task(&mut self, task: u32) -> &mut Task {
        self.tasks[task as usize].as_mut().expect("a task on a queue or a list has not ended")
    }

    /// Number of tasks on a vCPU, including the running one.
    fn load(&self, id: usize) -> usize {
        self.queues[id].waiting.len() + usize::from(self.queues[id].current.is_some())
    }
}

impl World {
    /// With these first tasks. It lives for ever, because tasks refer to it.
    pub fn new(job: Job, locks: Box<dyn Bank>, first: Vec<First>) -> &'static Self {
        let vcpus = job.domain.vcpus;
        let state = State {
            policy: Policy::new(&job.domain.kernel, vcpus),
            tasks: Vec::new(),
            queues: (0..vcpus).map(|_| Queue::default()).collect(),
            semaphores: Vec::new(),
            waiters: VecDeque::new(),
            stacks: Vec::new(),
        };
        let shares = job.shares;
        let world: &'static Self = Box::leak(Box::new(Self {
            job,
            locks,
            cpus: (0..vcpus).map(|_| Cpu::default()).collect(),
            calls: (0..vcpus).map(|_| Calls::new(vcpus)).collect(),
            taken: AtomicBool::new(false),
            state: UnsafeCell::new(state),
            left: AtomicU32::new(0),
        }));
        for (number, first) in first.into_iter().enumerate() {
            let (vcpu, may_use) = if shares {
                let vcpu = first.start.vcpu.or(first.vcpus.first().copied()).unwrap_or(0);
                (vcpu, Arc::clone(&first.vcpus))
            } else {
                // It has this vCPU for itself.
                let own = first.start.vcpu.unwrap_or(number as u32);
                (own, Arc::from([own]))
            };
            let by = env::Inherited { awaited: first.awaited, vcpus: first.vcpus };
            world.add((&first.start.name, may_use), by, Some(vcpu), first.start.program);
        }
        world
    }

    /// Makes this vCPU run tasks for ever.
    pub fn run(&self) -> ! {
        let id = cpu::id();
        cpu::mask();
        cpu::set_current(&raw const self.cpus[id].idle);
        let kernel = &self.job.domain.kernel;
        if self.job.shares {
            let preempting = event::NOTICE | event::TIMER | event::TICK | READY;
            upcall::enable(preempting | CALL);
            if let Some(period) = 1_000_000_000_u32.checked_div(kernel.hz) {
                // Each vCPU's ticks have a phase of their own.
                let phase = env::random(&self.job, u64::MAX - id as u64).below(period.into());
                cpu::page().args[0].store(phase, Ordering::Relaxed);
                cpu::hypercall(port::TICKS, period);
            }
        }
        self.idle(id)
    }

    /// Takes the state. Upcalls are masked.
    #[expect(clippy::mut_from_ref, reason = "`taken` is the lock of the state")]
    fn take(&self) -> &mut State {
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
        // SAFETY: this vCPU has taken it, and others wait. Nobody takes it twice: no caller of `take` calls another one
        // before it or its successor has called `give`.
        unsafe { &mut *self.state.get() }
    }

    /// Gives the state back.
    fn give(&self) {
        self.taken.store(false, Ordering::Release);
    }

    /// Takes the state for `look`, which returns what it finds and a vCPU to tell that it should look at its queue.
    fn with<R>(&self, look: impl FnOnce(&mut State) -> (R, Option<usize>)) -> R {
        let masked = cpu::mask();
        let (result, tell) = look(self.take());
        self.give();
        self.tell(tell);
        upcall::restore(masked);
        result
    }

    /// Tells vCPUs that they should look at their queues.
    fn tell(&self, vcpus: impl IntoIterator<Item = usize>) {
        for id in vcpus {
            cpu::hypercall(port::SEND, id as u32 | READY.trailing_zeros() << 24);
        }
    }
}
