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
    vcpu_weights: false,
    pv_guests: true,
    caps: false,
    ticks: false,
    params: PARAMS,
    domain_params: PARAMS,
    make: &|params| Ok(Box::new(Sedf::new(Share::best_effort().with(params)?))),
};

const PARAMS: &[ParamInfo] = &[PERIOD, SLICE, EXTRATIME, EXTRAWEIGHT, WEIGHT];

pub(super) const PERIOD: ParamInfo = ParamInfo::time(
    "period",
    (Nanos::us(10), Nanos::sec(10)),
    Nanos::ms(100),
    "Period in which a vCPU gets its slice.",
);
pub(super) const SLICE: ParamInfo = ParamInfo::time(
    "slice",
    (Nanos::ZERO, Nanos::sec(10)),
    Nanos::ZERO,
    "Guaranteed run time in each period: at least 5 us, or 0 with extra time; at most the period.",
);
pub(super) const EXTRATIME: ParamInfo =
    ParamInfo::flag("extratime", true, "Runs also when nobody asks for guaranteed time.");
pub(super) const EXTRAWEIGHT: ParamInfo = ParamInfo::number(
    "extraweight",
    (0, 65535),
    1,
    "Share of the extra time; 0: by slice and period. Set alone: extra time only.",
)
.and("; 0 with a period, slice or weight");
pub(super) const WEIGHT: ParamInfo = ParamInfo::number(
    "weight",
    (0, 65535),
    0,
    "Period 100 ms and a slice by weight, of what those without leave of the pCPU; 0 is off.",
);
