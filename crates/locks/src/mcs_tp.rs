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
//! | `WAITING` | waits in the queue | releaser, to `GRANTED` or `REMOVED`; owner, to `TIMED_OUT` or `GIVEN_UP` |
//! | `TIMED_OUT` | in the queue, not to be granted | owner, to `WAITING`; releaser, to `REMOVED` |
//! | `GIVEN_UP` | in the queue, its owner has gone | owner, to `WAITING`; releaser, to `REMOVED` |
//! | `REMOVED` | no longer in the queue, to be queued again or returned | owner |
//! | `GRANTED` | holds the lock, or is in no queue and idle | owner |
//!
//! A node in no queue has `next` = `NIL` once its owner has seen that. The releaser reads `next` of a
//! node before it removes it, for then the owner writes it again. Grant and time-out are both
//! exchanges of `status`, so a waiter that has timed out is never granted the lock unawares.
//!
//! **Giving up** ([`McsTp::lock_until`]). The node stays in the queue and belongs to nobody else until a releaser
//! has removed it; so it stays taken, with a note of its lock. If its CPU comes back to that lock with a deadline
//! before that, it goes on in its old place, and so has one node at most in the queue of each lock. Nodes that were
//! removed are collected when there is no other. All this is done in tasks only: a handler that gave up would
//! change which nodes are taken behind the back of the `NodePool::take` that it interrupts. So a handler with
//! a deadline does not queue: it takes the lock when that is free.
//!
//! **Properties.** Not fair: who is passed over goes to the end. Each waiter spins on its own line.
//! Descheduled waiters cost the releaser a few misses each, but one to which it grants the lock within 10 us
//! after it was descheduled keeps it, as a descheduled holder does. Behind a descheduled holder waiters give
//! their CPUs away, after 10 ms. Uncontended: two read-modify-writes, a store, and a look at the
//! clock. A CPU with no node left uses the one inside the lock, and then waits until nobody else does
//! (see `nodes.rs`). Where there is no clock, waiters are passed over only when they have timed out.
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** He, Scherer and Scott, "Preemption adaptivity in time-published queue-based spin
//! locks", HiPC 2005. Deviations: [`RawLock::lock`] goes on after a time-out, so a node belongs to
//! one lock while it is in a queue; nodes are removed as the scan goes, without a limit, since who
//! queues again publishes a fresh time; patience is counted in iterations; who gave up and calls
//! [`RawLock::lock`] queues anew.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use core::ptr;

use crate::bug::right;
use crate::deadline::attempt_until;
use crate::nodes::{MAX_POOL_CPUS, NIL, NodePool, SPARE, await_link, pool_size};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, LockUntil, Meanwhile};
use crate::{Platform, RawLock, Tuning};

const WAITING: u32 = 0;
const GRANTED: u32 = 1;
const TIMED_OUT: u32 = 2;
const REMOVED: u32 = 3;
const GIVEN_UP: u32 = 4;

