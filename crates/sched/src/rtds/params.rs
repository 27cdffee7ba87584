//! Names and parameters.

use super::{Profile, Rtds, Server};
use crate::params::ParamInfo;
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;

const PERIOD: ParamInfo = ParamInfo::time(
    "period",
    (Nanos::us(10), Nanos::sec(3600)),
    "10 ms",
    "Period in which a vCPU gets its budget; its deadlines are at the ends.",
);
const BUDGET: ParamInfo = ParamInfo::time(
    "budget",
    (Nanos::us(10), Nanos::sec(3600)),
    "4 ms",
    "Run time of a vCPU in each period; at most the period.",
);
const EXTRATIME: ParamInfo = ParamInfo::flag(
    "extratime",
    "true",
    "Without budget left, a vCPU runs when no other wants to.",
);
const AS_IS: ParamInfo = ParamInfo::flag(
    "as_is",
    "false",
    "Follow the original where replenished extra time preempts nobody.",
);

pub(crate) const TODAY: SchedulerInfo = SchedulerInfo {
    name: "rtds",
    aliases: &[],
    brief: "global earliest deadline first: a budget for each vCPU in each period",
    source: "Xen rtds, 4.7 and later",
    work_conserving: true,
    weights: false,
    caps: false,
    ticks: false,
    params: &[PERIOD, BUDGET, EXTRATIME, AS_IS],
    domain_params: &[PERIOD, BUDGET, EXTRATIME],
    make: &|params| {
        let as_is = params.flag("as_is").unwrap_or(false);
        let profile = Profile { name: "rtds", polls: false, as_is };
        Ok(Box::new(Rtds::new(profile, Server::DEFAULT.with(params)?)))
    },
};

pub(crate) const V4_5: SchedulerInfo = SchedulerInfo {
    name: "rtds-4.5",
    brief: "rtds that looks for due deadlines at most 1 ms apart, without extra time",
    source: "Xen rtds, 4.5 and 4.6",
    work_conserving: false,
    params: &[PERIOD, BUDGET],
    domain_params: &[PERIOD, BUDGET],
    make: &|params| {
        let profile = Profile { name: "rtds-4.5", polls: true, as_is: false };
        let server = Server { extratime: false, ..Server::DEFAULT };
        Ok(Box::new(Rtds::new(profile, server.with(params)?)))
    },
    ..TODAY
};
