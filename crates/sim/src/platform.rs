//! The simulated [`Platform`]: cells whose operations cost time, and the CPU operations of a guest.

use crate::engine::{Engine, engine};
use crate::guest::TaskRef;
use crate::memory::Access;
use crate::watch::{Any, Condition, Equal, Watch};
use overspin_host::block::Block;
use overspin_locks::{AtomicCell, Budget, CpuId, Platform};
use overspin_scenario::{NS, Picos};
use overspin_sched::RunState;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::Ordering;

/// A cell in simulated memory. It has the size and alignment of its value. Every operation is
/// sequentially consistent: the simulator explores timing, the model checker explores orderings.
#[repr(transparent)]
pub struct SimCell<T>(Cell<T>);

impl<T: Copy + std::fmt::Debug> std::fmt::Debug for SimCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.get().fmt(f)
    }
}

/// The simulated host as lock algorithms see it.
#[derive(Debug)]
pub struct SimPlatform;

/// An array in simulated memory.
#[derive(Debug)]
pub struct SimSlots<T: 'static>(&'static [T]);

impl<T> Deref for SimSlots<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.0
    }
}

macro_rules! sim_cell {
    ($($int:ty),*) => {$(
        impl AtomicCell for SimCell<$int> {
            type Value = $int;
            fn new(value: $int) -> Self {
                Self(Cell::new(value))
            }
            #[inline(always)]
            fn load(&self, _: Ordering) -> $int {
                engine().access(&self.0, Access::Load, Cell::get)
            }
            #[inline(always)]
            fn store(&self, value: $int, _: Ordering) {
                engine().access(&self.0, Access::Store, |c| c.set(value));
            }
            #[inline(always)]
            fn swap(&self, value: $int, _: Ordering) -> $int {
                engine().access(&self.0, Access::Atomic, |c| c.replace(value))
            }
            #[inline(always)]
            fn compare_exchange(
                &self, current: $int, new: $int, _: Ordering, _: Ordering,
            ) -> Result<$int, $int> {
                engine().access(&self.0, Access::Atomic, |c| {
                    let old = c.get();
                    if old == current { c.set(new); Ok(old) } else { Err(old) }
                })
            }
            #[inline(always)]
            fn fetch_add(&self, value: $int, _: Ordering) -> $int {
                engine().access(&self.0, Access::Atomic, |c| c.replace(c.get().wrapping_add(value)))
            }
            #[inline(always)]
            fn fetch_sub(&self, value: $int, _: Ordering) -> $int {
                engine().access(&self.0, Access::Atomic, |c| c.replace(c.get().wrapping_sub(value)))
            }
            #[inline(always)]
            fn fetch_or(&self, value: $int, _: Ordering) -> $int {
                engine().access(&self.0, Access::Atomic, |c| c.replace(c.get() | value))
            }
            #[inline(always)]
            fn fetch_and(&self, value: $int, _: Ordering) -> $int {
                engine().access(&self.0, Access::Atomic, |c| c.replace(c.get() & value))
            }
            #[inline(always)]
            fn spin_until(
                &self, until: impl Fn($int) -> bool + Copy, budget: Budget,
            ) -> Result<$int, $int> {
                self.spin_for(Any(until), &mut time_of(budget))
            }
            #[inline(always)]
            fn spin_until_eq<K: Copy + Eq + Into<u64>>(
                &self, part: impl Fn($int) -> K + Copy, wanted: K, budget: Budget,
            ) -> Result<$int, $int> {
                self.spin_for(Equal { part, wanted }, &mut time_of(budget))
            }
            #[inline(always)]
            fn spin_until_within(
                &self, until: impl Fn($int) -> bool + Copy, left: &mut u32,
            ) -> Result<$int, $int> {
                let mut time = iteration().saturating_mul((*left).into());
                let result = self.spin_for(Any(until), &mut time);
                // Each look costs at least one iteration, even one that succeeds at once. Otherwise
                // a lock that always looks free but is never obtained would never use its budget up.
                let spent = left.saturating_sub((time / iteration().max(Picos(1))) as u32).max(1);
                *left = if result.is_ok() { left.saturating_sub(spent) } else { 0 };
                result
            }
        }

        impl SimCell<$int> {
            /// Spins until the condition holds or `time` of CPU time is used up; subtracts the time
            /// used from `time`.
            #[inline(always)]
            fn spin_for(
                &self, until: impl Condition<$int>, time: &mut Picos,
            ) -> Result<$int, $int> {
                // Only a look that ends the wait is charged here. If the condition does not hold, the
                // first look is part of the watching, which the line's next writer pays for.
                if until.holds(self.0.get()) {
                    let value = self.load(Ordering::Acquire);
                    if until.holds(value) {
                        return Ok(value);
                    }
                }
                let engine = engine();
                let watch = Watch::new(&self.0, &until);
                let line = engine.machine.memory.line_of(&self.0);
                let stands_back = engine.stand_back();
                let result = loop {
                    // Interrupts may have run since a hit: report the value that is there now.
                    let value = self.0.get();
                    if until.holds(value) {
                        break Ok(value);
                    }
                    if *time == Picos::ZERO {
                        break Err(value);
                    }
                    engine.spin(line, watch, time);
                };
                engine.ask_again(stands_back);
                result
            }
        }
    )*};
}

/// The number of a task as the CPU of a lock of user mode: see `MakeBank::cpus`.
#[cold]
#[inline(never)]
fn cpu_of(task: TaskRef) -> CpuId {
    (engine().guest(task.guest).vcpus + task.number()) as usize
}

impl Engine {
    /// The latch of the code that runs: its vCPU's, or in user mode its task's.
    fn latch<T>(&self, of: impl FnOnce(&Cell<bool>) -> T) -> T {
        match self.user_task() {
            None => of(&self.cpu().irqs.latch),
            Some(task) => of(&task.latch),
        }
    }
}

