//! Profiles of the credit scheduler, and the parameters that an administrator may set.
//!
//! A profile is data: where the rules of versions differ, a field says so, and the code checks the
//! field. Source: schedulers specification §2 and §3.1.

use crate::error::SchedError;
use crate::params::{self, ParamInfo, ParamValue, Preset};
use crate::time::Nanos;

/// Credits that a running vCPU burns in a millisecond.
pub(crate) const CREDITS_PER_MS: i64 = 10;

const TSLICE: ParamInfo = ParamInfo::time(
    "tslice",
    (Nanos::MS, Nanos::ms(1000)),
    Nanos::ms(30),
    "Time slice, and period of the accounting; whole ms.",
);
const RATELIMIT: ParamInfo = ParamInfo::time(
    "ratelimit",
    (Nanos::ZERO, Nanos::ms(500)),
    Nanos::MS,
    "A vCPU that was dispatched less than this ago is not preempted; 0 is off, else at least \
     100 us and at most the time slice.",
);
const MIGRATION_DELAY: ParamInfo = ParamInfo::time(
    "migration_delay",
    (Nanos::ZERO, Nanos::ms(100)),
    Nanos::ZERO,
    "A vCPU that ran less than this ago is not stolen by another pCPU; 0 is off.",
);
const BALANCE_RATELIMIT: ParamInfo = ParamInfo::time(
    "balance_ratelimit",
    (Nanos::ZERO, Nanos::ms(1000)),
    Nanos::MS,
    "A pCPU looks for work elsewhere at most this often; 0 is off.",
);
const TICKLE_ONE_IDLE: ParamInfo = ParamInfo::flag(
    "tickle_one_idle",
    true,
    "A wake-up with several suitable idle pCPUs wakes one of them instead of all.",
);
const SMT_POWER_SAVINGS: ParamInfo = ParamInfo::flag(
    "smt_power_savings",
    false,
    "Pack vCPUs onto busy cores and sockets instead of spreading them.",
);
/// Until Xen commit f02a5760c7 (November 2015, in 4.7), such a vCPU was always placed anew. The new placement is a
/// wake-up, which boosts it, and the ratelimit does not protect it.
const KICK_ALWAYS: ParamInfo = ParamInfo::flag(
    "kick_always",
    true,
    "A wake-up that preempts while other pCPUs idle takes what it preempts off its pCPU to be placed \
     anew, even if it may run nowhere else; if not, only what an idle pCPU may run.",
);
const AS_IS: ParamInfo = ParamInfo::flag(
    "as_is",
    false,
    "Follow the original where it evidently does not do what was meant.",
);

/// Parameters of `credit`.
const TODAY_PARAMS: &[ParamInfo] = &[
    TSLICE,
    RATELIMIT,
    MIGRATION_DELAY,
    BALANCE_RATELIMIT,
    TICKLE_ONE_IDLE,
    SMT_POWER_SAVINGS,
    AS_IS,
];
/// Parameters of `credit-2016`.
const Y2016_PARAMS: &[ParamInfo] = &[
    TSLICE,
    RATELIMIT,
    MIGRATION_DELAY,
    TICKLE_ONE_IDLE,
    SMT_POWER_SAVINGS,
    KICK_ALWAYS.by_default(Preset::Flag(false)),
];
/// Parameters of `credit-2013`.
const Y2013_PARAMS: &[ParamInfo] =
    &[TSLICE, RATELIMIT, MIGRATION_DELAY, TICKLE_ONE_IDLE, SMT_POWER_SAVINGS, KICK_ALWAYS];
/// Parameters of `credit-2008`.
const Y2008_PARAMS: &[ParamInfo] = &[TSLICE, SMT_POWER_SAVINGS];

