//! The platform of locks in a kernel: CPUs with interrupts, where nothing sleeps.

use crate::{Machine, arena};
use core::fmt::Debug;
use core::hint::spin_loop;
use core::marker::PhantomData;
use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence,
};
use overspin_locks::{CpuId, Platform};

/// CPUs that a system can have.
pub const MAX_CPUS: usize = 64;

/// A latch for each CPU. Spinlocks do not use them. A lock whose waiters would sleep finds the kicks of others here.
static LATCHES: [AtomicBool; MAX_CPUS] = [const { AtomicBool::new(false) }; MAX_CPUS];

/// A kernel on the machine `M`.
#[derive(Debug)]
pub struct Kernel<M>(PhantomData<M>);

impl<M: Machine> Platform for Kernel<M> {
    // The cells are the machine's own atomics: `overspin-locks` implements its trait for them.
    type U8 = AtomicU8;
    type U16 = AtomicU16;
    type U32 = AtomicU32;
    type Usize = AtomicUsize;
    type Slots<T: Debug + 'static> = &'static [T];
    /// Whether interrupts were on.
    type IrqState = bool;

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> &'static [T] {
        arena::keep_slice(len, init)
    }

    #[inline(always)]
    fn cpu_id() -> CpuId {
        M::cpu()
    }

    #[inline(always)]
    fn relax() {
        spin_loop();
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        fence(order);
    }

    #[inline(always)]
    fn irq_save() -> bool {
        M::irq_save()
    }

    #[inline(always)]
    fn irq_restore(state: bool) {
        M::irq_restore(state);
    }

    fn irqs_were_on(state: bool) -> bool {
        state
    }

    fn latch_clear() {
        LATCHES[M::cpu()].store(false, Ordering::Relaxed);
    }

    fn latch_set() {
        LATCHES[M::cpu()].store(true, Ordering::Relaxed);
    }

    fn latch_test() -> bool {
        LATCHES[M::cpu()].load(Ordering::Relaxed)
    }

    /// Wakes at once without a reason, as every platform may: waiters look again.
    fn poll() {
        spin_loop();
    }

    fn kick(cpu: CpuId) {
        // Release: the trait asks for it.
        LATCHES[cpu].store(true, Ordering::Release);
    }

    /// As [`Platform::poll`].
    fn wait(_: &AtomicU32, _: u32) {
        spin_loop();
    }

    /// No CPU sleeps in [`Platform::wait`].
    fn wake_one(_: *const AtomicU32) {}

    /// Locks that ask do not try to sleep.
    fn can_block() -> bool {
        false
    }
}
