//! The state of one execution of a plan: its memory, interrupts and records.
//!
//! **Interrupts.** Each CPU has a number of interrupts to come. They strike at random accesses where
//! interrupts are on. A handler runs in the next higher context, with interrupts off.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::{self, Debug};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering::{self, Relaxed};

use overspin_locks::condvar::Waiter;
use overspin_locks::{CpuId, Note};
use shuttle::sync::atomic::AtomicBool;
use shuttle::thread::Thread;

use super::memory::{Consistency, Loaded, Memory};
use super::one_in;
use super::platform::SchedulePlatform;
use crate::asked::{Tries, Watch};
use crate::model::FREED_MESSAGE;
use crate::{Mutation, Profile};

/// One in this many accesses is struck by an interrupt, if one is to come.
const INTERRUPT_ONE_IN: u32 = 8;
/// One in this many weak exchanges fails spuriously.
const FAILURE_ONE_IN: u32 = 8;
/// Accesses and pauses of all CPUs without any acquisition, after which a plan fails. A correct lock of 16
/// CPUs takes some thousand.
const STUCK: usize = 200_000;
/// Accesses and pauses without any acquisition for each CPU of a larger system, in which a CPU that is passed over queues for long.
const STUCK_PER_CPU: usize = STUCK / 16;

/// The most steps of a CPU between the deadline of its attempt and the end of that, for each CPU. Most locks take fewer than 40
/// in all. In mcs-tp a waiter may find that it is the holder, pass over all others that gave up, and be struck by an interrupt
/// meanwhile: 10 for each CPU were seen.
const LATE_PER_CPU: usize = 24;

/// The most looks of a spin in an attempt: some 100 us, in which no CPU looks at the clock.
const MOST_LOOKS: u32 = 1 << 14;

/// The message about an attempt that does not end soon after its deadline.
const TOO_LATE: &str = "an attempt ends too late";

/// What [`STUCK`] steps mean.
const LIVELOCK: &str = "every waiter keeps looking";

/// The number of places for locks in hash tables.
const PLACES: usize = 1 << 16;

/// What a CPU waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// For a write to the cell at this address.
    Write(usize),
    /// In [`Platform::wait`](overspin_locks::Platform::wait) on the cell at this address.
    Sleep(usize),
    /// In [`Platform::poll`](overspin_locks::Platform::poll).
    Poll,
}

/// An acquisition that must end soon after its deadline.
#[derive(Clone, Copy)]
struct Attempt {
    deadline: u64,
    /// Steps since the deadline passed, and naps that began since then.
    steps: usize,
    naps: usize,
}

type Handler = Rc<dyn Fn()>;

#[derive(Default)]
pub(super) struct Cpu {
    pub(super) thread: RefCell<Option<Thread>>,
    pub(super) waits: Cell<Option<Waits>>,
    /// Its wait ends without a wake-up.
    pub(super) timed: Cell<bool>,
    /// It is between [`World::comes`] and [`World::granted`].
    pub(super) acquires: Cell<bool>,
    /// When it was first parked since then.
    pub(super) parked_at: Cell<Option<u64>>,
    /// The acquisition with a deadline that it attempts.
    attempt: Cell<Option<Attempt>>,
    pub(super) irqs_off: Cell<bool>,
    pub(super) done: Cell<bool>,
    pub(super) note: Cell<Note>,
    /// For condition variables.
    pub(super) waiter: OnceCell<Rc<Waiter<SchedulePlatform>>>,
    pub(super) level: Cell<usize>,
    pub(super) tries: Tries,
    /// Interrupts to come, and what they do.
    pub(super) irqs: Cell<u32>,
    handler: RefCell<Option<Handler>>,
}

/// The state of one execution of a plan, besides the lock.
pub struct World {
    /// The mistake that this world makes.
    pub(super) mutation: Mutation,
    pub(super) memory: Memory,
    /// The latch of each CPU.
    pub(super) latches: Vec<u32>,
    /// Number of the first CPU. CPUs before it never run.
    pub(super) first: CpuId,
    /// The CPU as which the only running task acts, if it is not its own.
    pub(super) acts_as: Cell<Option<usize>>,
    pub(super) watch: Rc<Watch>,
    /// The first fault.
    pub(super) fault: OnceCell<String>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) numa_nodes: Cell<usize>,
    /// Contexts that are nested on each CPU from the start.
    pub(super) level: Cell<usize>,
    /// The number of places for locks in hash tables.
    pub(super) deals: Cell<usize>,
    pub(super) time: Cell<u64>,
    /// The longest nap that the lock may take, in nanoseconds.
    longest_nap: Cell<u64>,
    /// Counts the events to be ordered: arrivals and grants.
    stamp: Cell<u64>,
    /// Accesses and pauses since the last acquisition.
    idle_steps: Cell<usize>,
    /// Loaded at a point without a cell where another CPU may go on.
    turn: AtomicBool,
    freed: RefCell<Option<Range<usize>>>,
    /// Locks by address, and the places that hash tables take them to have.
    pub(super) places: RefCell<Vec<(usize, usize)>>,
}

