//! The model checker as a [`Platform`].
//!
//! **No order is added.** A latch is a relaxed atomic, a sleep is a loop of relaxed loads, as is a
//! spin; loom's own park and condition variable order the waker before the woken and would hide a
//! missing order in the lock. The state kept in plain `Cell`s is invisible to the model.
//!
//! **Waiting.** A waiter that looked in vain yields until the newest value, kept beside each cell,
//! is one that it waits for, and only then looks again. Left alone, loom would explore two waiters
//! that look in turn for ever while the holder never runs. Looks that must fail are all that is
//! left out. What the waiter then sees is loom's choice, the newest value or an older one. After
//! some yields without a write by anybody the execution goes on but is no longer varied: what it
//! could still find is found where those yields are missing.
//!
//! **Deadlock.** When too many yields in a row were in vain, with no write in between by anybody,
//! nobody can make progress: the model panics.
//!
//! **Interrupts.** A test arms one per CPU with a handler and the point where it strikes, if
//! interrupts are on there; it is pending otherwise, and strikes when they are switched on.
//!
//! **Mutations.** A bug is put in at this boundary, not into a copy of the lock, so that what is
//! broken is the shipped code and not something like it.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::ops::Range;
use std::rc::Rc;

use loom::sync::atomic::{AtomicBool, Ordering};
use overspin_locks::{AtomicCell, Bug, CpuId, Platform};

use crate::Mutation;
use crate::asked::{Tries, Watch, Watches};

use super::cells::{LoomU8, LoomU16, LoomU32, LoomUsize};

/// Yields, without a write in between, that are taken for a deadlock. A thread that can go on takes
/// at most some 20 steps between two writes, and loom lets the thread go on that has yielded least.
const DEADLOCK: u32 = 500;
/// Yields, without a write in between, after which an execution is unfair and not worth varying.
const UNFAIR: u32 = 12;
/// Bytes from one place of a lock in hash tables to the next.
const PLACE: usize = 16;

/// What every message about a deadlock contains.
pub const DEADLOCK_MESSAGE: &str = "deadlock: nobody can make progress";
/// What every message about an access after free contains.
pub const FREED_MESSAGE: &str = "access to a freed lock";

/// Where an interrupt strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A look in vain while spinning.
    Spin,
    /// Just before the latch is cleared.
    Clear,
    /// Just before the sleep.
    Poll,
}

type Deferred = Box<dyn FnOnce()>;

struct Cpu {
    latch: AtomicBool,
    newest_latch: Cell<bool>,
    irqs_on: Cell<bool>,
    /// Handlers that run on it, one over the other.
    level: Cell<usize>,
    tries: Tries,
    irq: RefCell<Option<(Point, Deferred)>>,
    spurious_wakes: Cell<u32>,
    weak_failures: Cell<u32>,
    /// It is in [`Platform::poll`], and its latch was clear.
    polls: Cell<bool>,
    /// What a late clear or registration will do at the next sleep.
    deferred: RefCell<Vec<Deferred>>,
    /// The last thing this CPU did was to clear its latch: the next fence is the waiter's.
    cleared: Cell<bool>,
    /// The last thing this CPU counted was its leaving the slow path.
    leaving: Cell<bool>,
    /// Address at which it sleeps in [`Platform::wait`], 0 if it does not. The look at the cell and
    /// the going to sleep are one step, as under the kernel's lock on the queue.
    waits_at: Cell<usize>,
}

/// What one execution of a model has besides the lock.
pub struct World {
    /// What is wrong in it.
    pub mutation: Mutation,
    cpus: Vec<Cpu>,
    yields: Cell<u32>,
    watch: Rc<Watch>,
    /// Set by a test that frees its lock: exchanged by the free and before each access, so that loom
    /// knows that the two do not commute. A load will not do: loom's reduction remembers only the
    /// last access of a cell, and that is the freeing thread's own.
    free_probe: RefCell<Option<Rc<AtomicBool>>>,
    freed: RefCell<Option<Range<usize>>>,
    /// NUMA nodes, over which the CPUs are dealt in turn.
    numa_nodes: Cell<usize>,
    /// The clock: its time, and how far each look at it advances it, in nanoseconds.
    time: Cell<u64>,
    clock_step: Cell<u64>,
    /// Set by a test whose lock asks who is preempted: the answer, for all CPUs alike. Read relaxed,
    /// so that after a change each reader may or may not have heard of it.
    preempted: RefCell<Option<Rc<AtomicBool>>>,
    /// Addresses of the locks that are in a hash table, in the order in which they came to it.
    places: RefCell<Vec<usize>>,
}

