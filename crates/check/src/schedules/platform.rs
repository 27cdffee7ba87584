//! The world of random schedules as a [`Platform`].
//!
//! **Waiting.** A CPU whose look fails, with no bound on its looks, is parked until another CPU writes the
//! cell. If all unfinished CPUs are parked, none can make progress, and the plan fails. Loops with a bound,
//! and [`Platform::relax`], yield.
//!
//! **Interrupts.** Each CPU has a number of interrupts to come. They strike at random accesses where
//! interrupts are on. A handler runs in the next higher context, with interrupts off.
//!
//! **Places** of locks in hash tables are random. Places computed from addresses would differ from run to
//! run, and so would the schedules of a seed.
//!
//! **Hints** (`preempted`, `preemption_pending`, `time_to_preempt`) have random values, which must not harm
//! any lock.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::{self, Debug};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use overspin_locks::{Bug, CpuId, Note, Platform};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::AtomicBool;
use shuttle::thread::Thread;
use std::sync::atomic::Ordering::{self, Relaxed, Release};

use super::cells::{ScheduleU8, ScheduleU16, ScheduleU32, ScheduleUsize};
use super::memory::{Consistency, Found, Memory};
use crate::asked::{Tries, Watch, Watches};
use crate::model::{DEADLOCK_MESSAGE, FREED_MESSAGE};
use crate::{Mutation, panic_message};

/// One in this many accesses is struck by an interrupt, if one is to come.
const INTERRUPT_ONE_IN: u32 = 8;
/// A sleep with a time limit lasts for fewer points where another CPU may go on.
const TURNS_OF_A_TIMED_SLEEP: u32 = 32;

/// One in this many sleeps ends spuriously.
const SPURIOUS_ONE_IN: u32 = 8;
/// One in this many weak exchanges fails spuriously.
const FAILURE_ONE_IN: u32 = 8;
/// One in this many hints is a yes.
const HINT_ONE_IN: u32 = 4;
/// Nanoseconds by which each reading advances the clock: mostly few, sometimes more than any patience.
const TICK: u64 = 1_000;
const JUMP: u64 = 50_000_000;
const JUMP_ONE_IN: u32 = 16;

/// Accesses and pauses of all CPUs without any acquisition, after which a plan fails. A correct lock of 16
/// CPUs takes some thousand.
const STUCK: usize = 200_000;
/// Accesses and pauses without any acquisition for each CPU of a larger system, in which a CPU that is passed over queues for long.
const STUCK_PER_CPU: usize = STUCK / 16;

/// Places of locks, of which each lock gets one at random, and bytes from one place to the next.
const PLACES: usize = 1 << 16;
const PLACE: usize = 16;

/// Returns true once in `n` times, at random.
pub(super) fn one_in(n: u32) -> bool {
    thread_rng().gen_range(0..n) == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// For a write to the cell at this address.
    Write(usize),
    /// In [`Platform::wait`] on the cell at this address.
    Sleep(usize),
    /// In [`Platform::poll`].
    Poll,
}

/// What [`STUCK`] steps mean.
const LIVELOCK: &str = "every waiter keeps looking";

type Handler = Rc<dyn Fn()>;

#[derive(Default)]
struct Cpu {
    thread: RefCell<Option<Thread>>,
    waits: Cell<Option<Waits>>,
    /// Its wait ends without a wake-up.
    timed: Cell<bool>,
    /// It is between [`World::comes`] and [`World::granted`].
    acquires: Cell<bool>,
    /// When it was first parked since then.
    parked_at: Cell<Option<u64>>,
    irqs_off: Cell<bool>,
    done: Cell<bool>,
    note: Cell<Note>,
    level: Cell<usize>,
    tries: Tries,
    /// Interrupts to come, and what they do.
    irqs: Cell<u32>,
    handler: RefCell<Option<Handler>>,
}

