//! Unfair queued spinlock: waiters queue, and each of them tries to take the lock now and then, less often the
//! further back it is.
//!
//! The word is that of `qspinlock`, without its pending place:
//!
//! | `tail` | `LOCKED` | State |
//! |---|---|---|
//! | 0 | 0 | free, the idle state |
//! | 0 | 1 | held, empty queue |
//! | n | 1 | held; n is the last of the queue |
//! | n | 0 | free; the first CPU to come takes it: a newcomer, the first of the queue, or another waiter in it |
//!
//! A newcomer tries once, and then queues. The first of the queue spins on the word. The others spin on their
//! nodes. The waiter behind the first tries to take the lock after every 8 looks at its node. Each waiter further
//! back tries half as often as the one before it, but at least once in 1024 looks.
//!
//! **Who may change the queue.** Any CPU may append itself. Only a holder takes a waiter out, namely itself, when
//! it has the lock. So one CPU leaves at a time, and reads and writes `prev` and `granted` undisturbed:
//!
//! ```text
//! before:   first ... a <-> me <-> c ... tail       the first, and last:   free the tail
//! after:    first ... a <-> c ... tail              the first:             grant the first place to c
//!                                                   the last:              tail = a, a.next = none
//! ```
//!
//! A newcomer may append itself behind `me` while `me` leaves. If it finds `me` as the tail, `me` waits for its
//! link. If it finds `a`, it links itself to `a` either after `me` has written `a.next` for the last time, or
//! before. `me` erases that link only if it is still its own.
//!
//! **Order.** An exchange that acquires always takes the lock, because any CPU may come first. Later holders read
//! what a holder writes about the queue, and `unlock` publishes it. Putting the tail back to `a` releases: a
//! newcomer that finds `a` there writes `a.next` after `me` linked itself to `a`.
//!
//! **Properties.** Unfair, in favour of newcomers and of waiters at the front. Only the holder needs to run: a
//! descheduled waiter that has linked itself stops no other CPU, wherever it is. While the holder is descheduled,
//! all waiters burn. Waiters look at the word's line less often than at that of a test-and-set lock. Uncontended:
//! two read-modify-writes. The release is the last access to the lock.
//!
//! **Interrupts** stay off from before the queue: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Waiman Long: `CONFIG_PARAVIRT_UNFAIR_LOCKS` in his series "qspinlock: a 4-byte queue spinlock" of
//! 2014, and "locking/qspinlock: Enhance pvqspinlock & introduce queued unfair lock", July 2015
//! (lkml.org/lkml/2015/7/11/194), where a kernel build with 60 vCPUs on 32 CPUs takes 4m15 with it, 8m50 with
//! test-and-set and 12m20 with `pv-qspinlock-4.2`. Linux took neither. We follow the code of 2014, the only one
//! that can still be found. Deviations: intervals are numbers of looks and not masks of a loop's count;
//! [`Tuning::spin_budget`](Tuning) bounds them; a newcomer tries again if the tail changes during its exchange,
//! where the original exchanges only a byte; a first waiter that finds itself alone leaves like any other, by a
//! second exchange.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::bug::right;
use crate::nodes::{ContextNodes, MAX_CONTEXT_CPUS, NIL, await_link};
use crate::qspinlock::{FREE, GRANTED, LOCKED, LOCKED_BYTE, Qspinlock, TAIL_SHIFT, WAIT};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

/// Looks of the second in the queue at its node before it tries to take the lock: the published value.
const SHORTEST_INTERVAL: u32 = 1 << 3;
/// Looks of a waiter far back at its node before it tries to take the lock: the published value, which [`Tuning::spin_budget`] replaces.
pub const DEFAULT_LONGEST_INTERVAL: u32 = 1 << 10;

