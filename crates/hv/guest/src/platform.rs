//! The platform of locks in a real vCPU.

use crate::{cpu, upcall, waiting};
use alloc::boxed::Box;
use core::fmt::Debug;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence};
use overspin_guest_abi::{NEVER, event, port};
use overspin_locks::{AtomicCell, Budget, CpuId, Platform, Waiters, WrappedCell};

/// This guest.
#[derive(Debug)]
pub struct Guest;

/// Cells notice when a vCPU begins to wait.
impl Waiters for Guest {
    #[inline]
    fn spin<C: AtomicCell>(
        cell: &C,
        until: impl Fn(C::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<C::Value, C::Value> {
        if let value = cell.load(Ordering::Acquire)
            && until(value)
        {
            return Ok(value);
        }
        waiting::begins();
        cell.spin_until(until, budget)
    }
}

/// On which word a vCPU sleeps in [`Platform::wait`]; 0: on none.
fn sleeps_on(id: usize) -> &'static core::sync::atomic::AtomicU64 {
    &cpu::page_of(id).own[0]
}

impl Platform for Guest {
    type U8 = WrappedCell<AtomicU8, Self>;
    type U16 = WrappedCell<AtomicU16, Self>;
    type U32 = WrappedCell<AtomicU32, Self>;
    type Usize = WrappedCell<AtomicUsize, Self>;
    type Slots<T: Debug + 'static> = Box<[T]>;
    /// Whether upcalls were masked.
    type IrqState = bool;

    fn slots<T: Debug + 'static>(len: usize, init: impl FnMut(usize) -> T) -> Box<[T]> {
        (0..len).map(init).collect()
    }

    #[inline(always)]
    fn cpu_id() -> CpuId {
        cpu::id()
    }

    #[inline(always)]
    fn relax() {
        waiting::begins();
        core::hint::spin_loop();
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        fence(order);
    }

    fn irq_save() -> bool {
        let masked = &cpu::page().masked;
        let was = masked.load(Ordering::Relaxed) != 0;
        masked.store(1, Ordering::SeqCst);
        was
    }

    fn irq_restore(was_masked: bool) {
        if !was_masked {
            upcall::unmask();
        }
    }

    fn irqs_were_on(was_masked: bool) -> bool {
        !was_masked
    }

    fn latch_clear() {
        cpu::page().pending.fetch_and(!event::KICK, Ordering::Relaxed);
    }

    fn latch_set() {
        cpu::page().pending.fetch_or(event::KICK, Ordering::Relaxed);
    }

    fn latch_test() -> bool {
        cpu::page().pending.load(Ordering::Relaxed) & event::KICK != 0
    }

    fn poll() {
        waiting::begins();
        waiting::sleeps();
        cpu::page().deadline.store(NEVER, Ordering::Relaxed);
        cpu::hypercall(port::POLL, 0);
        // A poll ends early if an event is pending that nobody clears.
        cpu::page().pending.fetch_and(event::KICK | event::NOTICE, Ordering::Relaxed);
    }

    fn kick(cpu: CpuId) {
        waiting::kicks();
        cpu::hypercall(port::SEND, cpu as u32 | event::KICK.trailing_zeros() << 24);
    }

    fn wait(cell: &Self::U32, value: u32) {
        waiting::begins();
        let (me, address) = (cpu::id(), core::ptr::from_ref(cell) as u64);
        cpu::page().pending.fetch_and(!event::WAKE, Ordering::Relaxed);
        // A waker changes the cell and then looks for sleepers; a sleeper registers and then looks at the cell.
        // With both pairs in one order, one of them sees the other.
        sleeps_on(me).store(address, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if cell.load(Ordering::SeqCst) == value {
            waiting::sleeps();
            cpu::page().deadline.store(NEVER, Ordering::Relaxed);
            // If the event came before this call, the call returns at once.
            cpu::hypercall(port::BLOCK, 0);
        }
        sleeps_on(me).store(0, Ordering::SeqCst);
    }

    fn wake_one(address: *const Self::U32) {
        fence(Ordering::SeqCst);
        let address = address as u64;
        let vcpus = cpu::info().vcpus.load(Ordering::Relaxed) as usize;
        // Each waker begins after itself, so that no vCPU is always first.
        for id in (1..=vcpus).map(|i| (cpu::id() + i) % vcpus) {
            let word = sleeps_on(id);
            if word.load(Ordering::SeqCst) == address
                && word.compare_exchange(address, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            {
                waiting::kicks();
                cpu::hypercall(port::SEND, id as u32 | event::WAKE.trailing_zeros() << 24);
                return;
            }
        }
    }

    fn preempted(cpu: CpuId) -> bool {
        cpu::page_of(cpu).preempted.load(Ordering::Relaxed) != 0
    }

    fn preemption_pending() -> bool {
        cpu::page().notice.load(Ordering::Relaxed) != 0
    }

    fn time_to_preempt() -> Option<u64> {
        let end = cpu::page().slice_end.load(Ordering::Relaxed);
        (end != NEVER).then(|| end.saturating_sub(cpu::now()))
    }

    fn yield_now() {
        waiting::begins();
        cpu::hypercall(port::YIELD, 0);
    }

    fn now() -> u64 {
        cpu::now()
    }
}