/// A version of the credit scheduler.
#[derive(Debug)]
pub(crate) struct Profile {
    pub name: &'static str,
    pub brief: &'static str,
    pub source: &'static str,
    /// Its parameters. What others have besides is off.
    pub params: &'static [ParamInfo],
    /// A tick charges the vCPU that runs then (100 credits by default), instead of charging time as
    /// it passes. The vCPUs of a domain share its weight, instead of each having it.
    pub sampled: bool,
    /// A vCPU that the ratelimit protects gets the rest of the ratelimit as its slice; if false,
    /// all of it.
    pub ratelimit_remainder: bool,
    pub yields: Yields,
    /// The wake-up after a migration boosts a vCPU too.
    pub boost_after_migration: bool,
    /// The first wake-up boosts it: insertion does not place it (until commit 9f358ddd69, in 4.8).
    pub boost_first: bool,
    /// A change of the affinity of a running vCPU places it at once, and again when it has left.
    pub places_running: bool,
    pub boost_unparked: bool,
    /// [`TICKLE_ONE_IDLE`] chooses which idle pCPUs a wake-up wakes.
    pub tickle_choice: bool,
    /// A pCPU that was told to look for work no longer counts as idle.
    pub tickled_is_busy: bool,
    pub steal: Steal,
    /// While a pCPU idles, its tick goes on, and it looks for work at the end of each time slice.
    pub idle_tick: bool,
    /// Placement leaves the socket only for one more than twice as idle, and rotates among idle
    /// pCPUs.
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

/// The order in which a pCPU without work looks at its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steal {
    /// From the next pCPU on, regardless of nodes.
    Cyclic,
    /// Node by node, from the first pCPU of each.
    NodeFirst,
    /// Node by node, from the pCPU after the one last stolen from; never takes a vCPU that yields.
    NodeRotating,
}

impl Profile {
    pub(crate) const TODAY: Self = Self {
        name: "credit",
        brief: "proportional share by credits, boost of waking vCPUs, caps, work stealing",
        source: "Xen 4.18 and later, credit",
        params: TODAY_PARAMS,
        sampled: false,
        ratelimit_remainder: true,
        yields: Yields::AtOnce,
        boost_after_migration: false,
        boost_first: false,
        places_running: false,
        boost_unparked: false,
        tickle_choice: true,
        tickled_is_busy: true,
        steal: Steal::NodeRotating,
        idle_tick: false,
        placement_bias: true,
    };

    pub(crate) const Y2013: Self = Self {
        name: "credit-2013",
        brief: "credit as of 2013: full ratelimit again after each pass, more boosts and kicks",
        source: "Xen 4.3 to 4.6, credit (the default)",
        params: Y2013_PARAMS,
        ratelimit_remainder: false,
        yields: Yields::Ratelimited,
        boost_after_migration: true,
        boost_first: true,
        places_running: true,
        boost_unparked: true,
        tickled_is_busy: false,
        steal: Steal::NodeFirst,
        ..Self::TODAY
    };

    /// 4.7 has two fixes of 2015 and 2016: f02a5760c7 (see [`KICK_ALWAYS`]) and 66c7449a4d,
    /// since which a migration does not boost.
    pub(crate) const Y2016: Self = Self {
        name: "credit-2016",
        brief: "credit as of 2016: that of 2013 without boosts after migrations and futile kicks",
        source: "Xen 4.7, credit (the default)",
        params: Y2016_PARAMS,
        boost_after_migration: false,
        ..Self::Y2013
    };

