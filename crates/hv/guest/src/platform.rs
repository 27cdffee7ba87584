//! The platform of locks in a real vCPU.
//!
//! A lock of the kernel belongs to vCPUs: a waiter that sleeps makes its vCPU sleep. A lock of user mode belongs to tasks:
//! each is a CPU of its own to the lock, after the vCPUs, and a waiter that sleeps leaves its vCPU to other tasks.

use crate::{cpu, upcall, waiting, world};
use alloc::boxed::Box;
use alloc::vec::Vec;
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

/// Lets this vCPU sleep until it is kicked.
fn poll() {
    let page = cpu::page();
    // The kernel's own timer, if it has one, comes in time all the same.
    let upcalls = page.upcalls.load(Ordering::Relaxed);
    if upcalls & event::TIMER == 0 {
        page.deadline.store(NEVER, Ordering::Relaxed);
    }
    cpu::hypercall(port::POLL, 0);
    // A poll ends early if an event is pending that nobody clears.
    page.pending.fetch_and(event::KICK | upcalls, Ordering::Relaxed);
}

/// Whether the running code is of user mode.
#[inline(always)]
fn is_user() -> bool {
    cpu::current().user.load(Ordering::Relaxed)
}

impl Platform for Guest {
    type U8 = WrappedCell<AtomicU8, Self>;
    type U16 = WrappedCell<AtomicU16, Self>;
    type U32 = WrappedCell<AtomicU32, Self>;
    type Usize = WrappedCell<AtomicUsize, Self>;
    type Slots<T: Debug + 'static> = Box<[T]>;
    /// Whether upcalls were masked.
    type IrqState = bool;

    // As a loop: of `collect` there would be a thousand lines of code for each type.
    fn slots<T: Debug + 'static>(len: usize, mut init: impl FnMut(usize) -> T) -> Box<[T]> {
        let mut slots = Vec::with_capacity(len);
        for i in 0..len {
            slots.push(init(i));
        }
        slots.into_boxed_slice()
    }

    #[inline(always)]
    fn cpu_id() -> CpuId {
        if is_user() { cpu::current().locker } else { cpu::id() }
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
        cpu::mask()
    }

    fn irq_restore(was_masked: bool) {
        upcall::restore(was_masked);
    }

    fn irqs_were_on(was_masked: bool) -> bool {
        !was_masked
    }

    fn latch_clear() {
        if is_user() {
            return cpu::current().latch.store(false, Ordering::SeqCst);
        }
        cpu::page().pending.fetch_and(!event::KICK, Ordering::Relaxed);
    }

    fn latch_set() {
        if is_user() {
            return cpu::current().latch.store(true, Ordering::SeqCst);
        }
        cpu::page().pending.fetch_or(event::KICK, Ordering::Relaxed);
    }

    fn latch_test() -> bool {
        if is_user() {
            return cpu::current().latch.load(Ordering::SeqCst);
        }
        cpu::page().pending.load(Ordering::Relaxed) & event::KICK != 0
    }

    fn poll() {
        waiting::begins();
        waiting::sleeps();
        if is_user() {
            return world().iter().for_each(|world| world.park(|| true));
        }
        poll();
    }

    fn kick(cpu: CpuId) {
        waiting::kicks();
        let vcpus = cpu::info().vcpus.load(Ordering::Relaxed) as usize;
        if let Some(task) = cpu.checked_sub(vcpus) {
            return world().iter().for_each(|world| world.unpark(Some(task as u32)));
        }
        cpu::hypercall(port::SEND, cpu as u32 | event::KICK.trailing_zeros() << 24);
    }

    fn wait(cell: &Self::U32, value: u32) {
        waiting::begins();
        let address = core::ptr::from_ref(cell) as u64;
        if is_user() {
            waiting::sleeps();
            let still = || cell.load(Ordering::SeqCst) == value;
            return world().iter().for_each(|world| world.task_waits_at(address, still));
        }
        let me = cpu::id();
        cpu::page().pending.fetch_and(!event::KICK, Ordering::Relaxed);
        // A waker changes the cell and then looks for sleepers; a sleeper registers and then looks at the cell.
        // With both pairs in one order, one of them sees the other.
        sleeps_on(me).store(address, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if cell.load(Ordering::SeqCst) == value {
            waiting::sleeps();
            // If the kick came before this call, the call returns at once.
            poll();
        }
        sleeps_on(me).store(0, Ordering::SeqCst);
    }

    fn wake_one(address: *const Self::U32) {
        fence(Ordering::SeqCst);
        let address = address as u64;
        if is_user() {
            waiting::kicks();
            return world().iter().for_each(|world| world.wake_at(address));
        }
        let vcpus = cpu::info().vcpus.load(Ordering::Relaxed) as usize;
        // Each waker begins after itself, so that no vCPU is always first.
        for id in (1..=vcpus).map(|i| (cpu::id() + i) % vcpus) {
            let word = sleeps_on(id);
            if word.load(Ordering::SeqCst) == address
                && word.compare_exchange(address, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            {
                waiting::kicks();
                cpu::hypercall(port::SEND, id as u32 | event::KICK.trailing_zeros() << 24);
                return;
            }
        }
    }

    fn preempted(cpu: CpuId) -> bool {
        // Programs see nothing of the host.
        if is_user() {
            return false;
        }
        cpu::page_of(cpu).preempted.load(Ordering::Relaxed) != 0
    }

    fn preemption_pending() -> bool {
        !is_user() && cpu::page().notice.load(Ordering::Relaxed) != 0
    }

    fn time_to_preempt() -> Option<u64> {
        if is_user() {
            return None;
        }
        let end = cpu::page().slice_end.load(Ordering::Relaxed);
        (end != NEVER).then(|| end.saturating_sub(cpu::now()))
    }

    fn yield_now() {
        waiting::begins();
        if is_user() {
            return world().iter().for_each(|world| world.yield_task());
        }
        cpu::hypercall(port::YIELD, 0);
    }

    fn now() -> u64 {
        cpu::now()
    }
}