impl Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("mutation", &self.mutation)
            .field("cpus", &self.cpus.len())
            .finish_non_exhaustive()
    }
}

thread_local! {
    // loom runs all threads of a model on one system thread, so they share this.
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

loom::thread_local! {
    static CPU: Cell<CpuId> = Cell::new(0);
}

/// The world of this execution.
///
/// # Panics
/// Outside of a model.
pub fn world() -> Rc<World> {
    WORLD.with_borrow(|world| Rc::clone(world.as_ref().expect("World::install was not called")))
}

/// Makes the calling thread a CPU.
pub fn set_cpu(cpu: CpuId) {
    CPU.with(|id| id.set(cpu));
}

impl World {
    /// Starts an execution. Call it first in each model.
    pub fn install(cpus: usize, mutation: Mutation) {
        let cpu = |_| Cpu {
            latch: AtomicBool::new(false),
            newest_latch: Cell::new(false),
            irqs_on: Cell::new(true),
            level: Cell::new(0),
            tries: Tries::default(),
            irq: RefCell::new(None),
            spurious_wakes: Cell::new(0),
            weak_failures: Cell::new(0),
            polls: Cell::new(false),
            deferred: RefCell::new(Vec::new()),
            cleared: Cell::new(false),
            leaving: Cell::new(false),
            waits_at: Cell::new(0),
        };
        WORLD.set(Some(Rc::new(Self {
            mutation,
            cpus: (0..cpus).map(cpu).collect(),
            yields: Cell::new(0),
            watch: Rc::default(),
            free_probe: RefCell::new(None),
            freed: RefCell::new(None),
            numa_nodes: Cell::new(1),
            time: Cell::new(0),
            clock_step: Cell::new(0),
            preempted: RefCell::new(None),
            places: RefCell::default(),
        })));
    }

    /// How many CPUs there are.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    fn here(&self) -> &Cpu {
        &self.cpus[LoomPlatform::cpu_id()]
    }

    /// An interrupt for this CPU.
    pub fn arm(&self, point: Point, handler: impl FnOnce() + 'static) {
        *self.here().irq.borrow_mut() = Some((point, Box::new(handler)));
    }

    /// This CPU's next `count` sleeps end for no reason.
    pub fn wake_spuriously(&self, count: u32) {
        self.here().spurious_wakes.set(count);
    }

    /// This CPU's next `count` weak exchanges fail for no reason.
    pub fn fail_weakly(&self, count: u32) {
        self.here().weak_failures.set(count);
    }

    /// Whether a weak exchange fails for no reason now.
    pub(super) fn takes_weak_failure(&self) -> bool {
        if self.watch.is_calm() {
            return false;
        }
        let left = &self.here().weak_failures;
        let fails = left.get() > 0;
        left.set(left.get().saturating_sub(1));
        fails
    }

    /// Whether `cpu` sleeps until its latch is set.
    pub fn polls(&self, cpu: CpuId) -> bool {
        self.cpus[cpu].polls.get()
    }

    /// Deals the CPUs over so many NUMA nodes, in turn.
    pub fn deal_over_nodes(&self, numa_nodes: usize) {
        self.numa_nodes.set(numa_nodes);
    }

    /// Each look at the clock finds it so many nanoseconds later. It stands still otherwise.
    pub fn advance_clock_by(&self, nanoseconds: u64) {
        self.clock_step.set(nanoseconds);
    }

    /// From now on every CPU is said to be preempted, or not to be.
    pub fn say_preempted(&self, preempted: bool) {
        let cell = self.preempted.borrow_mut().get_or_insert_default().clone();
        cell.swap(preempted, Ordering::Relaxed);
    }

    /// This test will free its lock.
    pub fn expect_free(&self) {
        *self.free_probe.borrow_mut() = Some(Rc::new(AtomicBool::new(false)));
    }

    /// From now on nobody may touch what is there.
    ///
    /// # Panics
    /// If [`World::expect_free`] was not called.
    pub fn free<T>(&self, value: &T) {
        let probe = self.free_probe.borrow().clone().expect("World::expect_free comes first");
        probe.swap(true, Ordering::Relaxed);
        let start = std::ptr::from_ref(value).addr();
        *self.freed.borrow_mut() = Some(start..start + size_of::<T>());
    }

    /// Every access to a cell is wrapped in this.
    pub fn access<T, R>(&self, cell: &T, access: impl FnOnce() -> R) -> R {
        self.watch.count();
        let probe = self.free_probe.borrow().clone();
        if let Some(probe) = probe {
            probe.swap(false, Ordering::Relaxed);
        }
        // loom may switch threads before the access itself, so the check comes after it.
        let result = access();
        let freed = self.freed.borrow();
        let hit = freed.as_ref().is_some_and(|it| it.contains(&std::ptr::from_ref(cell).addr()));
        assert!(!hit, "{FREED_MESSAGE}");
        result
    }

    /// Somebody wrote something.
    pub fn progress(&self) {
        self.yields.set(0);
    }

    /// Lets others go on until `due`; see "Waiting". At least once, so that loom shows something
    /// newer than before.
    pub fn wait(&self, due: impl Fn() -> bool) {
        loop {
            self.yields.set(self.yields.get() + 1);
            assert!(self.yields.get() < DEADLOCK, "{DEADLOCK_MESSAGE}");
            if self.yields.get() == UNFAIR {
                loom::skip_branch();
            }
            loom::thread::yield_now();
            if due() {
                return;
            }
        }
    }

    /// A wait without a bound begins on this CPU.
    pub(super) fn may_wait(&self) {
        let cpu = self.here();
        cpu.tries.assert_may_wait(cpu.level.get());
    }

    /// Takes the armed interrupt, if this is its point.
    pub fn interrupt(&self, at: Option<Point>) {
        let cpu = self.here();
        if !cpu.irqs_on.get() {
            return;
        }
        let due = cpu.irq.borrow_mut().take_if(|(point, _)| at.is_none_or(|at| at == *point));
        if let Some((_, handler)) = due {
            cpu.irqs_on.set(false);
            cpu.level.set(cpu.level.get() + 1);
            handler();
            assert!(!cpu.irqs_on.get(), "an interrupt handler ends with interrupts on");
            cpu.level.set(cpu.level.get() - 1);
            cpu.irqs_on.set(true);
        }
    }

    /// Does something at the next sleep instead of now.
    pub fn defer(&self, work: impl FnOnce() + 'static) {
        self.here().deferred.borrow_mut().push(Box::new(work));
    }

    /// Notes that this CPU counted itself out of a slow path.
    pub fn counted_out(&self) {
        self.here().leaving.set(true);
    }

    /// Whether that was the last thing it did; asked once.
    pub fn take_leaving(&self) -> bool {
        self.here().leaving.take()
    }

    fn set_latch(&self, cpu: CpuId, value: bool) {
        // An exchange, not a store: see `cells` on the order of writes.
        self.cpus[cpu].latch.swap(value, Ordering::Relaxed);
        self.cpus[cpu].newest_latch.set(value);
        self.progress();
    }
}

