//! Conversion between the picoseconds of scenarios and the nanoseconds of the hypervisor. No other
//! code converts one into the other.

use overspin_scenario::{NS, Picos};
use overspin_sched::Nanos;

/// The hypervisor's clock at `time`, in whole nanoseconds.
#[must_use]
pub fn nanos(time: Picos) -> Nanos {
    // It fits: 64 bits of picoseconds last for 213 days, 63 bits of nanoseconds for 292 years.
    Nanos((time / NS) as i64)
}

/// A time of the hypervisor in the unit of scenarios. Scenarios count from 0, so a negative time
/// becomes 0.
#[must_use]
pub fn picos(time: Nanos) -> Picos {
    NS.saturating_mul(time.0.max(0).unsigned_abs())
}
