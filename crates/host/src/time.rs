//! Between the picoseconds of scenarios and the nanoseconds of the hypervisor: the only place that
//! converts one into the other.

use overspin_scenario::{NS, Picos};
use overspin_sched::Nanos;

/// What the hypervisor's clock shows at `time`: whole nanoseconds.
#[must_use]
pub fn nanos(time: Picos) -> Nanos {
    // It fits: the picoseconds of 64 bits last for 213 days, the nanoseconds of 63 for 292 years.
    Nanos((time / NS) as i64)
}

/// A time of the hypervisor as scenarios count it, which they do from 0 on: what is before that is 0.
#[must_use]
pub fn picos(time: Nanos) -> Picos {
    NS.saturating_mul(time.0.max(0).unsigned_abs())
}
