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
    vcpu_weights: false,
    pv_guests: true,
    caps: false,
    ticks: false,
    params: &[ALLOWANCE, AS_IS],
    domain_params: &[MCU_ADVANCE, WARPBACK, WARP_VALUE, WARP_LIMIT, UNWARP_TIME],
    make: &|params| Ok(Box::new(Bvt::new(ALLOWANCE.time_in(params), AS_IS.flag_in(params)))),
};

const ALLOWANCE: ParamInfo = ParamInfo::time(
    "allowance",
    (Nanos::us(10), Nanos::SEC),
    Nanos::ms(5),
    "Context switch allowance: what runs may get this far ahead of its turn.",
);
const AS_IS: ParamInfo = ParamInfo::flag(
    "as_is",
    false,
    "Keep two faults: 32-bit virtual times, and a lead in MCUs taken for ns.",
);
/// The default is that of a domain of weight 256.
pub(super) const MCU_ADVANCE: ParamInfo = ParamInfo::number(
    "mcu_advance",
    (1, 65535),
    10,
    "Virtual time for each 100 us of run time: 5 gets twice as much as 10.",
)
.shown_as("2560 / weight");
pub(super) const WARPBACK: ParamInfo = ParamInfo::flag("warpback", false, "Whether it warps.");
pub(super) const WARP_VALUE: ParamInfo = ParamInfo::number(
    "warp_value",
    (0, 1 << 31),
    0,
    "By how much it is ahead while it warps, in units of virtual time.",
);
pub(super) const WARP_LIMIT: ParamInfo = ParamInfo::time(
    "warp_limit",
    (Nanos::ZERO, Nanos::sec(100)),
    Nanos::sec(2),
    "For how long it may run warped at a stretch; 0 is without limit.",
);
pub(super) const UNWARP_TIME: ParamInfo = ParamInfo::time(
    "unwarp_time",
    (Nanos::ZERO, Nanos::sec(100)),
    Nanos::sec(1),
    "For how long it must do without warp after that; 0 is for ever.",
);
