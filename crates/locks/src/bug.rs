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
}
