//! The world of random schedules as a [`Platform`].
//!
//! **Waiting.** Who looked in vain, with no bound on its looks, is parked until somebody writes the
//! cell. When all who are not done are parked nobody can make progress, and the plan fails. Loops
//! with a bound, and [`Platform::relax`], give way.
//!
//! **Interrupts.** Each CPU has some to come, which strike at accesses drawn by lot where interrupts
//! are on. A handler runs in the context above, with interrupts off.
//!
//! **Places** of locks in hash tables are drawn by lot: from their addresses they would differ from run
//! to run, and with them the schedules of a seed.
//!
//! **Hints** (`preempted`, `preemption_pending`, `time_to_preempt`) say anything at any time, and no
//! lock may come to harm.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::{self, Debug};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use overspin_locks::{AtomicCell, Bug, CpuId, Platform};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread::Thread;

use super::cells::{ScheduleU8, ScheduleU16, ScheduleU32, ScheduleUsize};
use crate::model::{DEADLOCK_MESSAGE, FREED_MESSAGE};
use crate::panic_message;
use crate::tried::Tries;

/// One access in so many is struck by an interrupt, if one is to come.
const INTERRUPT_ONE_IN: u32 = 8;
/// One sleep in so many ends for no reason.
const SPURIOUS_ONE_IN: u32 = 8;
/// One hint in so many is a yes.
const HINT_ONE_IN: u32 = 4;
/// Nanoseconds by which the clock goes on when it is read: mostly little, sometimes more than any
/// patience.
const TICK: u64 = 1_000;
const JUMP: u64 = 50_000_000;
const JUMP_ONE_IN: u32 = 16;

/// Accesses and pauses of all CPUs without an acquisition by anybody. A lock of 16 CPUs that ends takes some
/// thousand.
const STUCK: u32 = 200_000;

/// Places of locks, drawn by lot, and bytes from one to the next.
const PLACES: usize = 1 << 16;
const PLACE: usize = 16;

/// True once in `n` times, by lot.
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
const LIVELOCK: &str = "all who wait go on looking";

type Handler = Rc<dyn Fn()>;

#[derive(Default)]
struct Cpu {
    thread: RefCell<Option<Thread>>,
    waits: Cell<Option<Waits>>,
    /// It is between [`World::comes`] and [`World::granted`].
    acquires: Cell<bool>,
    /// When it was first parked since then.
    parked_at: Cell<Option<u64>>,
    latch: Cell<bool>,
    irqs_off: Cell<bool>,
    done: Cell<bool>,
    level: Cell<usize>,
    tries: Tries,
    /// Interrupts to come, and what they do.
    irqs: Cell<u32>,
    handler: RefCell<Option<Handler>>,
}

/// What one execution of a plan has besides the lock.
pub struct World {
    bug: Option<Bug>,
    /// What went wrong first.
    fault: OnceCell<String>,
    cpus: Vec<Cpu>,
    numa_nodes: Cell<usize>,
    time: Cell<u64>,
    /// Counts events that are put in an order: arrivals and grants.
    stamp: Cell<u64>,
    /// Accesses and pauses since the last acquisition.
    idle_steps: Cell<u32>,
    /// A point where another CPU may go on, where there is no cell.
    turn: AtomicBool,
    freed: RefCell<Option<Range<usize>>>,
    /// Locks by address, and where hash tables shall take them to be.
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
    let work = Arc::new(work);
    let others: Vec<_> = (1..cpus)
        .map(|cpu| {
            let work = Arc::clone(&work);
            shuttle::thread::spawn(move || {
                catch(|| {
                    assert_eq!(SchedulePlatform::cpu_id(), cpu, "CPUs are made once");
                    work(cpu);
                    world().done();
                });
            })
        })
        .collect();
    work(0);
    world().done();
    for other in others {
        other.join().expect("panics are caught");
    }
}

/// Does `work`; if it panics the plan has failed, and the scheduler ends the execution at the next
/// turn. A panic that reached shuttle would do so too, but not without words on standard error.
pub(super) fn catch(work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        if world().fault.set(panic_message(&*panic)).is_err() {
            // The execution is over, and shuttle unwinds the others.
            resume_unwind(panic);
        }
        shuttle::thread::yield_now();
    }
}

impl World {
    pub(super) fn install(cpus: usize, bug: Option<Bug>) {
        WORLD.set(Some(Rc::new(Self {
            bug,
            fault: OnceCell::new(),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            numa_nodes: Cell::new(1),
            time: Cell::new(0),
            stamp: Cell::new(0),
            idle_steps: Cell::new(0),
            turn: AtomicBool::new(false),
            freed: RefCell::new(None),
            places: RefCell::default(),
        })));
    }

    /// Takes the latest execution on this thread, and its fault, away.
    pub(super) fn forget() {
        WORLD.set(None);
    }

    /// What went wrong in the latest execution on this thread.
    pub(super) fn latest_fault() -> Option<String> {
        WORLD.with_borrow(|world| world.as_ref().and_then(|world| world.fault.get().cloned()))
    }

    fn here(&self) -> &Cpu {
        &self.cpus[SchedulePlatform::cpu_id()]
    }

    /// Deals the CPUs over so many NUMA nodes, in turn.
    pub fn deal_over_nodes(&self, numa_nodes: usize) {
        self.numa_nodes.set(numa_nodes);
    }

    /// So many interrupts will strike this CPU, unless it is done with its work first.
    pub fn arm(&self, count: u32, handler: impl Fn() + 'static) {
        let cpu = self.here();
        cpu.irqs.set(count);
        *cpu.handler.borrow_mut() = Some(Rc::new(handler));
    }

