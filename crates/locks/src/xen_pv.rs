//! Xen paravirtual lock of 2008: a byte; a waiter that has spun too long registers, sleeps, and is
//! kicked.
//!
//! | `lock` | `spinners` | State |
//! |---|---|---|
//! | 0 | 0 | free, the idle state |
//! | 0 | n | free; the unlocker is about to kick one of n, or all n are awake already |
//! | 1 | 0 | held; waiters, if any, still spin |
//! | 1 | n | held; n contexts sleep or are about to |
//!
//! All locks of a system share, per CPU, `waiting_on`: the address of the lock that the CPU is
//! registered for, or 0. Only its own CPU writes it. The CPU's latch comes from the platform.
//! Invariant: each count in `spinners` belongs to a context that has set its CPU's `waiting_on`. If
//! a nested context has set it to another lock, it restores it before the outer one goes on.
//!
//! **No wake-up is lost.** Waiter and unlocker each write one thing and then read what the other
//! writes:
//!
//! ```text
//! waiter                          unlocker
//! waiting_on[me] = lock           lock = 0          (release)
//! spinners += 1                   fence             (SeqCst)
//! again: clear my latch           if spinners != 0
//! fence             (SeqCst)          kick the first CPU whose waiting_on is this lock
//! if swap(lock, 1) == 0: got it
//! poll until my latch is set
//! ```
//!
//! One of the two fences is first. If the waiter's is, the unlocker sees count and registration and
//! kicks. If the unlocker's is, the waiter's exchange finds the lock free, or taken by a third CPU
//! that will in turn unlock and look. The waiter's fence stands *after* the clear, so that it also
//! orders clear and look: a waiter that wipes out a kick sees the release that came before the
//! kick. One kick is enough: the next holder unlocks the lock and looks again.
//!
//! **Nesting.** With interrupts on, a handler may wait for another lock between any two steps, and
//! so hide the outer registration for a while; a release of the outer lock then kicks no CPU. Hence
//! a nested wait always leaves the latch set: either it was kicked, or it got the lock after
//! clearing the latch, and then sets the latch itself because it found an outer registration. The
//! outer `poll` returns at once and the outer context looks at its lock again.
//!
//! **Properties.** Unfair; of the sleepers the one with the lowest CPU number is kicked. While the
//! holder is descheduled, waiters burn their spin budget and then give their CPU away. There is no
//! order, so a descheduled waiter does no harm. Uncontended: one read-modify-write; a store, a
//! fence and a load. The scan on unlock costs time proportional to the number of CPUs.
//! `is_contended` counts sleepers only.
//!
//! **Reads after release.** `unlock` reads `spinners` after it has freed the lock. In between,
//! another CPU may take and release the lock and free its memory. This is faithful to the original,
//! which was replaced without ever fixing it. Keep such a lock alive until all unlocks have
//! returned.
//!
//! **Source.** Jeremy Fitzhardinge, Linux 2.6.27 to 3.11 (`arch/x86/xen/spinlock.c`), with the two
//! fixes of its history: the nesting rule (August 2008) and the fence in unlock (2009, Yang
//! Xiaowei). Deviations: orders are explicit; the waiter's fence is after the clear, which x86 did
//! not need, because its exchange is a fence; a kicked waiter looks before it exchanges.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::{
    AtomicCell, CachePadded, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning,
};

const FREE: u8 = 0;
const HELD: u8 = 1;
/// `waiting_on` of a CPU that is registered for no lock.
const NO_LOCK: usize = 0;

/// Wait-loop iterations before going to sleep: the value of the published code and measurements.
pub const DEFAULT_SPIN_BUDGET: u32 = 1 << 10;

