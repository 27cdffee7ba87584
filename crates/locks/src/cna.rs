//! CNA: an MCS lock that prefers waiters on the holder's own NUMA node.
//!
//! The main queue is that of MCS. On release the holder looks for the first waiter on its own NUMA
//! node. Waiters that it passes over move, in order, to the end of a *secondary queue*, which travels
//! with the grant. The secondary queue goes back in front of the main one when the main queue has no
//! waiter on the node, or by lot. Its first waiter, on another node, then gets the lock.
//!
//! | `tail` | State |
//! |---|---|
//! | `NIL` | free, the idle state |
//! | node n | held; n is the last of the main queue, whose first is the holder |
//!
//! | `grant` of a node | State |
//! |---|---|
//! | 0 | waits, in one of the queues |
//! | `GRANTED` + h | holds the lock; the secondary queue begins with node h, empty if h is `NIL` |
//!
//! A node in no queue has `next` = `NIL` and `grant` = `GRANTED`. In the secondary queue, `next` of
//! the last node is `NIL`, and `secondary_tail` of the first node names the last. Only the holder
//! changes the secondary queue, and links between waiters.
//!
//! **Not linked yet.** The search stops at a waiter whose successor has not linked itself; it has
//! then found no heir, and moves no waiter. So a node that moves has a linked successor, and only the
//! holder will still write its `next`. The last of the main queue never moves.
//!
//! **Properties.** Fair in the long run: the lot falls once in 2^16 hand-overs, which bounds how long
//! a NUMA node keeps the lock. Each waiter spins on its own line. A hand-over costs one or two
//! misses, mostly within the node. The search costs one more miss for each waiter that it passes
//! over; each waiter is passed over once for each time that its queue is put back. Preempted holders
//! and waiters do as much harm as with MCS. Uncontended: two read-modify-writes. A CPU with no node
//! left uses the node inside the lock and then is not served in order (see `nodes.rs`).
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Dice and Kogan, "Compact NUMA-aware locks", EuroSys 2019. Deviations: nodes have
//! numbers and stay with their CPU; a release asks for the holder's NUMA node, instead of the
//! acquisition noting it.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::lottery::Lottery;
use crate::nodes::{MAX_POOL_CPUS, NIL, NodePool, await_link, lock_with_spare};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

/// `grant` of a waiter.
const WAIT: u32 = 0;
/// `grant` of a holder, plus the number of the first node of the secondary queue.
const GRANTED: u32 = 1 << 16;
/// Average number of hand-overs between two that put the secondary queue back: the published value.
pub const DEFAULT_FLUSH_ONE_IN: u32 = 1 << 16;

/// Properties of [`Cna`].
pub const INFO: LockInfo = LockInfo {
    name: "cna",
    brief: "MCS lock that prefers waiters of the holder's NUMA node.",
    source: "Dice and Kogan, EuroSys 2019",
    fair: false,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: MAX_POOL_CPUS,
    size: 20,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Cna<P: Platform> {
    tail: P::U32,
    spare: Node<P>,
}

#[derive(Debug)]
#[repr(C)]
struct Node<P: Platform> {
    next: P::U32,
    grant: P::U32,
    /// NUMA node of the CPU, while it waits.
    socket: P::U32,
    /// In the first node of the secondary queue: the last node of that queue.
    secondary_tail: P::U32,
}

impl<P: Platform> Node<P> {
    fn new() -> Self {
        Self {
            next: P::U32::new(NIL),
            grant: P::U32::new(GRANTED),
            socket: P::U32::new(0),
            secondary_tail: P::U32::new(NIL),
        }
    }
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    nodes: NodePool<P, Node<P>>,
    flush: Lottery<P>,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs. The secondary queue is put back once in `flush_one_in` hand-overs; with 0,
    /// only when the main queue has no waiter on the holder's NUMA node.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    pub fn new(cpus: usize, flush_one_in: u32) -> Result<Self, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Self { nodes: NodePool::new(cpus, Node::new), flush: Lottery::new(cpus, flush_one_in) })
    }
}

/// Proof of an acquisition: its node.
#[derive(Debug)]
pub struct Token(u32);

impl<P: Platform> Cna<P> {
    fn node<'a>(&'a self, shared: &'a Shared<P>, id: u32) -> &'a Node<P> {
        shared.nodes.get(id, &self.spare)
    }

    /// Links node `id` behind `before` and waits for the grant.
    #[cold]
    fn wait(&self, shared: &Shared<P>, id: u32, before: u32) {
        let node = self.node(shared, id);
        node.grant.store(WAIT, Relaxed);
        node.socket.store(P::numa_node() as u32, Relaxed);
        // Release: these stores come before the grant by the CPU that finds the link.
        self.node(shared, before).next.store(id, Release);
        // Acquires: pairs with the grant in `unlock`.
        let _ = node.grant.spin_until(|grant| grant != WAIT, Budget::Forever);
    }

