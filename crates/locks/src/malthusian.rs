//! Malthusian lock: an MCS lock that sends surplus waiters to sleep.
//!
//! The releaser culls a chain of waiters that is longer than necessary: on each release with at
//! least two waiters in the chain, it moves one of them to a *passive list*. Few CPUs then circulate
//! over the lock, and the others are out of the way. Passive waiters come back, the youngest first,
//! when the chain runs empty. So that no waiter waits for ever, now and then a lot gives the lock to
//! the waiter that has been passive longest.
//!
//! | `tail` | `youngest` | State |
//! |---|---|---|
//! | `NIL` | `NIL` | free, the idle state |
//! | node n | any | held; n is the last of the chain, whose first is the holder |
//!
//! | `state` of a node | State |
//! |---|---|
//! | `WAIT` | waits and spins |
//! | `ASLEEP` | waits, and sleeps or is about to |
//! | `GRANTED` | holds the lock, or is in no queue |
//!
//! A node in no queue has `next` = `NIL`. Each waiter is in either the chain or the passive list;
//! passive waiters exist only while the lock is held. Only the holder touches the list. In the list
//! `next` leads to older waiters, and `younger` leads back.
//!
//! **No wake-up is lost.** Waiter and releaser both exchange `state`. If the waiter is first, the
//! releaser finds `ASLEEP` and wakes it; if not, the waiter finds `GRANTED` and does not sleep.
//!
//! **Properties.** Fair in the long run: the lot falls once in 1024 releases. Each waiter spins on
//! its own line for its budget, then sleeps; a descheduled holder does no more harm than that. A
//! descheduled waiter whose turn has come stops all others, as with MCS. But the chain has few
//! waiters, and they are those that ran most recently. Uncontended: two read-modify-writes and a
//! load. A CPU with no node left uses the node inside the lock and then is not served in order (see
//! `nodes.rs`).
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Dice, "Malthusian locks", EuroSys 2017, MCSCR with waiting policy spin-then-park.
//! Deviations: nodes have numbers and stay with their CPU; a release culls one waiter.

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::lottery::Lottery;
use crate::nodes::{MAX_POOL_CPUS, NIL, NodePool, await_link, lock_with_spare};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

const WAIT: u32 = 0;
const GRANTED: u32 = 1;
const ASLEEP: u32 = 2;

/// Wait-loop iterations before a waiter sleeps: the cost of a context switch, as measured for the
/// LiTL study (Guiroux, Lachaize and Quéma 2016).
pub const DEFAULT_SPIN_BUDGET: u32 = 2700;
/// Average number of releases between two that serve the oldest passive waiter: the published value.
pub const DEFAULT_RELIEF_ONE_IN: u32 = 1 << 10;

/// Properties of [`Malthusian`].
pub const INFO: LockInfo = LockInfo {
    name: "malthusian",
    brief: "MCS lock that keeps few waiters awake and lets the others sleep.",
    source: "Dice, EuroSys 2017",
    fair: false,
    local_spin: true,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::GiveWay,
    abortable: false,
    blocks: true,
    max_cpus: MAX_POOL_CPUS,
    size: 24,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Malthusian<P: Platform> {
    tail: P::U32,
    /// The ends of the passive list.
    youngest: P::U32,
    oldest: P::U32,
    spare: Node<P>,
}

#[derive(Debug)]
#[repr(C)]
struct Node<P: Platform> {
    next: P::U32,
    state: P::U32,
    younger: P::U32,
}

impl<P: Platform> Node<P> {
    fn new() -> Self {
        Self { next: P::U32::new(NIL), state: P::U32::new(GRANTED), younger: P::U32::new(NIL) }
    }
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    nodes: NodePool<P, Node<P>>,
    relief: Lottery<P>,
    /// Wait-loop iterations before a waiter sleeps.
    spin_budget: u32,
}

impl<P: Platform> Shared<P> {
    /// For `cpus` CPUs. The oldest passive waiter gets the lock once in `relief_one_in` releases;
    /// with 0, only when the chain is empty.
    ///
    /// # Errors
    /// If the lock cannot serve that many CPUs.
    pub fn new(cpus: usize, tuning: Tuning, relief_one_in: u32) -> Result<Self, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Self {
            nodes: NodePool::new(cpus, Node::new),
            relief: Lottery::new(cpus, relief_one_in),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
        })
    }
}

/// Proof of an acquisition: its node.
#[derive(Debug)]
pub struct Token(u32);

impl<P: Platform> Malthusian<P> {
    fn node<'a>(&'a self, shared: &'a Shared<P>, id: u32) -> &'a Node<P> {
        shared.nodes.get(id, &self.spare)
    }

    /// Links node `id` behind `before` and waits for the grant.
    #[cold]
    fn wait(&self, shared: &Shared<P>, id: u32, before: u32) {
        let state = &self.node(shared, id).state;
        state.store(WAIT, Relaxed);
        // Release: the reset comes before the grant by the CPU that finds the link.
        self.node(shared, before).next.store(id, Release);
        // Acquires, both spins: pairs with the grant.
        let budget = Budget::Iterations(shared.spin_budget);
        while state.spin_until(|state| state == GRANTED, budget).is_err() {
            if !P::can_block() {
                continue;
            }
            // See "No wake-up is lost". Acquire: it may find the grant. It finds `ASLEEP` after a
            // spurious wake-up.
            let slept = state.compare_exchange(WAIT, ASLEEP, Relaxed, Acquire);
            if slept != Err(GRANTED) {
                P::wait(state, ASLEEP);
            }
        }
    }

