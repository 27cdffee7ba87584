//! The state of one execution of a model, and how its CPUs wait.
//!
//! **Waiting.** After a failed look, a waiter yields until the newest value, which is kept beside
//! each cell, is one that it waits for. Only then does it look again. Otherwise loom would explore
//! two waiters that look in turn for ever while the holder never runs. This only omits looks that
//! must fail. Which value the waiter then sees, the newest or an older one, is loom's choice. After
//! some yields without a write by any CPU, the execution goes on but is no longer varied. The
//! executions without those yields cover what it could still find.
//!
//! **Deadlock.** After too many consecutive yields without a write by any CPU, no CPU can make
//! progress, and the model panics.
//!
//! **Interrupts.** A test arms one interrupt per CPU, with a handler and the point where it strikes,
//! if interrupts are on there. Otherwise it stays pending until they are switched on.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::Debug;
use std::ops::Range;
use std::rc::Rc;

use loom::sync::atomic::{AtomicBool, Ordering};
use overspin_locks::{CpuId, Note};

use crate::Mutation;
use crate::asked::{Tries, Watch};

/// Yields without a write in between that count as a deadlock. A thread that can go on takes at most
/// some 20 steps between two writes, and loom runs the thread that has yielded least.
const DEADLOCK: u32 = 500;
/// Yields, without a write in between, after which an execution is unfair and not worth varying.
const UNFAIR: u32 = 12;

/// The text that every message about a deadlock contains.
pub const DEADLOCK_MESSAGE: &str = "deadlock: nobody can make progress";
/// The text that every message about an access after free contains.
pub const FREED_MESSAGE: &str = "access to a freed lock";

/// The point where an interrupt strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// After a failed look while spinning.
    Spin,
    /// Just before the latch is cleared.
    Clear,
    /// Just before the sleep.
    Poll,
}

type Deferred = Box<dyn FnOnce()>;

#[derive(Default)]
pub(super) struct Cpu {
    pub(super) latch: AtomicBool,
    pub(super) newest_latch: Cell<bool>,
    pub(super) irqs_off: Cell<bool>,
    /// The number of nested handlers that run on it.
    pub(super) level: Cell<usize>,
    pub(super) tries: Tries,
    irq: RefCell<Option<(Point, Deferred)>>,
    pub(super) spurious_wakes: Cell<u32>,
    weak_failures: Cell<u32>,
    /// It is in [`Platform::poll`](overspin_locks::Platform::poll), and its latch was clear.
    pub(super) polls: Cell<bool>,
    /// Work that a late clear or registration does at the next sleep.
    pub(super) deferred: RefCell<Vec<Deferred>>,
    /// This CPU last cleared its latch: the next fence is the waiter's.
    pub(super) cleared: Cell<bool>,
    /// The last counting operation of this CPU was its exit from the slow path.
    leaving: Cell<bool>,
    /// The address at which it sleeps in [`Platform::wait`](overspin_locks::Platform::wait), 0 if it does not sleep. The look at the
    /// cell and falling asleep are one step, as under the kernel's lock on the queue.
    pub(super) waits_at: Cell<usize>,
    /// What it remembers.
    pub(super) note: Cell<Note>,
    /// The platform's waiter. Made at its first wait on a condition variable: other models have no use for more cells.
    pub(super) waiter: OnceCell<Rc<dyn Any>>,
}

/// The state of one execution of a model, besides the lock.
pub struct World {
    /// The mistake that this world makes.
    pub mutation: Mutation,
    pub(super) cpus: Vec<Cpu>,
    yields: Cell<u32>,
    pub(super) watch: Rc<Watch>,
    /// Set by a test that frees its lock. The free exchanges it, and each access does so first. So loom knows
    /// that the two do not commute. A load would not suffice: loom's reduction remembers only the
    /// last access of a cell, which would be the freeing thread's own.
    free_probe: RefCell<Option<Rc<AtomicBool>>>,
    freed: RefCell<Option<Range<usize>>>,
    /// The number of NUMA nodes. CPUs are distributed over them in turn.
    pub(super) numa_nodes: Cell<usize>,
    /// The clock: its time, and the nanoseconds by which each reading advances it.
    pub(super) time: Cell<u64>,
    pub(super) clock_step: Cell<u64>,
    pub(super) yield_is_dear: Cell<bool>,
    /// Set by a test whose lock asks whether CPUs are preempted: the answer for all CPUs. It is read
    /// relaxed, so after a change a reader may or may not have seen it.
    pub(super) preempted: RefCell<Option<Rc<AtomicBool>>>,
    /// Addresses of the locks that are in a hash table, in the order of arrival.
    pub(super) places: RefCell<Vec<usize>>,
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

/// The CPU that executes this call.
pub(super) fn cpu() -> CpuId {
    CPU.with(Cell::get)
}

/// Makes the calling thread a CPU.
pub fn set_cpu(cpu: CpuId) {
    CPU.with(|id| id.set(cpu));
}

impl World {
    /// Starts an execution. Call it first in each model.
    pub fn install(cpus: usize, mutation: Mutation) {
        WORLD.set(Some(Rc::new(Self {
            mutation,
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            yields: Cell::new(0),
            watch: Rc::default(),
            free_probe: RefCell::new(None),
            freed: RefCell::new(None),
            numa_nodes: Cell::new(1),
            time: Cell::new(0),
            clock_step: Cell::new(0),
            yield_is_dear: Cell::new(false),
            preempted: RefCell::new(None),
            places: RefCell::default(),
        })));
    }

