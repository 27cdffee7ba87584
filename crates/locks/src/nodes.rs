//! Queue nodes: per-CPU arrays in memory that all CPUs share, addressed by number.
//!
//! A node's number says which CPU it belongs to and which of that CPU's nodes it is. Only the owner
//! takes and returns a node; other CPUs reach it by the number that they find in a lock or in
//! another node. Numbers fit in 16 bits, so a lock can keep one beside something else in a word.

use core::fmt::Debug;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

use crate::{AtomicCell, Budget, CachePadded, CpuId, Platform};

/// No node.
pub(crate) const NIL: u32 = 0;
/// The node inside the lock, for a CPU that has none left. See [`NodePool`].
pub(crate) const SPARE: u32 = u16::MAX as u32;
/// Nodes of a pool per CPU: how many locks a CPU can hold or wait for at once, in all its contexts,
/// before it must use the spare nodes. Deeper nesting is rare in any kernel.
const POOL: usize = 8;
/// Contexts that can nest on one CPU: task, soft interrupt, interrupt, non-maskable interrupt.
const CONTEXTS: usize = 4;
/// Number of nodes in a pool for `cpus` CPUs.
pub(crate) const fn pool_size(cpus: usize) -> usize {
    cpus * POOL
}
/// Maximum number of CPUs that a pool can serve.
pub(crate) const MAX_POOL_CPUS: u32 = (SPARE - 1) / POOL as u32;
/// Maximum number of CPUs that [`ContextNodes`] can serve.
pub(crate) const MAX_CONTEXT_CPUS: u32 = (SPARE - 1) / CONTEXTS as u32;

/// Waits until the next in the queue, which has swapped the tail, has linked itself; returns its
/// node. Acquires: pairs with the link.
pub(crate) fn await_link(next: &impl AtomicCell<Value = u32>) -> u32 {
    match next.spin_until(|next| next != NIL, Budget::Forever) {
        Ok(next) | Err(next) => next,
    }
}

/// Takes a lock whose `tail` is [`NIL`] while it is free, with node `id`, if it is free.
pub(crate) fn exchange_free(tail: &impl AtomicCell<Value = u32>, id: u32) -> bool {
    // Acquire: pairs with the release in the lock's `unlock`. Release: publishes the node.
    tail.compare_exchange(NIL, id, AcqRel, Relaxed).is_ok()
}

/// Takes such a lock with its spare node: waits until no CPU holds or wants it.
#[cold]
pub(crate) fn lock_with_spare(tail: &impl AtomicCell<Value = u32>) -> u32 {
    while !exchange_free(tail, SPARE) {
        let _ = tail.spin_until(|tail| tail == NIL, Budget::Forever);
    }
    SPARE
}

/// Nodes that a CPU keeps from lock to unlock: it needs as many as it can hold locks.
///
/// When a CPU has used up all of its nodes, the next lock lends it the node inside itself,
/// [`SPARE`]. A CPU can have that node only if it takes the lock without waiting: it exchanges the
/// tail of the *free* lock for `SPARE`. So the spare has one user at a time, and that user never
/// waits in it. From then on it is a node like any other. The lock is correct, but no longer fair
/// to that CPU.
///
/// Invariant, which the spare needs: a node in no queue is as `init` made it.
#[derive(Debug)]
pub(crate) struct NodePool<P: Platform, N: Debug + 'static> {
    entries: P::Slots<CachePadded<Entry<P, N>>>,
}

#[derive(Debug)]
struct Entry<P: Platform, N> {
    /// 1 if taken. Only the owner writes it.
    taken: P::U32,
    node: N,
}

impl<P: Platform, N: Debug + 'static> NodePool<P, N> {
    /// Nodes for `cpus` CPUs, at most [`MAX_POOL_CPUS`].
    pub(crate) fn new(cpus: usize, init: impl Fn() -> N) -> Self {
        let entry = |_| CachePadded::new(Entry { taken: P::U32::new(0), node: init() });
        Self { entries: P::slots(cpus * POOL, entry) }
    }

    /// Takes a free node of this CPU; `None` if there is none.
    #[inline]
    pub(crate) fn take(&self) -> Option<u32> {
        let first = P::cpu_id() * POOL;
        // Relaxed: only this CPU writes it. A handler between load and store leaves it as it found
        // it.
        let index =
            (first..first + POOL).find(|&index| self.entries[index].taken.load(Relaxed) == 0)?;
        self.entries[index].taken.store(1, Relaxed);
        // Uses of the node come after the mark; otherwise an interrupt handler in between would
        // take the same node. The handler runs on this CPU, so a compiler fence is enough.
        compiler_fence(SeqCst);
        Some(index as u32 + 1)
    }

    /// For a lock whose `tail` is [`NIL`] while it is free: takes the lock if it is free, and returns the node.
    #[inline]
    pub(crate) fn try_lock(&self, tail: &P::U32) -> Option<u32> {
        // Relaxed: a guess, which the exchange checks.
        if tail.load(Relaxed) != NIL {
            return None;
        }
        let id = self.take().unwrap_or(SPARE);
        if exchange_free(tail, id) {
            return Some(id);
        }
        self.give_back(id);
        None
    }

    /// The nodes of this CPU, taken or not.
    pub(crate) fn own() -> core::ops::RangeInclusive<u32> {
        let first = P::cpu_id() * POOL;
        first as u32 + 1..=(first + POOL) as u32
    }

    /// Returns `id`, which comes from [`NodePool::take`] on this CPU. Does nothing with a spare.
    #[inline]
    pub(crate) fn give_back(&self, id: u32) {
        if id != SPARE {
            compiler_fence(SeqCst);
            self.entries[id as usize - 1].taken.store(0, Relaxed);
        }
    }

    /// The node `id` of the pool.
    pub(crate) fn own_node(&self, id: u32) -> &N {
        &self.entries[id as usize - 1].node
    }

    /// The node `id`, where `spare` is the one inside the lock.
    #[inline]
    pub(crate) fn get<'a>(&'a self, id: u32, spare: &'a N) -> &'a N {
        if id == SPARE { spare } else { &self.entries[id as usize - 1].node }
    }
}

/// Nodes that a CPU needs only while it waits: one for each context, because a context waits for
/// one lock at a time.
#[derive(Debug)]
pub(crate) struct ContextNodes<P: Platform, N: Debug + 'static> {
    nodes: P::Slots<CachePadded<N>>,
}

impl<P: Platform, N: Debug + 'static> ContextNodes<P, N> {
    /// Nodes for `cpus` CPUs, at most [`MAX_CONTEXT_CPUS`].
    pub(crate) fn new(cpus: usize, init: impl Fn() -> N) -> Self {
        Self { nodes: P::slots(cpus * CONTEXTS, |_| CachePadded::new(init())) }
    }

    /// How many nodes there are for `cpus` CPUs. Their numbers begin with 1.
    pub(crate) const fn number(cpus: usize) -> usize {
        cpus * CONTEXTS
    }

    /// The node of the context that executes this call.
    #[inline]
    pub(crate) fn mine(&self) -> u32 {
        (P::cpu_id() * CONTEXTS + P::ctx_level()) as u32 + 1
    }

    /// The node `id`.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &N {
        &self.nodes[id as usize - 1]
    }

    /// The CPU of the node `id`.
    pub(crate) fn cpu_of(id: u32) -> CpuId {
        (id as usize - 1) / CONTEXTS
    }
}
