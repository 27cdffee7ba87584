//! MCS lock with published times: the releaser passes over waiters that do not run.
//!
//! A waiter keeps writing the time into its node. The releaser grants the lock to the first waiter whose time is
//! fresh. It removes the waiters before that one from the queue, because they were descheduled; they find out when
//! they run again, and queue anew. A waiter that has waited for long marks its node, so that it is passed over too,
//! and looks whether the holder has had the lock for too long. Such a holder was probably descheduled, and the
//! waiter gives its CPU away.
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
//! `next` of a node in no queue is `NIL` once its owner has noticed that it left the queue. The releaser reads
//! `next` of a node before it removes the node, because the owner writes `next` again after that. Grant and
//! time-out are both exchanges of `status`, so a waiter that has timed out is never granted the lock without
//! noticing.
//!
//! **Giving up** ([`McsTp::lock_until`]). The node stays in the queue, and no other acquisition may use it until a
//! releaser has removed it. So it stays taken, with a note of its lock. If its CPU comes back to that lock with a
//! deadline before that, it goes on in its old place; so a CPU has at most one such node in the queue of each lock.
//! Removed nodes are collected when no other node is left. Only tasks do all this: a handler that gave up would
//! change which nodes are taken, unnoticed by the `NodePool::take` that it interrupts. So a handler with a deadline
//! does not queue; it takes the lock when that is free.
//!
//! The note is the lock's address. So a lock must not be dropped or moved while it is held and a node is left behind in
//! its queue: no releaser would ever remove that node, and its CPU would take it for a place in the queue of the next
//! lock at that address, and time out there for ever. The mutexes of `overspin-native` do not reach this, though their
//! guards can be forgotten and the locked mutex dropped: they acquire by [`RawLock::lock`] and [`RawLock::try_lock`],
//! and only [`McsTp::lock_until`] leaves nodes behind. Callers of that follow [the protocol](RawLock#protocol). Then the
//! last release before the lock goes has removed each node, and a note of a removed node does no harm: its CPU finds
//! that and queues anew. (A number in place of the address would need a word in each lock.)
//!
//! **Properties.** Not fair: a waiter that is passed over goes to the end. Each waiter spins on its own line.
//! Descheduled waiters cost the releaser a few misses each. But a waiter that is granted the lock within 10 us
//! after it was descheduled keeps it, like a descheduled holder. Behind a descheduled holder, waiters give their
//! CPUs away after 10 ms. Uncontended: two read-modify-writes, a store, and a look at the clock. A CPU with no node
//! left uses the node inside the lock, and waits until no other CPU holds or wants the lock (see `nodes.rs`).
//! Without a clock, waiters are passed over only when they have timed out.
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** He, Scherer and Scott, "Preemption adaptivity in time-published queue-based spin locks", HiPC 2005.
//! Deviations: [`RawLock::lock`] goes on after a time-out, so a node belongs to one lock while it is in a queue;
//! the scan tells as many waiters at once as there are CPUs (published: 1,000) that they were removed, and the others at its end;
//! patience is counted in iterations; a CPU that gave up and then calls [`RawLock::lock`] queues anew.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use core::ptr;

use crate::bug::right;
use crate::deadline::attempt_until;
use crate::nodes::{
    MAX_POOL_CPUS, NIL, NodePool, SPARE, await_link, exchange_free, lock_with_spare, pool_size,
};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, LockUntil, Meanwhile};
use crate::{Platform, RawLock, Tuning};

const WAITING: u32 = 0;
const GRANTED: u32 = 1;
const TIMED_OUT: u32 = 2;
const REMOVED: u32 = 3;
const GIVEN_UP: u32 = 4;

/// The deadline of an unlimited wait.
const NEVER: u64 = u64::MAX;
/// `left_at` of a node that was not left behind.
const NOWHERE: usize = 0;

