//! Names and parameters of `cfs`, `eevdf` and `eevdf-6.18`.

use super::{Cfs, Eevdf, Host};
use crate::params::{ParamInfo, Params, Preset};
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;

/// The kernel that is followed in what the classes have in common. `V5` is 5.10 to 6.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Release {
    V5,
    V6_6,
    V6_18,
}

/// Parameters that both classes have. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tunables {
    pub tick: Nanos,
    /// A vCPU that ran less than this ago is not pulled to another pCPU.
    pub migration_cost: Nanos,
    pub bandwidth_period: Nanos,
    /// The run time that a pCPU takes from a domain's quota at once.
    pub bandwidth_slice: Nanos,
    /// Whether a pCPU gives run time back that its domain's vCPUs leave there when they sleep.
    pub bandwidth_return: bool,
    pub group_shares: bool,
    pub balance: bool,
    pub release: Release,
}

impl Tunables {
    fn new(params: &Params, release: Release) -> Self {
        Self {
            tick: TICK.time_in(params),
            migration_cost: MIGRATION_COST.time_in(params),
            bandwidth_period: BANDWIDTH_PERIOD.time_in(params),
            bandwidth_slice: BANDWIDTH_SLICE.time_in(params),
            bandwidth_return: BANDWIDTH_RETURN.flag_in(params),
            group_shares: GROUP_SHARES.flag_in(params),
            balance: BALANCE.flag_in(params),
            release,
        }
    }

    /// Whether a vCPU whose domain has no quota left is stopped only when it is picked.
    pub fn throttles_on_return(&self) -> bool {
        self.release == Release::V6_18
    }
}

const TICK: ParamInfo = ParamInfo::time(
    "tick",
    (Nanos::us(100), Nanos::ms(10)),
    Nanos::ms(4),
    "Period of the tick (4 ms is 250 Hz).",
);
const MIGRATION_COST: ParamInfo = ParamInfo::time(
    "migration_cost",
    (Nanos::ZERO, Nanos::ms(100)),
    Nanos::us(500),
    "A vCPU that ran less than this ago is not pulled to another pCPU.",
);
const BANDWIDTH_PERIOD: ParamInfo = ParamInfo::time(
    "bandwidth_period",
    (Nanos::MS, Nanos::ms(1000)),
    Nanos::ms(100),
    "Period in which a domain gets its cap as a quota.",
);
const BANDWIDTH_SLICE: ParamInfo = ParamInfo::time(
    "bandwidth_slice",
    (Nanos::us(100), Nanos::ms(1000)),
    Nanos::ms(5),
    "Run time that a pCPU takes from a domain's quota at once (`sched_cfs_bandwidth_slice_us`).",
);
const BANDWIDTH_RETURN: ParamInfo = ParamInfo::flag(
    "bandwidth_return",
    false,
    "A pCPU that a domain's vCPUs leave to sleep gives back what it has of the quota, but for 1 ms, as the kernel does.",
);
const CAPPED_VCPUS: ParamInfo = ParamInfo::number(
    "capped_vcpus",
    (0, 65_535),
    0,
    "The cap is that of the domain's first vCPUs, this many; the others share its locks and have no cap. 0: of all.",
);
/// How many of a domain's vCPUs its cap is for, if `params` say it.
pub(super) fn capped_vcpus(params: &Params) -> Option<u32> {
    let given = params.number(CAPPED_VCPUS.key)?;
    Some(if given == 0 { u32::MAX } else { given as u32 })
}

const GROUP_SHARES: ParamInfo = ParamInfo::flag(
    "group_shares",
    false,
    "A domain's weight is divided by its runnable vCPUs instead of being that of each.",
);
const BALANCE: ParamInfo = ParamInfo::flag(
    "balance",
    false,
    "Balance scheduling: no two vCPUs of a domain on the queue of one pCPU, if possible.",
);

const RUN_TO_PARITY: ParamInfo = ParamInfo::flag(
    "run_to_parity",
    true,
    "What runs is not preempted before its request is over or it is ahead of its share.",
);

/// How the host scales some times by its size.
const SCALED: &str = ", times 1 + log2(pCPUs), at most 4";

const LATENCY: ParamInfo = ParamInfo::time(
    "latency",
    (Nanos::us(100), Nanos::ms(1000)),
    Nanos::ms(6),
    "Time in which each of up to 8 vCPUs of a pCPU should run once; on one pCPU.",
)
.and(SCALED);
const MIN_GRANULARITY: ParamInfo = ParamInfo::time(
    "min_granularity",
    (Nanos::us(100), Nanos::ms(1000)),
    Nanos::us(750),
    "Share of each vCPU where more than 8 wait; on one pCPU.",
)
.and(SCALED);
const WAKEUP_GRANULARITY: ParamInfo = ParamInfo::time(
    "wakeup_granularity",
    (Nanos::ZERO, Nanos::ms(1000)),
    Nanos::MS,
    "By how much a waking vCPU must be behind to preempt; on one pCPU.",
)
.and(SCALED);
const BASE_SLICE: ParamInfo = ParamInfo::time(
    "base_slice",
    (Nanos::us(100), Nanos::ms(100)),
    Nanos::us(750),
    "Run time of one request; on one pCPU.",
)
.and(SCALED);
const BASE_SLICE_6_18: ParamInfo = BASE_SLICE.by_default(Preset::Time(Nanos::us(700)));
const NEXT_BUDDY: ParamInfo = ParamInfo::flag(
    "next_buddy",
    false,
    "An eligible vCPU that was yielded to is picked first (the kernel's feature of that name, off).",
);
const PICK_BUDDY: ParamInfo =
    ParamInfo::flag("pick_buddy", true, "An eligible vCPU that was yielded to is picked first.");