/// The state of one execution of a plan, besides the lock.
pub struct World {
    /// The mistake that this world makes.
    pub(super) mutation: Mutation,
    memory: Memory,
    /// The latch of each CPU.
    latches: Vec<u32>,
    /// Number of the first CPU. CPUs before it never run.
    first: CpuId,
    /// The CPU as which the only running task acts, if it is not its own.
    acts_as: Cell<Option<usize>>,
    watch: Rc<Watch>,
    /// The first fault.
    fault: OnceCell<String>,
    cpus: Vec<Cpu>,
    numa_nodes: Cell<usize>,
    /// Contexts that are nested on each CPU from the start.
    level: Cell<usize>,
    /// The number of places for locks in hash tables.
    deals: Cell<usize>,
    time: Cell<u64>,
    /// Counts the events to be ordered: arrivals and grants.
    stamp: Cell<u64>,
    /// Accesses and pauses since the last acquisition.
    idle_steps: Cell<usize>,
    /// Loaded at a point without a cell where another CPU may go on.
    turn: AtomicBool,
    freed: RefCell<Option<Range<usize>>>,
    /// Locks by address, and the places that hash tables take them to have.
    places: RefCell<Vec<(usize, usize)>>,
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

/// Runs `work` on all CPUs, in a plan; the calling thread is CPU 0.
///
/// # Panics
/// If called twice in one execution: shuttle numbers its tasks, and so the CPUs, without end.
pub fn on_cpus(cpus: usize, work: impl Fn(CpuId) + Send + Sync + 'static) {
    on_cpus_boxed(cpus, &(Arc::new(work) as Arc<_>));
}

/// What [`on_cpus`] does, compiled once for all kinds of work.
fn on_cpus_boxed(cpus: usize, work: &Arc<dyn Fn(CpuId) + Send + Sync>) {
    let others: Vec<_> = (1..cpus)
        .map(|cpu| {
            let work = Arc::clone(work);
            world().memory.hand_over(0, cpu);
            shuttle::thread::spawn(move || {
                catch(|| {
                    let world = world();
                    assert_eq!(world.me(), cpu, "CPUs are made once");
                    work(cpu);
                    world.done();
                });
            })
        })
        .collect();
    work(0);
    world().done();
    for (cpu, other) in (1..).zip(others) {
        other.join().expect("panics are caught");
        world().memory.hand_over(cpu, 0);
    }
}

/// Runs `work`. If it panics, the plan has failed, and the scheduler ends the execution at the next turn. A
/// panic that reached shuttle would do so too, but would print to standard error.
pub(super) fn catch(work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        if world().fault.set(panic_message(&*panic)).is_err() {
            // The execution is over, and shuttle unwinds the other CPUs.
            resume_unwind(panic);
        }
        shuttle::thread::yield_now();
    }
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
    fn me(&self) -> usize {
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

    fn here(&self) -> &Cpu {
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
    pub(super) fn begin_at_level(&self, level: usize) {
        self.level.set(level);
    }

    /// Sets the number of places that locks in hash tables are drawn from.
    pub(super) fn deal_places(&self, places: usize) {
        self.deals.set(places);
    }

    /// Whether all CPUs but this one wait or are done.
    pub(super) fn others_wait(&self) -> bool {
        let waits = |cpu: &Cpu| cpu.done.get() || cpu.waits.get().is_some() && !cpu.timed.get();
        self.cpus.iter().enumerate().all(|(index, cpu)| index == self.me() || waits(cpu))
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

    fn next_stamp(&self) -> u64 {
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

    /// A point where another CPU may go on.
    pub fn turn(&self) {
        self.turn.load(Ordering::SeqCst);
    }

    /// Notes that a CPU has the lock.
    pub fn acquired(&self) {
        self.idle_steps.set(0);
    }

    fn step(&self) {
        self.idle_steps.set(self.idle_steps.get() + 1);
        let stuck = STUCK.max(STUCK_PER_CPU * self.cpus.len());
        assert!(self.idle_steps.get() < stuck, "no acquisition in {stuck} accesses: {LIVELOCK}");
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

    pub(super) fn load(&self, address: usize, cell: u32, order: Ordering, newest: bool) -> Found {
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

    fn interrupt(&self) {
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

    pub(super) fn await_write(&self, address: usize) {
        self.park(Waits::Write(address));
    }

    /// Parks this CPU until another CPU clears its `waits`.
    fn park(&self, waits: Waits) {
        let cpu = self.here();
        cpu.tries.assert_may_wait(cpu.level.get());
        *cpu.thread.borrow_mut() = Some(shuttle::thread::current());
        cpu.waits.set(Some(waits));
        if cpu.acquires.get() && cpu.parked_at.get().is_none() {
            cpu.parked_at.set(Some(self.next_stamp()));
        }
        self.assert_progress();
        while cpu.waits.get().is_some() {
            shuttle::thread::park();
        }
    }

    /// Parks this CPU until another CPU clears its `waits`, or until it has passed over a few turns.
    fn park_for(&self, waits: Waits, turns: u32) {
        let cpu = self.here();
        *cpu.thread.borrow_mut() = Some(shuttle::thread::current());
        cpu.waits.set(Some(waits));
        cpu.timed.set(true);
        for _ in 0..turns {
            if cpu.waits.get().is_some() {
                self.turn();
            }
        }
        cpu.waits.set(None);
        cpu.timed.set(false);
    }

    /// Ends this CPU's work. It takes no more interrupts.
    fn done(&self) {
        self.here().irqs.set(0);
        self.here().done.set(true);
        self.assert_progress();
    }

    fn assert_progress(&self) {
        let is_done = |cpu: &Cpu| cpu.done.get();
        let waits = |cpu: &Cpu| cpu.waits.get().is_some() && !cpu.timed.get();
        let is_stuck = |cpu: &Cpu| is_done(cpu) || waits(cpu);
        let deadlock = self.cpus.iter().all(is_stuck) && !self.cpus.iter().all(is_done);
        assert!(!deadlock, "{DEADLOCK_MESSAGE}");
    }

    fn wake(&self, cpu: &Cpu) {
        cpu.waits.set(None);
        let thread = cpu.thread.borrow();
        thread.as_ref().expect("a waiter has registered its thread").unpark();
    }

    fn wake_all(&self, whom: Waits) {
        self.cpus.iter().filter(|cpu| cpu.waits.get() == Some(whom)).for_each(|cpu| self.wake(cpu));
    }

    fn set_latch(&self, cpu: usize, value: bool, order: Ordering) {
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

/// Random schedules. See the module documentation.
#[derive(Debug)]
pub struct SchedulePlatform;

impl Platform for SchedulePlatform {
    type U8 = ScheduleU8;
    type U16 = ScheduleU16;
    type U32 = ScheduleU32;
    type Usize = ScheduleUsize;
    type Slots<T: Debug + 'static> = Box<[T]>;
    type IrqState = bool;

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Box<[T]> {
        (0..len).map(init).collect()
    }

    fn cpu_id() -> CpuId {
        world().first + world().me()
    }

    fn relax() {
        world().step();
        shuttle::thread::yield_now();
        world().interrupt();
    }

    fn fence(order: Ordering) {
        let world = world();
        world.memory.fence(world.me(), order);
    }

    fn irq_save() -> bool {
        !world().here().irqs_off.replace(true)
    }

    fn irq_restore(were_on: bool) {
        world().here().irqs_off.set(!were_on);
        world().interrupt();
    }

    fn irqs_were_on(were_on: bool) -> bool {
        were_on
    }

    fn latch_clear() {
        let world = world();
        world.interrupt();
        world.set_latch(world.me(), false, Relaxed);
    }

    fn latch_set() {
        let world = world();
        world.set_latch(world.me(), true, Relaxed);
    }

    fn latch_test() -> bool {
        let world = world();
        world.turn();
        world.memory.load(world.me(), world.latches[world.me()], Relaxed, false).value != 0
    }

    fn poll() {
        let world = world();
        world.interrupt();
        world.turn();
        // The sleep ends when the latch is set, whatever this CPU has seen of the latch.
        let is_set = world.memory.newest(world.latches[world.me()]) != 0;
        if !is_set && !one_in(SPURIOUS_ONE_IN) {
            world.park(Waits::Poll);
        }
    }

    fn kick(cpu: CpuId) {
        let world = world();
        let cpu = cpu.checked_sub(world.first).filter(|&cpu| cpu < world.cpus.len());
        world.set_latch(cpu.expect("a kick is for an existing CPU"), true, Release);
    }

    fn wait(cell: &ScheduleU32, value: u32) {
        // No other CPU runs between the look and the parking. The kernel looks under a lock that the waker
        // takes too, so it sees all writes before the wake.
        if cell.find(Relaxed, true).0 == value && !one_in(SPURIOUS_ONE_IN) {
            world().park(Waits::Sleep(cell.address()));
        }
    }

    fn wait_until(cell: &ScheduleU32, value: u32, _deadline_ns: u64) {
        if cell.find(Relaxed, true).0 == value {
            let turns = thread_rng().gen_range(0..TURNS_OF_A_TIMED_SLEEP);
            world().park_for(Waits::Sleep(cell.address()), turns);
        }
    }

    fn wake_one(address: *const ScheduleU32) {
        let world = world();
        world.turn();
        let whom = Waits::Sleep(address.addr());
        let sleepers: Vec<&Cpu> =
            world.cpus.iter().filter(|cpu| cpu.waits.get() == Some(whom)).collect();
        if !sleepers.is_empty() {
            world.wake(sleepers[thread_rng().gen_range(0..sleepers.len())]);
        }
    }

    fn seeded(bug: Bug) -> bool {
        world().mutation == Mutation::Seeded(bug)
    }

    fn ctx_level() -> usize {
        let world = world();
        let level = world.level.get() + world.here().level.get();
        if world.mutation == Mutation::OneContext { 0 } else { level }
    }

    fn numa_node() -> usize {
        Self::cpu_id() % world().numa_nodes.get()
    }

    fn preempted(_: CpuId) -> bool {
        one_in(HINT_ONE_IN)
    }

    fn preemption_pending() -> bool {
        one_in(HINT_ONE_IN)
    }

    fn time_to_preempt() -> Option<u64> {
        Some(if one_in(HINT_ONE_IN) { 0 } else { JUMP })
    }

    fn place(lock: usize, _table: usize) -> usize {
        let world = world();
        let mut places = world.places.borrow_mut();
        if let Some(&(_, place)) = places.iter().find(|(address, _)| *address == lock) {
            return place;
        }
        let place = thread_rng().gen_range(0..world.deals.get()) * PLACE;
        places.push((lock, place));
        place
    }

    fn yield_is_dear() -> bool {
        one_in(HINT_ONE_IN)
    }

    fn recall() -> Note {
        world().here().note.get()
    }

    fn remember(note: Note) {
        world().here().note.set(note);
    }

    fn now() -> u64 {
        let world = world();
        let step = if one_in(JUMP_ONE_IN) { JUMP } else { TICK };
        world.time.set(world.time.get() + step);
        world.time.get()
    }
}

impl Watches for SchedulePlatform {
    fn irqs_on() -> bool {
        !world().here().irqs_off.get()
    }

    fn tries<R>(try_lock: impl FnOnce() -> R) -> R {
        let world = world();
        let cpu = world.here();
        cpu.tries.during(cpu.level.get(), try_lock)
    }

    fn watch() -> Rc<Watch> {
        Rc::clone(&world().watch)
    }

    fn on_behalf_of<R>(cpu: CpuId, work: impl FnOnce() -> R) -> R {
        let world = world();
        let me = world.me();
        world.memory.hand_over(me, cpu);
        world.acts_as.set(Some(cpu));
        let result = work();
        world.acts_as.set(None);
        world.memory.hand_over(cpu, me);
        result
    }
}
