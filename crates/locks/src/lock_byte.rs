//! Lock-byte: one byte that all waiters test and set; no queue, no order.
//!
//! | `lock` | `spinners` | State |
//! |---|---|---|
//! | 0 | 0 | free, the idle state |
//! | 0 | n | free, n CPUs are about to try; any of them may win |
//! | 1 | 0 | held, no waiters |
//! | 1 | n | held, n CPUs wait |
//!
//! Only the holder writes 0 to `lock`. `spinners` is a statistic: no decision depends on it.
//!
//! **Order.** The exchange that takes the byte acquires, and the store that frees it releases; so
//! every critical section happens before the next. Nothing else needs an order.
//!
//! **Properties.** Unfair: the first CPU that sees the free byte wins, and a waiter may starve.
//! While the holder is descheduled, every waiter burns (lock-holder preemption). A descheduled
//! waiter does no harm, because no waiter is next. W waiters cost W misses and up to W exchanges
//! per release. One atomic read-modify-write takes the lock, and a plain store frees it. The store
//! is the last access to the lock, so the next holder may free its memory.
//!
//! **Interrupts.** [`RawLock::lock_irqsave`] keeps interrupts off while it spins. A waiter here has
//! no place in a queue, so they could be on. But this is the paravirtual byte lock of 2008, which
//! ignored the caller's flags, and so did the kernels that this lock is compared in.
//!
//! **Source.** The i386 and x86-64 spinlock of Linux up to 2.6.24, as the exchange variant with a
//! count of waiters that 2.6.27 brought back for guests (`asm-x86/spinlock.h`, "byte locks").
//! Deviations: the count is unsigned, for 255 waiters and not 127; `try_lock` compares and
//! exchanges, so that a failed try leaves the cache line alone.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::deadline::attempt_until;
use crate::{AtomicCell, Budget, CapacityError, LockInfo, LockUntil, Meanwhile};
use crate::{Platform, RawLock, Tuning};

const FREE: u8 = 0;
const HELD: u8 = 1;

/// Properties of [`LockByte`].
pub const INFO: LockInfo = LockInfo {
    name: "lock-byte",
    brief: "Test-and-set byte with a count of waiters; no order among them.",
    source: "Linux up to 2.6.24 (asm-x86/spinlock.h), and the byte locks of 2.6.27",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Pass,
    abortable: true,
    blocks: false,
    // `spinners` counts to 255. A CPU is counted only while another CPU holds the lock, or has held
    // it since; so of n CPUs at most n - 1 are counted at a time.
    max_cpus: 256,
    size: 2,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct LockByte<P: Platform> {
    lock: P::U8,
    spinners: P::U8,
}

impl<P: Platform> LockByte<P> {
    /// See [`RawLock::LOCK_UNTIL`].
    pub fn lock_until(&self, (): &(), deadline_ns: u64) -> Option<()> {
        // Acquire: pairs with the release in `unlock`.
        if self.lock.swap(HELD, Acquire) == FREE {
            return Some(());
        }
        let acquired = attempt_until::<P>(deadline_ns, |looks| {
            // As in `lock_slow`.
            self.spinners.fetch_add(1, Relaxed);
            let is_free = self.lock.spin_until(|lock| lock == FREE, Budget::Iterations(looks));
            // Even if the lock is not free: a CPU that has given up is not a waiter.
            if right!(true, P, B3LockByteGivesUpAndStaysCounted, is_free.is_ok()) {
                self.spinners.fetch_sub(1, Relaxed);
            }
            is_free.is_ok() && self.lock.swap(HELD, Acquire) == FREE
        });
        acquired.then_some(())
    }

    #[cold]
    fn lock_slow(&self) {
        loop {
            // Relaxed, here and below: a statistic, see the table.
            self.spinners.fetch_add(1, Relaxed);
            // Waits by loads alone: all waiters share the line until the release.
            let _ = self.lock.spin_until(|lock| lock == FREE, Budget::Forever);
            self.spinners.fetch_sub(1, Relaxed);
            // Acquire: pairs with the release in `unlock`.
            if self.lock.swap(HELD, Acquire) == FREE {
                return;
            }
        }
    }
}

impl<P: Platform> RawLock<P> for LockByte<P> {
    const INFO: LockInfo = INFO;
    type Shared = ();
    type Token = ();
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    fn shared(cpus: usize, _tuning: Tuning) -> Result<(), CapacityError> {
        INFO.check_capacity(cpus)
    }

    fn new() -> Self {
        Self { lock: P::U8::new(FREE), spinners: P::U8::new(0) }
    }

    #[inline(always)]
    fn lock(&self, (): &()) {
        // Acquire: pairs with the release in `unlock`.
        if self.lock.swap(HELD, Acquire) != FREE {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self, (): &()) -> Option<()> {
        // Acquire as in `lock`; a failed try learns nothing that needs an order.
        self.lock.compare_exchange(FREE, HELD, Acquire, Relaxed).ok().map(drop)
    }

    #[inline(always)]
    fn unlock(&self, (): &(), (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.lock.store(FREE, Release);
    }

    fn is_locked(&self, _shared: &Self::Shared) -> bool {
        self.lock.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Self::Shared) -> bool {
        self.spinners.load(Relaxed) != 0
    }
}
