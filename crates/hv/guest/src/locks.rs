//! The locks of this guest, of the kind that its domain names, with their statistics.

use crate::platform::Guest;
use crate::{cpu, trace, upcall, waiting};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::sync::atomic::Ordering;
use overspin_guest_abi::LockStats;
use overspin_locks::{CachePadded, CapacityError, LockVisitor, Platform, RawLock, Tuning};
use overspin_workload::LockUse;

/// All locks of the guest, whatever their kind.
pub trait Bank {
    /// Acquires a lock.
    fn acquire(&self, lock: usize, how: LockUse);
    /// How the holder of a lock has taken it, as far as it matters to others: in user mode, or by the kernel.
    fn taken(&self, lock: usize) -> LockUse;
    /// Releases a lock that this vCPU, or this task in user mode, holds.
    fn release(&self, lock: usize);
}

struct Entry<L: RawLock<Guest>> {
    lock: CachePadded<L>,
    /// What the acquisition left for the release. Only the holder touches it.
    held: CachePadded<Held<L>>,
}

struct Held<L: RawLock<Guest>> {
    token: Cell<Option<L::Token>>,
    irqs: Cell<Option<bool>>,
    since: Cell<u64>,
    /// What [`stay`] returned when it was acquired. Something else at the release means that the holder was descheduled.
    stay: Cell<u64>,
    user: Cell<bool>,
}

/// A number that changes when the running code is descheduled: by the host, and in user mode by the guest. Upcalls are
/// masked.
#[inline(always)]
fn stay(user: bool) -> u64 {
    let by_guest = if user { cpu::current().preemptions.load(Ordering::Relaxed) << 32 } else { 0 };
    cpu::page().dispatches.load(Ordering::Relaxed) + by_guest
}

struct Locks<L: RawLock<Guest>> {
    shared: L::Shared,
    entries: Vec<Entry<L>>,
}

/// Makes the locks.
pub struct Make {
    /// How many.
    pub count: usize,
    /// For how many CPUs: vCPUs, and in user mode tasks.
    pub cpus: usize,
    /// Settings.
    pub tuning: Tuning,
}

impl LockVisitor<Guest> for Make {
    type Output = Result<Box<dyn Bank>, CapacityError>;

    fn visit<L: RawLock<Guest> + 'static>(self) -> Self::Output {
        let entry = |_| Entry::<L> {
            lock: CachePadded::new(L::new()),
            held: CachePadded::new(Held {
                token: Cell::new(None),
                irqs: Cell::new(None),
                since: Cell::new(0),
                stay: Cell::new(0),
                user: Cell::new(false),
            }),
        };
        let shared = L::shared(self.cpus, self.tuning)?;
        Ok(Box::new(Locks { shared, entries: (0..self.count).map(entry).collect() }))
    }
}

/// The statistics of a lock of this vCPU, or of this task in user mode.
#[inline(always)]
fn stats(lock: usize) -> &'static LockStats {
    let info = cpu::info();
    let first = info.lock_stats.load(Ordering::Relaxed) as *const LockStats;
    // SAFETY: the host has made one for each vCPU and lock, and for each task that takes locks in user mode.
    unsafe { &*first.add(Guest::cpu_id() * info.locks.load(Ordering::Relaxed) as usize + lock) }
}

impl<L: RawLock<Guest>> Bank for Locks<L> {
    #[inline]
    fn acquire(&self, lock: usize, how: LockUse) {
        let entry = &self.entries[lock];
        waiting::wants_lock(lock);
        let (token, irqs) = match how {
            LockUse::Plain | LockUse::User => (entry.lock.lock(&self.shared), None),
            LockUse::IrqSave => {
                let (token, state) = entry.lock.lock_irqsave(&self.shared);
                (token, Some(state))
            }
        };
        let user = how == LockUse::User;
        // What follows belongs to one vCPU.
        let masked = !user || cpu::mask();
        let (now, page, held) = (cpu::now(), cpu::page(), &entry.held);
        let stats = stats(lock);
        LockStats::add(&stats.acquisitions, 1);
        let wait = waiting::has_lock();
        if let Some(wait) = &wait {
            stats.waited(now.saturating_sub(wait.since));
            LockStats::add(&stats.slow_paths, wait.slept);
            LockStats::add(&page.waiting, wait.cpu);
            LockStats::add(&page.spinning, wait.cpu);
        }
        let other = held.token.replace(Some(token));
        assert!(other.is_none(), "two have lock {lock}");
        held.irqs.set(irqs);
        held.since.set(now);
        held.stay.set(stay(user));
        held.user.set(user);
        trace::acquired(now, lock as u32, wait.is_some());
        if !user {
            page.held.store(page.held.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        upcall::restore(masked);
    }

    fn taken(&self, lock: usize) -> LockUse {
        if self.entries[lock].held.user.get() { LockUse::User } else { LockUse::Plain }
    }

    #[inline]
    fn release(&self, lock: usize) {
        let (entry, stats) = (&self.entries[lock], stats(lock));
        let held = &entry.held;
        let user = held.user.get();
        let masked = !user || cpu::mask();
        let now = cpu::now();
        stats.held(now.saturating_sub(held.since.get()));
        if stay(user) != held.stay.get() {
            LockStats::add(&stats.preempted, 1);
        }
        let (token, irqs) = (held.token.take(), held.irqs.take());
        let contended = trace::releases(now, lock as u32);
        upcall::restore(masked);
        let kicks = waiting::kicks_so_far();
        if let Some(token) = token {
            entry.lock.unlock(&self.shared, token);
        }
        LockStats::add(&stats.kicks, waiting::kicks_so_far() - kicks);
        if contended {
            let masked = !user || cpu::mask();
            trace::freed(cpu::now(), lock as u32);
            upcall::restore(masked);
        }
        if user {
            return;
        }
        let page = cpu::page();
        page.held.store(page.held.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        if page.notice.load(Ordering::Relaxed) != 0 {
            upcall::give_up_if_asked();
        }
        if let Some(irqs) = irqs {
            Guest::irq_restore(irqs);
        }
    }
}
