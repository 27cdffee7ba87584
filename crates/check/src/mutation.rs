//! Mistakes that a checker can make in a lock's place.

use std::sync::atomic::Ordering;

use overspin_locks::Bug;

/// One mistake that a world makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// No mistake: the lock as it is.
    None,
    /// An exchange is a load and a store.
    SplitSwap,
    /// Release is relaxed.
    NoRelease,
    /// Acquire is relaxed, also in spins.
    NoAcquire,
    /// Acquire-release is acquire: other CPUs can see late what an exchange publishes.
    NoPublication,
    /// The algorithm itself has this bug.
    Seeded(Bug),
    /// Serving the next ticket carries into `tail`. This and all mutations below exist in models
    /// only.
    CarryingHead,
    /// A compare-and-exchange on a ticket word compares `tail` only.
    TailOnlyCas,
    /// An interrupt handler appears to run in the context that it interrupts.
    OneContext,
    /// No fence after the release.
    NoUnlockFence,
    /// No fence between the announcement and the re-check.
    NoWaiterFence,
    /// The latch is cleared after the re-check, not before.
    LateClear,
    /// A CPU cannot set its own latch, as a nested pick-up does.
    NoPickupSet,
    /// A nested sleep forgets the outer registration.
    NoRestore,
    /// The registration is written after the re-check.
    LateRegistration,
}

impl Mutation {
    /// Returns the order to use where a lock asks for `order`.
    pub(crate) fn order(self, order: Ordering) -> Ordering {
        match (self, order) {
            (Self::NoRelease, Ordering::Release) | (Self::NoAcquire, Ordering::Acquire) => {
                Ordering::Relaxed
            }
            (Self::NoRelease | Self::NoPublication, Ordering::AcqRel) => Ordering::Acquire,
            (Self::NoAcquire, Ordering::AcqRel) => Ordering::Release,
            _ => order,
        }
    }
}
