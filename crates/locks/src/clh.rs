//! CLH lock: each waiter spins on the node of the one before it. Strictly first come, first served.
//!
//! `tail` holds the number of the last node and the *version* of it that was put there. A version of
//! a node is pending until its owner's release counts the node's `version` up.
//!
//! | `tail` | State |
//! |---|---|
//! | 0 | free, as made |
//! | (n, v), and `n.version` is not v | free, the idle state |
//! | (n, v), and `n.version` = v | held by the owner of n, or by one whom n waits behind |
//!
//! **Why versions.** In the published lock a release marks the holder's node as granted and the
//! holder then takes over its *predecessor's*, for its own may still be looked at. So the state of a
//! node cannot be trusted by one who is not in the queue: between a look at it and an exchange of
//! `tail` it may be recycled and pending again, which is why the lock had no `try_lock`. With
//! versions a node is free for reuse at once, whoever still looks at it: it shows him a version that
//! is not the one he waits for. It stays with its CPU, and `tail` with a version never comes back.
//! Never means 2^48 uses of a node (2^16 where addresses have 32 bits). `try_lock` is safe even then,
//! since it waits for the version that it exchanged; a waiter who sleeps through exactly so many
//! uses waits for one more release.
//!
//! **Order.** The swap of `tail` releases: whoever finds (n, v) there also finds `n.version` at v. It
//! would else take an older version of n for a release, and enter while n is in the critical section
//! (a bug of the seL4 big lock, found in 2020).
//!
//! **Properties.** Fair: nobody overtakes. Each waiter spins on the line of its predecessor's node,
//! and a release costs one miss. The release is one store, and waits for nobody; it does not touch
//! the lock. A descheduled holder makes all burn, a descheduled waiter stops everybody behind it
//! once its turn has come. Uncontended: one read-modify-write and a store. A CPU with no node left
//! uses the one inside the lock and then is not served in order (see `nodes.rs`).
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Craig 1993; Magnussen, Landin and Hagersten, "Queue locks on cache coherent
//! multiprocessors", 1994. Deviations: versions instead of recycling, hence no first dummy node;
//! `before`, which is read by [`RawLock::is_contended`] only.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{MAX_POOL_CPUS, NIL, NodePool, SPARE};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

/// Low bits of a [`Turn`]: the number of the node. The version is above.
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
    /// No node: the lock as made.
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

    /// The version after this one. It wraps as the field in `tail` does.
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
    /// The version that is pending if it is in a queue, else the next to be. Owner writes.
    version: P::Usize,
    /// The turn that the owner waited for last. Owner writes.
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
        // A node with an old version would be pending again, also for a waiter who has not yet seen
        // its release: he would wait for the wrong use of it, and both for ever.
        right!((), P, C2ClhReuseWithoutNewVersion, version.store(0, Relaxed));
        // Relaxed: only this CPU writes it. A spare's may be out of date, if `tail` has changed.
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
            // The version has come round: we are in the queue, behind its new user.
            self.wait(shared, mine, found);
        }
        Some(Token(mine))
    }

    /// With no node left: waits until nobody has or wants the lock.
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

    /// The last in the queue waits if the one before it is not over.
    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let last = Turn(self.tail.load(Relaxed));
        if self.is_over(shared, last) {
            return false;
        }
        let before = Turn(self.node(shared, last.id()).before.load(Relaxed));
        !self.is_over(shared, before)
    }
}
