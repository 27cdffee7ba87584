//! Names and parameters of the co-schedulers.

use super::{Relaxed, strict::Strict};
use crate::error::SchedError;
use crate::params::{ParamInfo, ParamValue, Params};
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;
use alloc::format;

/// Times in ns; `start` < `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tunables {
    pub quantum: Nanos,
    pub sample: Nanos,
    pub stop: Nanos,
    pub start: Nanos,
}

impl Tunables {
    fn new(params: &Params) -> Result<Self, SchedError> {
        let tunables = Self {
            quantum: QUANTUM.time_in(params),
            sample: SAMPLE.time_in(params),
            stop: STOP.time_in(params),
            start: START.time_in(params),
        };
        if tunables.start >= tunables.stop {
            let legal = format!("less than stop, {}", ParamValue::Time(tunables.stop));
            return Err(SchedError::illegal(START.key, &ParamValue::Time(tunables.start), &legal));
        }
        Ok(tunables)
    }
}

const QUANTUM: ParamInfo = ParamInfo::time(
    "quantum",
    (Nanos::us(100), Nanos::ms(1000)),
    Nanos::ms(50),
    "A running vCPU gives way after this long, if another vCPU waits and is behind it.",
);

const SAMPLE: ParamInfo = ParamInfo::time(
    "sample",
    (Nanos::us(100), Nanos::ms(100)),
    Nanos::MS,
    "How often skews are looked at.",
);
const STOP: ParamInfo = ParamInfo::time(
    "stop",
    (Nanos::us(100), Nanos::ms(1000)),
    Nanos::ms(3),
    "Above this skew a vCPU (or its whole VM) is co-stopped.",
);
const START: ParamInfo = ParamInfo::time(
    "start",
    (Nanos::ZERO, Nanos::ms(1000)),
    Nanos::MS,
    "At this skew a co-stopped vCPU may run again; less than stop.",
);
const BACKFILL: ParamInfo = ParamInfo::flag(
    "backfill",
    false,
    "pCPUs that would idle take vCPUs of VMs that are not placed.",
);

pub(crate) const RELAXED_VCPU: SchedulerInfo = SchedulerInfo {
    name: "cosched",
    aliases: &[],
    brief: "relaxed co-scheduling: vCPUs too far ahead of their siblings are stopped",
    source: "VMware ESX 4 and later, as published; constants are a model",
    work_conserving: false,
    weights: true,
    vcpu_weights: false,
    pv_guests: false,
    caps: false,
    ticks: false,
    params: &[QUANTUM, SAMPLE, STOP, START],
    domain_params: &[],
    make: &|params| Ok(Box::new(Relaxed::new(false, Tunables::new(params)?))),
};

pub(crate) const RELAXED_VM: SchedulerInfo = SchedulerInfo {
    name: "cosched-vm",
    brief: "relaxed co-scheduling: a VM whose vCPUs are too far apart is stopped",
    source: "VMware ESX 3.x, as published; constants are a model",
    make: &|params| Ok(Box::new(Relaxed::new(true, Tunables::new(params)?))),
    ..RELAXED_VCPU
};

pub(crate) const STRICT: SchedulerInfo = SchedulerInfo {
    name: "cosched-strict",
    brief: "strict co-scheduling: all vCPUs of a VM at once, or none",
    source: "VMware ESX 2, as published; constants are a model",
    params: &[QUANTUM, BACKFILL],
    make: &|params| Ok(Box::new(Strict::new(QUANTUM.time_in(params), BACKFILL.flag_in(params)))),
    ..RELAXED_VCPU
};