/// The deadline of who waits as long as it takes.
const NEVER: u64 = u64::MAX;
/// `left_at` of a node that was not left behind.
const NOWHERE: usize = 0;

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
    lhp: Meanwhile::GiveWay,
    // A grant to one that was descheduled a moment ago stays its own.
    lwp: Meanwhile::GiveWay,
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
    fn wait(&self, spin_budget: u32, deadline_ns: u64) -> u32 {
        let mut left = spin_budget;
        loop {
            let now = P::now();
            // Relaxed: a hint.
            self.seen.store(ticks(now), Relaxed);
            let round = left.min(ROUND);
            // Acquires: pairs with the grant, or with the removal.
            let waited = self.status.spin_until(|it| it != WAITING, Budget::Iterations(round));
            if let Ok(status) = waited {
                return status;
            }
            left -= round;
            let is_late = now >= deadline_ns;
            if left == 0 || is_late {
                let end = if is_late { GIVEN_UP } else { TIMED_OUT };
                // Acquire: as above.
                return match self.status.compare_exchange(WAITING, end, Relaxed, Acquire) {
                    Ok(_) => end,
                    // A grant that crosses the end of our patience is a grant: nobody else has the lock.
                    Err(status) => right!(status, P, Y3McsTpGivesUpThoughGranted, {
                        if status == GRANTED && is_late { end } else { status }
                    }),
                };
            }
        }
    }

    /// From `TIMED_OUT` or `GIVEN_UP` back to waiting, in the old place, if the releaser has not removed it.
    fn resume(&self, from: u32) -> bool {
        self.seen.store(ticks(P::now()), Relaxed);
        // Release: the time is fresh for who finds the status. Acquire: pairs with the removal.
        self.status.compare_exchange(from, WAITING, Release, Acquire).is_ok()
    }

    /// As a node in no queue is.
    fn reset(&self) {
        self.next.store(NIL, Relaxed);
        self.status.store(GRANTED, Relaxed);
    }

    /// Grants the lock, if the owner waits and runs.
    fn grant(&self) -> bool {
        // Acquire: pairs with `resume`.
        if self.status.load(Acquire) != WAITING || elapsed::<P>(self.seen.load(Relaxed)) > STALE {
            return false;
        }
        // A store would overwrite a time-out that comes in between, and its owner, who takes himself
        // for removed, would never see it.
        // Release: what the holder did happens before the next acquisition.
        let grant = || self.status.compare_exchange(WAITING, GRANTED, Release, Relaxed).is_ok();
        right!(grant(), P, Y1McsTpGrantIgnoresTimeOut, {
            self.status.store(GRANTED, Release);
            true
        })
    }
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    nodes: NodePool<P, Node<P>>,
    /// For each node the address of the lock in whose queue it was left behind. Tasks of its CPU use it.
    left_at: P::Slots<P::Usize>,
    /// Wait-loop iterations before a waiter times out.
    spin_budget: u32,
}

impl<P: Platform> Shared<P> {
    fn left_at(&self, id: u32) -> &P::Usize {
        &self.left_at[id as usize - 1]
    }

    /// A node of this CPU, of those left behind if no other is left; not in a handler then.
    #[inline]
    fn take(&self) -> Option<u32> {
        self.nodes.take().or_else(|| self.collect())
    }

    /// Takes one of the nodes that were left behind and removed since, and returns the others.
    #[cold]
    fn collect(&self) -> Option<u32> {
        if P::ctx_level() > 0 {
            return None;
        }
        for id in NodePool::<P, Node<P>>::own() {
            let node = self.nodes.own_node(id);
            // Acquire: pairs with the removal.
            if self.left_at(id).load(Relaxed) != NOWHERE && node.status.load(Acquire) == REMOVED {
                self.left_at(id).store(NOWHERE, Relaxed);
                node.reset();
                self.nodes.give_back(id);
            }
        }
        self.nodes.take()
    }
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
    fn wait(&self, shared: &Shared<P>, id: u32, before: u32) {
        self.link(shared, id, before);
        let acquired = self.wait_until(shared, id, NEVER);
        debug_assert!(acquired, "never is not over");
    }

    /// Links node `id`, the tail, behind `before`, as a waiter.
    fn link(&self, shared: &Shared<P>, id: u32, before: u32) {
        let node = self.node(shared, id);
        node.status.store(WAITING, Relaxed);
        node.seen.store(ticks(P::now()), Relaxed);
        // Release: what was just written comes before the grant of whoever finds the link.
        self.node(shared, before).next.store(id, Release);
    }