    /// Grants the lock to `heir`.
    fn grant(&self, shared: &Shared<P>, heir: u32) {
        let state = &self.node(shared, heir).state;
        // Release: what the holder did happens before the next acquisition.
        if state.swap(GRANTED, Release) == ASLEEP {
            P::wake_one(ptr::from_ref(state));
        }
    }

    /// Puts waiter `id` into the passive list.
    fn make_passive(&self, shared: &Shared<P>, id: u32) {
        // Relaxed here and below: the list is handed from holder to holder with the lock.
        let older = self.youngest.load(Relaxed);
        let node = self.node(shared, id);
        node.next.store(older, Relaxed);
        node.younger.store(NIL, Relaxed);
        if older == NIL {
            self.oldest.store(id, Relaxed);
        } else {
            self.node(shared, older).younger.store(id, Relaxed);
        }
        self.youngest.store(id, Relaxed);
    }

    /// Removes the youngest waiter from the passive list, which is not empty.
    fn pop_youngest(&self, shared: &Shared<P>) -> u32 {
        let id = self.youngest.load(Relaxed);
        let older = self.node(shared, id).next.load(Relaxed);
        self.youngest.store(older, Relaxed);
        if older == NIL {
            self.oldest.store(NIL, Relaxed);
        } else {
            self.node(shared, older).younger.store(NIL, Relaxed);
        }
        id
    }

    /// Removes the oldest waiter from the passive list, which is not empty.
    fn pop_oldest(&self, shared: &Shared<P>) -> u32 {
        let id = self.oldest.load(Relaxed);
        let younger = self.node(shared, id).younger.load(Relaxed);
        self.oldest.store(younger, Relaxed);
        if younger == NIL {
            self.youngest.store(NIL, Relaxed);
        } else {
            self.node(shared, younger).next.store(NIL, Relaxed);
        }
        id
    }

    /// Puts `heir`, which comes from the passive list, into the chain in the place of the holder
    /// `id`, whose successor is `next`, and grants it the lock.
    fn succeed(&self, shared: &Shared<P>, id: u32, mut next: u32, heir: u32) {
        let heir_next = &self.node(shared, heir).next;
        // Empty before the exchange: after it another CPU may link itself.
        heir_next.store(NIL, Relaxed);
        if next == NIL {
            // Release: publishes the node. The lock passes on with the grant.
            if self.tail.compare_exchange(id, heir, Release, Relaxed).is_ok() {
                self.grant(shared, heir);
                return;
            }
            next = await_link(&self.node(shared, id).next);
        }
        heir_next.store(next, Relaxed);
        self.node(shared, id).next.store(NIL, Relaxed);
        self.grant(shared, heir);
    }

    /// The release when there are only passive waiters, or when the lot falls on the oldest.
    #[cold]
    fn unlock_passive(&self, shared: &Shared<P>, id: u32, next: u32, oldest: bool) {
        let heir = if oldest { self.pop_oldest(shared) } else { self.pop_youngest(shared) };
        self.succeed(shared, id, next, heir);
    }

    /// The release when `next` waits in the chain.
    #[cold]
    fn unlock_chain(&self, shared: &Shared<P>, id: u32, mut next: u32) {
        // Before the grant: after it the spare may belong to another CPU.
        self.node(shared, id).next.store(NIL, Relaxed);
        // Relaxed: a guess. If it is wrong, a waiter that has just come is not culled.
        if next != self.tail.load(Relaxed) {
            let surplus = next;
            next = await_link(&self.node(shared, surplus).next);
            self.make_passive(shared, surplus);
        }
        self.grant(shared, next);
    }
}

impl<P: Platform> RawLock<P> for Malthusian<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        Shared::new(cpus, tuning, tuning.lottery.unwrap_or(DEFAULT_RELIEF_ONE_IN))
    }

    fn new() -> Self {
        Self {
            tail: P::U32::new(NIL),
            youngest: P::U32::new(NIL),
            oldest: P::U32::new(NIL),
            spare: Node::new(),
        }
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
        // Acquire: pairs with the link.
        let next = node.next.load(Acquire);
        let has_passive = self.youngest.load(Relaxed) != NIL;
        if has_passive && shared.relief.wins() {
            self.unlock_passive(shared, id, next, true);
        } else if next != NIL {
            self.unlock_chain(shared, id, next);
        } else if right!(has_passive, P, A1MalthusianPassiveListIgnored, false) {
            // Freeing the lock now would forget them.
            self.unlock_passive(shared, id, next, false);
        } else if self.tail.compare_exchange(id, NIL, Release, Relaxed).is_err() {
            // Release: what the holder did happens before the next acquisition. If it fails, a CPU
            // has swapped the tail and is about to link itself.
            self.unlock_chain(shared, id, await_link(&node.next));
        }
        shared.nodes.give_back(id);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.tail.load(Relaxed) != NIL
    }

    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let tail = self.tail.load(Relaxed);
        tail != NIL
            && (self.youngest.load(Relaxed) != NIL
                || self.node(shared, tail).state.load(Relaxed) != GRANTED)
    }
}
