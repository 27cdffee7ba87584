//! Profiles of the credit scheduler, and the parameters that an administrator may set.
//!
//! A profile is data: where the rules of a version differ, a field says so, and the code asks the
//! field. Source: schedulers specification §2 and §3.1.

use crate::error::SchedError;
use crate::ids::Nanos;

/// ns in a microsecond and in a millisecond.
pub(crate) const US: Nanos = 1_000;
pub(crate) const MS: Nanos = 1_000_000;

/// Credits that a running vCPU burns in a millisecond.
pub(crate) const CREDITS_PER_MS: i64 = 10;

/// Changes to a profile's parameters; what is left out is the profile's. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditParams {
    /// Time slice, and period of the accounting: whole ms, 1..=1000 ms. Default 30 ms.
    pub tslice: Option<Nanos>,
    /// A vCPU that was dispatched less than this ago is not preempted: 0 (off) or 100 us..=500 ms,
    /// at most the time slice. Default 1 ms. Not in `credit-2008`.
    pub ratelimit: Option<Nanos>,
    /// A vCPU that ran less than this ago is not stolen by another pCPU: 0 (off)..=100 ms.
    /// Default 0. Not in `credit-2008`.
    pub migration_delay: Option<Nanos>,
    /// A pCPU looks for work elsewhere at most this often: 0 (off)..=1 s. Default 1 ms. In
    /// `credit` only.
    pub balance_ratelimit: Option<Nanos>,
    /// A wake-up with several suitable idle pCPUs wakes one of them instead of all. Default true.
    /// Not in `credit-2008`.
    pub tickle_one_idle: Option<bool>,
    /// Pack vCPUs onto busy cores and sockets instead of spreading them. Default false.
    pub smt_power_savings: Option<bool>,
    /// Follow the original where it evidently does not do what was meant. Default false.
    pub as_is: Option<bool>,
}

/// A version of the credit scheduler.
#[derive(Debug)]
pub(crate) struct Profile {
    pub name: &'static str,
    pub brief: &'static str,
    pub source: &'static str,
    /// Time is charged at ticks, 100 credits to whoever runs then, instead of as it passes; and a
    /// domain's weight is shared by its vCPUs instead of being the weight of each.
    pub sampled: bool,
    pub ratelimit: Option<Nanos>,
    /// What is left of the ratelimit is the slice of a vCPU that it protects; else all of it.
    pub ratelimit_remainder: bool,
    pub migration_delay: Option<Nanos>,
    pub balance_ratelimit: Option<Nanos>,
    pub yields: Yields,
    /// A vCPU is boosted by its first wake-up and by the one after a migration too.
    pub boost_after_migration: bool,
    pub boost_unparked: bool,
    /// Which idle pCPUs a wake-up wakes can be chosen by parameter.
    pub tickle_choice: bool,
    /// A pCPU that was told to look for work is not taken for idle any more.
    pub tickled_is_busy: bool,
    pub steal: Steal,
    /// The tick goes on while a pCPU idles.
    pub idle_tick: bool,
    /// Placement leaves the socket only for one twice as idle, and rotates among idle pCPUs.
    pub placement_bias: bool,
}

/// What a yield does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Yields {
    /// Nothing but a scheduling pass.
    Pass,
    /// Queue one place further back, subject to the ratelimit.
    Ratelimited,
    /// Queue one place further back, at once.
    AtOnce,
}

/// In which order a pCPU without work looks at its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steal {
    /// From the next pCPU, whatever the nodes.
    Cyclic,
    /// Node by node, from the first pCPU of each.
    NodeFirst,
    /// Node by node, from the one after that which gave last; never a vCPU that yields.
    NodeRotating,
}

impl Profile {
    pub(crate) const TODAY: Self = Self {
        name: "credit",
        brief: "proportional share by credits, boost of waking vCPUs, caps, work stealing",
        source: "Xen 4.18 and later, credit",
        sampled: false,
        ratelimit: Some(MS),
        ratelimit_remainder: true,
        migration_delay: Some(0),
        balance_ratelimit: Some(MS),
        yields: Yields::AtOnce,
        boost_after_migration: false,
        boost_unparked: false,
        tickle_choice: true,
        tickled_is_busy: true,
        steal: Steal::NodeRotating,
        idle_tick: false,
        placement_bias: true,
    };

    pub(crate) const Y2013: Self = Self {
        name: "credit-2013",
        brief: "credit as of 2013: full ratelimit again after each pass, more boosts",
        source: "Xen 4.3 to 4.6, credit (the default)",
        ratelimit_remainder: false,
        balance_ratelimit: None,
        yields: Yields::Ratelimited,
        boost_after_migration: true,
        boost_unparked: true,
        tickled_is_busy: false,
        steal: Steal::NodeFirst,
        ..Self::TODAY
    };

    pub(crate) const Y2008: Self = Self {
        name: "credit-2008",
        brief: "credit as of 2008: time charged by sampling at ticks, no ratelimit",
        source: "Xen 3.2 to 3.3, credit (the default)",
        sampled: true,
        ratelimit: None,
        migration_delay: None,
        balance_ratelimit: None,
        yields: Yields::Pass,
        boost_after_migration: true,
        boost_unparked: false,
        tickle_choice: false,
        tickled_is_busy: false,
        steal: Steal::Cyclic,
        idle_tick: true,
        placement_bias: false,
        ..Self::TODAY
    };
}