/// The model checker. See the module documentation.
#[derive(Debug)]
pub struct LoomPlatform;

impl Platform for LoomPlatform {
    type U8 = LoomU8;
    type U16 = LoomU16;
    type U32 = LoomU32;
    type Usize = LoomUsize;
    type Slots<T: Debug + 'static> = Box<[T]>;
    type IrqState = bool;

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Box<[T]> {
        (0..len).map(init).collect()
    }

    fn cpu_id() -> CpuId {
        CPU.with(Cell::get)
    }

    fn relax() {
        world().wait(|| true);
    }

    fn fence(order: Ordering) {
        let world = world();
        let dropped = match world.mutation {
            Mutation::NoUnlockFence => !world.here().cleared.get(),
            Mutation::NoWaiterFence => world.here().cleared.get(),
            _ => false,
        };
        world.here().cleared.set(false);
        if !dropped {
            loom::sync::atomic::fence(order);
        }
    }

    fn irq_save() -> bool {
        world().here().irqs_on.replace(false)
    }

    fn irq_restore(state: bool) {
        let world = world();
        world.here().irqs_on.set(state);
        world.interrupt(None);
    }

    fn irqs_were_on(state: bool) -> bool {
        state
    }

    fn latch_clear() {
        let world = world();
        world.interrupt(Some(Point::Clear));
        let cpu = Self::cpu_id();
        if world.mutation == Mutation::LateClear {
            world.defer(move || self::world().set_latch(cpu, false));
        } else {
            world.set_latch(cpu, false);
        }
        world.here().cleared.set(true);
    }

