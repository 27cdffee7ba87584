//! Versions of credit2, and the parameters that an administrator may set.
//!
//! Source: schedulers specification §2 and §4.1.

use super::Credit2;
use super::load::Window;
use super::smt::ALONE;
use crate::error::SchedError;
use crate::params::{self, ParamInfo, ParamValue, Preset};
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;

/// Credit of a new vCPU, and credit that a reset adds. One credit is 1 ns of the heaviest vCPU.
pub(super) const CREDIT_INIT: i64 = 10_000_000;
/// Most credit that a reset leaves above [`CREDIT_INIT`]: half a millisecond.
pub(super) const CARRYOVER: i64 = 500_000;
/// Credit given to a vCPU that comes from another pCPU, for its cold caches.
pub(super) const MIGRATE_COMPENSATION: i64 = 50_000;
/// Least credit in the version of today: one epoch of debt.
pub(super) const CREDIT_MIN: i64 = -CREDIT_INIT;
/// The minimum slice.
pub(super) const MIN_TIMER: Nanos = Nanos::us(500);
/// A ratelimit that ends within this does not stop a wake-up from telling the pCPU.
pub(super) const TICKLE_TOLERANCE: Nanos = Nanos::us(50);

const RATELIMIT: ParamInfo = ParamInfo::time(
    "ratelimit",
    (Nanos::ZERO, Nanos::ms(500)),
    Nanos::MS,
    "A vCPU that was dispatched less than this ago is not preempted; 0 is off, else at least \
     100 us.",
);
const MIGRATE_RESIST: ParamInfo = ParamInfo::time(
    "migrate_resist",
    (Nanos::ZERO, Nanos::ms(100)),
    Nanos::us(500),
    "A pCPU takes a vCPU that lives on another one only if it has this much more credit (1 credit \
     is 1 ns of the heaviest vCPU).",
);
const LOAD_PRECISION: ParamInfo = ParamInfo::number(
    "load_precision_shift",
    (4, 20),
    18,
    "One always-runnable vCPU counts 2 to this power in load averages.",
);
const BALANCE_UNDER: ParamInfo = ParamInfo::number(
    "balance_under",
    (1, 100_000),
    1000,
    "Runqueues with fewer runnable vCPUs than pCPUs are balanced if their loads differ by this \
     many thousandths of a vCPU.",
);
const BALANCE_OVER: ParamInfo = ParamInfo::number(
    "balance_over",
    (1, 100_000),
    125,
    "The same for runqueues with at least as many runnable vCPUs as pCPUs.",
);
const CAP_PERIOD: ParamInfo = ParamInfo::time(
    "cap_period",
    (MIN_TIMER, Nanos::ms(1000)),
    Nanos::ms(10),
    "Period in which a capped domain gets its budget.",
);
const RUNQUEUE: ParamInfo = ParamInfo::word(
    "runqueue",
    &["cpu", "core", "socket", "node", "all"],
    "socket",
    "Which pCPUs share a runqueue.",
);
const MAX_PCPUS: ParamInfo = ParamInfo::number(
    "max_pcpus_per_runqueue",
    (1, 65536),
    16,
    "Most pCPUs in a runqueue; a soft limit, as the threads of a core stay together.",
);
const SMT_POWER_SAVINGS: ParamInfo = ParamInfo::flag(
    "smt_power_savings",
    false,
    "A vCPU that wakes prefers idle threads of busy cores over idle cores.",
);
const SMT_CHARGE: ParamInfo = ParamInfo::number(
    "smt_charge",
    (1, ALONE),
    ALONE,
    "Credit that 1000 ns beside a busy sibling thread cost the heaviest vCPU. Less than 1000: credit \
     pays for progress. Xen has no such option.",
);
const SMT_SPACE: ParamInfo = ParamInfo::flag(
    "smt_space",
    false,
    "vCPUs that leave their sibling thread time alone on the core are placed beside others that do. \
     Xen has no such option.",
);
/// See [`Params::keep_chosen`].
const KEEP_CHOSEN: ParamInfo = ParamInfo::flag(
    "keep_chosen",
    false,
    "Balancing does not move the vCPU that the pass has just chosen: fewer migrations than Xen.",
);
const AS_IS: ParamInfo = ParamInfo::flag(
    "as_is",
    false,
    "Follow the original where it evidently does not do what was meant.",
);

