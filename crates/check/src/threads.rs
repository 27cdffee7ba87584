//! Operating system threads as CPUs, for the [suite](crate::suite).
//!
//! Cells are core atomics with two additions for tests. An unbounded spin yields to the operating system, so that
//! FIFO locks finish in reasonable time with more threads than cores. A CPU is marked as waiting after one failed
//! look of an unbounded spin, or after several bounded spins that fail. A test can therefore build a queue one
//! waiter at a time. There are no interrupts.
//!
//! **Nothing hangs.** A [`System`] fails if no CPU acquires for [`STUCK`] although one is in `lock`, `try_lock` or
//! `unlock`. It also fails if one of its CPUs panics. From then on each access to a cell and each wait panics with
//! the first fault, so that all threads end. A thread that loops without accessing a cell does not end;
//! [`Check::run`](crate::Check::run) leaves it behind.

use std::cell::RefCell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use overspin_locks::{AtomicCell, Budget, CpuId, Platform, RawLock, Waiters, WrappedCell};

use crate::{TRY_WAITS_MESSAGE, panic_message};

/// Evaluations between two yields. The number is small, because a test gains nothing from spinning.
const SPINS_PER_YIELD: u32 = 32;

/// A CPU counts as waiting after this many consecutive bounded spins that fail. A lock that spins for a while and
/// then waits in another way needs fewer: swift-mutex pauses 20 times.
const ROUNDS_OF_A_WAITER: u32 = 24;

/// A system fails if no CPU acquires for this long while a CPU is in `lock`, `try_lock` or `unlock`.
pub const STUCK: Duration = Duration::from_secs(10);

/// The interval of that check, and the longest sleep before a CPU checks whether the test has failed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// CPUs yield while they spin.
impl Waiters for StdPlatform {
    fn access() {
        assert_alive();
    }

    fn spin<C: AtomicCell>(
        cell: &C,
        until: impl Fn(C::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<C::Value, C::Value> {
        if let Budget::Iterations(_) = budget {
            let result = cell.spin_until(until, budget);
            here(|system, cpu| system.cpus[cpu].count_round(result.is_err()));
            return result;
        }
        loop {
            match cell.spin_until(until, Budget::Iterations(SPINS_PER_YIELD)) {
                Ok(value) => return Ok(value),
                Err(_) => {
                    here(System::looked_in_vain);
                    thread::yield_now();
                }
            }
        }
    }
}

/// Locks a mutex even if it is poisoned: a CPU that finds that the test has failed panics, possibly with a mutex
/// held.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The position of a CPU, as far as a test tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    #[default]
    Elsewhere,
    Lock,
    TryLock,
    Inside,
    Unlock,
}

impl Stage {
    const ALL: [Self; 5] = [Self::Elsewhere, Self::Lock, Self::TryLock, Self::Inside, Self::Unlock];

    fn in_words(self) -> &'static str {
        match self {
            Self::Elsewhere => "does something else",
            Self::Lock => "is in lock",
            Self::TryLock => "is in try_lock",
            Self::Inside => "has the lock",
            Self::Unlock => "is in unlock",
        }
    }
}

/// The state of one CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// A [`Stage`].
    stage: AtomicU8,
    /// Its work has ended.
    done: AtomicBool,
    latch: Mutex<bool>,
    latch_set: Condvar,
    waiting: AtomicBool,
    /// Bounded spins that failed since the last one that succeeded.
    rounds: AtomicU32,
    /// The address it waits at in `Platform::wait`, 0 if none. Guarded by `System::waits`.
    waits_at: AtomicUsize,
}

impl Cpu {
    fn stage(&self) -> Stage {
        Stage::ALL[usize::from(self.stage.load(Ordering::Relaxed))]
    }

    /// Counts a bounded spin. Yields after one that failed, as an unbounded spin does.
    fn count_round(&self, in_vain: bool) {
        if !in_vain {
            self.rounds.store(0, Ordering::Relaxed);
            return;
        }
        if self.rounds.fetch_add(1, Ordering::Relaxed) >= ROUNDS_OF_A_WAITER {
            self.waiting.store(true, Ordering::Relaxed);
        }
        thread::yield_now();
    }
}

/// The CPUs of one test. Each test has its own, so that tests can run side by side.
#[derive(Debug)]
pub struct System {
    cpus: Vec<Cpu>,
    acquisitions: AtomicUsize,
    /// The first fault.
    fault: OnceLock<String>,
    /// Held while a waiter looks at its cell and goes to sleep, and while a waker looks for a waiter.
    waits: Mutex<()>,
    woken: Condvar,
}

