//! Names and parameters.

use super::{Profile, Rtds, Server};
use crate::params::ParamInfo;
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;

pub(super) const PERIOD: ParamInfo = ParamInfo::time(
    "period",
    (Nanos::us(10), Nanos::sec(3600)),
    Nanos::ms(10),
    "Period in which a vCPU gets its budget; its deadlines are at the ends.",
);
pub(super) const BUDGET: ParamInfo = ParamInfo::time(
    "budget",
    (Nanos::us(10), Nanos::sec(3600)),
    Nanos::ms(4),
    "Run time of a vCPU in each period; at most the period.",
);
pub(super) const EXTRATIME: ParamInfo =
    ParamInfo::flag("extratime", true, "Without budget left, a vCPU runs when no other wants to.");
const AS_IS: ParamInfo =
    ParamInfo::flag("as_is", false, "Follow the original where new extra time tells no pCPU.");

pub(crate) const TODAY: SchedulerInfo = SchedulerInfo {
    name: "rtds",
    aliases: &[],
    brief: "global earliest deadline first: a budget for each vCPU in each period",
    source: "Xen rtds, 4.10 and later",
    work_conserving: true,
    weights: false,
    vcpu_weights: false,
    pv_guests: true,
    caps: false,
    ticks: false,
    params: &[PERIOD, BUDGET, EXTRATIME, AS_IS],
    domain_params: &[PERIOD, BUDGET, EXTRATIME],
    make: &|params| {
        let profile = Profile { name: "rtds", polls: false, as_is: AS_IS.flag_in(params) };
        Ok(Box::new(Rtds::new(profile, Server::default().with(params)?)))
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
        let server = Server { extratime: false, ..Server::default() };
        Ok(Box::new(Rtds::new(profile, server.with(params)?)))
    },
    ..TODAY
};
