//! Name and parameters of bvt.

use super::Bvt;
use crate::params::ParamInfo;
use crate::registry::SchedulerInfo;
use crate::time::Nanos;
use alloc::boxed::Box;

pub(crate) const INFO: SchedulerInfo = SchedulerInfo {
    name: "bvt",
    aliases: &[],
    brief: "borrowed virtual time: proportional share; a domain may warp ahead to run earlier",
    source: "Xen bvt, May 2005 (the default until July 2005)",
    work_conserving: false,
    weights: true,
    caps: false,
    ticks: false,
    params: &[
        ParamInfo::time(
            "allowance",
            (Nanos::us(10), Nanos::SEC),
            "5 ms",
            "Context switch allowance: what runs may get this far ahead of its turn.",
        ),
        ParamInfo::flag(
            "as_is",
            "false",
            "Keep two faults: 32-bit virtual times, and a lead in MCUs taken for ns.",
        ),
    ],
    domain_params: DOMAIN_PARAMS,
    make: &|params| {
        let as_is = params.flag("as_is").unwrap_or(false);
        Ok(Box::new(Bvt::new(params.time("allowance").unwrap_or(Nanos::ms(5)), as_is)))
    },
};

const DOMAIN_PARAMS: &[ParamInfo] = &[
    ParamInfo::number(
        "mcu_advance",
        (1, 65535),
        "2560 / weight",
        "Virtual time for each 100 us of run time: 5 gets twice as much as 10.",
    ),
    ParamInfo::flag("warpback", "false", "Whether it warps."),
    ParamInfo::number(
        "warp_value",
        (0, 1 << 31),
        "0",
        "By how much it is ahead while it warps, in units of virtual time.",
    ),
    ParamInfo::time(
        "warp_limit",
        (Nanos::ZERO, Nanos::sec(100)),
        "2 s",
        "For how long it may run warped at a stretch; 0 is without limit.",
    ),
    ParamInfo::time(
        "unwarp_time",
        (Nanos::ZERO, Nanos::sec(100)),
        "1 s",
        "For how long it must do without warp after that; 0 is for ever.",
    ),
];