const LOAD_WINDOW: ParamInfo = ParamInfo::time(
    "load_window",
    (Nanos::us(2), Nanos::ms(17_000)),
    Nanos(1 << 30),
    "Time over which load is averaged; rounded down to 1.024 us times a power of two.",
)
.shown_as("1.07 s");
/// Before Xen 4.8 its logarithm is the precision of loads, too.
const EARLY_LOAD_WINDOW: ParamInfo =
    LOAD_WINDOW.by_default(Preset::Time(Nanos(1 << 28))).shown_as("268 ms");

const TODAY_PARAMS: &[ParamInfo] = &[
    RATELIMIT,
    MIGRATE_RESIST,
    LOAD_WINDOW,
    LOAD_PRECISION,
    BALANCE_UNDER,
    BALANCE_OVER,
    CAP_PERIOD,
    RUNQUEUE,
    MAX_PCPUS,
    SMT_POWER_SAVINGS,
    SMT_CHARGE,
    SMT_SPACE,
    KEEP_CHOSEN,
    AS_IS,
];
const EARLY_PARAMS: &[ParamInfo] =
    &[MIGRATE_RESIST, EARLY_LOAD_WINDOW, BALANCE_UNDER, BALANCE_OVER, AS_IS];

/// Which pCPUs share a runqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    Cpu,
    Core,
    /// Also `node`: each socket is one NUMA node.
    Socket,
    All,
}

/// A version of credit2.
#[derive(Debug)]
pub(super) struct Profile {
    pub name: &'static str,
    /// Before Xen 4.8: no ratelimit, yield, cap, soft affinity or SMT awareness; a wake-up looks at
    /// its home first; the chosen vCPU alone ends an epoch; credit has no lower bound; a vCPU that
    /// the balancer moves off its pCPU leaves at the next pass, which nobody asks for; a vCPU that
    /// goes on does not bring loads up to date; a vCPU that goes to sleep does not mark its pCPU as
    /// told.
    pub early: bool,
    /// An idle pCPU enters its scheduler at each `max_timer`.
    pub polls: bool,
    pub turns: Turns,
    arrangement: Arrangement,
}

/// Which pCPU of a runqueue a vCPU gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turns {
    /// The one after the last that was given out there.
    AfterLast,
    /// The first; in the original any one, by chance.
    First,
    /// The one after its home; if the balancer moves it, the first.
    AfterHome,
}

pub(super) static TODAY_PROFILE: Profile = Profile {
    name: "credit2",
    early: false,
    polls: false,
    turns: Turns::AfterLast,
    arrangement: Arrangement::Socket,
};
pub(super) static Y2016_PROFILE: Profile = Profile {
    name: "credit2-2016",
    early: true,
    polls: false,
    turns: Turns::First,
    arrangement: Arrangement::Core,
};
static Y2013_PROFILE: Profile = Profile {
    name: "credit2-2013",
    early: true,
    polls: true,
    turns: Turns::AfterHome,
    arrangement: Arrangement::All,
};

pub(crate) const TODAY: SchedulerInfo = SchedulerInfo {
    name: "credit2",
    aliases: &[],
    brief: "shared runqueues ordered by credit, epochs instead of ticks, caps, load balancing",
    source: "Xen 4.18 and later, credit2 (the default)",
    work_conserving: true,
    weights: true,
    vcpu_weights: false,
    pv_guests: true,
    caps: true,
    ticks: false,
    params: TODAY_PARAMS,
    domain_params: &[],
    make: &|params| Ok(Box::new(Credit2::new(&TODAY_PROFILE, params)?)),
};

pub(crate) const Y2016: SchedulerInfo = SchedulerInfo {
    name: "credit2-2016",
    brief: "credit2 as of 2016: one runqueue per core, no ratelimit, yield, cap or soft affinity",
    source: "Xen 4.7, credit2",
    caps: false,
    ticks: false,
    params: EARLY_PARAMS,
    make: &|params| Ok(Box::new(Credit2::new(&Y2016_PROFILE, params)?)),
    ..TODAY
};

