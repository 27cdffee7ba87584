//! CLH lock: each waiter spins on its predecessor's node. Strictly first come, first served.
//!
//! `tail` holds the number of the last node and the *version* under which it was put there. A version
//! of a node is pending until the release by its owner increments the node's `version`.
//!
//! | `tail` | State |
//! |---|---|
//! | 0 | free, as made |
//! | (n, v), and `n.version` is not v | free, the idle state |
//! | (n, v), and `n.version` = v | held by the owner of n, or by a CPU that n waits behind |
//!
//! **Why versions.** In the published lock a release marks the holder's node as granted. The holder
//! then takes over its *predecessor's* node, because other CPUs may still look at its own. So a CPU
//! outside the queue cannot trust the state of a node: between a look at it and an exchange of
//! `tail`, the node may be recycled and pending again. That is why the published lock had no
//! `try_lock`.
//!
//! With versions a node is free for reuse at once, even if another CPU still looks at it: that CPU
//! sees a version that is not the one it waits for. A node stays with its CPU, and a `tail` with its
//! version never comes back. Never means within 2^48 uses of a node (2^16 where addresses have 32
//! bits). `try_lock` is safe even then, because it waits for the version that it exchanged. A waiter
//! that sleeps through exactly that many uses waits for one more release.
//!
//! **Order.** The swap of `tail` releases: a CPU that finds (n, v) there also finds `n.version` at v.
//! Otherwise it would take an older version of n for a release, and enter while n is in the critical
//! section (a bug of the seL4 big lock, found in 2020).
//!
//! **Properties.** Fair: no CPU overtakes. Each waiter spins on the line of its predecessor's node,
//! and a release costs one miss. The release is one store; it waits for no other CPU and does not
//! touch the lock. While the holder is descheduled, all waiters burn. A descheduled waiter stops all
//! waiters behind it once its turn has come. Uncontended: one read-modify-write and a store. A CPU
//! with no node left uses the node inside the lock and then is not served in order (see `nodes.rs`).
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Craig 1993; Magnussen, Landin and Hagersten, "Queue locks on cache coherent
//! multiprocessors", 1994. Deviations: versions instead of recycling, hence no first dummy node;
//! `before`, which only [`RawLock::is_contended`] reads.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{MAX_POOL_CPUS, NIL, NodePool, SPARE};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

/// Width of the low bits of a [`Turn`], which hold the number of the node. The version is above.
const ID_BITS: u32 = 16;

/// Properties of [`Clh`].
pub const INFO: LockInfo = LockInfo {
    name: "clh",
    brief: "Queue of nodes, each waiter spins on the one before its own: first come, first served.",
    source: "Craig 1993; Magnussen, Landin and Hagersten 1994",
    fair: true,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: MAX_POOL_CPUS,
    size: 3 * size_of::<usize>(),
};

/// One use of one node: a value of `tail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn(usize);

impl Turn {
    /// No node: the initial state of the lock.
    const NONE: Self = Self(NIL as usize);

    fn new(id: u32, version: usize) -> Self {
        Self(version << ID_BITS | id as usize)
    }

    fn id(self) -> u32 {
        (self.0 & ((1 << ID_BITS) - 1)) as u32
    }

    fn version(self) -> usize {
        self.0 >> ID_BITS
    }

    /// The version after this one. It wraps like the field in `tail`.
    fn next_version(self) -> usize {
        (self.version() + 1) & (usize::MAX >> ID_BITS)
    }
}

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Clh<P: Platform> {
    /// A [`Turn`].
    tail: P::Usize,
    spare: Node<P>,
}

#[derive(Debug)]
#[repr(C)]
struct Node<P: Platform> {
    /// The version: pending if the node is in a queue, else the next. Only the owner writes it.
    version: P::Usize,
    /// The last turn that the owner waited for. Only the owner writes it.
    before: P::Usize,
}

impl<P: Platform> Node<P> {
    fn new() -> Self {
        Self { version: P::Usize::new(0), before: P::Usize::new(Turn::NONE.0) }
    }
}

/// What all locks of a system share: the nodes.
#[derive(Debug)]
pub struct Shared<P: Platform>(NodePool<P, Node<P>>);

