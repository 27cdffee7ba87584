//! Queued spinlock: four bytes that hold a byte lock, a place for one waiter, and the end of a queue.
//!
//! | `tail` | `PENDING` | `LOCKED` | State |
//! |---|---|---|---|
//! | 0 | 0 | 0 | free, the idle state |
//! | 0 | 0 | 1 | held, no waiters |
//! | 0 | 1 | 1 | held; one waiter spins on the word |
//! | 0 | 1 | 0 | free; the waiter is about to take it |
//! | n | any | 1 | held; the first of the queue spins on the word, n is the last |
//! | n | 1 | 0 | free; the pending waiter is about to take it, or a newcomer is about to withdraw `PENDING` |
//! | n | 0 | 0 | free; the first of the queue is about to take it |
//!
//! The first waiter sets `PENDING` and needs no node. The others queue, each spinning on its own node;
//! the first of the queue waits until holder and pending waiter are gone. A CPU needs a node only while
//! it waits, so there is one per CPU and context.
//!
//! **Who may set `LOCKED`.** While `PENDING` is set, only the pending waiter; else, while there is a
//! `tail`, only the first of the queue; else any CPU, but only by an exchange that finds the word 0. A
//! newcomer sets `PENDING` blindly; if it had no right to, it withdraws the bit and queues. If the first
//! of the queue loses its exchange to such a newcomer, it sees a successor arrive.
//!
//! **Order.** A waiter makes its node before the exchange of `tail` that publishes the node; that
//! exchange releases. An acquisition is a load that sees the lock free, and then our relaxed write. So a
//! caller that asks whether the lock is held, in order to decide something, needs the fence in
//! `is_locked`. Without it, the caller could see the lock free when it has just been taken.
//!
//! **Properties.** First come, first served in the queue; the pending waiter and newcomers pass only an
//! *empty* queue. Each waiter but two spins on its own line. While the holder is descheduled, all waiters
//! burn; a descheduled first waiter stops all others, as with MCS. Uncontended: two read-modify-writes.
//! The release is the last access to the lock. The C original releases by a plain store of a byte; here
//! every access is to the whole word.
//!
//! **Interrupts** stay off from before the queue: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Waiman Long and Peter Zijlstra; Linux from 4.2, `kernel/locking/qspinlock.c`, and its
//! test-and-set fallback for guests without paravirtual support, `virt_spin_lock`. Deviations: nodes are
//! found by context, not by a count of nested uses; `tail` is a node's number.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::bug::right;
use crate::deadline::attempt_until;
use crate::nodes::{ContextNodes, MAX_CONTEXT_CPUS, NIL, await_link};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, LockUntil, Meanwhile};
use crate::{Platform, RawLock, Tuning};

pub(crate) const FREE: u32 = 0;
pub(crate) const LOCKED: u32 = 1;
/// All bits of the byte that says whether the lock is held.
pub(crate) const LOCKED_BYTE: u32 = 0xff;
pub(crate) const PENDING: u32 = 1 << 8;
pub(crate) const TAIL_SHIFT: u32 = 16;
pub(crate) const TAIL: u32 = 0xffff << TAIL_SHIFT;
pub(crate) const WAIT: u32 = 0;
pub(crate) const GRANTED: u32 = 1;

/// Wait-loop iterations before a newcomer queues that finds the lock on its way from holder to pending
/// waiter: the x86 value.
pub const DEFAULT_PENDING_LOOPS: u32 = 1 << 9;

/// Properties of [`Qspinlock`].
pub const INFO: LockInfo = LockInfo {
    name: "qspinlock",
    brief: "Queued spinlock of Linux: a byte, a pending waiter, then a queue.",
    source: "Long and Zijlstra; Linux 4.2 (kernel/locking/qspinlock.c)",
    // The pending waiter may pass a CPU that has found the lock held and not queued yet; queued waiters
    // are served in order.
    fair: true,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: MAX_CONTEXT_CPUS,
    size: 4,
};

