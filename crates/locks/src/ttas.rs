//! Test-and-test-and-set with exponential backoff: a byte; a CPU that fails looks away for a while.
//!
//! | `locked` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | 1 | held |
//!
//! Each look that finds it held, and each exchange that fails, doubles the delay before the next look,
//! up to a limit. Each delay is random, between half and all of that, so that CPUs that failed
//! together do not come back together. An acquisition begins with the shortest delay.
//!
//! **Properties.** Unfair, more than a plain byte: the CPU that has waited longest looks least often,
//! and may starve. While the holder is descheduled, all waiters burn, with fewer misses. A descheduled
//! waiter does no harm. A release costs about one miss, because few waiters look at a time; but the
//! lock may stay free for up to a delay. Uncontended: one read-modify-write and a store, which is the
//! last access to the lock. The lock keeps no record of waiters: `is_contended` is always false.
//!
//! **Interrupts.** [`RawLock::lock_irqsave`] keeps them off while it waits, as `lock-byte` does.
//!
//! **Source.** Anderson, "The performance of spin lock alternatives for shared-memory
//! multiprocessors", 1990; Concurrency Kit (`ck_spinlock_fas`). Deviation: the delays suit sections of
//! a kernel's length. Published limits of 2^20 pauses suit threads.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::deadline::attempt_until;
use crate::delay::Delay;
use crate::{AtomicCell, CapacityError, LockInfo, LockUntil, Meanwhile, Platform, RawLock, Tuning};

const FREE: u8 = 0;
const HELD: u8 = 1;

/// First delay, in wait-loop iterations: less than a short critical section.
pub const DEFAULT_FIRST_DELAY: u32 = 16;
/// Longest delay, in wait-loop iterations: some tens of microseconds, like a long critical section.
pub const DEFAULT_LONGEST_DELAY: u32 = 1 << 11;

/// Properties of [`Ttas`].
pub const INFO: LockInfo = LockInfo {
    name: "ttas",
    brief: "Test-and-set byte whose waiters look less and less often.",
    source: "Anderson 1990",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Pass,
    abortable: true,
    blocks: false,
    // More CPUs than any machine has; each costs a cache line.
    max_cpus: u16::MAX as u32,
    size: 1,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct Ttas<P: Platform> {
    locked: P::U8,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    delay: Delay<P>,
    first: u32,
    longest: u32,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs, with delays from `first` to `longest` wait-loop iterations.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    pub fn new(cpus: usize, first: u32, longest: u32) -> Result<Self, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Self { delay: Delay::new(cpus), first, longest })
    }
}

impl<P: Platform> Ttas<P> {
    #[inline]
    fn acquire_at_once(&self) -> bool {
        // Looking first leaves the line shared while the lock is held. Acquire: pairs with the release
        // in `unlock`.
        self.locked.load(Relaxed) == FREE && self.locked.swap(HELD, Acquire) == FREE
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>) {
        let mut longest = shared.first;
        while !self.acquire_after_pause(shared, &mut longest) {}
    }

    /// Pauses for at most `longest`, and takes the lock if it is free then. Doubles `longest` for the
    /// next pause.
    fn acquire_after_pause(&self, shared: &Shared<P>, longest: &mut u32) -> bool {
        shared.delay.pause_up_to(*longest);
        *longest = longest.saturating_mul(2).min(shared.longest);
        self.acquire_at_once()
    }

    /// See [`RawLock::LOCK_UNTIL`]. It reads the clock between pauses.
    pub fn lock_until(&self, shared: &Shared<P>, deadline_ns: u64) -> Option<()> {
        if self.acquire_at_once() {
            return Some(());
        }
        let mut longest = shared.first;
        attempt_until::<P>(deadline_ns, |_| self.acquire_after_pause(shared, &mut longest))
            .then_some(())
    }
}

impl<P: Platform> RawLock<P> for Ttas<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(cpus, DEFAULT_FIRST_DELAY, DEFAULT_LONGEST_DELAY)
    }

    fn new() -> Self {
        Self { locked: P::U8::new(FREE) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) {
        if !self.acquire_at_once() {
            self.lock_slow(shared);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<()> {
        self.acquire_at_once().then_some(())
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared<P>, (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.locked.store(FREE, Release);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.locked.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        false
    }
}