/// Wait-loop iterations before a waiter times out: the published 50 µs, at 50 ns per pause.
pub const DEFAULT_SPIN_BUDGET: u32 = 1 << 10;
/// Wait-loop iterations between two publications of the time: a few µs, well below `STALE`.
const ROUND: u32 = 1 << 7;
/// An older published time belongs to a waiter that does not run: the published 10 µs.
const STALE: u32 = ticks(10_000);
/// A longer critical section belongs to a holder that does not run: the published 10 ms.
const OVERDUE: u32 = ticks(10_000_000);

/// Properties of [`McsTp`].
pub const INFO: LockInfo = LockInfo {
    name: "mcs-tp",
    brief: "MCS lock that passes over waiters that have not published the time recently.",
    source: "He, Scherer and Scott, HiPC 2005",
    fair: false,
    local_spin: true,
    lhp: Meanwhile::GiveWay,
    // A waiter that was descheduled a moment ago keeps its grant.
    lwp: Meanwhile::GiveWay,
    abortable: true,
    blocks: false,
    max_cpus: MAX_POOL_CPUS,
    size: 20,
};

/// Nanoseconds in units of 1024 ns, modulo 2^32: wraps after 73 minutes. A waiter that looks stale or fresh because
/// of that is passed over or granted by mistake, as happens now and then anyway.
const fn ticks(ns: u64) -> u32 {
    (ns >> 10) as u32
}

/// Time since `since`, in [`ticks`].
fn elapsed<P: Platform>(since: u32) -> u32 {
    let elapsed = ticks(P::now()).wrapping_sub(since);
    // Another CPU may have written `since` after we read the clock.
    if elapsed > u32::MAX / 2 { 0 } else { elapsed }
}

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct McsTp<P: Platform> {
    tail: P::U32,
    /// When the critical section began. Only the holder writes it.
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

    /// Waits in the queue; returns the status that ended the wait, which is not `WAITING`.
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
                    // A grant that coincides with the end of our patience is a grant: no other CPU has the lock.
                    Err(status) => right!(status, P, Y3McsTpGivesUpThoughGranted, {
                        if status == GRANTED && is_late { end } else { status }
                    }),
                };
            }
        }
    }

    /// Goes from `TIMED_OUT` or `GIVEN_UP` back to waiting in the old place, unless the releaser has removed the
    /// node.
    fn resume(&self, from: u32) -> bool {
        self.seen.store(ticks(P::now()), Relaxed);
        // Release: a CPU that finds the status finds the time fresh. Acquire: pairs with the removal.
        self.status.compare_exchange(from, WAITING, Release, Acquire).is_ok()
    }

    /// Resets the node to its state outside any queue.
    fn reset(&self) {
        self.next.store(NIL, Relaxed);
        self.status.store(GRANTED, Relaxed);
    }

    /// Grants the lock if the owner waits and runs; returns whether it did.
    fn grant(&self) -> bool {
        // Acquire: pairs with `resume`.
        if self.status.load(Acquire) != WAITING || elapsed::<P>(self.seen.load(Relaxed)) > STALE {
            return false;
        }
        // A store could overwrite a time-out that comes in between. The owner would then take itself for removed,
        // and would never see the grant. Release: what the holder did happens before the next acquisition.
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
    /// For each node, the address of the lock in whose queue it was left behind. Only tasks of its CPU use it.
    left_at: P::Slots<P::Usize>,
    /// Wait-loop iterations before a waiter times out.
    spin_budget: u32,
}

impl<P: Platform> Shared<P> {
    fn left_at(&self, id: u32) -> &P::Usize {
        &self.left_at[id as usize - 1]
    }

    /// The number of CPUs.
    fn cpus(&self) -> usize {
        self.left_at.len() / pool_size(1)
    }

    /// Takes a node of this CPU. If none is left, takes one that was left behind, except in a handler.
    #[inline]
    fn take(&self) -> Option<u32> {
        self.nodes.take().or_else(|| self.collect())
    }

    /// Collects the nodes that were left behind and have been removed since; takes one and returns the others.
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