    /// From now on nobody may touch what is there.
    pub fn free<T>(&self, value: &T) {
        let start = std::ptr::from_ref(value).addr();
        *self.freed.borrow_mut() = Some(start..start + size_of::<T>());
    }

    fn next_stamp(&self) -> u64 {
        self.stamp.set(self.stamp.get() + 1);
        self.stamp.get()
    }

    /// This CPU is about to call `lock`. Returns when: a number in the order of arrivals.
    pub fn comes(&self) -> u64 {
        self.here().acquires.set(true);
        self.next_stamp()
    }

    /// Since when `cpu` is known to wait: when it was first parked in its call of `lock`.
    pub fn waits_since(&self, cpu: CpuId) -> Option<u64> {
        self.cpus[cpu].parked_at.get()
    }

    /// `try_lock`, on this CPU: it must not wait. A handler that interrupts it may.
    pub fn tries<R>(&self, try_lock: impl FnOnce() -> R) -> R {
        let cpu = self.here();
        cpu.tries.during(cpu.level.get(), try_lock)
    }

    /// This CPU's call of `lock` has returned.
    pub fn granted(&self) {
        self.here().acquires.set(false);
        self.here().parked_at.set(None);
    }

    /// A point where another CPU may go on.
    pub fn turn(&self) {
        self.turn.load(Ordering::SeqCst);
    }

    /// Somebody has the lock.
    pub fn acquired(&self) {
        self.idle_steps.set(0);
    }

    fn step(&self) {
        self.idle_steps.set(self.idle_steps.get() + 1);
        assert!(self.idle_steps.get() < STUCK, "no acquisition in {STUCK} accesses: {LIVELOCK}");
    }

    pub(super) fn access<R>(&self, address: usize, access: impl FnOnce() -> R) -> R {
        self.step();
        self.interrupt();
        let result = access();
        // Nobody else runs between the access and this.
        let hit = self.freed.borrow().as_ref().is_some_and(|freed| freed.contains(&address));
        assert!(!hit, "{FREED_MESSAGE}");
        result
    }

    fn interrupt(&self) {
        let cpu = self.here();
        if cpu.irqs.get() == 0 || cpu.irqs_off.get() || !one_in(INTERRUPT_ONE_IN) {
            return;
        }
        cpu.irqs.set(cpu.irqs.get() - 1);
        let handler = cpu.handler.borrow().clone();
        cpu.irqs_off.set(true);
        cpu.level.set(cpu.level.get() + 1);
        if let Some(handler) = handler {
            handler();
        }
        cpu.level.set(cpu.level.get() - 1);
        cpu.irqs_off.set(false);
    }

    /// Somebody wrote the cell at `address`.
    pub(super) fn written(&self, address: usize) {
        self.wake_all(Waits::Write(address));
    }

    pub(super) fn await_write(&self, address: usize) {
        self.park(Waits::Write(address));
    }

    /// Parks this CPU until somebody takes its `waits` away.
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

    /// This CPU does nothing any more, and takes no interrupts.
    fn done(&self) {
        self.here().irqs.set(0);
        self.here().done.set(true);
        self.assert_progress();
    }

    fn assert_progress(&self) {
        let is_done = |cpu: &Cpu| cpu.done.get();
        let is_stuck = |cpu: &Cpu| is_done(cpu) || cpu.waits.get().is_some();
        let deadlock = self.cpus.iter().all(is_stuck) && !self.cpus.iter().all(is_done);
        assert!(!deadlock, "{DEADLOCK_MESSAGE}");
    }

    fn wake(&self, cpu: &Cpu) {
        cpu.waits.set(None);
        let thread = cpu.thread.borrow();
        thread.as_ref().expect("who waits has said who it is").unpark();
    }

    fn wake_all(&self, whom: Waits) {
        self.cpus.iter().filter(|cpu| cpu.waits.get() == Some(whom)).for_each(|cpu| self.wake(cpu));
    }

    fn set_latch(&self, cpu: CpuId, value: bool) {
        self.turn();
        let cpu = &self.cpus[cpu];
        cpu.latch.set(value);
        if value && cpu.waits.get() == Some(Waits::Poll) {
            self.wake(cpu);
        }
    }
}

impl Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("bug", &self.bug)
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
        // Tasks are numbered as they are made, from 0.
        shuttle::current::get_current_task().map_or(0, CpuId::from)
    }

    fn relax() {
        world().step();
        shuttle::thread::yield_now();
        world().interrupt();
    }

    /// Every access is ordered already.
    fn fence(_: Ordering) {}

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
        world().interrupt();
        world().set_latch(Self::cpu_id(), false);
    }

    fn latch_set() {
        world().set_latch(Self::cpu_id(), true);
    }

    fn latch_test() -> bool {
        world().turn();
        world().here().latch.get()
    }

    fn poll() {
        world().interrupt();
        if !Self::latch_test() && !one_in(SPURIOUS_ONE_IN) {
            world().park(Waits::Poll);
        }
    }

    fn kick(cpu: CpuId) {
        world().set_latch(cpu, true);
    }

    fn wait(cell: &ScheduleU32, value: u32) {
        // Nobody else runs between the look and the parking.
        if cell.load(Ordering::SeqCst) == value && !one_in(SPURIOUS_ONE_IN) {
            world().park(Waits::Sleep(cell.address()));
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
        world().bug == Some(bug)
    }

    fn ctx_level() -> usize {
        world().here().level.get()
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
        let place = thread_rng().gen_range(0..PLACES) * PLACE;
        places.push((lock, place));
        place
    }

    fn now() -> u64 {
        let world = world();
        let step = if one_in(JUMP_ONE_IN) { JUMP } else { TICK };
        world.time.set(world.time.get() + step);
        world.time.get()
    }
}
