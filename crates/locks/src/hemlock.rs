//! Hemlock: a queue lock without queue nodes. Strictly first come, first served.
//!
//! A CPU has one word, `grant`, for all the locks that it holds. A waiter spins on its predecessor's
//! `grant` until it reads there the address of the lock that it wants.
//!
//! | `tail` | State |
//! |---|---|
//! | `NIL` | free, the idle state |
//! | n | n is the last of holder and waiters |
//!
//! | `grant` of n | State |
//! |---|---|
//! | 0 | nothing handed over; the idle state |
//! | L | n has released L, and the next waiter has not yet taken it |
//!
//! **Acknowledgement.** The new holder sets `grant` back to 0, and the old holder waits for that
//! before it leaves. Otherwise a release of another lock could overwrite the grant before it is read,
//! and the waiter would wait for ever.
//!
//! **Order.** The swap of `tail` releases: a waiter that finds a CPU there also finds that CPU's
//! `grant` to be 0. Otherwise it would take an old grant of the same lock for its own, and enter.
//!
//! **Which CPU.** A handler may release a lock while the context that it interrupted waits for an
//! acknowledgement. So each of the four contexts of a CPU has its own `grant`.
//!
//! **Properties.** Fair: no CPU overtakes. A waiter spins on the line of its predecessor. No other
//! waiter uses that line unless the predecessor holds several locks that are waited for. A hand-over
//! costs one miss, and one more until the old holder can go on. While the holder is descheduled, all
//! waiters burn. A descheduled waiter stops all waiters behind it, and *the releaser too*, until it
//! runs and acknowledges. Uncontended: two read-modify-writes. After the hand-over `unlock` uses only
//! the address of the lock.
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Dice and Kogan, "Hemlock: compact and scalable mutual exclusion", SPAA 2021, the basic
//! form. Deviations: a `grant` per context; `waits_for`, which only [`RawLock::is_contended`] reads
//! and which has its own line.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{ContextNodes, MAX_CONTEXT_CPUS, NIL};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

/// `grant` and `waits_for` that name no lock.
const NO_LOCK: usize = 0;

/// Properties of [`Hemlock`].
pub const INFO: LockInfo = LockInfo {
    name: "hemlock",
    brief: "Queue without nodes, one word per CPU for all its locks: first come, first served.",
    source: "Dice and Kogan, SPAA 2021",
    fair: true,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: MAX_CONTEXT_CPUS,
    size: 4,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Hemlock<P: Platform> {
    tail: P::U32,
}

/// What all locks of a system share, for each context of each CPU.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    grants: ContextNodes<P, P::Usize>,
    /// The lock that the context waits for. Only the context writes it.
    waits_for: ContextNodes<P, P::Usize>,
}

/// Proof of an acquisition: the context that acquired.
#[derive(Debug)]
pub struct Token(u32);

impl<P: Platform> Hemlock<P> {
    /// The value that names this lock in a `grant`. It is only ever compared.
    fn key(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Waits until `before` grants this lock to `me`, and acknowledges.
    #[cold]
    fn wait(&self, shared: &Shared<P>, me: u32, before: u32) {
        let (key, grant) = (self.key(), shared.grants.get(before));
        shared.waits_for.get(me).store(key, Relaxed);
        // Acquires: pairs with the grant in `unlock`.
        let _ = grant.spin_until(|granted| granted == key, Budget::Forever);
        // Release: the owner's next grant comes after this.
        grant.store(NO_LOCK, Release);
        shared.waits_for.get(me).store(NO_LOCK, Relaxed);
    }
}

impl<P: Platform> RawLock<P> for Hemlock<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        let words = || ContextNodes::new(cpus, || P::Usize::new(NO_LOCK));
        Ok(Shared { grants: words(), waits_for: words() })
    }

    fn new() -> Self {
        Self { tail: P::U32::new(NIL) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        let me = shared.grants.mine();
        // Acquire, for a lock found free: pairs with the release in `unlock`. Release: see "Order".
        let before = self.tail.swap(me, AcqRel);
        if before != NIL {
            self.wait(shared, me, before);
        }
        Token(me)
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        let me = shared.grants.mine();
        // Orders as in `lock`.
        self.tail.compare_exchange(NIL, me, AcqRel, Relaxed).is_ok().then_some(Token(me))
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(me): Token) {
        // Release: what the holder did happens before the next acquisition; also for the grant.
        if self.tail.compare_exchange(me, NIL, Release, Relaxed).is_ok() {
            return;
        }
        let grant = shared.grants.get(me);
        grant.store(self.key(), Release);
        // See "Acknowledgement".
        let await_acknowledgement =
            || _ = grant.spin_until(|granted| granted == NO_LOCK, Budget::Forever);
        right!(await_acknowledgement(), P, H1HemlockUnlockWithoutAcknowledgement, ());
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.tail.load(Relaxed) != NIL
    }

    /// The last in the queue waits if it is not the holder.
    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let tail = self.tail.load(Relaxed);
        tail != NIL && shared.waits_for.get(tail).load(Relaxed) == self.key()
    }
}