impl System {
    /// Creates this many CPUs, none of which runs anything yet.
    pub fn new(cpus: usize) -> Arc<Self> {
        let system = Arc::new(Self {
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            acquisitions: AtomicUsize::new(0),
            fault: OnceLock::new(),
            waits: Mutex::new(()),
            woken: Condvar::new(),
        });
        let watched = Arc::downgrade(&system);
        thread::spawn(move || watch(&watched));
        system
    }

    /// Runs `work` on `cpu`: the calling thread is this CPU meanwhile. If `work` panics, the test fails on all
    /// CPUs.
    pub fn run<R>(self: &Arc<Self>, cpu: CpuId, work: impl FnOnce() -> R) -> R {
        let (mut work, mut result) = (Some(work), None);
        self.run_as(cpu, &mut || result = work.take().map(|work| work()));
        result.expect("it ran, or it panicked")
    }

    /// What [`System::run`] does, compiled once for all kinds of work.
    fn run_as(self: &Arc<Self>, cpu: CpuId, work: &mut dyn FnMut()) {
        let before = HERE.replace(Some((Arc::clone(self), cpu)));
        self.cpus[cpu].done.store(false, Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(work));
        self.cpus[cpu].done.store(true, Ordering::Relaxed);
        HERE.set(before);
        if let Err(panic) = result {
            self.fail(panic_message(&*panic));
            resume_unwind(panic)
        }
    }

    /// Records that the test has failed, unless it had before.
    fn fail(&self, fault: String) {
        _ = self.fault.set(fault);
        // Wake the sleepers, so that they notice.
        let guard = locked(&self.waits);
        self.woken.notify_all();
        drop(guard);
    }

    fn assert_alive(&self) {
        if let Some(fault) = self.fault.get() {
            // During a panic, a destructor may look at a cell.
            assert!(thread::panicking(), "{fault}");
        }
    }

    /// `cpu` has looked without success and waits, which a `try_lock` must not do.
    fn looked_in_vain(&self, cpu: CpuId) {
        let here = &self.cpus[cpu];
        assert!(here.stage() != Stage::TryLock, "{TRY_WAITS_MESSAGE}");
        here.waiting.store(true, Ordering::Relaxed);
        self.assert_alive();
    }

    /// Describes where each CPU is.
    fn standing(&self) -> String {
        let one = |(number, cpu): (usize, &Cpu)| {
            let what = match cpu.stage() {
                Stage::Elsewhere if cpu.done.load(Ordering::Relaxed) => "has ended",
                stage => stage.in_words(),
            };
            format!("CPU {number} {what}")
        };
        self.cpus.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    }

    fn is_busy(&self) -> bool {
        let busy = |cpu: &Cpu| matches!(cpu.stage(), Stage::Lock | Stage::TryLock | Stage::Unlock);
        self.cpus.iter().any(busy)
    }

    /// Runs `work` on all CPUs, each in its own thread.
    ///
    /// # Panics
    /// If a CPU panics, with the message of the first.
    pub fn run_all(self: &Arc<Self>, work: impl Fn(CpuId) + Sync) {
        self.run_all_as(&work);
    }

