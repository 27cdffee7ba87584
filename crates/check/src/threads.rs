//! Operating system threads as CPUs, for the [suite](crate::suite).
//!
//! Cells are core atomics, with two differences that only tests want: an unbounded spin yields to
//! the operating system, so that FIFO locks end in time with more threads than cores; and a CPU
//! that has looked once and found nothing, or several times with a bound, is marked as waiting, so
//! that a test can build a queue one waiter at a time. There are no interrupts.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use overspin_locks::{AtomicCell, Budget, CpuId, Platform};

/// Evaluations between two yields: short, for a test gains nothing from spinning.
const SPINS_PER_YIELD: u32 = 32;

/// Bounded spins in vain, one after another, after which a CPU is said to wait: more than a lock needs
/// that spins for a while and then waits otherwise.
const ROUNDS_OF_A_WAITER: u32 = 16;

/// A core atomic that yields while it spins.
#[derive(Debug)]
#[repr(transparent)]
pub struct Yielding<A>(A);

impl<A: AtomicCell> AtomicCell for Yielding<A> {
    type Value = A::Value;

    fn new(value: A::Value) -> Self {
        Self(A::new(value))
    }

    fn load(&self, order: Ordering) -> A::Value {
        self.0.load(order)
    }

    fn store(&self, value: A::Value, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.swap(value, order)
    }

    fn compare_exchange(
        &self,
        current: A::Value,
        new: A::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<A::Value, A::Value> {
        self.0.compare_exchange(current, new, success, failure)
    }

    fn fetch_add(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_add(value, order)
    }

    fn fetch_sub(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_sub(value, order)
    }

    fn fetch_or(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_or(value, order)
    }

    fn fetch_and(&self, value: A::Value, order: Ordering) -> A::Value {
        self.0.fetch_and(value, order)
    }

    fn spin_until(
        &self,
        until: impl Fn(A::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<A::Value, A::Value> {
        if let Budget::Iterations(_) = budget {
            let result = self.0.spin_until(until, budget);
            here(|system, cpu| system.cpus[cpu].count_round(result.is_err()));
            return result;
        }
        loop {
            match self.0.spin_until(until, Budget::Iterations(SPINS_PER_YIELD)) {
                Ok(value) => return Ok(value),
                Err(_) => {
                    here(|system, cpu| system.cpus[cpu].waiting.store(true, Ordering::Relaxed));
                    thread::yield_now();
                }
            }
        }
    }
}

/// What the platform keeps per CPU.
#[derive(Debug, Default)]
struct Cpu {
    latch: Mutex<bool>,
    latch_set: Condvar,
    waiting: AtomicBool,
    /// Bounded spins in vain since one that was not.
    rounds: AtomicU32,
    /// Address it waits at in `Platform::wait`, 0 if none. Guarded by `System::waits`.
    waits_at: AtomicUsize,
}

impl Cpu {
    /// Counts a bounded spin. Yields after one in vain, as others do.
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
    /// Held while a waiter looks at its cell and goes to sleep, and while a waker looks for one.
    waits: Mutex<()>,
    woken: Condvar,
}

impl System {
    /// So many CPUs, none of which runs anything yet.
    pub fn new(cpus: usize) -> Arc<Self> {
        Arc::new(Self {
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            waits: Mutex::new(()),
            woken: Condvar::new(),
        })
    }

    /// Runs `work` on `cpu`, that is, makes the calling thread this CPU for so long.
    pub fn run<R>(self: &Arc<Self>, cpu: CpuId, work: impl FnOnce() -> R) -> R {
        let before = HERE.replace(Some((Arc::clone(self), cpu)));
        let result = work();
        HERE.set(before);
        result
    }

    /// Runs `work` on all CPUs, each in a thread of its own.
    ///
    /// # Panics
    /// If one of them does, with what the first said.
    pub fn run_all(self: &Arc<Self>, work: impl Fn(CpuId) + Sync) {
        thread::scope(|scope| {
            let start = |cpu| {
                let work = &work;
                scope.spawn(move || self.run(cpu, || work(cpu)))
            };
            let threads: Vec<_> = (0..self.cpus.len()).map(start).collect();
            for thread in threads {
                if let Err(panic) = thread.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });
    }

    /// Waits until `cpu` is known to wait for something.
    pub fn await_waiting(&self, cpu: CpuId) {
        while !self.cpus[cpu].waiting.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }
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
    type U8 = Yielding<AtomicU8>;
    type U16 = Yielding<AtomicU16>;
    type U32 = Yielding<AtomicU32>;
    type Usize = Yielding<AtomicUsize>;
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
        here(|system, cpu| *system.cpus[cpu].latch.lock().unwrap() = false);
    }

    fn latch_set() {
        Self::kick(Self::cpu_id());
    }

    fn latch_test() -> bool {
        here(|system, cpu| *system.cpus[cpu].latch.lock().unwrap())
    }

    fn poll() {
        here(|system, cpu| {
            let cpu = &system.cpus[cpu];
            cpu.waiting.store(true, Ordering::Relaxed);
            let latch = cpu.latch.lock().unwrap();
            drop(cpu.latch_set.wait_while(latch, |set| !*set).unwrap());
        });
    }

    fn kick(cpu: CpuId) {
        here(|system, _| {
            let cpu = &system.cpus[cpu];
            *cpu.latch.lock().unwrap() = true;
            cpu.latch_set.notify_one();
        });
    }

    fn wait(cell: &Self::U32, value: u32) {
        here(|system, cpu| {
            let cpu = &system.cpus[cpu];
            let mut guard = system.waits.lock().unwrap();
            if cell.load(Ordering::Relaxed) != value {
                return;
            }
            cpu.waits_at.store(std::ptr::from_ref(cell).addr(), Ordering::Relaxed);
            cpu.waiting.store(true, Ordering::Relaxed);
            while cpu.waits_at.load(Ordering::Relaxed) != 0 {
                guard = system.woken.wait(guard).unwrap();
            }
        });
    }

    fn wake_one(address: *const Self::U32) {
        here(|system, _| {
            let guard = system.waits.lock().unwrap();
            let at = |cpu: &&Cpu| cpu.waits_at.load(Ordering::Relaxed) == address.addr();
            if let Some(cpu) = system.cpus.iter().find(at) {
                cpu.waits_at.store(0, Ordering::Relaxed);
                system.woken.notify_all();
            }
            drop(guard);
        });
    }
}