    /// Queues node `id` behind `before`, and again if necessary, until it is granted the lock.
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
        // Release: these stores come before the grant by the CPU that finds the link.
        self.node(shared, before).next.store(id, Release);
    }

    /// Waits with node `id` in the queue, and queues it again if necessary, until it is granted the lock. Returns
    /// whether it is; if not, the node is left behind or returned.
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
                // Only the releaser changes our `TIMED_OUT`, and only to `REMOVED`.
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

    /// Queues node `id`, which is in no queue, as a waiter or, if the queue is empty, as the holder. Returns
    /// whether it is the holder.
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
        // Until then no acquisition may use it: it has a place in this queue.
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

    /// Without a place in the queue: acquires when no CPU holds or wants the lock, or gives up.
    fn lock_when_free(&self, shared: &Shared<P>, deadline_ns: u64) -> Option<Token> {
        let id = shared.nodes.take().unwrap_or(SPARE);
        let acquired = attempt_until::<P>(deadline_ns, |looks| {
            self.tail.spin_until(|tail| tail == NIL, Budget::Iterations(looks)).is_ok()
                && exchange_free(&self.tail, id)
        });
        if !acquired {
            shared.nodes.give_back(id);
        }
        acquired.then(|| self.begin(id))
    }

    /// Gives the CPU away if the holder seems to be descheduled.
    fn yield_if_overdue(&self) {
        if elapsed::<P>(self.since.load(Relaxed)) > OVERDUE {
            P::yield_now();
        } else {
            P::relax();
        }
    }

    /// For the releaser: the node behind `id`, which is the first in the queue; `None` if there is none, and so the lock is free now.
    #[inline]
    fn next(&self, shared: &Shared<P>, id: u32) -> Option<u32> {
        let node = self.node(shared, id);
        // Acquire: pairs with the link.
        let next = node.next.load(Acquire);
        if next != NIL {
            return Some(next);
        }
        // Release: what the holder did happens before the next acquisition.
        let is_last = self.tail.compare_exchange(id, NIL, Release, Relaxed).is_ok();
        (!is_last).then(|| await_link(&node.next))
    }

    /// For the releaser: passes over the node `first`, and all others up to one that is granted the lock, or to the end.
    ///
    /// A waiter that is told that it was removed may queue again, and be passed over again. So the first of them are told at
    /// once, and the others when the scan has ended: it ends, since then no node comes twice.
    #[cold]
    fn pass_over(&self, shared: &Shared<P>, first: u32) {
        // Release: after this the owner may write `next`, which we have already read.
        let tell = |id| self.node(shared, id).status.store(REMOVED, Release);
        let mut id = first;
        let (mut to_tell, mut told) = (None, 0);
        loop {
            let next = self.next(shared, id);
            if right!(told < shared.cpus(), P, Y4McsTpTellsEachAtOnce, true) {
                tell(id);
                told += 1;
            } else {
                to_tell = to_tell.or(Some(id));
            }
            let Some(next) = next.filter(|next| !self.node(shared, *next).grant()) else { break };
            id = next;
        }
        while let Some(one) = to_tell {
            // Relaxed: as this CPU has read it before.
            to_tell = (one != id).then(|| self.node(shared, one).next.load(Relaxed));
            tell(one);
        }
    }

    /// Begins the critical section.
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
        let Some(id) = shared.take() else { return self.begin(lock_with_spare(&self.tail)) };
        // Acquire, for a lock found free: pairs with the release in `unlock`. Release: publishes the node, so that
        // its `next` is empty before another CPU links itself to it.
        let before = self.tail.swap(id, AcqRel);
        if before != NIL {
            self.wait(shared, id, before);
        }
        self.begin(id)
    }

    #[inline]
    fn try_lock(&self, shared: &Shared<P>) -> Option<Token> {
        shared.nodes.try_lock(&self.tail).map(|id| self.begin(id))
    }

    #[inline(always)]
    fn unlock(&self, shared: &Shared<P>, Token(own): Token) {
        if let Some(next) = self.next(shared, own) {
            // Before the grant: after it the spare may belong to another CPU.
            self.node(shared, own).next.store(NIL, Relaxed);
            if !self.node(shared, next).grant() {
                self.pass_over(shared, next);
            }
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
