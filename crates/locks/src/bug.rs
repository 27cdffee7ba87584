//! Bugs that were made, or nearly made, and that the model checker must find.
//!
//! In an algorithm each of them is in a [`right!`](right), with the right code first. A reader of the algorithm
//! can stop at the name of the bug; the rest is for the checker.

/// `right!(right, P, SomeBug, wrong)` is `right`. Where the checker has [seeded](crate::Platform::seeded)
/// [`SomeBug`](Bug) into `P`, which needs no recompilation, it is `wrong` instead. Elsewhere it compiles to
/// `right` alone.
macro_rules! right {
    ($right:expr, $platform:ident, $bug:ident, $wrong:expr $(,)?) => {
        if $platform::seeded($crate::Bug::$bug) { $wrong } else { $right }
    };
}
pub(crate) use right;

/// A bug that [`Platform::seeded`](crate::Platform::seeded) puts into an algorithm, at the place whose comment
/// explains the right code. The names begin with the row of the table in `docs/model-checking.md`. Bugs that a
/// platform can commit alone, such as a lost order, are seeded there and are not listed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bug {
    /// Ticket lock: drawing and serving tickets, `try_lock` looks at the tail alone.
    T2TryLockComparesTailOnly,
    /// Lock-byte: a waiter gives up but stays in the count of waiters.
    B3LockByteGivesUpAndStaysCounted,
    /// MCS: a waiter links itself before it resets its node.
    M1McsLinkBeforeReset,
    /// MCS: a releaser does not wait for a waiter that has swapped the tail and not yet linked itself.
    M2McsUnlockLeavesUnlinkedWaiter,
    /// CLH: a node is reused under its old version.
    C2ClhReuseWithoutNewVersion,
    /// Condition variable: a waiter queues itself after it has released the mutex.
    D1CondvarQueuesLate,
    /// Condition variable: a waiter whose time is up stays in the queue.
    D2CondvarGivesUpAndStaysQueued,
    /// Condition variable: a notifier wakes a waiter before it takes away the reason to sleep.
    D3CondvarWakesBeforeItNotifies,
    /// Condition variable: a notifier of all wakes one.
    D4CondvarWakesOneOfAll,
    /// Condition variable: a waiter becomes a sleeper of a mutex that is free.
    D5CondvarMovesToAFreeMutex,
    /// Condition variable: a waiter is moved to the sleepers of the mutex, and a wake-up that came just before is forgotten.
    D6CondvarForgetsAWakeUpBeforeTheMove,
    /// Condition variable: a waiter that was moved stays in the count of the mutex's sleepers.
    D7CondvarMovedWaiterStaysCounted,
    /// Condition variable: a waiter that was moved does not wait until its notifier has left the lock of the queue.
    D8CondvarReturnsBeforeItIsMoved,
    /// Condition variable: a waiter that was notified before it slept forgets that, and sleeps.
    D9CondvarSleepsThroughANotification,
    /// Condition variable: a notifier looks whether a waiter sleeps before it takes away the reason to sleep.
    D10CondvarLooksBeforeItNotifies,
    /// Reader-writer lock: a reader reads the count of wake-ups after it has looked at the lock.
    L1RwLockReaderReadsWakesLate,
    /// Reader-writer lock: a reader gives up but stays in the count of waiting readers.
    L2RwLockReaderGivesUpAndStaysCounted,
    /// Reader-writer lock: the last waiting reader to enter does not wake the writer that waits for that.
    L3RwLockLastWaiterDoesNotWakeTheWriter,
    /// Reader-writer lock: the last reader to leave does not wake the writer that waits for that.
    L4RwLockLastReaderDoesNotWakeTheWriter,
    /// Reader-writer lock: a writer wakes one of the waiting readers.
    L5RwLockWakesOneReader,
    /// Reader-writer lock: a writer does not wait for the readers.
    L6RwLockWriterDoesNotWaitForReaders,
    /// Reader-writer lock: a writer that was faster than the pending one does not wake it.
    L7RwLockFasterWriterDoesNotWake,
    /// Reader-writer lock: a writer gives up and does not wake the readers that wait for it.
    L8RwLockWriterGivesUpAndLeavesReadersAsleep,
    /// Reader-writer lock: a writer that leaves wakes the readers, and only then forgets that there were any.
    L9RwLockForgetsReadersLate,
    /// Reader-writer lock: a writer gives up in the queue and does not wake the readers that it has barred.
    L10RwLockWriterGivesUpAndLeavesTheBarred,
    /// Hemlock: a releaser does not wait until its grant has been seen.
    H1HemlockUnlockWithoutAcknowledgement,
    /// CNA: a releaser that finds the main queue empty forgets the secondary one.
    N1CnaSecondaryQueueIgnored,
    /// ShflLock: a shuffler moves the node to which newcomers link themselves.
    S1ShflLockMovesTheTail,
    /// ShflLock: the first place of the queue is given up with a relaxed order.
    S2ShflLockHeadPublishedRelaxed,
    /// TWA: a waiter looks at the grant first and at its slot second.
    W1TwaGrantBeforeSlot,
    /// Hapax: a waiter looks whether its predecessor has departed first and at its counter second.
    Z1HapaxDepartBeforeCounter,
    /// Hapax: a context draws the value that was the last to depart from the lock.
    Z2HapaxDrawsWhatHasDeparted,
    /// Hapax: the swap of `arrive` is relaxed.
    Z3HapaxArrivesRelaxed,
    /// Malthusian: a releaser that finds the chain empty forgets the passive list.
    A1MalthusianPassiveListIgnored,
    /// MCS-TP: the grant overwrites a time-out that came in between.
    Y1McsTpGrantIgnoresTimeOut,
    /// MCS-TP: a waiter gives up, and its node can be reused while it is still in the queue.
    Y2McsTpReusesTheNodeLeftBehind,
    /// MCS-TP: a waiter gives up although it has just been granted the lock.
    Y3McsTpGivesUpThoughGranted,
    /// MCS-TP: a releaser tells each waiter at once that it was removed, so that the same ones queue again before it.
    Y4McsTpTellsEachAtOnce,
    /// FlexGuard: a waiter that goes to sleep does not grant its successor in the queue.
    G1FlexGuardLeavesWithoutGrant,
    /// Paravirtual ticket lock of 2012: a releaser looks for the flag before it releases.
    P1PvTicketFlagBeforeRelease,
    /// Paravirtual ticket lock: a waiter looks at the head before it sets the flag.
    P3PvTicketHeadBeforeFlag,
    /// Paravirtual ticket lock: the releaser kicks the owner of its own ticket, not of the next.
    P4PvTicketKicksOldTicket,
    /// Paravirtual ticket lock: the flag is cleared although other CPUs are queued.
    P5PvTicketFlagClearedBlindly,
    /// Paravirtual ticket lock: a record changes in place, and a scan stops at the first match.
    P6PvTicketRecordWithoutNull,
    /// Paravirtual ticket lock: a scan stops at the first match, as published.
    P6bPvTicketKicksFirstMatchOnly,
    /// Paravirtual ticket lock: a nested wait forgets the outer record, and leaves the latch clear if it gets
    /// the lock before it sleeps, as published.
    P7PvTicketNestedPickUpLeavesLatchClear,
    /// Queued spinlock: a newcomer that set the pending bit in vain leaves it set.
    Q1QspinlockPendingNotUndone,
    /// Queued spinlock: the first of the queue takes the lock and forgets a waiter that has queued behind it.
    Q2QspinlockDropsTheTail,
    /// Queued spinlock: a waiter resets its node when other CPUs can already find it.
    Q4QspinlockResetAfterPublication,
    /// Resilient queued spinlock: a CPU notes a lock after it has taken it, as in Linux 6.17.
    R2RqspinlockNotesWhatItHas,
    /// Resilient queued spinlock: a pending waiter fails and leaves its bit.
    R3RqspinlockFailsAndStaysPending,
    /// Resilient queued spinlock: a waiter leaves the queue and does not tell its successor.
    R4RqspinlockLeavesItsSuccessor,
    /// Resilient queued spinlock: a failed acquisition leaves its note.
    R5RqspinlockKeepsItsNote,
    /// Paravirtual queued spinlock: the first of the queue calls itself halted when it sleeps.
    V1PvQspinlockHeadHalted,
    /// Paravirtual queued spinlock: only a waiter that was seen not to run is kicked.
    V2PvQspinlockKicksSleepersOnly,
    /// Paravirtual queued spinlock: a holder looks whether its successor sleeps before it makes it the first,
    /// not after.
    V3PvQspinlockLooksBeforePromoting,
    /// Paravirtual queued spinlock: the lock is released before its entry is removed.
    V4PvQspinlockReleaseBeforeRemoval,
    /// Paravirtual queued spinlock: a nested wait clears the latch.
    V5PvQspinlockNestedWaitClearsLatch,
    /// Paravirtual queued spinlock: the byte says that there is an entry before the entry exists.
    V6PvQspinlockSlowBeforeEntry,
    /// Paravirtual queued spinlock: a waiter may see that it is in the table but not that it is the first of
    /// the queue.
    V7PvQspinlockHashedSeenBeforeGrant,
    /// Paravirtual queued spinlock: a newcomer takes the free lock although the first of the queue is about to
    /// take it.
    V8PvQspinlockStealsFromTheFirst,
    /// Unfair queued spinlock: the first of the queue takes the lock without checking that it is still free.
    U1QspinlockUnfairFirstTakesBlindly,
    /// Unfair queued spinlock: a waiter that became the first while it took the lock out of turn leaves the
    /// queue as if it were not the first.
    U2QspinlockUnfairMissesItsGrant,
    /// Unfair queued spinlock: the last of the queue leaves it, but stays the next of the waiter before it.
    U3QspinlockUnfairLeavesItsLink,
    /// Unfair queued spinlock: a waiter leaves the queue, but stays the predecessor of the waiter behind it.
    U4QspinlockUnfairKeepsThePredecessor,
    /// Preemptable ticket lock: tickets are compared as if they did not wrap.
    K1PreemptableComparesWrappedTickets,
    /// Preemptable ticket lock: a release serves the next ticket and keeps the lock held.
    K2PreemptableServesWithoutReleasing,
    /// Futex mutex: a waiter that has slept takes the lock as if there were no other sleepers.
    F1FutexForgetsOtherSleepers,
    /// Futex mutex: a sleeper does not check that the word is unchanged.
    F2FutexWaitsWithoutComparing,
    /// Informed spinlock: the holder writes its estimate after the release.
    I1InformedLearnsAfterRelease,
    /// MUTEXEE: a thread that has slept takes the lock as if there were no other sleepers.
    E1MutexeeForgetsOtherSleepers,
    /// MUTEXEE: a thread that takes the lock from a waiting releaser does not take over its duty.
    E2MutexeeDropsTheDuty,
    /// MUTEXEE: the releaser clears the word although another thread may have taken the lock.
    E3MutexeeClearsBlindly,
    /// MUTEXEE: a sleeper does not check that the word is unchanged.
    E4MutexeeWaitsWithoutComparing,
    /// Swift's mutex: a sleeper does not check that the word is unchanged.
    J1SwiftMutexWaitsWithoutComparing,
    /// Swift's mutex: a waiter that has slept takes the lock as if there were no other sleepers.
    J2SwiftMutexForgetsOtherSleepers,
    /// Swift's mutex: a waiter that has slept stays in the count of parked ones.
    J3SwiftMutexStaysCounted,
    /// `mutex`: a sleeper reads the count of wake-ups only after it has been counted as a sleeper.
    O1MutexReadsWakesLate,
    /// `mutex`: a thread is counted as a sleeper although the lock is free by now.
    O2MutexSleepsOnAFreeLock,
    /// `mutex`: a releaser looks for sleepers before it releases.
    O3MutexLooksBeforeItReleases,
    /// `mutex`: a woken sleeper continues as if it had not been woken.
    O4MutexForgetsItWasWoken,
    /// `mutex`: the heir takes the lock and stays the heir.
    O5MutexHeirStays,
    /// `mutex`: the releaser wakes a sleeper before it changes the count of wake-ups.
    O6MutexWakesBeforeItCounts,
    /// `mutex`: a thread that pays for a long section waits until another thread uses the lock, even if none does.
    O8MutexPaysWithoutUsers,
    /// `mutex`: an heir that gives up stays the heir.
    O9MutexGivesUpAndStaysTheHeir,
    /// `mutex`: a woken thread that gives up leaves the other sleepers asleep.
    O10MutexGivesUpWithoutASuccessor,
    /// Mutex: a woken thread whose turn it is not goes back to sleep, but keeps the mark of the woken one.
    O11MutexGoesBackAndStaysTheWokenThread,
    /// Mutex: a woken thread whose turn it is takes the lock, but its turn does not end.
    O12MutexStaysDue,
}
