//! MCS lock with published times: the releaser passes over waiters that do not run.
//!
//! A waiter keeps writing the time into its node. The releaser grants the lock to the first waiter
//! whose time is fresh, and takes those before it out of the queue: they were descheduled. They find
//! out when they run again, and queue anew. A waiter who has waited for long marks its node, so that
//! it is passed over too, and looks whether the holder has had the lock for too long: then that one
//! was probably descheduled, and the waiter gives its CPU away.
//!
//! | `tail` | State |
//! |---|---|
//! | `NIL` | free, the idle state |
//! | node n | held; n is the last in the queue |
//!
//! | `status` of a node | State | Left by |
//! |---|---|---|
//! | `WAITING` | waits in the queue | releaser, to `GRANTED` or `REMOVED`; owner, to `TIMED_OUT` |
//! | `TIMED_OUT` | in the queue, not to be granted | owner, to `WAITING`; releaser, to `REMOVED` |
//! | `REMOVED` | no longer in the queue, to be queued again | owner |
//! | `GRANTED` | holds the lock, or is in no queue and idle | owner |
//!
//! A node in no queue has `next` = `NIL` once its owner has seen that. The releaser reads `next` of a
//! node before it removes it, for then the owner writes it again. Grant and time-out are both
//! exchanges of `status`, so a waiter that has timed out is never granted the lock unawares.
//!
//! **Properties.** Not fair: who is passed over goes to the end. Each waiter spins on its own line.
//! Descheduled waiters cost the releaser a few misses each. Behind a descheduled holder waiters give
//! their CPUs away, after 10 ms. Uncontended: two read-modify-writes, a store, and a look at the
//! clock. A CPU with no node left uses the one inside the lock, and then waits until nobody else does
//! (see `nodes.rs`). Where there is no clock, waiters are passed over only when they have timed out.
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** He, Scherer and Scott, "Preemption adaptivity in time-published queue-based spin
//! locks", HiPC 2005. Deviations: [`RawLock::lock`] goes on after a time-out, so a node belongs to
//! one lock while it is in a queue; nodes are removed as the scan goes, without a limit, since who
//! queues again publishes a fresh time; patience is counted in iterations.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::nodes::{MAX_POOL_CPUS, NIL, NodePool, SPARE, await_link};
use crate::{AtomicCell, Budget, Bug, CapacityError, LockInfo, Platform, RawLock, Tuning};

const WAITING: u32 = 0;
const GRANTED: u32 = 1;
const TIMED_OUT: u32 = 2;
const REMOVED: u32 = 3;

/// Wait-loop iterations before a waiter times out: the published 50 µs, where a pause takes 50 ns.
pub const DEFAULT_SPIN_BUDGET: u32 = 1 << 10;
/// Wait-loop iterations between two publications of the time: a few µs, well below `STALE`.
const ROUND: u32 = 1 << 7;
/// A published time that is older belongs to a waiter who does not run: the published 10 µs.
const STALE: u32 = ticks(10_000);
/// A critical section that lasts longer belongs to a holder who does not run: the published 10 ms.
const OVERDUE: u32 = ticks(10_000_000);

/// Properties of [`McsTp`].
pub const INFO: LockInfo = LockInfo {
    name: "mcs-tp",
    brief: "MCS lock that passes over waiters who have not published the time of late.",
    source: "He, Scherer and Scott, HiPC 2005",
    fair: false,
    local_spin: true,
    lhp_safe: true,
    lwp_safe: true,
    abortable: true,
    blocks: false,
    max_cpus: MAX_POOL_CPUS,
    size: 20,
};

/// Nanoseconds in units of 1024 ns, modulo 2^32: comes round in 73 minutes. Who looks stale or fresh
/// by that is passed over or granted for nothing, as it is now and then anyway.
const fn ticks(ns: u64) -> u32 {
    (ns >> 10) as u32
}

/// How long ago `since` was.
fn elapsed<P: Platform>(since: u32) -> u32 {
    let elapsed = ticks(P::now()).wrapping_sub(since);
    // Another CPU may have written `since` after our look at the clock.
    if elapsed > u32::MAX / 2 { 0 } else { elapsed }
}

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct McsTp<P: Platform> {
    tail: P::U32,
    /// When the critical section began. The holder writes it.
    since: P::U32,
    spare: Node<P>,
}

#[derive(Debug)]
#[repr(C)]
struct Node<P: Platform> {
    next: P::U32,
    status: P::U32,
    /// When the owner was last seen waiting.
    seen: P::U32,
}

impl<P: Platform> Node<P> {
    fn new() -> Self {
        Self { next: P::U32::new(NIL), status: P::U32::new(GRANTED), seen: P::U32::new(0) }
    }

    /// Waits in the queue; returns why it ended, which is not `WAITING`.
    fn wait(&self, spin_budget: u32) -> u32 {
        let mut left = spin_budget;
        loop {
            // Relaxed: a hint.
            self.seen.store(ticks(P::now()), Relaxed);
            let round = left.min(ROUND);
            // Acquires: pairs with the grant, or with the removal.
            let waited = self.status.spin_until(|it| it != WAITING, Budget::Iterations(round));
            if let Ok(status) = waited {
                return status;
            }
            left -= round;
            if left == 0 {
                // Acquire: as above.
                return match self.status.compare_exchange(WAITING, TIMED_OUT, Relaxed, Acquire) {
                    Ok(_) => TIMED_OUT,
                    Err(status) => status,
                };
            }
        }
    }

