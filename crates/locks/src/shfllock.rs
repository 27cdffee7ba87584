//! ShflLock: a byte with a queue in front of it, whose waiters sort themselves by NUMA node.
//!
//! The byte is the lock. While there is a queue, only its first waiter competes for the byte; else
//! every CPU does. Meanwhile one of the waiters, the *shuffler*, brings waiters of its own NUMA node
//! forward: the work of a NUMA-aware lock, off its critical path.
//!
//! | `locked` | `tail` | State |
//! |---|---|---|
//! | 0 | `NIL` | free, the idle state |
//! | 0 | node n | free; the first of the queue, which ends with n, is about to take it |
//! | 1 | any | held |
//!
//! `no_steal` is 1 while there is a queue. It is written apart from `tail`, so it can be wrong for a
//! moment: then a CPU overtakes, or queues for nothing.
//!
//! | `status` of a node | State |
//! |---|---|
//! | 0 | waits |
//! | `SHUFFLER` | waits, and may shuffle |
//! | `HEAD`, with or without `SHUFFLER` | first of the queue |
//!
//! **Shuffling.** There is one shuffler at a time: the first of the queue, if no shuffler has grouped
//! it (`batch` is 0), or the waiter that was given the token. It walks the queue behind itself, and
//! links each waiter of its node behind the last of the group that begins with itself. The token goes
//! to the last of the group, which goes on from there. So the group is contiguous, and all of it has
//! left the queue before the next one begins. The size of a group is limited, for fairness.
//!
//! **Who writes a link.** A waiter links itself behind the last in the queue. After that only the
//! shuffler writes that `next`, and only behind itself. The shuffler stops at a node whose `next` is
//! empty: the tail, or a node whose successor has not linked itself yet and will.
//!
//! **Properties.** Unfair: newcomers steal when there is no queue, and shufflers group waiters when
//! there is one; a group has at most 256. Each waiter but the first spins on its own line. A
//! descheduled holder or first waiter stops all others. Uncontended: one read-modify-write and a
//! store; a CPU needs a node only while it waits. The release is the last access to the lock.
//!
//! **Interrupts** stay off from before the swap: see [`RawLock::lock_irqsave`].
//!
//! **Source.** Kashyap, Calciu, Cheng, Min and Kim, "Scalable and practical locking with shuffling",
//! SOSP 2019, the non-blocking form. Deviations: each walk begins at the shuffler, without a note of
//! where the last one ended; a group ends by its size only, without a lottery; a shuffler that found
//! no waiter to group pauses before it looks again.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::nodes::{ContextNodes, MAX_CONTEXT_CPUS, NIL, await_link};
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};

const FREE: u8 = 0;
const HELD: u8 = 1;
const HEAD: u32 = 1;
const SHUFFLER: u32 = 2;
/// Maximum number of waiters in a group: the published limit.
const MAX_BATCH: u32 = 256;
/// Wait-loop iterations between two walks of a shuffler: some microseconds. A waiter of the right
/// node that has just come loses nothing by it, unless its turn comes first.
const PAUSE: Budget = Budget::Iterations(64);