thread_local! {
    // shuttle runs all tasks of an execution on one system thread, so they share this.
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// The world of this execution.
///
/// # Panics
/// Outside of a plan.
pub fn world() -> Rc<World> {
    WORLD.with_borrow(|world| Rc::clone(world.as_ref().expect("only a plan has a world")))
}

impl World {
    pub(super) fn install(cpus: usize, first: CpuId, consistency: Consistency, mutation: Mutation) {
        let memory = Memory::new(consistency, cpus);
        WORLD.set(Some(Rc::new(Self {
            mutation,
            latches: (0..cpus).map(|_| memory.cell(0)).collect(),
            memory,
            first,
            acts_as: Cell::new(None),
            watch: Rc::default(),
            fault: OnceCell::new(),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            numa_nodes: Cell::new(1),
            level: Cell::new(0),
            deals: Cell::new(PLACES),
            time: Cell::new(0),
            longest_nap: Cell::new(Profile::default().longest_nap),
            stamp: Cell::new(0),
            idle_steps: Cell::new(0),
            turn: AtomicBool::new(false),
            freed: RefCell::new(None),
            places: RefCell::default(),
        })));
    }

    /// Drops the latest execution on this thread, with its fault.
    pub(super) fn forget() {
        WORLD.set(None);
    }

    /// The fault of the latest execution on this thread.
    pub(super) fn latest_fault() -> Option<String> {
        WORLD.with_borrow(|world| world.as_ref().and_then(|world| world.fault.get().cloned()))
    }

    /// The index of this CPU among those that run.
    pub(super) fn me(&self) -> usize {
        // Tasks are numbered from 0, in the order of creation.
        let task = || shuttle::current::get_current_task().map_or(0, usize::from);
        self.acts_as.get().unwrap_or_else(task)
    }

    /// Number of the first CPU that runs.
    pub(super) fn first(&self) -> CpuId {
        self.first
    }

    pub(super) fn consistency(&self) -> Consistency {
        self.memory.consistency()
    }

    pub(super) fn here(&self) -> &Cpu {
        &self.cpus[self.me()]
    }

    /// Distributes the CPUs over this many NUMA nodes, in turn.
    pub fn deal_over_nodes(&self, numa_nodes: usize) {
        self.numa_nodes.set(numa_nodes);
    }

    /// Whether a weak exchange fails spuriously now.
    pub(super) fn fails_weakly(&self) -> bool {
        !self.watch.is_calm() && one_in(FAILURE_ONE_IN)
    }

    /// All CPUs start at this context level, as if they had been interrupted that often.
    pub(crate) fn begin_at_level(&self, level: usize) {
        self.level.set(level);
    }

    /// Sets the longest nap of the lock, in nanoseconds.
    pub(super) fn let_nap(&self, nanos: u64) {
        self.longest_nap.set(nanos);
    }

    /// Sets the number of places that locks in hash tables are drawn from.
    pub(super) fn deal_places(&self, places: usize) {
        self.deals.set(places);
    }

    /// `count` interrupts will strike this CPU, unless its work ends first.
    pub fn arm(&self, count: u32, handler: impl Fn() + 'static) {
        let cpu = self.here();
        cpu.irqs.set(count);
        *cpu.handler.borrow_mut() = Some(Rc::new(handler));
    }

    /// From now on no CPU may touch `value`.
    pub fn free<T>(&self, value: &T) {
        let start = std::ptr::from_ref(value).addr();
        *self.freed.borrow_mut() = Some(start..start + size_of::<T>());
    }

    pub(super) fn next_stamp(&self) -> u64 {
        self.stamp.set(self.stamp.get() + 1);
        self.stamp.get()
    }

    /// Notes that this CPU is about to call `lock`. Returns a number in the order of arrivals.
    pub fn comes(&self) -> u64 {
        self.here().acquires.set(true);
        self.next_stamp()
    }

    /// Returns when `cpu` was first parked in its call of `lock`, if it was.
    pub fn waits_since(&self, cpu: CpuId) -> Option<u64> {
        self.cpus[cpu].parked_at.get()
    }

    /// Notes that this CPU's call of `lock` has returned.
    pub fn granted(&self) {
        self.here().acquires.set(false);
        self.here().parked_at.set(None);
    }

    /// This CPU attempts an acquisition that must end soon after `deadline`.
    pub fn until<R>(&self, deadline: u64, attempt: impl FnOnce() -> R) -> R {
        // The handler of an interrupt may make an attempt of its own meanwhile.
        let cpu = self.here();
        let outer = cpu.attempt.replace(Some(Attempt { deadline, steps: 0, naps: 0 }));
        let result = attempt();
        cpu.attempt.set(outer);
        result
    }

    /// Asserts that a sleep until `deadline` ends before the deadline of the attempt that this CPU makes, if it does.
    pub(super) fn sleeps_until(&self, deadline: u64) {
        let within = self.here().attempt.get().is_none_or(|attempt| deadline <= attempt.deadline);
        assert!(within, "{TOO_LATE}: it sleeps beyond its deadline");
    }

    /// Asserts that a spin of so many looks is short, in an attempt.
    pub(super) fn looks(&self, most: u32) {
        let short = most <= MOST_LOOKS || self.here().attempt.get().is_none();
        assert!(short, "{TOO_LATE}: it looks {most} times without a look at the clock");
    }

    /// Notes that this CPU naps, and lets that time pass. A CPU that looks at the clock before each nap naps once at most when its
    /// deadline has passed: the clock may have gone on since the look.
    pub(super) fn naps(&self, nanos: u64) {
        assert!(nanos <= self.longest_nap.get(), "{TOO_LATE}: it naps for {nanos} ns");
        if let Some(attempt) = self.late_attempt() {
            assert!(attempt.naps == 0, "{TOO_LATE}: it naps after its deadline");
            self.here().attempt.set(Some(Attempt { naps: 1, ..attempt }));
        }
        self.time.set(self.time.get() + nanos);
    }

    /// The attempt of this CPU, if its deadline has passed.
    fn late_attempt(&self) -> Option<Attempt> {
        self.here().attempt.get().filter(|attempt| attempt.deadline < self.time.get())
    }

    /// A point where another CPU may go on.
    pub fn turn(&self) {
        self.turn.load(Ordering::SeqCst);
    }

    /// Notes that a CPU has the lock.
    pub fn acquired(&self) {
        self.idle_steps.set(0);
    }

    pub(super) fn step(&self) {
        self.idle_steps.set(self.idle_steps.get() + 1);
        let stuck = STUCK.max(STUCK_PER_CPU * self.cpus.len());
        assert!(self.idle_steps.get() < stuck, "no acquisition in {stuck} accesses: {LIVELOCK}");
        if let Some(attempt) = self.late_attempt() {
            let steps = attempt.steps + 1;
            assert!(
                steps < LATE_PER_CPU * self.cpus.len(),
                "{TOO_LATE}: {steps} steps after its deadline"
            );
            self.here().attempt.set(Some(Attempt { steps, ..attempt }));
        }
    }

    fn access<R>(&self, address: usize, access: impl FnOnce() -> R) -> R {
        self.step();
        self.watch.count();
        self.interrupt();
        self.turn();
        let result = access();
        // No other CPU runs between the access and this.
        let hit = self.freed.borrow().as_ref().is_some_and(|freed| freed.contains(&address));
        assert!(!hit, "{FREED_MESSAGE}");
        result
    }

    pub(super) fn cell(&self, value: u64) -> u32 {
        self.memory.cell(value)
    }

    pub(super) fn load(&self, address: usize, cell: u32, order: Ordering, newest: bool) -> Loaded {
        let order = self.mutation.order(order);
        self.access(address, || self.memory.load(self.me(), cell, order, newest))
    }

    pub(super) fn store(&self, address: usize, cell: u32, value: u64, order: Ordering) {
        let order = self.mutation.order(order);
        self.access(address, || self.memory.store(self.me(), cell, value, order));
        self.wake_all(Waits::Write(address));
    }

    pub(super) fn update(
        &self,
        address: usize,
        cell: u32,
        success: Ordering,
        failure: Ordering,
        new: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        let (success, failure) = (self.mutation.order(success), self.mutation.order(failure));
        let update = || self.memory.update(self.me(), cell, success, failure, new);
        let result = self.access(address, update);
        if result.is_ok() {
            self.wake_all(Waits::Write(address));
        }
        result
    }

    /// Uses the data that a lock protects; `cell` records its users. Returns whether this CPU has seen the
    /// previous use.
    pub(super) fn use_data(&self, cell: u32) -> bool {
        self.memory.is_newest(self.me(), cell) && {
            self.memory.store(self.me(), cell, 0, Ordering::Relaxed);
            true
        }
    }

    pub(super) fn interrupt(&self) {
        let cpu = self.here();
        // Another interrupt may strike directly after one has ended.
        while cpu.irqs.get() > 0 && !cpu.irqs_off.get() && one_in(INTERRUPT_ONE_IN) {
            cpu.irqs.set(cpu.irqs.get() - 1);
            let handler = cpu.handler.borrow().clone();
            cpu.irqs_off.set(true);
            cpu.level.set(cpu.level.get() + 1);
            if let Some(handler) = handler {
                handler();
            }
            assert!(cpu.irqs_off.get(), "an interrupt handler ends with interrupts on");
            cpu.level.set(cpu.level.get() - 1);
            cpu.irqs_off.set(false);
        }
    }

    pub(super) fn set_latch(&self, cpu: usize, value: bool, order: Ordering) {
        self.turn();
        let new = |_| Some(u64::from(value));
        _ = self.memory.update(self.me(), self.latches[cpu], order, Relaxed, new);
        let cpu = &self.cpus[cpu];
        if value && cpu.waits.get() == Some(Waits::Poll) {
            self.wake(cpu);
        }
    }
}

impl Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("mutation", &self.mutation)
            .field("cpus", &self.cpus.len())
            .finish_non_exhaustive()
    }
}
