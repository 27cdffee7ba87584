//! Bugs that were made, or nearly, and that the model checker must find.

/// A bug that [`Platform::seeded`](crate::Platform::seeded) puts into an algorithm at the place
/// where the comment says why the right code is right. The names begin with the row of the table
/// in `docs/model-checking.md`. Bugs that a platform can commit alone, such as a lost order, are
/// seeded there and are not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bug {
    /// Ticket lock: drawing and serving tickets, `try_lock` looks at the tail alone.
    T2TryLockComparesTailOnly,
    /// MCS: a waiter links itself before it resets its node.
    M1McsLinkBeforeReset,
    /// MCS: a releaser does not wait for who has swapped and not yet linked itself.
    M2McsUnlockLeavesUnlinkedWaiter,
    /// CLH: a node is used again under its old version.
    C2ClhReuseWithoutNewVersion,
    /// Hemlock: a releaser does not wait until its grant has been seen.
    H1HemlockUnlockWithoutAcknowledgement,
    /// CNA: a releaser who finds the main queue empty forgets the secondary one.
    N1CnaSecondaryQueueIgnored,
    /// ShflLock: a shuffler moves the node that newcomers link themselves to.
    S1ShflLockMovesTheTail,
    /// TWA: a waiter looks at the grant first and at its slot second.
    W1TwaGrantBeforeSlot,
    /// Malthusian: a releaser who finds the chain empty forgets the passive list.
    A1MalthusianPassiveListIgnored,
    /// MCS-TP: the grant overwrites a time-out that came in between.
    Y1McsTpGrantIgnoresTimeOut,
    /// FlexGuard: a waiter that goes to sleep does not grant its successor in the queue.
    G1FlexGuardLeavesWithoutGrant,
}