/// Properties of [`ShflLock`].
pub const INFO: LockInfo = LockInfo {
    name: "shfllock",
    brief: "Byte lock with a queue that its waiters sort by NUMA node.",
    source: "Kashyap et al., SOSP 2019",
    fair: false,
    local_spin: true,
    lhp: Meanwhile::Burn,
    lwp: Meanwhile::Burn,
    abortable: false,
    blocks: false,
    max_cpus: MAX_CONTEXT_CPUS,
    size: 8,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct ShflLock<P: Platform> {
    locked: P::U8,
    no_steal: P::U8,
    // Two bytes of padding come before this.
    tail: P::U32,
}

#[derive(Debug)]
struct Node<P: Platform> {
    next: P::U32,
    status: P::U32,
    /// NUMA node of the CPU.
    socket: P::U32,
    /// Size of the group up to this waiter; 0 if it is in none.
    batch: P::U32,
}

impl<P: Platform> Node<P> {
    fn new() -> Self {
        Self {
            next: P::U32::new(NIL),
            status: P::U32::new(0),
            socket: P::U32::new(0),
            batch: P::U32::new(0),
        }
    }
}

/// What all locks of a system share: the nodes.
#[derive(Debug)]
pub struct Shared<P: Platform>(ContextNodes<P, Node<P>>);

impl<P: Platform> ShflLock<P> {
    #[inline]
    fn acquire_at_once(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.no_steal.load(Relaxed) == 0
            && self.locked.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>) {
        let id = shared.0.mine();
        let node = shared.0.get(id);
        // Relaxed, all: published by the swap, and by the link.
        node.next.store(NIL, Relaxed);
        node.status.store(0, Relaxed);
        node.socket.store(P::numa_node() as u32, Relaxed);
        node.batch.store(0, Relaxed);
        // Release: publishes the node, so that its `next` is empty before another CPU links itself to
        // it. Acquire: to link ourselves to the node found.
        let before = self.tail.swap(id, AcqRel);
        if before == NIL {
            self.no_steal.store(1, Relaxed);
        } else {
            shared.0.get(before).next.store(id, Release);
            self.wait_for_head(shared, id);
        }
        self.acquire_as_head(shared, id);
        self.leave(shared, id);
    }

    /// Waits until it is the first of the queue; shuffles while it has the token.
    fn wait_for_head(&self, shared: &Shared<P>, id: u32) {
        let status = &shared.0.get(id).status;
        let is_head = |status: u32| status & HEAD != 0;
        // Acquires: pairs with the hand-over of the first place, or of the token.
        while let Ok(found) = status.spin_until(|status| status != 0, Budget::Forever) {
            if is_head(found) {
                return;
            }
            let goes_on = self.shuffle(shared, id, || is_head(status.load(Relaxed)));
            if goes_on {
                let _ = status.spin_until(is_head, PAUSE);
            } else {
                // Relaxed: the token is with another waiter, or with none.
                status.fetch_and(!SHUFFLER, Relaxed);
            }
        }
    }

    /// Competes for the byte with CPUs that steal before they see that there is a queue.
    fn acquire_as_head(&self, shared: &Shared<P>, id: u32) {
        let node = shared.0.get(id);
        let mut shuffles =
            node.batch.load(Relaxed) == 0 || node.status.load(Relaxed) & SHUFFLER != 0;
        let is_free = |locked| locked == FREE;
        loop {
            if shuffles && !is_free(self.locked.load(Relaxed)) {
                shuffles = self.shuffle(shared, id, || is_free(self.locked.load(Relaxed)));
            }
            let budget = if shuffles { PAUSE } else { Budget::Forever };
            // Acquire: pairs with the release in `unlock`.
            if self.locked.spin_until(is_free, budget).is_ok()
                && self.locked.compare_exchange_weak(FREE, HELD, Acquire, Relaxed).is_ok()
            {
                return;
            }
        }
    }

    /// Brings waiters of the same NUMA node up behind `id`, until `stop`. Returns whether the token
    /// stays with `id` because there was no waiter to give it to.
    fn shuffle(&self, shared: &Shared<P>, id: u32, stop: impl Fn() -> bool) -> bool {
        let get = |id| shared.0.get(id);
        // Relaxed, all but the link and the token: see "Who writes a link".
        let here = get(id).socket.load(Relaxed);
        let mut batch = get(id).batch.load(Relaxed).max(1);
        get(id).batch.store(batch, Relaxed);
        let (mut last, mut before) = (id, id);
        while batch < MAX_BATCH && !stop() {
            // Acquire, both: pairs with the link.
            let current = get(before).next.load(Acquire);
            if current == NIL {
                break;
            }
            let next = get(current).next.load(Acquire);
            // The tail must stay where newcomers find it, and so must the node before a newcomer that
            // has not linked itself yet.
            if right!(next == NIL, P, S1ShflLockMovesTheTail, false) {
                break;
            }
            if get(current).socket.load(Relaxed) != here {
                before = current;
                continue;
            }
            if before == last {
                before = current;
            } else {
                get(before).next.store(next, Relaxed);
                get(current).next.store(get(last).next.load(Relaxed), Relaxed);
                get(last).next.store(current, Relaxed);
            }
            batch += 1;
            get(current).batch.store(batch, Relaxed);
            last = current;
        }
        if last != id && batch < MAX_BATCH {
            // Release: the links come before what the next shuffler does with them.
            get(last).status.fetch_or(SHUFFLER, Release);
        }
        last == id && batch < MAX_BATCH
    }

    /// As the holder, gives up the first place of the queue.
    fn leave(&self, shared: &Shared<P>, id: u32) {
        let node = shared.0.get(id);
        // Acquire: pairs with the link.
        let mut next = node.next.load(Acquire);
        if next == NIL {
            // Relaxed: exclusion rests on `locked`, and no CPU will look at the node.
            if self.tail.compare_exchange(id, NIL, Relaxed, Relaxed).is_ok() {
                self.no_steal.store(0, Relaxed);
                return;
            }
            next = await_link(&node.next);
        }
        // Release: our changes of links come before those of the next waiter.
        let order = right!(Release, P, S2ShflLockHeadPublishedRelaxed, Relaxed);
        shared.0.get(next).status.fetch_or(HEAD, order);
    }
}

impl<P: Platform> RawLock<P> for ShflLock<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();

    fn shared(cpus: usize, _tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared(ContextNodes::new(cpus, Node::new)))
    }

    fn new() -> Self {
        Self { locked: P::U8::new(FREE), no_steal: P::U8::new(0), tail: P::U32::new(NIL) }
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
        self.locked.store(FREE, Release);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.locked.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        self.tail.load(Relaxed) != NIL
    }
}