/// Properties of [`XenPv`].
pub const INFO: LockInfo = LockInfo {
    name: "xen-pv",
    brief: "Byte lock whose waiters spin for a while, then sleep until kicked.",
    source: "Fitzhardinge 2008; Linux 2.6.27 to 3.11 (arch/x86/xen/spinlock.c)",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::Pass,
    abortable: false,
    blocks: true,
    // 16 bits of `spinners`, for the four contexts per CPU that can nest and all wait.
    max_cpus: (u16::MAX / 4) as u32,
    size: 4,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct XenPv<P: Platform> {
    lock: P::U8,
    // A byte of padding comes before this.
    spinners: P::U16,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    /// Per CPU, on a line of its own, because the unlockers' scans read it.
    waiting_on: P::Slots<CachePadded<P::Usize>>,
    /// Wait-loop iterations before going to sleep.
    spin_budget: u32,
}

/// How a sleep ended.
#[derive(PartialEq, Eq)]
enum Woken {
    /// With the lock.
    Acquired,
    /// By a kick, perhaps one for a nested context; try again.
    Kicked,
}

impl<P: Platform> XenPv<P> {
    /// The key of this lock in `waiting_on`. Only ever compared.
    fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    #[inline]
    fn acquire_at_once(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.lock.swap(HELD, Acquire) == FREE
    }

    /// Spins and sleeps until the lock is acquired. `irqs_while_asleep` is the interrupt state to
    /// restore during sleeps; it is given if the caller had interrupts on before it switched them
    /// off.
    #[cold]
    fn lock_slow(&self, shared: &Shared<P>, irqs_while_asleep: Option<P::IrqState>) {
        loop {
            // One budget for all failed exchanges: a lock that is free now and then, but never for
            // us, is no reason to go on burning.
            let mut left = shared.spin_budget;
            while self.lock.spin_until_within(|lock| lock == FREE, &mut left).is_ok() {
                if self.acquire_at_once() {
                    return;
                }
            }
            if P::can_block() && self.sleep(shared, irqs_while_asleep) == Woken::Acquired {
                return;
            }
        }
    }

    /// Registers and sleeps until kicked, unless the lock turns out to be free.
    fn sleep(&self, shared: &Shared<P>, irqs_while_asleep: Option<P::IrqState>) -> Woken {
        let waiting_on = &shared.waiting_on[P::cpu_id()];
        // Relaxed: only this CPU writes it. A handler between these two lines, and anywhere below,
        // restores what it found.
        let outer = waiting_on.load(Relaxed);
        waiting_on.store(self.key(), Relaxed);
        // Release: a CPU that sees the count can find the registration. The wake-up rests on the
        // fence below; this release only spares the unlocker a fruitless scan.
        self.spinners.fetch_add(1, Release);
        let woken = loop {
            P::latch_clear();
            // See "No wake-up is lost". The fence is between the announcement and the last look at
            // the lock, and between the clear and that look.
            P::fence(SeqCst);
            if self.acquire_at_once() {
                if outer != NO_LOCK {
                    // See "Nesting": the clear may have wiped out the outer context's kick.
                    P::latch_set();
                }
                break Woken::Acquired;
            }
            match irqs_while_asleep {
                Some(on) => {
                    P::irq_restore(on);
                    P::poll();
                    P::irq_save();
                }
                None => P::poll(),
            }
            if P::latch_test() {
                // The latch stays set, for an outer context that may have missed its own kick.
                break Woken::Kicked;
            }
            // A spurious wake-up: look again before sleeping again.
        };
        // Relaxed, both: an unlocker that still finds us kicks a CPU that is awake, which does no
        // harm.
        self.spinners.fetch_sub(1, Relaxed);
        waiting_on.store(outer, Relaxed);
        woken
    }

    #[cold]
    fn unlock_slow(&self, shared: &Shared<P>) {
        let key = self.key();
        // Relaxed: a registration that counts is ordered by the fences, see "No wake-up is lost".
        // Finding none is no error: the waiter is awake, or an inner context hides it and will
        // leave its latch set.
        if let Some(cpu) = shared.waiting_on.iter().position(|on| on.load(Relaxed) == key) {
            P::kick(cpu);
        }
    }
}

impl<P: Platform> RawLock<P> for XenPv<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared {
            waiting_on: P::slots(cpus, |_| CachePadded::new(P::Usize::new(NO_LOCK))),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
        })
    }

    fn new() -> Self {
        Self { lock: P::U8::new(FREE), spinners: P::U16::new(0) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) {
        if !self.acquire_at_once() {
            self.lock_slow(shared, None);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<()> {
        self.acquire_at_once().then_some(())
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.lock.store(FREE, Release);
        // The unlocker's half of "No wake-up is lost".
        P::fence(SeqCst);
        // Relaxed: ordered by the fence. This is the read after release that the module warns
        // about.
        if self.spinners.load(Relaxed) != 0 {
            self.unlock_slow(shared);
        }
    }

    /// Interrupts are on during sleeps if the caller had them on: a waiter has no place in a queue,
    /// so a handler may take the same lock. They stay off while it spins.
    #[inline(always)]
    fn lock_irqsave(&self, shared: &Shared<P>) -> ((), P::IrqState) {
        let state = P::irq_save();
        if !self.acquire_at_once() {
            self.lock_slow(shared, P::irqs_were_on(state).then_some(state));
        }
        ((), state)
    }

    fn is_locked(&self, _shared: &Self::Shared) -> bool {
        self.lock.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Self::Shared) -> bool {
        self.spinners.load(Relaxed) != 0
    }
}