    /// Waits with node `id` in the queue, and queues it again if need be, until it is granted the lock. Returns
    /// whether it is; if not, the node is left behind, or returned.
    fn wait_until(&self, shared: &Shared<P>, id: u32, deadline_ns: u64) -> bool {
        let node = self.node(shared, id);
        loop {
            loop {
                match node.wait(shared.spin_budget, deadline_ns) {
                    GRANTED => return true,
                    REMOVED => break,
                    GIVEN_UP => {
                        self.leave_behind(shared, id);
                        return false;
                    }
                    _ => self.yield_if_overdue(),
                }
                // Only the releaser changes a time-out of ours, and only to a removal.
                if !node.resume(TIMED_OUT) {
                    break;
                }
            }
            self.yield_if_overdue();
            if deadline_ns != NEVER && P::now() >= deadline_ns {
                node.reset();
                shared.nodes.give_back(id);
                return false;
            }
            if self.queue(shared, id) {
                return true;
            }
        }
    }

    /// Queues node `id`, which is in no queue, as a waiter or, if nobody else is there, as the holder: whether it
    /// is that.
    fn queue(&self, shared: &Shared<P>, id: u32) -> bool {
        let node = self.node(shared, id);
        node.next.store(NIL, Relaxed);
        // Orders as in `lock`.
        let before = self.tail.swap(id, AcqRel);
        if before == NIL {
            node.status.store(GRANTED, Relaxed);
            return true;
        }
        self.link(shared, id, before);
        false
    }

    /// Leaves the node `id`, which is `GIVEN_UP`, in the queue, for [`Shared::collect`] or `come_back`.
    fn leave_behind(&self, shared: &Shared<P>, id: u32) {
        // Until then nobody may use it: it has a place in this queue.
        let note = || shared.left_at(id).store(ptr::from_ref(self).addr(), Relaxed);
        right!(note(), P, Y2McsTpReusesTheNodeLeftBehind, shared.nodes.give_back(id));
    }

    /// Takes back the node that this CPU has left behind in the queue of this lock.
    fn come_back(&self, shared: &Shared<P>) -> Option<u32> {
        let here = ptr::from_ref(self).addr();
        let id =
            NodePool::<P, Node<P>>::own().find(|id| shared.left_at(*id).load(Relaxed) == here)?;
        shared.left_at(id).store(NOWHERE, Relaxed);
        Some(id)
    }

    /// See [`RawLock::LOCK_UNTIL`], and "Giving up".
    pub fn lock_until(&self, shared: &Shared<P>, deadline_ns: u64) -> Option<Token> {
        if P::ctx_level() > 0 {
            return self.lock_when_free(shared, deadline_ns);
        }
        let id = if let Some(id) = self.come_back(shared) {
            if self.node(shared, id).resume(GIVEN_UP) || !self.queue(shared, id) {
                return self.wait_until(shared, id, deadline_ns).then(|| self.begin(id));
            }
            id
        } else {
            let Some(id) = shared.take() else { return self.lock_when_free(shared, deadline_ns) };
            if !self.queue(shared, id) && !self.wait_until(shared, id, deadline_ns) {
                return None;
            }
            id
        };
        Some(self.begin(id))
    }

    /// Without a place in the queue: acquires when nobody has or wants the lock, or gives up.
    fn lock_when_free(&self, shared: &Shared<P>, deadline_ns: u64) -> Option<Token> {
        let id = shared.nodes.take().unwrap_or(SPARE);
        let acquired = attempt_until::<P>(deadline_ns, |looks| {
            self.tail.spin_until(|tail| tail == NIL, Budget::Iterations(looks)).is_ok()
                && self.exchange_free(id)
        });
        if !acquired {
            shared.nodes.give_back(id);
        }
        acquired.then(|| self.begin(id))
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
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared {
            nodes: NodePool::new(cpus, Node::new),
            left_at: P::slots(pool_size(cpus), |_| P::Usize::new(NOWHERE)),
            spin_budget: tuning.spin_budget.unwrap_or(DEFAULT_SPIN_BUDGET),
        })
    }

    fn new() -> Self {
        Self { tail: P::U32::new(NIL), since: P::U32::new(0), spare: Node::new() }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) -> Token {
        let Some(id) = shared.take() else {
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