    /// Back into the queue, in the old place, if the releaser has not removed it.
    fn resume(&self) -> bool {
        self.seen.store(ticks(P::now()), Relaxed);
        // Release: the time is fresh for who finds the status. Acquire: pairs with the removal.
        self.status.compare_exchange(TIMED_OUT, WAITING, Release, Acquire).is_ok()
    }

    /// Grants the lock, if the owner waits and runs.
    fn grant(&self) -> bool {
        // Acquire: pairs with `resume`.
        if self.status.load(Acquire) != WAITING || elapsed::<P>(self.seen.load(Relaxed)) > STALE {
            return false;
        }
        // A store would overwrite a time-out that comes in between, and its owner, who takes himself
        // for removed, would never see it.
        if P::seeded(Bug::Y1McsTpGrantIgnoresTimeOut) {
            self.status.store(GRANTED, Release);
            return true;
        }
        // Release: what the holder did happens before the next acquisition.
        self.status.compare_exchange(WAITING, GRANTED, Release, Relaxed).is_ok()
    }
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    nodes: NodePool<P, Node<P>>,
    /// Wait-loop iterations before a waiter times out.
    spin_budget: u32,
}

/// Proof of an acquisition: its node.
#[derive(Debug)]
pub struct Token(u32);

impl<P: Platform> McsTp<P> {
    fn node<'a>(&'a self, shared: &'a Shared<P>, id: u32) -> &'a Node<P> {
        shared.nodes.get(id, &self.spare)
    }

    /// Queues node `id` behind `before`, and again if need be, until it is granted the lock.
    #[cold]
    fn wait(&self, shared: &Shared<P>, id: u32, mut before: u32) {
        let node = self.node(shared, id);
        loop {
            node.status.store(WAITING, Relaxed);
            node.seen.store(ticks(P::now()), Relaxed);
            // Release: what was just written comes before the grant of whoever finds the link.
            self.node(shared, before).next.store(id, Release);
            loop {
                match node.wait(shared.spin_budget) {
                    GRANTED => return,
                    REMOVED => break,
                    _ => self.yield_if_overdue(),
                }
                // Only the releaser changes a time-out of ours, and only to a removal.
                if !node.resume() {
                    break;
                }
            }
            self.yield_if_overdue();
            node.next.store(NIL, Relaxed);
            // Orders as in `lock`.
            before = self.tail.swap(id, AcqRel);
            if before == NIL {
                node.status.store(GRANTED, Relaxed);
                return;
            }
        }
    }

    /// Gives the CPU away if the holder seems to have none.
    fn yield_if_overdue(&self) {
        if elapsed::<P>(self.since.load(Relaxed)) > OVERDUE {
            P::yield_now();
        } else {
            P::relax();
        }
    }

    /// Takes the free lock with node `id`.
    fn exchange_free(&self, id: u32) -> bool {
        // Acquire: pairs with the release in `unlock`. Release: publishes the node.
        self.tail.compare_exchange(NIL, id, AcqRel, Relaxed).is_ok()
    }

    /// With no node left: waits until nobody has or wants the lock.
    #[cold]
    fn wait_with_spare(&self) {
        while !self.exchange_free(SPARE) {
            let _ = self.tail.spin_until(|tail| tail == NIL, Budget::Forever);
        }
    }

    /// The critical section begins.
    #[inline]
    fn begin(&self, id: u32) -> Token {
        // Relaxed: a hint.
        self.since.store(ticks(P::now()), Relaxed);
        Token(id)
    }
}

impl<P: Platform> RawLock<P> for McsTp<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = Token;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared {
            nodes: NodePool::new(cpus, Node::new),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
        })
    }

    fn new() -> Self {
        Self { tail: P::U32::new(NIL), since: P::U32::new(0), spare: Node::new() }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        let Some(id) = shared.nodes.take() else {
            self.wait_with_spare();
            return self.begin(SPARE);
        };
        // Acquire, for a lock found free: pairs with the release in `unlock`. Release: publishes
        // the node, so that its `next` is empty before somebody links himself to it.
        let before = self.tail.swap(id, AcqRel);
        if before != NIL {
            self.wait(shared, id, before);
        }
        self.begin(id)
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        // Relaxed: a guess, which the exchange checks.
        if self.tail.load(Relaxed) != NIL {
            return None;
        }
        let id = shared.nodes.take().unwrap_or(SPARE);
        if self.exchange_free(id) {
            return Some(self.begin(id));
        }
        shared.nodes.give_back(id);
        None
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(own): Token) {
        let mut id = own;
        loop {
            let node = self.node(shared, id);
            // Acquire: pairs with the link.
            let mut next = node.next.load(Acquire);
            let was_last = next == NIL
                // Release: what the holder did happens before the next acquisition.
                && self.tail.compare_exchange(id, NIL, Release, Relaxed).is_ok();
            if next == NIL && !was_last {
                next = await_link(&node.next);
            }
            if id == own {
                if !was_last {
                    // Before the grant, after which the spare may be somebody else's.
                    node.next.store(NIL, Relaxed);
                }
            } else {
                // Release: after this the owner may write `next`, which we have read.
                node.status.store(REMOVED, Release);
            }
            if was_last || self.node(shared, next).grant() {
                break;
            }
            id = next;
        }
        shared.nodes.give_back(own);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.tail.load(Relaxed) != NIL
    }

    fn is_contended(&self, shared: &Shared<P>) -> bool {
        let tail = self.tail.load(Relaxed);
        tail != NIL && self.node(shared, tail).status.load(Relaxed) != GRANTED
    }
}