/// The parameters in force.
#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub tslice: Nanos,
    pub tick: Nanos,
    /// Ticks in a time slice.
    pub ticks_per_tslice: u32,
    /// Credits that a pCPU hands out in a period (CPT).
    pub credits_per_tslice: i64,
    /// Credits that one tick costs under sampled accounting.
    pub credits_per_tick: i64,
    /// 0 is off.
    pub ratelimit: Nanos,
    /// 0 is off.
    pub migration_delay: Nanos,
    /// None is off.
    pub balance_ratelimit: Option<Nanos>,
    pub tickle_one_idle: bool,
    pub smt_power_savings: bool,
    pub as_is: bool,
}

impl Params {
    /// The profile's parameters with `over` in their place.
    pub(crate) fn new(profile: &'static Profile, over: &CreditParams) -> Result<Self, SchedError> {
        let absent = |key| SchedError::NotInProfile { key, profile: profile.name };
        let tslice = over.tslice.unwrap_or(30 * MS);
        if !(MS..=1000 * MS).contains(&tslice) || tslice % MS != 0 {
            let legal = "1000000..=1000000000 ns (1..=1000 ms) in whole ms";
            return Err(SchedError::Param { key: "tslice", value: tslice, legal });
        }
        if over.ratelimit.is_some() && profile.ratelimit.is_none() {
            return Err(absent("ratelimit"));
        }
        let ratelimit = over.ratelimit.or(profile.ratelimit).unwrap_or(0);
        let legal = ratelimit == 0 || (100 * US..=500 * MS).contains(&ratelimit);
        if !legal || ratelimit > tslice {
            let legal = "0 (off) or 100000..=500000000 ns (100 us..=500 ms), at most tslice";
            return Err(SchedError::Param { key: "ratelimit", value: ratelimit, legal });
        }
        if over.migration_delay.is_some() && profile.migration_delay.is_none() {
            return Err(absent("migration_delay"));
        }
        let migration_delay = over.migration_delay.or(profile.migration_delay).unwrap_or(0);
        if !(0..=100 * MS).contains(&migration_delay) {
            let legal = "0 (off)..=100000000 ns (100 ms)";
            return Err(SchedError::Param {
                key: "migration_delay",
                value: migration_delay,
                legal,
            });
        }
        if over.balance_ratelimit.is_some() && profile.balance_ratelimit.is_none() {
            return Err(absent("balance_ratelimit"));
        }
        let balance_ratelimit = over.balance_ratelimit.or(profile.balance_ratelimit);
        if let Some(value) = balance_ratelimit.filter(|b| !(0..=1000 * MS).contains(b)) {
            let legal = "0 (off)..=1000000000 ns (1 s)";
            return Err(SchedError::Param { key: "balance_ratelimit", value, legal });
        }
        if over.tickle_one_idle.is_some() && !profile.tickle_choice {
            return Err(absent("tickle_one_idle"));
        }
        // Three ticks to a slice; one to a slice too short for that.
        let ticks_per_tslice = if tslice < 3 * MS { 1 } else { 3 };
        let tick = tslice / Nanos::from(ticks_per_tslice) / US * US;
        Ok(Self {
            tslice,
            tick,
            ticks_per_tslice,
            credits_per_tslice: tslice / MS * CREDITS_PER_MS,
            credits_per_tick: tslice / MS * CREDITS_PER_MS / i64::from(ticks_per_tslice),
            ratelimit,
            migration_delay,
            balance_ratelimit: balance_ratelimit.filter(|b| *b > 0),
            tickle_one_idle: over.tickle_one_idle.unwrap_or(profile.tickle_choice),
            smt_power_savings: over.smt_power_savings.unwrap_or(false),
            as_is: over.as_is.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn error(profile: &'static Profile, over: CreditParams) -> alloc::string::String {
        Params::new(profile, &over).unwrap_err().to_string()
    }

    #[test]
    fn ranges_are_checked_and_errors_name_the_key_and_what_is_legal() {
        let none = CreditParams::default();
        for tslice in [0, MS - 1, MS + 1, 1001 * MS, Nanos::MIN, Nanos::MAX] {
            let message = error(&Profile::TODAY, CreditParams { tslice: Some(tslice), ..none });
            assert!(
                message.starts_with("tslice = ") && message.contains("1..=1000 ms"),
                "{message}"
            );
        }
        for ratelimit in [-1, 99 * US, 31 * MS, 501 * MS] {
            let message =
                error(&Profile::TODAY, CreditParams { ratelimit: Some(ratelimit), ..none });
            assert!(message.starts_with("ratelimit = "), "{message}");
        }
        let over = CreditParams { migration_delay: Some(101 * MS), ..none };
        assert!(error(&Profile::TODAY, over).starts_with("migration_delay = "));
        let over = CreditParams { balance_ratelimit: Some(-1), ..none };
        assert!(error(&Profile::TODAY, over).starts_with("balance_ratelimit = "));
    }

    #[test]
    fn a_profile_refuses_what_its_version_did_not_have() {
        let over = CreditParams { ratelimit: Some(MS), ..CreditParams::default() };
        let message = error(&Profile::Y2008, over);
        assert_eq!(message, "profile `credit-2008` has no parameter ratelimit; leave it out");
    }

    #[test]
    fn a_short_slice_has_one_tick() {
        let params = |ms| {
            let over = CreditParams { tslice: Some(ms * MS), ..CreditParams::default() };
            Params::new(&Profile::TODAY, &over).unwrap()
        };
        assert_eq!((params(30).tick, params(30).credits_per_tslice), (10 * MS, 300));
        assert_eq!((params(2).tick, params(2).ticks_per_tslice), (2 * MS, 1));
        assert_eq!(params(5).tick, 1_666 * US);
    }
}