/// Proof of an acquisition: its turn.
#[derive(Debug)]
pub struct Token(Turn);

impl<P: Platform> Clh<P> {
    fn node<'a>(&'a self, shared: &'a Shared<P>, id: u32) -> &'a Node<P> {
        shared.0.get(id, &self.spare)
    }

    /// Whether `turn` is over. Acquires: pairs with the release that ended it.
    #[inline]
    fn is_over(&self, shared: &Shared<P>, turn: Turn) -> bool {
        turn == Turn::NONE || self.node(shared, turn.id()).version.load(Acquire) != turn.version()
    }

    /// Waits until `before` is over.
    #[cold]
    fn wait(&self, shared: &Shared<P>, mine: Turn, before: Turn) {
        self.node(shared, mine.id()).before.store(before.0, Relaxed);
        let node = self.node(shared, before.id());
        // Acquires: pairs with the release in `unlock`.
        let _ = node.version.spin_until(|version| version != before.version(), Budget::Forever);
    }

    /// A turn with node `id` of this CPU, or with the spare if the lock is free.
    #[inline]
    fn turn(&self, shared: &Shared<P>, id: u32) -> Turn {
        let version = &self.node(shared, id).version;
        // With an old version the node would be pending again, also for a waiter that has not yet
        // seen its release. That waiter would wait for the wrong use of the node, and both would wait
        // for ever.
        right!((), P, C2ClhReuseWithoutNewVersion, version.store(0, Relaxed));
        // Relaxed: only this CPU writes it. A spare's may be stale, if `tail` has changed.
        Turn::new(id, version.load(Relaxed))
    }

    /// Takes the lock if it is free, with node `id`.
    fn exchange_free(&self, shared: &Shared<P>, id: u32) -> Option<Token> {
        // Acquire: the version of the spare is at least that of the users before this tail.
        let found = Turn(self.tail.load(Acquire));
        if !self.is_over(shared, found) {
            return None;
        }
        let mine = self.turn(shared, id);
        // Orders as in `lock`.
        self.tail.compare_exchange(found.0, mine.0, AcqRel, Relaxed).ok()?;
        if !self.is_over(shared, found) {
            // The version has come round: we are in the queue, behind the node's new use.
            self.wait(shared, mine, found);
        }
        Some(Token(mine))
    }

    /// With no node left: waits until no CPU holds or wants the lock.
    #[cold]
    fn lock_with_spare(&self, shared: &Shared<P>) -> Token {
        loop {
            if let Some(token) = self.exchange_free(shared, SPARE) {
                return token;
            }
            let last = Turn(self.tail.load(Relaxed));
            if last != Turn::NONE {
                let node = self.node(shared, last.id());
                let _ = node.version.spin_until(|it| it != last.version(), Budget::Forever);
            }
        }
    }
}

impl<P: Platform> RawLock<P> for Clh<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared(NodePool::new(cpus, Node::new)))
    }

    fn new() -> Self {
        Self { tail: P::Usize::new(Turn::NONE.0), spare: Node::new() }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        let Some(id) = shared.0.take() else { return self.lock_with_spare(shared) };
        let mine = self.turn(shared, id);
        // Release: publishes our version; see "Order". Acquire: to look at the node found.
        let before = Turn(self.tail.swap(mine.0, AcqRel));
        if !self.is_over(shared, before) {
            self.wait(shared, mine, before);
        }
        Token(mine)
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        let id = shared.0.take().unwrap_or(SPARE);
        let token = self.exchange_free(shared, id);
        if token.is_none() {
            shared.0.give_back(id);
        }
        token
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(turn): Token) {
        // Release: what the holder did happens before the next acquisition.
        self.node(shared, turn.id()).version.store(turn.next_version(), Release);
        shared.0.give_back(turn.id());
    }

    fn is_locked(&self, shared: &Shared<P>) -> bool {
        !self.is_over(shared, Turn(self.tail.load(Relaxed)))
    }

    /// The last in the queue waits if its predecessor's turn is not over.
    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let last = Turn(self.tail.load(Relaxed));
        if self.is_over(shared, last) {
            return false;
        }
        let before = Turn(self.node(shared, last.id()).before.load(Relaxed));
        !self.is_over(shared, before)
    }
}