    /// Returns the number of CPUs.
    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    pub(super) fn here(&self) -> &Cpu {
        &self.cpus[cpu()]
    }

    /// Arms an interrupt on this CPU.
    pub fn arm(&self, point: Point, handler: impl FnOnce() + 'static) {
        *self.here().irq.borrow_mut() = Some((point, Box::new(handler)));
    }

    /// This CPU's next `count` sleeps end spuriously.
    pub fn wake_spuriously(&self, count: u32) {
        self.here().spurious_wakes.set(count);
    }

    /// This CPU's next `count` weak exchanges fail spuriously.
    pub fn fail_weakly(&self, count: u32) {
        self.here().weak_failures.set(count);
    }

    /// Whether a weak exchange fails spuriously now.
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

    /// Distributes the CPUs over this many NUMA nodes, in turn.
    pub fn deal_over_nodes(&self, numa_nodes: usize) {
        self.numa_nodes.set(numa_nodes);
    }

    /// Each reading of the clock advances it by this much. Otherwise it stands still.
    pub fn advance_clock_by(&self, nanoseconds: u64) {
        self.clock_step.set(nanoseconds);
    }

    /// From now on a yield costs a slice.
    pub fn say_that_yields_are_dear(&self) {
        self.yield_is_dear.set(true);
    }

    /// From now on every CPU is reported as preempted, or as running.
    pub fn say_preempted(&self, preempted: bool) {
        let cell = self.preempted.borrow_mut().get_or_insert_default().clone();
        cell.swap(preempted, Ordering::Relaxed);
    }

    /// Announces that this test will free its lock.
    pub fn expect_free(&self) {
        *self.free_probe.borrow_mut() = Some(Rc::new(AtomicBool::new(false)));
    }

    /// From now on no CPU may touch `value`.
    ///
    /// # Panics
    /// If [`World::expect_free`] was not called.
    pub fn free<T>(&self, value: &T) {
        let probe = self.free_probe.borrow().clone().expect("World::expect_free comes first");
        probe.swap(true, Ordering::Relaxed);
        let start = std::ptr::from_ref(value).addr();
        *self.freed.borrow_mut() = Some(start..start + size_of::<T>());
    }

    /// Wraps every access to a cell.
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

    /// Notes that a CPU wrote something.
    pub fn progress(&self) {
        self.yields.set(0);
    }

    /// Lets other CPUs go on until `due`; see "Waiting". Yields at least once, so that loom shows
    /// something newer than before.
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

    /// Called when an unbounded wait begins on this CPU.
    pub(super) fn may_wait(&self) {
        let cpu = self.here();
        cpu.tries.assert_may_wait(cpu.level.get());
    }

    /// Takes the armed interrupt, if this is its point.
    pub fn interrupt(&self, at: Option<Point>) {
        let cpu = self.here();
        if cpu.irqs_off.get() {
            return;
        }
        let due = cpu.irq.borrow_mut().take_if(|(point, _)| at.is_none_or(|at| at == *point));
        if let Some((_, handler)) = due {
            cpu.irqs_off.set(true);
            cpu.level.set(cpu.level.get() + 1);
            handler();
            assert!(cpu.irqs_off.get(), "an interrupt handler ends with interrupts on");
            cpu.level.set(cpu.level.get() - 1);
            cpu.irqs_off.set(false);
        }
    }

    /// Postpones `work` to the next sleep.
    pub fn defer(&self, work: impl FnOnce() + 'static) {
        self.here().deferred.borrow_mut().push(Box::new(work));
    }

    /// Notes that this CPU counted itself out of a slow path.
    pub fn counted_out(&self) {
        self.here().leaving.set(true);
    }

    /// Whether that was the last counting operation of this CPU. Clears the note.
    pub fn take_leaving(&self) -> bool {
        self.here().leaving.take()
    }

    pub(super) fn set_latch(&self, cpu: CpuId, value: bool) {
        // An exchange, not a store: see `cells` on the order of writes.
        self.cpus[cpu].latch.swap(value, Ordering::Relaxed);
        self.cpus[cpu].newest_latch.set(value);
        self.progress();
    }
}
