//! Names and parameters of `cfs`, `eevdf` and `eevdf-6.18`.

use super::{Cfs, Eevdf, Host};
use crate::params::{ParamInfo, Params};
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;

/// Parameters that both classes have. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tunables {
    pub tick: Nanos,
    /// A vCPU that ran less than this ago is not pulled to another pCPU.
    pub migration_cost: Nanos,
    pub bandwidth_period: Nanos,
    pub group_shares: bool,
    pub balance: bool,
    /// Whether a vCPU whose domain has no quota left is stopped only when it is picked.
    pub throttles_on_return: bool,
}

impl Tunables {
    fn new(params: &Params) -> Self {
        Self {
            tick: params.time("tick").unwrap_or(Nanos::ms(4)),
            migration_cost: params.time("migration_cost").unwrap_or(Nanos::us(500)),
            bandwidth_period: params.time("bandwidth_period").unwrap_or(Nanos::ms(100)),
            group_shares: params.flag("group_shares").unwrap_or(false),
            balance: params.flag("balance").unwrap_or(false),
            throttles_on_return: false,
        }
    }
}

const TICK: ParamInfo = ParamInfo::time(
    "tick",
    (Nanos::us(100), Nanos::ms(10)),
    "4 ms",
    "Period of the tick (4 ms is 250 Hz).",
);
const MIGRATION_COST: ParamInfo = ParamInfo::time(
    "migration_cost",
    (Nanos::ZERO, Nanos::ms(100)),
    "500 us",
    "A vCPU that ran less than this ago is not pulled to another pCPU.",
);
const BANDWIDTH_PERIOD: ParamInfo = ParamInfo::time(
    "bandwidth_period",
    (Nanos::MS, Nanos::ms(1000)),
    "100 ms",
    "Period in which a domain gets its cap as a quota.",
);
const GROUP_SHARES: ParamInfo = ParamInfo::flag(
    "group_shares",
    "false",
    "A domain's weight is divided by its runnable vCPUs instead of being that of each.",
);
const BALANCE: ParamInfo = ParamInfo::flag(
    "balance",
    "false",
    "Balance scheduling: no two vCPUs of a domain on the queue of one pCPU, if possible.",
);

const RUN_TO_PARITY: ParamInfo = ParamInfo::flag(
    "run_to_parity",
    "true",
    "What runs is not preempted before its request is over or it is ahead of its share.",
);

pub(crate) const CFS: SchedulerInfo = SchedulerInfo {
    name: "cfs",
    aliases: &[],
    brief: "Linux host: completely fair by virtual runtime, preemption by ticks and wake-ups",
    source: "Linux 2.6.23 to 6.5 (constants of 5.x)",
    work_conserving: true,
    weights: true,
    caps: true,
    ticks: true,
    params: &[
        ParamInfo::time(
            "latency",
            (Nanos::us(100), Nanos::ms(1000)),
            "6 ms, times 1 + log2(pCPUs), at most 4",
            "Time in which each of up to 8 vCPUs of a pCPU should run once; on one pCPU.",
        ),
        ParamInfo::time(
            "min_granularity",
            (Nanos::us(100), Nanos::ms(1000)),
            "750 us, times 1 + log2(pCPUs), at most 4",
            "Share of each vCPU where more than 8 wait; on one pCPU.",
        ),
        ParamInfo::time(
            "wakeup_granularity",
            (Nanos::ZERO, Nanos::ms(1000)),
            "1 ms, times 1 + log2(pCPUs), at most 4",
            "By how much a waking vCPU must be behind to preempt; on one pCPU.",
        ),
        TICK,
        MIGRATION_COST,
        BANDWIDTH_PERIOD,
        GROUP_SHARES,
        BALANCE,
    ],
    domain_params: &[],
    make: &|params| {
        let class = Cfs {
            latency: params.time("latency").unwrap_or(Nanos::ms(6)),
            min_granularity: params.time("min_granularity").unwrap_or(Nanos::us(750)),
            wakeup_granularity: params.time("wakeup_granularity").unwrap_or(Nanos::MS),
        };
        Ok(Box::new(Host::new(class, Tunables::new(params))))
    },
};

pub(crate) const EEVDF: SchedulerInfo = SchedulerInfo {
    name: "eevdf",
    aliases: &[],
    brief: "Linux host: earliest eligible virtual deadline, what sleeps keeps its lag",
    source: "Linux 6.6",
    work_conserving: true,
    weights: true,
    caps: true,
    ticks: true,
    params: &[
        ParamInfo::time(
            "base_slice",
            (Nanos::us(100), Nanos::ms(100)),
            "750 us, times 1 + log2(pCPUs), at most 4",
            "Run time of one request; on one pCPU.",
        ),
        RUN_TO_PARITY,
        ParamInfo::flag(
            "next_buddy",
            "false",
            "An eligible vCPU that was yielded to is picked first (the kernel's feature of that name, off).",
        ),
        TICK,
        MIGRATION_COST,
        BANDWIDTH_PERIOD,
        GROUP_SHARES,
        BALANCE,
    ],
    domain_params: &[],
    make: &|params| {
        let tunables = Tunables::new(params);
        let class = Eevdf {
            name: EEVDF.name,
            base_slice: params.time("base_slice").unwrap_or(Nanos::us(750)),
            run_to_parity: params.flag("run_to_parity").unwrap_or(true),
            pick_buddy: params.flag("next_buddy").unwrap_or(false),
            yield_forfeits: false,
            deadline_moves: false,
            tick: tunables.tick,
        };
        Ok(Box::new(Host::new(class, tunables)))
    },
};

pub(crate) const EEVDF_6_18: SchedulerInfo = SchedulerInfo {
    name: "eevdf-6.18",
    brief: "Linux host: eevdf; directed yields count, yields cost run time, quotas stop at guest entry",
    source: "Linux 6.18, from 6.18.2",
    params: &[
        ParamInfo::time(
            "base_slice",
            (Nanos::us(100), Nanos::ms(100)),
            "700 us, times 1 + log2(pCPUs), at most 4",
            "Run time of one request; on one pCPU.",
        ),
        RUN_TO_PARITY,
        ParamInfo::flag(
            "pick_buddy",
            "true",
            "An eligible vCPU that was yielded to is picked first.",
        ),
        TICK,
        MIGRATION_COST,
        BANDWIDTH_PERIOD,
        GROUP_SHARES,
        BALANCE,
    ],
    make: &|params| {
        let tunables = Tunables { throttles_on_return: true, ..Tunables::new(params) };
        let class = Eevdf {
            name: EEVDF_6_18.name,
            base_slice: params.time("base_slice").unwrap_or(Nanos::us(700)),
            run_to_parity: params.flag("run_to_parity").unwrap_or(true),
            pick_buddy: params.flag("pick_buddy").unwrap_or(true),
            yield_forfeits: true,
            deadline_moves: true,
            tick: tunables.tick,
        };
        Ok(Box::new(Host::new(class, tunables)))
    },
    ..EEVDF
};
