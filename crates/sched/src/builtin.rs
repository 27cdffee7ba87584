//! The list of this crate's schedulers, one entry each.

use crate::bvt;
use crate::cosched;
use crate::credit::{Credit, Profile};
use crate::credit2;
use crate::linux;
use crate::null;
use crate::registry::{MakeScheduler, SchedulerInfo};
use crate::round_robin;
use crate::rtds;
use crate::sedf;
use alloc::boxed::Box;

const fn credit(profile: &'static Profile, make: MakeScheduler) -> SchedulerInfo {
    SchedulerInfo::new(profile.name, make)
        .brief(profile.brief)
        .source(profile.source)
        .work_conserving(true)
        .weights(true)
        .caps(true)
        .ticks(true)
        .params(profile.params)
}

pub(crate) static BUILTIN: &[SchedulerInfo] = &[
    credit(&Profile::TODAY, &|p| Ok(Box::new(Credit::new(&Profile::TODAY, p)?))),
    credit(&Profile::Y2016, &|p| Ok(Box::new(Credit::new(&Profile::Y2016, p)?))),
    credit(&Profile::Y2013, &|p| Ok(Box::new(Credit::new(&Profile::Y2013, p)?))),
    credit(&Profile::Y2008, &|p| Ok(Box::new(Credit::new(&Profile::Y2008, p)?))),
    credit2::TODAY,
    credit2::Y2016,
    credit2::Y2013,
    round_robin::INFO,
    null::INFO,
    linux::CFS,
    linux::EEVDF,
    linux::EEVDF_6_18,
    rtds::TODAY,
    rtds::V4_5,
    sedf::INFO,
    bvt::INFO,
    cosched::RELAXED_VCPU,
    cosched::RELAXED_VM,
    cosched::STRICT,
];