const YIELD_FORFEITS: ParamInfo = ParamInfo::flag(
    "yield_forfeits",
    false,
    "A yield, also a directed one, forfeits the rest of the request (commit 79104becf42b, 6.19 and 6.18.2).",
);
const YIELD_FORFEITS_6_18: ParamInfo = YIELD_FORFEITS.by_default(Preset::Flag(true));
const DEBOOSTER: ParamInfo = ParamInfo::flag(
    "debooster",
    false,
    "A directed yield to a vCPU of the same pCPU sets the yielder back by 1 to 6 requests, at most every 6 ms (proposed in 2025).",
);

/// The class of `eevdf`.
pub(super) fn eevdf(params: &Params, tick: Nanos) -> Eevdf {
    Eevdf {
        name: EEVDF.name,
        base_slice: BASE_SLICE.time_in(params),
        run_to_parity: RUN_TO_PARITY.flag_in(params),
        pick_buddy: NEXT_BUDDY.flag_in(params),
        keeps_protection: false,
        yield_forfeits: YIELD_FORFEITS.flag_in(params),
        debooster: DEBOOSTER.flag_in(params),
        deadline_moves: false,
        tick,
    }
}

/// The class of `eevdf-6.18`.
pub(super) fn eevdf_6_18(params: &Params, tick: Nanos) -> Eevdf {
    Eevdf {
        name: EEVDF_6_18.name,
        base_slice: BASE_SLICE_6_18.time_in(params),
        pick_buddy: PICK_BUDDY.flag_in(params),
        keeps_protection: true,
        yield_forfeits: YIELD_FORFEITS_6_18.flag_in(params),
        deadline_moves: true,
        ..eevdf(params, tick)
    }
}

pub(crate) const CFS: SchedulerInfo = SchedulerInfo {
    name: "cfs",
    aliases: &[],
    brief: "Linux host: completely fair by virtual runtime, preemption by ticks and wake-ups",
    source: "Linux 2.6.23 to 6.5 (constants of 5.x)",
    work_conserving: true,
    weights: true,
    vcpu_weights: true,
    pv_guests: false,
    caps: true,
    ticks: true,
    params: &[
        LATENCY,
        MIN_GRANULARITY,
        WAKEUP_GRANULARITY,
        TICK,
        MIGRATION_COST,
        BANDWIDTH_PERIOD,
        BANDWIDTH_SLICE,
        BANDWIDTH_RETURN,
        GROUP_SHARES,
        BALANCE,
    ],
    domain_params: &[CAPPED_VCPUS],
    make: &|params| {
        let class = Cfs {
            latency: LATENCY.time_in(params),
            min_granularity: MIN_GRANULARITY.time_in(params),
            wakeup_granularity: WAKEUP_GRANULARITY.time_in(params),
        };
        Ok(Box::new(Host::new(class, Tunables::new(params, Release::V5))))
    },
};

pub(crate) const EEVDF: SchedulerInfo = SchedulerInfo {
    name: "eevdf",
    aliases: &[],
    brief: "Linux host: earliest eligible virtual deadline, what sleeps keeps its lag",
    source: "Linux 6.6",
    work_conserving: true,
    weights: true,
    vcpu_weights: true,
    pv_guests: false,
    caps: true,
    ticks: true,
    params: &[
        BASE_SLICE,
        RUN_TO_PARITY,
        NEXT_BUDDY,
        YIELD_FORFEITS,
        DEBOOSTER,
        TICK,
        MIGRATION_COST,
        BANDWIDTH_PERIOD,
        BANDWIDTH_SLICE,
        BANDWIDTH_RETURN,
        GROUP_SHARES,
        BALANCE,
    ],
    domain_params: &[CAPPED_VCPUS],
    make: &|params| {
        let tunables = Tunables::new(params, Release::V6_6);
        Ok(Box::new(Host::new(eevdf(params, tunables.tick), tunables)))
    },
};

pub(crate) const EEVDF_6_18: SchedulerInfo = SchedulerInfo {
    name: "eevdf-6.18",
    brief: "Linux host: eevdf; directed yields count, yields cost run time, quotas stop at guest entry",
    source: "Linux 6.18, from 6.18.2",
    params: &[
        BASE_SLICE_6_18,
        RUN_TO_PARITY,
        PICK_BUDDY,
        YIELD_FORFEITS_6_18,
        DEBOOSTER,
        TICK,
        MIGRATION_COST,
        BANDWIDTH_PERIOD,
        BANDWIDTH_SLICE,
        BANDWIDTH_RETURN,
        GROUP_SHARES,
        BALANCE,
    ],
    make: &|params| {
        let tunables = Tunables::new(params, Release::V6_18);
        Ok(Box::new(Host::new(eevdf_6_18(params, tunables.tick), tunables)))
    },
    ..EEVDF
};