pub(crate) const Y2013: SchedulerInfo = SchedulerInfo {
    name: "credit2-2013",
    brief: "credit2 as of 2013: one runqueue for all pCPUs, slices of at most 2 ms",
    source: "Xen 4.3 to 4.6, credit2 (experimental)",
    make: &|params| Ok(Box::new(Credit2::new(&Y2013_PROFILE, params)?)),
    ..Y2016
};

/// The parameters in force.
#[derive(Clone, Debug)]
pub(super) struct Params {
    /// 0 is off.
    pub ratelimit: Nanos,
    pub migrate_resist: i64,
    pub max_timer: Nanos,
    /// Credit of the idle vCPU, below the credit of every other vCPU. (Before the clamp it was
    /// -2^30, so that a vCPU more than a second in debt would have starved beside an idle pCPU.)
    pub idle_credit: i64,
    /// Lower bound of credit.
    pub clamp: i64,
    pub window: Window,
    /// Differences of load that justify a move: `under` with fewer runnable vCPUs than pCPUs, else
    /// `over`.
    pub under: i64,
    pub over: i64,
    pub cap_period: Nanos,
    pub arrangement: Arrangement,
    pub max_pcpus: u32,
    pub smt_power_savings: bool,
    /// See [`smt`](super::smt); [`ALONE`] and false are off.
    pub smt_charge: i64,
    pub smt_space: bool,
    /// The end of an epoch does not move the vCPU that its pass has just chosen. In the original it
    /// may: that vCPU is asked to leave before it has run, at once if its home is the passing pCPU,
    /// else at the end of its slice.
    pub keep_chosen: bool,
    pub as_is: bool,
}

impl Params {
    /// The profile's parameters, overridden by `over`. `over` was checked against the list of the
    /// profile's parameters; this checks the rules that ranges cannot express.
    pub(super) fn new(profile: &Profile, over: &params::Params) -> Result<Self, SchedError> {
        let early = profile.early;
        let ratelimit = if early { Nanos::ZERO } else { RATELIMIT.time_in(over) };
        if ratelimit != Nanos::ZERO && ratelimit < Nanos::us(100) {
            let value = ParamValue::Time(ratelimit);
            return Err(SchedError::illegal(
                RATELIMIT.key,
                &value,
                &"0 (off), or 100 us to 500 ms",
            ));
        }
        let window = if early { EARLY_LOAD_WINDOW } else { LOAD_WINDOW }.time_in(over);
        // As in Xen, at least 2 units of time, before 4.8 at least 16.
        let shift = (window.0 >> 10).max(if early { 1 << 4 } else { 1 << 1 }).ilog2();
        let precision = if early { shift } else { LOAD_PRECISION.number_in(over) as u32 };
        let threshold = |info: ParamInfo| (info.number_in(over) << precision) / 1000;
        Ok(Self {
            ratelimit,
            migrate_resist: MIGRATE_RESIST.time_in(over).0,
            max_timer: if early { Nanos::ms(2) } else { Nanos::ms(10) },
            idle_credit: if early { i64::MIN } else { CREDIT_MIN - 1 },
            clamp: if early { i64::MIN } else { CREDIT_MIN },
            window: Window { shift, precision, early },
            under: threshold(BALANCE_UNDER),
            over: threshold(BALANCE_OVER),
            cap_period: CAP_PERIOD.time_in(over),
            arrangement: match RUNQUEUE.word_in(over) {
                _ if early => profile.arrangement,
                "cpu" => Arrangement::Cpu,
                "core" => Arrangement::Core,
                "all" => Arrangement::All,
                _ => Arrangement::Socket,
            },
            max_pcpus: if early { u32::MAX } else { MAX_PCPUS.number_in(over) as u32 },
            smt_power_savings: SMT_POWER_SAVINGS.flag_in(over),
            smt_charge: SMT_CHARGE.number_in(over),
            smt_space: SMT_SPACE.flag_in(over),
            keep_chosen: !early && KEEP_CHOSEN.flag_in(over),
            as_is: AS_IS.flag_in(over),
        })
    }
}
