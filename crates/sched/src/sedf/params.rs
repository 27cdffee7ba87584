//! Name and parameters.

use super::{Sedf, share::Share};
use crate::params::ParamInfo;
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;

pub(crate) const INFO: SchedulerInfo = SchedulerInfo {
    name: "sedf",
    aliases: &[],
    brief: "simple earliest deadline first: a slice in each period, and extra time by weight",
    source: "Xen sedf, May 2005 (the default from July 2005 to June 2006)",
    work_conserving: false,
    weights: false,
    caps: false,
    ticks: false,
    params: PARAMS,
    domain_params: PARAMS,
    make: &|params| Ok(Box::new(Sedf::new(Share::BEST_EFFORT.with(params)?))),
};

const PARAMS: &[ParamInfo] = &[
    ParamInfo::time(
        "period",
        (Nanos::us(10), Nanos::sec(10)),
        "100 ms",
        "Period in which a vCPU gets its slice.",
    ),
    ParamInfo::time(
        "slice",
        (Nanos::ZERO, Nanos::sec(10)),
        "0",
        "Guaranteed run time in each period: at least 5 us, or 0 with extra time; at most the period.",
    ),
    ParamInfo::flag("extratime", "true", "Runs also when nobody asks for guaranteed time."),
    ParamInfo::number(
        "extraweight",
        (0, 65535),
        "1; 0 with a period, slice or weight",
        "Share of the extra time; 0: by slice and period. Set alone: extra time only.",
    ),
    ParamInfo::number(
        "weight",
        (0, 65535),
        "0",
        "Period 100 ms and a slice by weight, of what those without leave of the pCPU; 0 is off.",
    ),
];
