//! Queue nodes: per-CPU arrays in memory that all CPUs share, addressed by number.
//!
//! A node's number says which CPU it belongs to and which of that CPU's nodes it is. Only the owner
//! takes and returns a node; others reach it by the number that they find in a lock or in another
//! node. Numbers fit 16 bits, so that a lock can keep one beside something else in a word.

use core::fmt::Debug;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};

use crate::{AtomicCell, Budget, CachePadded, CpuId, Platform};

/// No node.
pub(crate) const NIL: u32 = 0;
/// The node inside the lock, for a CPU that has none left. See [`NodePool`].
pub(crate) const SPARE: u32 = u16::MAX as u32;
/// Nodes of a pool that belong to one CPU: the locks that it can hold or wait for at once, in all
/// its contexts, before it is reduced to the spare nodes. Deeper nesting is rare in any kernel.
const POOL: usize = 8;
/// Contexts that can nest on one CPU: task, soft interrupt, interrupt, non-maskable interrupt.
const CONTEXTS: usize = 4;
/// Nodes in a pool for so many CPUs.
pub(crate) const fn pool_size(cpus: usize) -> usize {
    cpus * POOL
}
/// CPUs that a pool can serve.
pub(crate) const MAX_POOL_CPUS: u32 = (SPARE - 1) / POOL as u32;
/// CPUs that [`ContextNodes`] can serve.
pub(crate) const MAX_CONTEXT_CPUS: u32 = (SPARE - 1) / CONTEXTS as u32;

/// Waits until the next in the queue, who has swapped the tail, has linked itself; returns it.
/// Acquires: pairs with the link.
pub(crate) fn await_link(next: &impl AtomicCell<Value = u32>) -> u32 {
    match next.spin_until(|next| next != NIL, Budget::Forever) {
        Ok(next) | Err(next) => next,
    }
}

/// Nodes that are held from lock to unlock: as many as a CPU can hold locks.
///
/// When a CPU has used all of its nodes up, the next lock lends it the one inside itself,
/// [`SPARE`]. Only who takes the lock without waiting can have that: it is acquired by exchanging
/// the tail of the *free* lock for `SPARE`, so there is one user at a time, and it never waits in
/// it. From then on it is a node like any other. The lock is correct, but no longer fair to that
/// CPU.
///
/// Invariant, for the spare's sake: a node that is in no queue is as `init` made it.
#[derive(Debug)]
pub(crate) struct NodePool<P: Platform, N: Debug + 'static> {
    entries: P::Slots<CachePadded<Entry<P, N>>>,
}

#[derive(Debug)]
struct Entry<P: Platform, N> {
    /// 1 if taken. Written by the owner only.
    taken: P::U32,
    node: N,
}

impl<P: Platform, N: Debug + 'static> NodePool<P, N> {
    /// Nodes for `cpus` CPUs, at most [`MAX_POOL_CPUS`].
    pub(crate) fn new(cpus: usize, init: impl Fn() -> N) -> Self {
        let entry = |_| CachePadded::new(Entry { taken: P::U32::new(0), node: init() });
        Self { entries: P::slots(cpus * POOL, entry) }
    }

    /// Takes a free node of this CPU; `None` if it has none.
    #[inline]
    pub(crate) fn take(&self) -> Option<u32> {
        let first = P::cpu_id() * POOL;
        // Relaxed: only this CPU writes it. A handler between load and store leaves it as found.
        let index =
            (first..first + POOL).find(|&index| self.entries[index].taken.load(Relaxed) == 0)?;
        self.entries[index].taken.store(1, Relaxed);
        // What is done with the node comes after the mark: an interrupt handler in between would
        // take the same node. It runs on this CPU, so the compiler is all there is to hold back.
        compiler_fence(SeqCst);
        Some(index as u32 + 1)
    }

    /// The nodes of this CPU, taken or not.
    pub(crate) fn own() -> core::ops::RangeInclusive<u32> {
        let first = P::cpu_id() * POOL;
        first as u32 + 1..=(first + POOL) as u32
    }

    /// Gives `id`, from [`NodePool::take`] on this CPU, back. Nothing happens with a spare.
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

/// Nodes that are needed only while their CPU waits: one for each context, for a context waits for
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
