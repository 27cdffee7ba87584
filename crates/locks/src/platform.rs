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
    /// Writes `new` if the value is `current`. Returns the old value, as `Ok` if it wrote.
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
    /// Like [`compare_exchange`](AtomicCell::compare_exchange), but may fail for no reason, with `current` as the
    /// value found. It is for loops that try again, and is cheaper on machines whose exchange is itself a loop.
    /// The default never fails for no reason.
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
    /// Loads with acquire order and relaxes between loads, until `until` holds for the value or `budget`
    /// evaluations are used up. Natively this is a loop with a pause instruction; in the simulator it is one
    /// event, whatever the budget.
    ///
    /// # Errors
    /// The last value seen, if the budget ran out.
    fn spin_until(
        &self,
        until: impl Fn(Self::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<Self::Value, Self::Value>;
    /// [`spin_until`](AtomicCell::spin_until) `part` of the value is `wanted`. It is for locks where many CPUs wait for
    /// different values of one cell: a world that sees this can find the one whose value has come, without asking
    /// all of them. `part` must depend on the value alone.
    ///
    /// # Errors
    /// The last value seen, if the budget ran out.
    // Always: the default then compiles to what `spin_until` with this condition compiles to.
    #[inline(always)]
    fn spin_until_eq<K: Copy + Eq + Into<u64>>(
        &self,
        part: impl Fn(Self::Value) -> K + Copy,
        wanted: K,
        budget: Budget,
    ) -> Result<Self::Value, Self::Value> {
        self.spin_until(move |value| part(value) == wanted, budget)
    }
    /// [`spin_until`](AtomicCell::spin_until) with a budget that lasts over several calls: at most `left`
    /// evaluations. `left` shrinks by the number used; it is 0 when this fails. With 0 left it evaluates once.
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

/// What a CPU remembers about a lock from one call to the next: its last section, if that was long. Times are in
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// Address of the lock; 0 is no lock.
    pub lock: usize,
    /// When it was released, by [`Platform::now`].
    pub released: u64,
    /// How long it had been held.
    pub held: u64,
    /// For how long after the release this CPU should leave the lock to others.
    pub owed: u64,
}

/// A world in which locks can run. See the module documentation.
///
/// # Wait and kick
/// [`latch_clear`](Platform::latch_clear), [`latch_set`](Platform::latch_set),
/// [`latch_test`](Platform::latch_test), [`poll`](Platform::poll) and [`kick`](Platform::kick) form a level latch
/// per CPU, like a masked Xen event channel. A kick that comes before the poll makes the poll return at once, so
/// no wake-up is lost between a last look at the lock and the sleep. `poll` does not clear the latch and may
/// return spuriously.
///
/// The latch is an atomic. A kick releases, like a call of a hypervisor or of a kernel: a CPU that finds the kick
/// in the latch, or clears it away, and then fences, sees what came before the kick. All other accesses to the
/// latch are relaxed; a fence next to them orders them.
// A new function also goes into the lists of `forwarding.rs`.
pub trait Platform: Sized + Debug + 'static {
    /// Cell of 8 bits.
    type U8: AtomicCell<Value = u8>;
    /// Cell of 16 bits.
    type U16: AtomicCell<Value = u16>;
    /// Cell of 32 bits.
    type U32: AtomicCell<Value = u32>;
    /// Cell that can hold an address. An address is only ever compared, never dereferenced.
    type Usize: AtomicCell<Value = usize>;
    /// A fixed array in memory that all CPUs of the system share, for per-CPU records.
    type Slots<T: Debug + 'static>: Deref<Target = [T]> + Debug;
    /// Interrupt state to restore; see [`Platform::irq_save`].
    type IrqState: Copy + Debug;

    /// Makes the shared array for per-CPU records.
    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Self::Slots<T>;
    /// The CPU that executes this call. Stable while the caller is inside a lock operation.
    fn cpu_id() -> CpuId;
    /// Pause hint inside a hand-written wait loop; prefer [`AtomicCell::spin_until`].
    fn relax();
    /// Memory fence.
    fn fence(order: Ordering);
    /// Switches interrupts off on this CPU and returns the state before. Does nothing in a world without
    /// interrupts.
    fn irq_save() -> Self::IrqState;
    /// Restores `state`; pending interrupts may be taken before this returns.
    fn irq_restore(state: Self::IrqState);
    /// Whether `state`, from [`Platform::irq_save`], had interrupts on.
    fn irqs_were_on(state: Self::IrqState) -> bool;
    /// Clears this CPU's latch.
    fn latch_clear();
    /// Sets this CPU's latch.
    fn latch_set();
    /// Reads this CPU's latch.
    fn latch_test() -> bool;
    /// Sleeps until this CPU's latch is set or an enabled interrupt is pending; may also wake spuriously. Returns
    /// at once if the latch is set.
    fn poll();
    /// Sets the latch of `cpu` and wakes it if it polls. Harmless if it does not poll.
    fn kick(cpu: CpuId);
    /// Sleeps while `cell` holds `value`. The look and the start of the sleep are one step with respect to
    /// [`Platform::wake_one`]. Returns at once if the value differs, and may return spuriously. A futex, or
    /// `pv_wait`.
    fn wait(cell: &Self::U32, value: u32);
    /// [`Platform::wait`], until `deadline_ns` of [`Platform::now`] at the latest. The default is for worlds whose sleeps
    /// have no limit: it returns at once, so that its caller looks at the clock again and again.
    fn wait_until(cell: &Self::U32, value: u32, deadline_ns: u64) {
        let _ = (cell, value, deadline_ns);
        Self::relax();
    }
    /// Wakes one CPU that sleeps in [`Platform::wait`] on the cell at `address`, if there is one. The address is
    /// only compared, so the cell may no longer exist.
    fn wake_one(address: *const Self::U32);
    /// Whether paravirtual locks may sleep, where their system was `told` so. A world that can patch its code
    /// decides by a static branch instead of a load and a branch.
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
    /// How many contexts are nested on this CPU: 0 in a task, 1 in an interrupt handler over it, up to 3. Queue
    /// locks choose their node by it.
    fn ctx_level() -> usize {
        0
    }
    /// NUMA node of this CPU; constant between lock and unlock.
    fn numa_node() -> usize {
        0
    }
    /// Hint: the processor that this CPU runs on now, where CPUs move between processors, as threads do. The default is for a
    /// world where they do not, or do not know it.
    fn processor() -> usize {
        0
    }
    /// Hint: `cpu` wants to run and does not run. It may be stale: use it for heuristics only, never for safety.
    /// The default means "don't know" and returns false.
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
    /// The distance from a hash table of locks at the address `table` to the lock at the address `lock`. The
    /// distance must be the same in each run of a simulation, but addresses are not. A world that does not control
    /// where locks lie assigns each lock a place of its own, so that its runs repeat.
    #[inline(always)]
    fn place(lock: usize, table: usize) -> usize {
        lock.wrapping_sub(table)
    }
    /// Gives the CPU up; the caller stays runnable.
    fn yield_now() {
        Self::relax();
    }
    /// [`yield_now`](Platform::yield_now), unless [that is dear](Platform::yield_is_dear).
    fn yield_if_cheap() {
        Self::yield_now();
    }
    /// Hint: yields have lately cost slices, because processes compute on the same CPUs. The default means "don't
    /// know" and returns false.
    fn yield_is_dear() -> bool {
        false
    }
    /// Does nothing for about `nanos` nanoseconds; the CPU may do something else.
    fn nap(nanos: u64) {
        let _ = nanos;
        Self::relax();
    }
    /// What this CPU [remembers](Platform::remember). A world without such a memory returns the empty note.
    fn recall() -> Note {
        Note::default()
    }
    /// Keeps a note for this CPU, in place of the one that it has. The next call of any lock may replace it: use it for
    /// heuristics only, never for safety.
    fn remember(note: Note) {
        let _ = note;
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