/// Properties of [`QspinlockTas`].
pub const TAS_INFO: LockInfo = LockInfo {
    name: "qspinlock-tas",
    brief: "The form of qspinlock in a guest without paravirtual support: test-and-set.",
    source: "Zijlstra; Linux 4.2 (arch/x86/include/asm/qspinlock.h, virt_spin_lock)",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Pass,
    abortable: true,
    blocks: false,
    max_cpus: u32::MAX,
    size: 4,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct Qspinlock<P: Platform> {
    pub(crate) word: P::U32,
}

/// A waiter. Only the paravirtual form uses `state`.
#[derive(Debug)]
pub(crate) struct Node<P: Platform> {
    pub(crate) next: P::U32,
    pub(crate) granted: P::U32,
    pub(crate) state: P::U32,
}

impl<P: Platform> Node<P> {
    pub(crate) fn new() -> Self {
        Self { next: P::U32::new(NIL), granted: P::U32::new(WAIT), state: P::U32::new(0) }
    }

    /// Resets the node, as it must be before it is published.
    pub(crate) fn reset(&self) {
        // Relaxed, both: published by the exchange of `tail`.
        self.next.store(NIL, Relaxed);
        self.granted.store(WAIT, Relaxed);
    }
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    pub(crate) nodes: ContextNodes<P, Node<P>>,
    pending_loops: u32,
}

impl<P: Platform> Qspinlock<P> {
    /// Acquires the lock if no CPU holds it, wants it or waits for it; returns whether it did.
    #[inline]
    pub(crate) fn acquire_at_once(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(FREE, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// Makes the pending waiter the holder of the free lock. Relaxed: the CPU acquired when it saw the
    /// lock free.
    pub(crate) fn pending_to_locked(&self) {
        self.word.fetch_sub(PENDING - LOCKED, Relaxed);
    }

    /// Makes `id` the last of the queue; returns the last before it, or `NIL`.
    pub(crate) fn exchange_tail(&self, id: u32) -> u32 {
        let mut found = self.word.load(Relaxed);
        loop {
            let new = found & !TAIL | id << TAIL_SHIFT;
            // Release: publishes the node. Acquire: to link ourselves to the node found.
            match self.word.compare_exchange_weak(found, new, AcqRel, Relaxed) {
                Ok(old) => return old >> TAIL_SHIFT,
                Err(now) => found = now,
            }
        }
    }

    /// As the holder, ends the queue if `id` is all of it; returns whether it did. `found` is a recent
    /// value of the word.
    pub(crate) fn exchange_last_for_locked(&self, id: u32, found: u32) -> bool {
        // The whole word: another CPU may have queued behind us since. Release: the next first of the queue, which no CPU
        // grants its place, sees that a paravirtual holder has taken its entry out of the table, and inserts its own.
        let exchange = || self.word.compare_exchange(found, LOCKED, Release, Relaxed).is_ok();
        found >> TAIL_SHIFT == id
            && right!(exchange(), P, Q2QspinlockDropsTheTail, {
                self.word.swap(LOCKED, Relaxed);
                true
            })
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>) {
        if !self.lock_pending(shared) {
            self.lock_queued(shared);
        }
    }

    /// Takes the pending place, if that is free. Returns the word from before; its holder may still have the lock.
    pub(crate) fn take_pending_place(&self, pending_loops: u32) -> Option<u32> {
        // The lock is between holder and pending waiter for a moment. Wait for that to end, but not for
        // ever, because it may happen again and again.
        let budget = Budget::Iterations(pending_loops);
        let (Ok(found) | Err(found)) = self.word.spin_until(|word| word != PENDING, budget);
        if found & !LOCKED_BYTE != 0 {
            return None;
        }
        // Acquire: it may find the lock free.
        let found = self.word.fetch_or(PENDING, Acquire);
        if found & !LOCKED_BYTE != 0 {
            // The place was taken, or there is a queue. If we set the bit, no other CPU clears it.
            if right!(found & PENDING == 0, P, Q1QspinlockPendingNotUndone, false) {
                self.word.fetch_and(!PENDING, Relaxed);
            }
            return None;
        }
        Some(found)
    }

    /// Waits in the pending place, if that is free. Returns whether it has the lock.
    fn lock_pending(&self, shared: &Shared<P>) -> bool {
        let Some(found) = self.take_pending_place(shared.pending_loops) else { return false };
        if found & LOCKED_BYTE != 0 {
            // Acquires: pairs with the release in `unlock`.
            let _ = self.word.spin_until(|word| word & LOCKED_BYTE == 0, Budget::Forever);
        }
        self.pending_to_locked();
        true
    }

    fn lock_queued(&self, shared: &Shared<P>) {
        let id = shared.nodes.mine();
        let node = shared.nodes.get(id);
        node.reset();
        // The lock may be free by now.
        if self.acquire_at_once() {
            return;
        }
        let before = self.exchange_tail(id);
        right!((), P, Q4QspinlockResetAfterPublication, node.reset());
        if before != NIL {
            // Release: publishes the node to the CPU that grants.
            shared.nodes.get(before).next.store(id, Release);
            // Acquires: the next head continues what others did before us.
            let _ = node.granted.spin_until(|granted| granted == GRANTED, Budget::Forever);
        }
        // First of the queue. Acquires: pairs with the release in `unlock`.
        let gone = |word: u32| word & (LOCKED_BYTE | PENDING) == 0;
        let (Ok(found) | Err(found)) = self.word.spin_until(gone, Budget::Forever);
        if self.exchange_last_for_locked(id, found) {
            return;
        }
        // Not the last, or about to be followed: see "Who may set `LOCKED`". Relaxed: acquired above.
        self.word.fetch_or(LOCKED, Relaxed);
        let next = await_link(&node.next);
        // Release: our acquisition comes before what the next head does with the word.
        shared.nodes.get(next).granted.store(GRANTED, Release);
    }
}

impl<P: Platform> RawLock<P> for Qspinlock<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared {
            nodes: ContextNodes::new(cpus, Node::new),
            pending_loops: tuning.spin_budget.unwrap_or(DEFAULT_PENDING_LOOPS),
        })
    }

    fn new() -> Self {
        Self { word: P::U32::new(FREE) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) {
        if !self.acquire_at_once() {
            self.lock_slow(shared);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<()> {
        // Relaxed: a guess, which the exchange checks. If the lock is held, it leaves the line alone.
        (self.word.load(Relaxed) == FREE && self.acquire_at_once()).then_some(())
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared<P>, (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.word.fetch_sub(LOCKED, Release);
    }

    /// Also for a caller that holds another lock and decides by the answer: if two CPUs each take a lock
    /// and then ask for the other's, at least one of them is told.
    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        // See "Order".
        P::fence(SeqCst);
        self.word.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed) & !LOCKED_BYTE != 0
    }
}

/// The queued spinlock of a guest whose host offers no way to sleep. Its waiters do not queue, because a
/// descheduled waiter stops a queue. It keeps no record of them: `is_contended` is always false. See the
/// [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct QspinlockTas<P: Platform> {
    lock: Qspinlock<P>,
}

impl<P: Platform> QspinlockTas<P> {
    #[cold]
    fn lock_slow(&self) {
        loop {
            let word = &self.lock.word;
            let _ = word.spin_until(|word| word == FREE, Budget::Forever);
            // Acquire: pairs with the release in `unlock`.
            if word.compare_exchange_weak(FREE, LOCKED, Acquire, Relaxed).is_ok() {
                return;
            }
        }
    }

    /// See [`RawLock::LOCK_UNTIL`].
    pub fn lock_until(&self, (): &(), deadline_ns: u64) -> Option<()> {
        let acquired = attempt_until::<P>(deadline_ns, |looks| {
            let budget = Budget::Iterations(looks);
            self.lock.word.spin_until(|word| word == FREE, budget).is_ok()
                && self.lock.acquire_at_once()
        });
        acquired.then_some(())
    }
}

impl<P: Platform> RawLock<P> for QspinlockTas<P> {
    const INFO: LockInfo = TAS_INFO;
    type Shared = ();
    type Token = ();
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    fn shared(cpus: usize, _tuning: Tuning) -> Result<(), CapacityError> {
        TAS_INFO.check_capacity(cpus)
    }

    fn new() -> Self {
        Self { lock: Qspinlock::new() }
    }

    #[inline(always)]
    fn lock(&self, (): &()) {
        if !self.lock.acquire_at_once() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self, (): &()) -> Option<()> {
        // Relaxed: a guess, which the exchange checks.
        (self.lock.word.load(Relaxed) == FREE && self.lock.acquire_at_once()).then_some(())
    }

    #[inline(always)]
    fn unlock(&self, (): &(), (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.lock.word.fetch_sub(LOCKED, Release);
    }

    fn is_locked(&self, (): &()) -> bool {
        self.lock.word.load(Relaxed) != FREE
    }

    fn is_contended(&self, (): &()) -> bool {
        false
    }
}
