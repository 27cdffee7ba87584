//! Waiting that ends at a deadline.

use crate::Platform;

/// Looks between two readings of the clock, at most: a few microseconds.
const LOOKS: u32 = 1 << 7;

/// Attempts until one succeeds, or until the deadline has passed; returns whether one has. Each may look so often
/// as it is told. It begins with few looks, for a deadline that is near.
pub(crate) fn attempt_until<P: Platform>(
    deadline_ns: u64,
    mut attempt: impl FnMut(u32) -> bool,
) -> bool {
    let mut looks = 1;
    loop {
        if attempt(looks) {
            return true;
        }
        if P::now() >= deadline_ns {
            return false;
        }
        looks = LOOKS.min(looks * 2);
    }
}