    /// The last node of the secondary queue that begins with `first`.
    fn secondary_tail(&self, shared: &Shared<P>, first: u32) -> u32 {
        // Relaxed: an earlier holder wrote it.
        self.node(shared, first).secondary_tail.load(Relaxed)
    }

    /// Grants the lock to `heir`, with the secondary queue that begins with `secondary`.
    fn grant(&self, shared: &Shared<P>, heir: u32, secondary: u32) {
        // Release: what the holder did happens before the next acquisition.
        self.node(shared, heir).grant.store(GRANTED + secondary, Release);
    }

    /// Finds the first waiter on this NUMA node in the main queue that begins with `first`. Also
    /// returns the waiter before it, or `NIL` if it is the first.
    fn find_local(&self, shared: &Shared<P>, first: u32) -> Option<(u32, u32)> {
        let here = P::numa_node() as u32;
        let (mut before, mut id) = (NIL, first);
        loop {
            let node = self.node(shared, id);
            // Relaxed: the link that led here was read with acquire.
            if node.socket.load(Relaxed) == here {
                return Some((id, before));
            }
            // Acquire: pairs with the link. See "Not linked yet".
            let next = node.next.load(Acquire);
            if next == NIL {
                return None;
            }
            (before, id) = (id, next);
        }
    }

    /// Moves the waiters from `first` to `last` to the end of the secondary queue that begins with
    /// `secondary`; returns the new first node of that queue.
    fn pass_over(&self, shared: &Shared<P>, secondary: u32, first: u32, last: u32) -> u32 {
        // Relaxed, all: the next holder reads them, after the grant.
        self.node(shared, last).next.store(NIL, Relaxed);
        let begin = if secondary == NIL {
            first
        } else {
            let end = self.secondary_tail(shared, secondary);
            self.node(shared, end).next.store(first, Relaxed);
            secondary
        };
        self.node(shared, begin).secondary_tail.store(last, Relaxed);
        begin
    }

    /// Grants the lock to a waiter of the main queue that begins with `next`, or of the secondary
    /// queue.
    #[cold]
    fn hand_over(&self, shared: &Shared<P>, next: u32, secondary: u32) {
        let keep_local = secondary == NIL || !shared.flush.wins();
        if keep_local && let Some((heir, before)) = self.find_local(shared, next) {
            let secondary = if before == NIL {
                secondary
            } else {
                self.pass_over(shared, secondary, next, before)
            };
            self.grant(shared, heir, secondary);
        } else if secondary == NIL {
            self.grant(shared, next, NIL);
        } else {
            let end = self.secondary_tail(shared, secondary);
            self.node(shared, end).next.store(next, Relaxed);
            self.grant(shared, secondary, NIL);
        }
    }
}

impl<P: Platform> RawLock<P> for Cna<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(cpus, tuning.lottery.unwrap_or(DEFAULT_FLUSH_ONE_IN))
    }

    fn new() -> Self {
        Self { tail: P::U32::new(NIL), spare: Node::new() }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        let Some(id) = shared.nodes.take() else { return Token(lock_with_spare(&self.tail)) };
        // Acquire, for a lock found free: pairs with the release in `unlock`. Release: publishes the
        // node, so that its `next` is empty before another CPU links itself to it.
        let before = self.tail.swap(id, AcqRel);
        if before != NIL {
            self.wait(shared, id, before);
        }
        Token(id)
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        shared.nodes.try_lock(&self.tail).map(Token)
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(id): Token) {
        let node = self.node(shared, id);
        // Relaxed: no other CPU writes it while we hold the lock.
        let secondary = node.grant.load(Relaxed) - GRANTED;
        if secondary != NIL {
            // Now, because after the grant the spare may belong to another CPU.
            node.grant.store(GRANTED, Relaxed);
        }
        // Acquire: pairs with the link.
        let mut next = node.next.load(Acquire);
        if next == NIL {
            // The main queue ends with us. Waiters that were passed over, if any, are the main queue
            // now: freeing the lock would forget them.
            let is_last = right!(secondary == NIL, P, N1CnaSecondaryQueueIgnored, true);
            let tail = if is_last { NIL } else { self.secondary_tail(shared, secondary) };
            // Release: what the holder did happens before the next acquisition.
            if self.tail.compare_exchange(id, tail, Release, Relaxed).is_ok() {
                if tail != NIL {
                    self.grant(shared, secondary, NIL);
                }
                shared.nodes.give_back(id);
                return;
            }
            next = await_link(&node.next);
        }
        node.next.store(NIL, Relaxed);
        self.hand_over(shared, next, secondary);
        shared.nodes.give_back(id);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.tail.load(Relaxed) != NIL
    }

    /// The last of the main queue waits, or it is the holder and knows of others that wait.
    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let tail = self.tail.load(Relaxed);
        tail != NIL && self.node(shared, tail).grant.load(Relaxed) != GRANTED
    }
}