/// Properties of [`QspinlockUnfair`].
pub const INFO: LockInfo = LockInfo {
    name: "qspinlock-unfair",
    brief: "qspinlock whose waiters may take it out of turn, less often the further back.",
    source: "Long 2014 and 2015, \"queued unfair lock\" (linux-kernel list; not merged)",
    fair: false,
    // Waiters at the front look at the word almost as often as at their nodes.
    local_spin: false,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Pass,
    abortable: false,
    blocks: false,
    max_cpus: MAX_CONTEXT_CPUS,
    size: 4,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct QspinlockUnfair<P: Platform> {
    lock: Qspinlock<P>,
}

/// A waiter.
#[derive(Debug)]
struct Node<P: Platform> {
    next: P::U32,
    /// The predecessor; meaningless in the first.
    prev: P::U32,
    /// 1 in the first of the queue.
    granted: P::U32,
    /// Looks between two tries; the waiter behind doubles it.
    interval: P::U32,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    nodes: ContextNodes<P, Node<P>>,
    longest_interval: u32,
}

impl<P: Platform> Shared<P> {
    /// Looks between two tries of the waiter at `node`.
    fn interval(&self, node: &Node<P>) -> u32 {
        if self.longest_interval <= SHORTEST_INTERVAL {
            return self.longest_interval;
        }
        // Relaxed, all: hints. The predecessor may have left the queue since, or be in another.
        let before = self.nodes.get(node.prev.load(Relaxed));
        if before.granted.load(Relaxed) == GRANTED {
            SHORTEST_INTERVAL
        } else {
            self.longest_interval.min(before.interval.load(Relaxed).saturating_mul(2))
        }
    }
}

impl<P: Platform> QspinlockUnfair<P> {
    /// Takes the lock if it is free, past all waiters; returns whether it did.
    #[inline]
    fn steal(&self) -> bool {
        let word = &self.lock.word;
        let mut found = word.load(Relaxed);
        while found & LOCKED_BYTE == 0 {
            // Acquire: pairs with the release in `unlock`.
            match word.compare_exchange_weak(found, found | LOCKED, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => found = now,
            }
        }
        false
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>) {
        if self.steal() {
            return;
        }
        let id = shared.nodes.mine();
        let node = shared.nodes.get(id);
        // Relaxed, all: published by the exchange of `tail`.
        node.next.store(NIL, Relaxed);
        node.granted.store(WAIT, Relaxed);
        node.interval.store(SHORTEST_INTERVAL, Relaxed);
        let before = self.lock.exchange_tail(id);
        if before == NIL {
            // Relaxed: holders know by our exchange above; for the waiter behind us it is a hint.
            node.granted.store(GRANTED, Relaxed);
        } else {
            // Relaxed: published by the link.
            node.prev.store(before, Relaxed);
            // Release: publishes the node to CPUs that leave the queue before us, and grant.
            shared.nodes.get(before).next.store(id, Release);
        }
        let first = before == NIL || !self.steal_from_the_queue(shared, node);
        if first {
            self.lock_as_first();
        }
        self.leave(shared, id, node, first);
    }

    /// Waits in the queue. Returns whether it has the lock; if not, it is the first of the queue.
    fn steal_from_the_queue(&self, shared: &Shared<P>, node: &Node<P>) -> bool {
        loop {
            let interval = shared.interval(node);
            node.interval.store(interval, Relaxed);
            let granted = |granted| granted == GRANTED;
            if node.granted.spin_until(granted, Budget::Iterations(interval)).is_ok() {
                return false;
            }
            if self.steal() {
                return true;
            }
            P::relax();
        }
    }

    fn lock_as_first(&self) {
        loop {
            let is_free = |word: u32| word & LOCKED_BYTE == 0;
            let _ = self.lock.word.spin_until(is_free, Budget::Forever);
            if right!(self.steal(), P, U1QspinlockUnfairFirstTakesBlindly, {
                self.lock.word.fetch_or(LOCKED, Acquire);
                true
            }) {
                return;
            }
        }
    }

    /// As the holder, takes itself out of the queue, wherever it is. It is at the head if `first` is true, or if it
    /// became the first while it took the lock out of turn.
    fn leave(&self, shared: &Shared<P>, id: u32, node: &Node<P>, first: bool) {
        // Relaxed, both, and all writes below except the grant: see "Order".
        let is_granted = || node.granted.load(Relaxed) == GRANTED;
        let first = first || right!(is_granted(), P, U2QspinlockUnfairMissesItsGrant, false);
        let prev = if first { NIL } else { node.prev.load(Relaxed) };
        let last = id << TAIL_SHIFT | LOCKED;
        // Relaxed: a guess, which the exchange checks. Release: see "Order".
        if self.lock.word.load(Relaxed) == last
            && self
                .lock
                .word
                .compare_exchange(last, prev << TAIL_SHIFT | LOCKED, Release, Relaxed)
                .is_ok()
        {
            if right!(!first, P, U3QspinlockUnfairLeavesItsLink, false) {
                // If the link is another CPU's by now, it stays.
                let _ = shared.nodes.get(prev).next.compare_exchange(id, NIL, Relaxed, Relaxed);
            }
            return;
        }
        let next = await_link(&node.next);
        if first {
            // Release: our acquisition comes before what the next first waiter does with the word.
            shared.nodes.get(next).granted.store(GRANTED, Release);
            return;
        }
        shared.nodes.get(prev).next.store(next, Relaxed);
        let relink = || shared.nodes.get(next).prev.store(prev, Relaxed);
        right!(relink(), P, U4QspinlockUnfairKeepsThePredecessor, ());
    }
}

impl<P: Platform> RawLock<P> for QspinlockUnfair<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        let node = || Node {
            next: P::U32::new(NIL),
            prev: P::U32::new(NIL),
            granted: P::U32::new(WAIT),
            interval: P::U32::new(SHORTEST_INTERVAL),
        };
        Ok(Shared {
            nodes: ContextNodes::new(cpus, node),
            longest_interval: tuning.spin_budget.unwrap_or(DEFAULT_LONGEST_INTERVAL),
        })
    }

    fn new() -> Self {
        Self { lock: Qspinlock::new() }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) {
        if !self.lock.acquire_at_once() {
            self.lock_slow(shared);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<()> {
        self.steal().then_some(())
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared<P>, (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.lock.word.fetch_sub(LOCKED, Release);
    }

    /// As in [`Qspinlock`]: also for a caller that holds another lock and decides by the answer.
    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        P::fence(SeqCst);
        self.lock.word.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.lock.word.load(Relaxed) & !LOCKED_BYTE != 0
    }
}
