//! MCS lock: a queue of nodes; each waiter spins on its own. Strictly first come, first served.
//!
//! | `tail` | State |
//! |---|---|
//! | `NIL` | free, the idle state |
//! | node n, `n.granted` = 1 | held by the owner of n, no waiters |
//! | node n, `n.granted` = 0 | held; the owner of n is the last waiter |
//!
//! A node in no queue has `next` = `NIL` and `granted` = 1.
//!
//! **The three interesting points.** *Publishing the node*: the swap of `tail` releases. So a CPU
//! that finds the node there also finds its `next` empty, and writes `next` after that. *Swapped and
//! not yet linked*: a releaser that finds `next` empty and `tail` not its own waits for the link; if
//! it left, it would forget the waiter for ever. Between swap and link the waiter resets `granted`.
//! The reset must come before the link, which releases it to the releaser; otherwise the reset could
//! overwrite the grant. *Ownership*: no other CPU touches a node after its owner's unlock has seen
//! its link.
//!
//! **Properties.** Fair: no CPU overtakes. Each waiter spins on its own line; a release costs two
//! misses, whatever the number of waiters. While the holder is descheduled, all waiters burn. A
//! descheduled waiter stops all waiters behind it once its turn has come; one that is descheduled
//! between swap and link stops the releaser too. Uncontended: two read-modify-writes. A CPU with no
//! node left uses the node inside the lock and then is not served in order (see `nodes.rs`).
//!
//! **Interrupts** stay off from before the swap, as for every queue: see
//! [`RawLock::lock_irqsave`].
//!
//! **Source.** Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory
//! multiprocessors", 1991. Deviations: nodes have numbers and stay with their CPU; a release resets
//! its node, and only if another CPU waited.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{MAX_POOL_CPUS, NIL, NodePool, await_link, lock_with_spare};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

const WAIT: u32 = 0;
const GRANTED: u32 = 1;

/// Properties of [`Mcs`].
pub const INFO: LockInfo = LockInfo {
    name: "mcs",
    brief: "Queue of nodes, each waiter spins on its own: first come, first served.",
    source: "Mellor-Crummey and Scott 1991",
    fair: true,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: MAX_POOL_CPUS,
    size: 12,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Mcs<P: Platform> {
    tail: P::U32,
    spare: Node<P>,
}

#[derive(Debug)]
#[repr(C)]
struct Node<P: Platform> {
    /// The next in the queue, once it has linked itself.
    next: P::U32,
    granted: P::U32,
}

impl<P: Platform> Node<P> {
    fn new() -> Self {
        Self { next: P::U32::new(NIL), granted: P::U32::new(GRANTED) }
    }
}

/// What all locks of a system share: the nodes.
#[derive(Debug)]
pub struct Shared<P: Platform>(NodePool<P, Node<P>>);

/// Proof of an acquisition: its node.
#[derive(Debug)]
pub struct Token(u32);

impl<P: Platform> Mcs<P> {
    fn node<'a>(&'a self, shared: &'a Shared<P>, id: u32) -> &'a Node<P> {
        shared.0.get(id, &self.spare)
    }

    /// Links node `id` behind `before` and waits for the grant.
    #[cold]
    fn wait(&self, shared: &Shared<P>, id: u32, before: u32) {
        let (node, before) = (self.node(shared, id), self.node(shared, before));
        let reset = || node.granted.store(WAIT, Relaxed);
        right!(reset(), P, M1McsLinkBeforeReset, ());
        // Release: the reset comes before the grant by the CPU that finds the link.
        before.next.store(id, Release);
        right!((), P, M1McsLinkBeforeReset, reset());
        // Acquires: pairs with the grant in `unlock`.
        let _ = node.granted.spin_until(|granted| granted == GRANTED, Budget::Forever);
    }
}

impl<P: Platform> RawLock<P> for Mcs<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared(NodePool::new(cpus, Node::new)))
    }

    fn new() -> Self {
        Self { tail: P::U32::new(NIL), spare: Node::new() }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        let Some(id) = shared.0.take() else { return Token(lock_with_spare(&self.tail)) };
        // Acquire, for a lock found free: pairs with the release in `unlock`. Release: publishes
        // the node.
        let before = self.tail.swap(id, AcqRel);
        if before != NIL {
            self.wait(shared, id, before);
        }
        Token(id)
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        shared.0.try_lock(&self.tail).map(Token)
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(id): Token) {
        let node = self.node(shared, id);
        // Acquire: pairs with the link, so that the grant comes after the waiter's reset.
        let mut next = node.next.load(Acquire);
        if next == NIL {
            // Release: what the holder did happens before the next acquisition.
            if self.tail.compare_exchange(id, NIL, Release, Relaxed).is_ok() {
                shared.0.give_back(id);
                return;
            }
            // A CPU has swapped and is about to link itself: see the module documentation.
            next = right!(await_link(&node.next), P, M2McsUnlockLeavesUnlinkedWaiter, return);
        }
        // Before the grant: after it the spare may belong to another CPU.
        node.next.store(NIL, Relaxed);
        // Release: as above.
        self.node(shared, next).granted.store(GRANTED, Release);
        shared.0.give_back(id);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.tail.load(Relaxed) != NIL
    }

    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let tail = self.tail.load(Relaxed);
        tail != NIL && self.node(shared, tail).granted.load(Relaxed) == WAIT
    }
}
