//! FlexGuard: waiters spin in a queue until the holder or first waiter is descheduled, then sleep.
//!
//! The lock is a word, a futex with the holder's number in it. In front of it stands an MCS queue;
//! only its first waiter spins on the word. Waiters keep looking whether the holder or the first of
//! the queue has been descheduled, or whether they themselves soon will be. If so, they leave the
//! queue and sleep on the word, and the CPUs go to the holder and the first waiter.
//!
//! | `word` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | h | held by CPU h - 1, no sleepers |
//! | `SLEEPERS` + h | held by CPU h - 1, maybe with sleepers; for a moment h may be missing |
//!
//! `tail` is the last of the queue, or `NIL`; `head` is the first, as a hint.
//!
//! **The queue is not the lock.** Exclusion rests on the word alone. So a waiter may leave from the
//! middle of the queue. It then grants its successor, whether or not it has itself been granted;
//! otherwise the waiters behind it would wait for ever. The grant that it gave up comes later, into a
//! node that is idle, or in a queue again, or in the queue of another lock. The only harm is that a
//! queue has two firsts for a while.
//!
//! **No wake-up is lost.** A sleeper sets `SLEEPERS` in the same word that the unlocker exchanges, and
//! sleeps only if the word is unchanged since then. An unlocker that finds `SLEEPERS` wakes one
//! sleeper. The woken waiter sets `SLEEPERS` again before it does anything else, so the other sleepers
//! are not forgotten, whichever CPU takes the lock.
//!
//! **Properties.** In order while no CPU is descheduled, else unfair. Each waiter but the first spins
//! on its own line. Descheduled holders and waiters cost the others at most a round of 256 looks,
//! where the platform tells which CPUs are descheduled. Elsewhere waiters spin for their budget, which
//! has no limit unless it is set. Uncontended: two read-modify-writes. After the release `unlock` uses
//! only the address of the lock.
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Laforet, Sanjuan, Lozi et al., "FlexGuard: fast mutual exclusion independent of
//! subscription", SOSP 2025. Deviation: there a hook in the kernel's scheduler counts descheduled
//! holders; here waiters ask the platform about the holder and the first waiter, as a guest can.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{ContextNodes, MAX_CONTEXT_CPUS, NIL, await_link};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

const FREE: u32 = 0;
const SLEEPERS: u32 = 1 << 31;
const WAIT: u32 = 0;
const GRANTED: u32 = 1;
/// Wait-loop iterations between two looks for descheduled CPUs: some 10 µs, little against a slice.
pub const DEFAULT_POLL: u32 = 1 << 8;
/// Wait-loop iterations after which an acquisition sleeps, whichever CPUs run: in effect no limit, as
/// published. Set it where the platform cannot tell which CPUs are descheduled.
pub const DEFAULT_SPIN_BUDGET: u32 = u32::MAX;

