//! What a lock needs from the CPU it runs on, and nothing else.
//!
//! A lock algorithm in this crate is generic over [`Platform`]. Each world supplies one: real
//! threads, the model checker, the simulated host. A platform is a type, not a value: "this CPU"
//! is whatever CPU executes the call, so every function is an associated function.

use core::cell::Cell;
use core::fmt::Debug;
use core::ops::Deref;
use core::sync::atomic::Ordering;

use crate::Bug;

/// Dense number of a CPU in its system: a vCPU of one guest, or a registered thread. Starts at 0.
pub type CpuId = usize;

/// How many times [`AtomicCell::spin_until`] may evaluate its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// No limit: return only when the condition holds.
    Forever,
    /// At most this many evaluations; 0 means evaluate once.
    Iterations(u32),
}

/// One memory cell that CPUs share. The `Ordering` rules are those of [`core::sync::atomic`].
///
/// A cell has the size and alignment of its value in every world but the model checker, so that a
/// `#[repr(C)]` lock has its real layout, and shares cache lines as it would on hardware.
pub trait AtomicCell: Debug {
    /// The integer that the cell holds.
    type Value: Copy + Eq + Debug;
    /// A cell that holds `value`.
    fn new(value: Self::Value) -> Self;
    /// Reads the value.
    fn load(&self, order: Ordering) -> Self::Value;
    /// Replaces the value.
    fn store(&self, value: Self::Value, order: Ordering);
    /// Replaces the value and returns the old one.
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Writes `new` if the value is `current`; the old value, as `Ok` if it was written.
    ///
    /// # Errors
    /// The value found, if it was not `current`.
    fn compare_exchange(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
    /// [`compare_exchange`](AtomicCell::compare_exchange) that may fail for no reason, with `current` as the value
    /// found: for loops that try again, where it is cheaper on machines whose exchange is a loop of its own. The
    /// default never does.
    ///
    /// # Errors
    /// The value found, if nothing was written.
    #[inline]
    fn compare_exchange_weak(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value> {
        self.compare_exchange(current, new, success, failure)
    }
    /// Adds, wrapping; returns the old value.
    fn fetch_add(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Subtracts, wrapping; returns the old value.
    fn fetch_sub(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Bitwise or; returns the old value.
    fn fetch_or(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Bitwise and; returns the old value.
    fn fetch_and(&self, value: Self::Value, order: Ordering) -> Self::Value;
    /// Loads with acquire order and relaxes between loads, until `until` holds for the value or
    /// `budget` evaluations are gone. A loop with a pause instruction natively; one event in the
    /// simulator, whatever the budget.
    ///
    /// # Errors
    /// The last value seen, if the budget ran out.
    fn spin_until(
        &self,
        until: impl Fn(Self::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<Self::Value, Self::Value>;
    /// [`spin_until`](AtomicCell::spin_until) with a budget that lasts over several calls: at most
    /// `left` evaluations, and `left` shrinks by those used; it is 0 when this fails. With 0 left
    /// it evaluates once.
    ///
    /// The default counts calls of `until`. A world that does not call it once per iteration must
    /// supply its own count.
    ///
    /// # Errors
    /// The last value seen, if nothing is left.
    fn spin_until_within(
        &self,
        until: impl Fn(Self::Value) -> bool + Copy,
        left: &mut u32,
    ) -> Result<Self::Value, Self::Value> {
        let used = Cell::new(0u32);
        let counted = |value| {
            used.set(used.get().saturating_add(1));
            until(value)
        };
        let result = self.spin_until(counted, Budget::Iterations(*left));
        *left = if result.is_ok() { left.saturating_sub(used.get()) } else { 0 };
        result
    }
}

/// A world in which locks can run. See the module documentation.
///
/// # Wait and kick
/// [`latch_clear`](Platform::latch_clear), [`latch_set`](Platform::latch_set),
/// [`latch_test`](Platform::latch_test), [`poll`](Platform::poll) and [`kick`](Platform::kick)
/// form a level latch per CPU, as a masked Xen event channel does. A kick that comes before the
/// poll makes it return at once, so no wake-up is lost between a last look at the lock and the
/// sleep. `poll` does not clear the latch and may return spuriously. The latch is an atomic. A kick releases, as a
/// call of a hypervisor or of a kernel does: a CPU that finds it in the latch, or clears it away, and then fences
/// sees what came before the kick. All else of the latch is relaxed, and a fence next to it orders it.
pub trait Platform: Sized + Debug + 'static {
    /// Cells.
    type U8: AtomicCell<Value = u8>;
    /// Cells.
    type U16: AtomicCell<Value = u16>;
    /// Cells.
    type U32: AtomicCell<Value = u32>;
    /// Cells that can hold an address. An address is only ever compared, never dereferenced.
    type Usize: AtomicCell<Value = usize>;
    /// A fixed array in memory that all CPUs of the system share, for per-CPU records.
    type Slots<T: Debug + 'static>: Deref<Target = [T]> + Debug;
    /// Interrupt state to go back to; see [`Platform::irq_save`].
    type IrqState: Copy + Debug;

    /// Makes the shared array for per-CPU records.
    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Self::Slots<T>;
    /// The CPU that executes this call. Stable while the caller is inside a lock operation.
    fn cpu_id() -> CpuId;
    /// Pause hint inside a hand-written wait loop; prefer [`AtomicCell::spin_until`].
    fn relax();
    /// Memory fence.
    fn fence(order: Ordering);
    /// Switches interrupts off on this CPU, returns the state before. No-op without interrupts.
    fn irq_save() -> Self::IrqState;
    /// Goes back to `state`; pending interrupts may be taken before this returns.
    fn irq_restore(state: Self::IrqState);
    /// Whether `state`, from [`Platform::irq_save`], had interrupts on.
    fn irqs_were_on(state: Self::IrqState) -> bool;
    /// Clears this CPU's latch.
    fn latch_clear();
    /// Sets this CPU's latch.
    fn latch_set();
    /// Reads this CPU's latch.
    fn latch_test() -> bool;
    /// Sleeps until this CPU's latch is set, or an interrupt that is on is pending, or for no
    /// reason at all. Returns at once if the latch is set.
    fn poll();
    /// Sets the latch of `cpu` and wakes it if it polls. Harmless if it does not.
    fn kick(cpu: CpuId);
    /// Sleeps while `cell` holds `value`: looks and goes to sleep in one step with respect to
    /// [`Platform::wake_one`], returns at once if the value is another, and may return for no
    /// reason. A futex, or `pv_wait`.
    fn wait(cell: &Self::U32, value: u32);
    /// Wakes one CPU that sleeps in [`Platform::wait`] on the cell at `address`, if any; the
    /// address is only compared, so the cell may be gone by now.
    fn wake_one(address: *const Self::U32);
    /// Whether paravirtual locks may sleep, where their system was `told` so. A world that can patch its
    /// code decides by a static branch instead of a load and a branch.
    #[inline(always)]
    fn paravirtual(told: bool) -> bool {
        told
    }
    /// Whether the model checker has seeded `bug` into the algorithms. False, and compiled away,
    /// in every other world.
    #[inline(always)]
    fn seeded(bug: Bug) -> bool {
        let _ = bug;
        false
    }
    /// How many contexts are nested on this CPU: 0 in a task, 1 in an interrupt handler over it, up
    /// to 3. Queue locks take their node by it.
    fn ctx_level() -> usize {
        0
    }
    /// NUMA node of this CPU; constant between lock and unlock.
    fn numa_node() -> usize {
        0
    }
    /// Hint: `cpu` wants to run and does not. Stale by nature: heuristics only, never safety. The
    /// honest default is "don't know", which reads as no.
    fn preempted(cpu: CpuId) -> bool {
        let _ = cpu;
        false
    }
    /// Hint: the host has announced that it will soon take this CPU away.
    fn preemption_pending() -> bool {
        false
    }
    /// Hint: how long this CPU may still run, in nanoseconds, if the host tells.
    fn time_to_preempt() -> Option<u64> {
        None
    }
    /// Where the lock at the address `lock` is, for a hash table of locks at the address `table`: the
    /// distance, which is the same in each run of a simulation, as addresses are not. A world that has
    /// no say over where locks lie deals out places of its own, one to each lock, so that its runs
    /// repeat.
    #[inline(always)]
    fn place(lock: usize, table: usize) -> usize {
        lock.wrapping_sub(table)
    }
    /// Gives the CPU up and stays runnable.
    fn yield_now() {
        Self::relax();
    }
    /// A monotonic clock in nanoseconds, for locks that measure or time out.
    fn now() -> u64 {
        0
    }
    /// Whether this CPU can be kicked yet: false early in boot.
    fn can_block() -> bool {
        true
    }
}
