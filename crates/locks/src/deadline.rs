//! Waiting that ends at a deadline.

use crate::Platform;

/// A deadline that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

pub(crate) fn has_passed<P: Platform>(deadline_ns: u64) -> bool {
    deadline_ns != NEVER && P::now() >= deadline_ns
}

/// Sleeps while `cell` holds `value`, until the deadline at the latest; may return at any time.
pub(crate) fn sleep<P: Platform>(cell: &P::U32, value: u32, deadline_ns: u64) {
    if !P::can_block() {
        return;
    }
    match deadline_ns {
        NEVER => P::wait(cell, value),
        _ => P::wait_until(cell, value, deadline_ns),
    }
}

/// Maximum number of looks between two readings of the clock: a few microseconds.
const LOOKS: u32 = 1 << 7;

/// Repeats `attempt` until it succeeds or the deadline has passed; returns whether it succeeded. `attempt` gets
/// the number of looks that it may take. This number is small at first, for a deadline that is near.
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