/// Properties of [`FlexGuard`].
pub const INFO: LockInfo = LockInfo {
    name: "flexguard",
    brief: "Queue that spins until holder or next waiter is descheduled, then sleeps.",
    source: "Laforet et al., SOSP 2025",
    fair: false,
    local_spin: true,
    lhp: Meanwhile::GiveWayIfTold,
    lwp: Meanwhile::PassIfTold,
    abortable: false,
    blocks: true,
    max_cpus: MAX_CONTEXT_CPUS,
    size: 12,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct FlexGuard<P: Platform> {
    word: P::U32,
    tail: P::U32,
    head: P::U32,
}

#[derive(Debug)]
struct Node<P: Platform> {
    next: P::U32,
    granted: P::U32,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    nodes: ContextNodes<P, Node<P>>,
    /// Wait-loop iterations after which an acquisition sleeps, whichever CPUs run.
    spin_budget: u32,
    /// Wait-loop iterations between two looks for descheduled CPUs.
    poll: u32,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs, with `poll` wait-loop iterations between two looks for descheduled CPUs.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    pub fn new(cpus: usize, tuning: Tuning, poll: u32) -> Result<Self, CapacityError> {
        INFO.check_capacity(cpus)?;
        let node = || Node { next: P::U32::new(NIL), granted: P::U32::new(WAIT) };
        Ok(Self {
            nodes: ContextNodes::new(cpus, node),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
            poll,
        })
    }
}

impl<P: Platform> FlexGuard<P> {
    /// The value that this CPU writes into the word as the holder.
    #[inline]
    fn mark() -> u32 {
        P::cpu_id() as u32 + 1
    }

    #[inline]
    fn acquire_at_once(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(FREE, Self::mark(), Acquire, Relaxed).is_ok()
    }

    /// Whether spinning is useless: the budget has nothing `left`, the holder or the first waiter is
    /// descheduled, or this CPU soon will be.
    fn should_sleep(&self, left: u32) -> bool {
        if !P::can_block() {
            return false;
        }
        let holder = self.word.load(Relaxed) & !SLEEPERS;
        let head = self.head.load(Relaxed);
        left == 0
            || P::preemption_pending()
            || holder != 0 && P::preempted(holder as usize - 1)
            || head != NIL && P::preempted(ContextNodes::<P, Node<P>>::cpu_of(head))
    }

    /// Spins on `cell`, in rounds of `poll`, until `until` holds or until sleeping is better. Returns
    /// whether `until` holds.
    fn spin(
        &self,
        poll: u32,
        cell: &impl AtomicCell<Value = u32>,
        until: impl Fn(u32) -> bool,
        left: &mut u32,
    ) -> bool {
        loop {
            let round = poll.min(*left);
            if cell.spin_until(&until, Budget::Iterations(round)).is_ok() {
                return true;
            }
            *left -= round;
            if self.should_sleep(*left) {
                return false;
            }
        }
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>) {
        let mut left = shared.spin_budget;
        let mut slept = false;
        loop {
            if !self.should_sleep(left) && self.acquire_in_queue(shared, &mut left) {
                return;
            }
            loop {
                // Acquire: pairs with the release in `unlock`, if this takes the free lock.
                let found = self.word.fetch_or(SLEEPERS, Acquire);
                if found == FREE {
                    // While the word is not free, other CPUs only set `SLEEPERS` in it.
                    self.word.fetch_or(Self::mark(), Relaxed);
                    return;
                }
                // After setting `SLEEPERS`: see "No wake-up is lost".
                if slept && !self.should_sleep(left) {
                    break;
                }
                P::wait(&self.word, found | SLEEPERS);
                slept = true;
            }
        }
    }

    /// Queues, and spins on the word when it is the first. Returns whether it has the lock; if not, it
    /// should sleep.
    fn acquire_in_queue(&self, shared: &Shared<P>, left: &mut u32) -> bool {
        let id = shared.nodes.mine();
        let node = shared.nodes.get(id);
        node.next.store(NIL, Relaxed);
        node.granted.store(WAIT, Relaxed);
        // Release: publishes the node, so that its `next` is empty before another CPU links itself to
        // it. Acquire: to link ourselves to the node found.
        let before = self.tail.swap(id, AcqRel);
        let mut is_first = before == NIL;
        if is_first {
            self.head.store(id, Relaxed);
        } else {
            shared.nodes.get(before).next.store(id, Release);
            is_first = self.spin(shared.poll, &node.granted, |granted| granted == GRANTED, left);
        }
        let mut acquired = false;
        while is_first && !acquired && self.spin(shared.poll, &self.word, |word| word == FREE, left)
        {
            // Acquire: pairs with the release in `unlock`.
            let taken = self.word.compare_exchange_weak(FREE, Self::mark(), Acquire, Relaxed);
            acquired = taken.is_ok();
        }
        // Acquired or not, and first or not: see "The queue is not the lock".
        self.leave(shared, id, acquired);
        acquired
    }

    /// Leaves the queue and grants the next waiter in it.
    fn leave(&self, shared: &Shared<P>, id: u32, acquired: bool) {
        let node = shared.nodes.get(id);
        // Acquire: pairs with the link.
        let mut next = node.next.load(Acquire);
        if next == NIL {
            // Relaxed: a hint.
            self.head.store(NIL, Relaxed);
            // Relaxed: exclusion rests on the word, and no CPU will look at the node.
            if self.tail.compare_exchange(id, NIL, Relaxed, Relaxed).is_ok() {
                return;
            }
            next = await_link(&node.next);
        }
        self.head.store(next, Relaxed);
        // Even if it has not acquired: see "The queue is not the lock".
        if right!(true, P, G1FlexGuardLeavesWithoutGrant, acquired) {
            // Release: the next waiter finds itself in `head` as the first.
            shared.nodes.get(next).granted.store(GRANTED, Release);
        }
    }
}

impl<P: Platform> RawLock<P> for FlexGuard<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(cpus, tuning, DEFAULT_POLL)
    }

    fn new() -> Self {
        Self { word: P::U32::new(FREE), tail: P::U32::new(NIL), head: P::U32::new(NIL) }
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
        if self.word.swap(FREE, Release) & SLEEPERS != 0 {
            P::wake_one(ptr::from_ref(&self.word));
        }
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.word.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.tail.load(Relaxed) != NIL || self.word.load(Relaxed) & SLEEPERS != 0
    }
}