    pub(crate) const Y2008: Self = Self {
        name: "credit-2008",
        brief: "credit as of 2008: time charged by sampling at ticks, no ratelimit",
        source: "Xen 3.2 to 3.3, credit (the default)",
        params: Y2008_PARAMS,
        sampled: true,
        yields: Yields::Pass,
        boost_after_migration: true,
        boost_first: true,
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
    pub kick_always: bool,
    pub smt_power_savings: bool,
    pub as_is: bool,
}

impl Params {
    /// The profile's parameters, overridden by `over`. `over` was checked against the list of the
    /// profile's parameters; this checks the rules that ranges cannot express.
    pub(crate) fn new(profile: &Profile, over: &params::Params) -> Result<Self, SchedError> {
        let tslice = TSLICE.time_in(over);
        if tslice % Nanos::MS != Nanos::ZERO {
            let value = ParamValue::Time(tslice);
            return Err(SchedError::illegal(TSLICE.key, &value, &"1..=1000 ms in whole ms"));
        }
        let has = |info: ParamInfo| profile.params.iter().find(|own| own.key == info.key);
        let time = |info| has(info).map_or(Nanos::ZERO, |own| own.time_in(over));
        let flag = |info| has(info).is_some_and(|own| own.flag_in(over));
        // A shorter slice limits the profile's own ratelimit.
        let most = if over.time(RATELIMIT.key).is_some() { Nanos::MAX } else { tslice };
        let ratelimit = time(RATELIMIT).min(most);
        if ratelimit != Nanos::ZERO && !(Nanos::us(100)..=tslice).contains(&ratelimit) {
            let value = ParamValue::Time(ratelimit);
            let legal = "0 (off), or 100 us to 500 ms and at most tslice";
            return Err(SchedError::illegal(RATELIMIT.key, &value, &legal));
        }
        // A slice has three ticks, or one if it is too short for three.
        let ticks_per_tslice = if tslice < Nanos::ms(3) { 1 } else { 3 };
        let tick = tslice / i64::from(ticks_per_tslice) / Nanos::US * Nanos::US;
        Ok(Self {
            tslice,
            tick,
            ticks_per_tslice,
            credits_per_tslice: tslice / Nanos::MS * CREDITS_PER_MS,
            credits_per_tick: tslice / Nanos::MS * CREDITS_PER_MS / i64::from(ticks_per_tslice),
            ratelimit,
            migration_delay: time(MIGRATION_DELAY),
            balance_ratelimit: Some(time(BALANCE_RATELIMIT)).filter(|b| *b > Nanos::ZERO),
            tickle_one_idle: flag(TICKLE_ONE_IDLE),
            kick_always: flag(KICK_ALWAYS),
            smt_power_savings: flag(SMT_POWER_SAVINGS),
            as_is: flag(AS_IS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn time(key: &str, value: Nanos) -> params::Params {
        params::Params::default().with(key, ParamValue::Time(value))
    }

    fn error(over: &params::Params) -> alloc::string::String {
        let checked = over.check("credit", TODAY_PARAMS);
        checked.and_then(|()| Params::new(&Profile::TODAY, over)).unwrap_err().to_string()
    }

    #[test]
    fn ranges_are_checked_and_errors_name_the_key_and_what_is_legal() {
        for tslice in [
            Nanos::ZERO,
            Nanos::MS - Nanos(1),
            Nanos::MS + Nanos(1),
            Nanos::ms(1001),
            Nanos::MIN,
            Nanos::MAX,
        ] {
            let message = error(&time("tslice", tslice));
            assert!(
                message.starts_with("tslice = ") && message.contains("legal values"),
                "{message}"
            );
        }
        for ratelimit in [Nanos(-1), Nanos::us(99), Nanos::ms(31), Nanos::ms(501)] {
            let message = error(&time("ratelimit", ratelimit));
            assert!(message.starts_with("ratelimit = "), "{message}");
        }
        assert!(error(&time("migration_delay", Nanos::ms(101))).starts_with("migration_delay = "));
        assert!(error(&time("balance_ratelimit", Nanos(-1))).starts_with("balance_ratelimit = "));
    }

    #[test]
    fn a_profile_refuses_what_its_version_did_not_have() {
        let message = time("ratelimit", Nanos::MS).check("credit-2008", Y2008_PARAMS).unwrap_err();
        assert_eq!(
            message.to_string(),
            "`credit-2008` has no parameter `ratelimit`; it has: tslice, smt_power_savings"
        );
    }

    #[test]
    fn a_short_slice_has_one_tick() {
        let params = |ms| Params::new(&Profile::TODAY, &time("tslice", Nanos::ms(ms))).unwrap();
        assert_eq!((params(30).tick, params(30).credits_per_tslice), (Nanos::ms(10), 300));
        assert_eq!((params(2).tick, params(2).ticks_per_tslice), (Nanos::ms(2), 1));
        assert_eq!(params(5).tick, Nanos::us(1_666));
        assert_eq!(params(1).ratelimit, Nanos::MS);
    }
}