/// The time that a spin with this budget may take.
#[inline(always)]
fn time_of(budget: Budget) -> Picos {
    match budget {
        Budget::Forever => Picos::MAX,
        Budget::Iterations(n) => iteration().saturating_mul(n.into()),
    }
}

/// The time of one iteration of a spin loop.
fn iteration() -> Picos {
    engine().scenario.host.costs.spin_iteration
}

sim_cell!(u8, u16, u32, usize);

impl Platform for SimPlatform {
    type U8 = SimCell<u8>;
    type U16 = SimCell<u16>;
    type U32 = SimCell<u32>;
    type Usize = SimCell<usize>;
    type Slots<T: std::fmt::Debug + 'static> = SimSlots<T>;
    type IrqState = bool;

    fn slots<T: std::fmt::Debug + 'static>(
        len: usize,
        init: impl FnMut(usize) -> T,
    ) -> SimSlots<T> {
        SimSlots(engine().machine.memory.place_array(len, init))
    }
    #[inline]
    fn cpu_id() -> CpuId {
        let engine = engine();
        match engine.user_task() {
            None => engine.cpu().index as usize,
            Some(task) => cpu_of(task),
        }
    }
    fn relax() {
        let engine = engine();
        let stands_back = engine.stand_back();
        engine.pause();
        engine.ask_again(stands_back);
    }
    fn fence(_: Ordering) {
        let engine = engine();
        engine.burn(engine.scenario.host.costs.fence);
    }
    fn irq_save() -> bool {
        engine().cpu().irqs.on.replace(false)
    }
    fn irq_restore(state: bool) {
        engine().set_irqs(state);
    }
    fn irqs_were_on(state: bool) -> bool {
        state
    }
    fn latch_clear() {
        engine().latch(|latch| latch.set(false));
    }
    fn latch_set() {
        engine().latch(|latch| latch.set(true));
    }
    fn latch_test() -> bool {
        engine().latch(Cell::get)
    }
    fn poll() {
        let engine = engine();
        engine.begin_wait();
        let guest = engine.guest(engine.cpu().guest);
        guest.count_slow_path(engine);
        if let Some(task) = engine.user_task() {
            let stands_back = engine.stand_back();
            guest.park(engine, task, || true);
            engine.ask_again(stands_back);
            return;
        }
        engine.block(Block::Poll);
        engine.take_interrupts();
    }
    fn kick(cpu: CpuId) {
        let engine = engine();
        let guest = engine.guest(engine.cpu().guest);
        guest.count_kick(engine);
        match cpu.checked_sub(guest.vcpus as usize) {
            None => engine.kick(&engine.vcpus[guest.first as usize + cpu]),
            Some(task) => guest.unpark(engine, Some(guest.task(task))),
        }
    }
    fn wait(cell: &SimCell<u32>, value: u32) {
        let engine = engine();
        engine.begin_wait();
        let guest = engine.guest(engine.cpu().guest);
        guest.count_slow_path(engine);
        let address = std::ptr::from_ref(cell) as usize;
        let still = || cell.load(Ordering::Acquire) == value;
        match engine.user_task() {
            None => guest.wait_at(engine, address, still),
            Some(task) => {
                let stands_back = engine.stand_back();
                guest.task_waits_at(engine, task, address, still);
                engine.ask_again(stands_back);
            }
        }
    }
    fn wake_one(address: *const SimCell<u32>) {
        let engine = engine();
        let guest = engine.guest(engine.cpu().guest);
        guest.count_kick(engine);
        guest.wake_at(engine, address as usize);
    }
    fn ctx_level() -> usize {
        engine().cpu().irqs.nesting.get()
    }
    fn numa_node() -> usize {
        let engine = engine();
        let host = &engine.scenario.host;
        (engine.cpu().run.pcpu.get() / (host.threads * host.cores)) as usize
    }
    /// The host keeps a byte per vCPU that guests read, like the one in KVM's steal-time record.
    fn preempted(cpu: CpuId) -> bool {
        let engine = engine();
        // Programs cannot see it.
        if engine.user_task().is_some() {
            return false;
        }
        engine.burn(engine.scenario.host.costs.cache_hit);
        let v = engine.guest(engine.cpu().guest).first + cpu as u32;
        engine.runstate(v) == RunState::Runnable
    }
    /// The host exports the end of the slice at each dispatch, for the I-spinlock.
    fn time_to_preempt() -> Option<u64> {
        let engine = engine();
        if engine.user_task().is_some() {
            return None;
        }
        engine.burn(engine.scenario.host.costs.cache_hit);
        let end = engine.slice_end(engine.cpu().run.pcpu.get());
        (end != Picos::MAX).then(|| end.saturating_sub(engine.now()) / NS)
    }
    fn yield_now() {
        let engine = engine();
        engine.begin_wait();
        match engine.user_task() {
            None => engine.yield_now(),
            Some(task) => {
                let stands_back = engine.stand_back();
                engine.guest(task.guest).yield_task(engine);
                engine.ask_again(stands_back);
            }
        }
    }
    /// A task of user mode sleeps in a system call. A kernel cannot sleep with a spinlock that it takes: it pauses.
    fn nap(nanos: u64) {
        let engine = engine();
        let Some(task) = engine.user_task() else { return Self::relax() };
        engine.begin_wait();
        let guest = engine.guest(task.guest);
        guest.count_slow_path(engine);
        let stands_back = engine.stand_back();
        guest.nap(engine, task, nanos * NS);
        engine.ask_again(stands_back);
    }
    fn now() -> u64 {
        engine().now() / NS
    }
}