    fn latch_set() {
        let world = world();
        if world.mutation != Mutation::NoPickupSet {
            world.set_latch(Self::cpu_id(), true);
        }
    }

    fn latch_test() -> bool {
        world().here().latch.load(Ordering::Relaxed)
    }

    fn poll() {
        let world = world();
        let deferred = world.here().deferred.take();
        deferred.into_iter().for_each(|work| work());
        world.interrupt(Some(Point::Poll));
        while !Self::latch_test() {
            let spurious = &world.here().spurious_wakes;
            if spurious.get() > 0 {
                spurious.set(spurious.get() - 1);
                return;
            }
            world.may_wait();
            let here = world.here();
            here.polls.set(true);
            world.wait(|| here.newest_latch.get());
            here.polls.set(false);
        }
    }

    fn kick(cpu: CpuId) {
        world().set_latch(cpu, true);
    }

    fn wait(cell: &LoomU32, value: u32) {
        let world = world();
        // The kernel looks under a lock that the waker takes too: it sees what was written before
        // the wake that it missed. A read-modify-write reads the newest value.
        if cell.fetch_add(0, Ordering::Relaxed) != value {
            return;
        }
        let here = world.here();
        here.waits_at.set(std::ptr::from_ref(cell).addr());
        let spurious = &here.spurious_wakes;
        if spurious.get() > 0 {
            spurious.set(spurious.get() - 1);
            here.waits_at.set(0);
            return;
        }
        world.may_wait();
        world.wait(|| here.waits_at.get() == 0);
    }

    fn wake_one(address: *const LoomU32) {
        let world = world();
        // A wake is a point where the checker may switch, and nothing that the lock can order by.
        world.here().latch.load(Ordering::Relaxed);
        if let Some(cpu) = world.cpus.iter().find(|cpu| cpu.waits_at.get() == address.addr()) {
            cpu.waits_at.set(0);
            world.progress();
        }
    }

    fn seeded(bug: Bug) -> bool {
        world().mutation == Mutation::Seeded(bug)
    }

    fn ctx_level() -> usize {
        let world = world();
        if world.mutation == Mutation::OneContext { 0 } else { world.here().level.get() }
    }

    fn numa_node() -> usize {
        Self::cpu_id() % world().numa_nodes.get()
    }

    fn preempted(_: CpuId) -> bool {
        let cell = world().preempted.borrow().clone();
        cell.is_some_and(|cell| cell.load(Ordering::Relaxed))
    }

    fn place(lock: usize, _table: usize) -> usize {
        let world = world();
        let mut places = world.places.borrow_mut();
        let nth = places.iter().position(|address| *address == lock).unwrap_or_else(|| {
            places.push(lock);
            places.len() - 1
        });
        nth * PLACE
    }

    fn now() -> u64 {
        let world = world();
        world.time.set(world.time.get() + world.clock_step.get());
        world.time.get()
    }
}

impl Watches for LoomPlatform {
    fn irqs_on() -> bool {
        world().here().irqs_on.get()
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
        let me = Self::cpu_id();
        set_cpu(cpu);
        let result = work();
        set_cpu(me);
        result
    }
}