    fn run_all_as(self: &Arc<Self>, work: &(dyn Fn(CpuId) + Sync)) {
        thread::scope(|scope| {
            let start = |cpu| scope.spawn(move || self.run(cpu, || work(cpu)));
            let threads: Vec<_> = (0..self.cpus.len()).map(start).collect();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    }

    /// Waits until `cpu` is known to wait, or has ended.
    ///
    /// # Panics
    /// If the test fails meanwhile.
    pub fn await_waiting(&self, cpu: CpuId) {
        let cpu = &self.cpus[cpu];
        while !cpu.waiting.load(Ordering::Relaxed) && !cpu.done.load(Ordering::Relaxed) {
            self.assert_alive();
            thread::yield_now();
        }
    }
}

/// Fails a system that makes no progress.
fn watch(system: &Weak<System>) {
    let (mut seen, mut looks) = (0, 0);
    loop {
        // Count looks, not time: a machine that stands still for a while has not failed.
        thread::sleep(LOOK_EVERY);
        let Some(system) = system.upgrade() else { return };
        let acquisitions = system.acquisitions.load(Ordering::Relaxed);
        if acquisitions != seen || !system.is_busy() {
            (seen, looks) = (acquisitions, 0);
            continue;
        }
        looks += 1;
        if looks * LOOK_EVERY >= STUCK {
            let seconds = STUCK.as_secs();
            system.fail(format!("no acquisition for {seconds} s: {}", system.standing()));
            return;
        }
    }
}

/// Calls `lock` and tells the system of this CPU.
pub fn lock<L: RawLock<StdPlatform>>(lock: &L, shared: &L::Shared) -> L::Token {
    enter(Stage::Lock);
    let token = lock.lock(shared);
    acquired();
    token
}

/// Calls `lock_irqsave`, likewise.
pub fn lock_irqsave<L: RawLock<StdPlatform>>(lock: &L, shared: &L::Shared) -> L::Token {
    enter(Stage::Lock);
    let (token, ()) = lock.lock_irqsave(shared);
    acquired();
    token
}

/// Calls `try_lock`, likewise. It must not wait.
pub fn try_lock<L: RawLock<StdPlatform>>(lock: &L, shared: &L::Shared) -> Option<L::Token> {
    enter(Stage::TryLock);
    let token = lock.try_lock(shared);
    match token {
        Some(_) => acquired(),
        None => enter(Stage::Elsewhere),
    }
    token
}

/// Calls `unlock`, likewise.
pub fn unlock<L: RawLock<StdPlatform>>(lock: &L, shared: &L::Shared, token: L::Token) {
    enter(Stage::Unlock);
    lock.unlock(shared, token);
    enter(Stage::Elsewhere);
}

fn enter(stage: Stage) {
    here(|system, cpu| system.cpus[cpu].stage.store(stage as u8, Ordering::Relaxed));
}

fn acquired() {
    here(|system, _| system.acquisitions.fetch_add(1, Ordering::Relaxed));
    enter(Stage::Inside);
}

/// Panics if the test has failed. Does nothing on a thread outside of a system.
fn assert_alive() {
    HERE.with_borrow(|here| {
        if let Some((system, _)) = here {
            system.assert_alive();
        }
    });
}

thread_local! {
    static HERE: RefCell<Option<(Arc<System>, CpuId)>> = const { RefCell::new(None) };
}

fn here<R>(f: impl FnOnce(&System, CpuId) -> R) -> R {
    HERE.with_borrow(|here| {
        let (system, cpu) = here.as_ref().expect("a lock was used outside of System::run");
        f(system, *cpu)
    })
}

/// Threads as CPUs. See the module documentation.
#[derive(Debug)]
pub struct StdPlatform;

impl Platform for StdPlatform {
    type U8 = WrappedCell<AtomicU8, Self>;
    type U16 = WrappedCell<AtomicU16, Self>;
    type U32 = WrappedCell<AtomicU32, Self>;
    type Usize = WrappedCell<AtomicUsize, Self>;
    type Slots<T: Debug + 'static> = Box<[T]>;
    type IrqState = ();

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Box<[T]> {
        (0..len).map(init).collect()
    }

    fn cpu_id() -> CpuId {
        here(|_, cpu| cpu)
    }

    fn relax() {
        std::hint::spin_loop();
    }

    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }

    fn irq_save() {}

    fn irq_restore((): ()) {}

    fn irqs_were_on((): ()) -> bool {
        false
    }

    fn latch_clear() {
        here(|system, cpu| *locked(&system.cpus[cpu].latch) = false);
    }

    fn latch_set() {
        Self::kick(Self::cpu_id());
    }

    fn latch_test() -> bool {
        here(|system, cpu| *locked(&system.cpus[cpu].latch))
    }

    fn poll() {
        here(|system, cpu| {
            let here = &system.cpus[cpu];
            let mut latch = locked(&here.latch);
            while !*latch {
                system.looked_in_vain(cpu);
                let slept = here.latch_set.wait_timeout(latch, LOOK_EVERY);
                latch = slept.unwrap_or_else(PoisonError::into_inner).0;
            }
        });
    }

    fn kick(cpu: CpuId) {
        here(|system, _| {
            let cpu = &system.cpus[cpu];
            *locked(&cpu.latch) = true;
            cpu.latch_set.notify_one();
        });
    }

    fn wait(cell: &Self::U32, value: u32) {
        here(|system, cpu| {
            let here = &system.cpus[cpu];
            let mut guard = locked(&system.waits);
            if cell.load(Ordering::Relaxed) != value {
                return;
            }
            here.waits_at.store(std::ptr::from_ref(cell).addr(), Ordering::Relaxed);
            system.looked_in_vain(cpu);
            while here.waits_at.load(Ordering::Relaxed) != 0 {
                guard = system.woken.wait(guard).unwrap_or_else(PoisonError::into_inner);
                system.assert_alive();
            }
        });
    }

    fn wake_one(address: *const Self::U32) {
        here(|system, _| {
            let guard = locked(&system.waits);
            let at = |cpu: &&Cpu| cpu.waits_at.load(Ordering::Relaxed) == address.addr();
            if let Some(cpu) = system.cpus.iter().find(at) {
                cpu.waits_at.store(0, Ordering::Relaxed);
                system.woken.notify_all();
            }
            drop(guard);
        });
    }
}
