//! What a checker can do wrong in a lock's place.

use std::sync::atomic::Ordering;

use overspin_locks::Bug;

/// One thing that a world does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Nothing: the lock as it is.
    None,
    /// An exchange is a load and a store.
    SplitSwap,
    /// Release is relaxed.
    NoRelease,
    /// Acquire is relaxed, also in spins.
    NoAcquire,
    /// Acquire-release is acquire: what is published by an exchange can be seen late.
    NoPublication,
    /// The algorithm itself is wrong, in this way.
    Seeded(Bug),
    /// Serving the next ticket carries into `tail`. In models only, as are all below.
    CarryingHead,
    /// A compare-and-exchange on a ticket word compares `tail` only.
    TailOnlyCas,
    /// An interrupt handler passes for the context that it interrupts.
    OneContext,
    /// No fence after the release.
    NoUnlockFence,
    /// No fence between the announcement and the re-check.
    NoWaiterFence,
    /// The latch is cleared after the re-check, not before.
    LateClear,
    /// The latch cannot be set by its own CPU, which is what a nested pick-up does.
    NoPickupSet,
    /// A nested sleep forgets the outer registration.
    NoRestore,
    /// The registration is written after the re-check.
    LateRegistration,
}

impl Mutation {
    /// The order to use where a lock asks for `order`.
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
