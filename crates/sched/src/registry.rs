//! The list of schedulers, and how to make one by name. One line for each.

use crate::bvt;
use crate::cosched;
use crate::credit::{self, Credit, Profile};
use crate::credit2;
use crate::error::SchedError;
use crate::linux;
use crate::null;
use crate::params::{ParamInfo, Params};
use crate::round_robin;
use crate::rtds;
use crate::scheduler::Scheduler;
use crate::sedf;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// What there is to know about a scheduler before it is chosen.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SchedulerInfo {
    /// Name for [`make`].
    pub name: &'static str,
    /// One line for a list.
    pub brief: &'static str,
    /// The software and versions whose behaviour it follows.
    pub source: &'static str,
    /// Whether a pCPU idles only if no vCPU that may run there waits, at least in a weak form; caps
    /// and reservations suspend it.
    pub work_conserving: bool,
    /// Whether domains share contended time by their weights.
    pub weights: bool,
    /// Whether domains can be capped.
    pub caps: bool,
    /// Whether it has periodic ticks ([`TimerId::Tick`](crate::TimerId)) at which it samples or decides.
    pub ticks: bool,
    /// Its parameters.
    pub params: &'static [ParamInfo],
    /// Parameters of a domain, or of one of its vCPUs, besides weight and cap: for
    /// [`Hypervisor::configure`](crate::Hypervisor::configure).
    pub domain_params: &'static [ParamInfo],
    /// Makes it from checked parameters.
    pub(crate) make: fn(&Params) -> Result<Box<dyn Scheduler>, SchedError>,
}

const fn credit(
    profile: &'static Profile,
    params: &'static [ParamInfo],
    make: fn(&Params) -> Result<Box<dyn Scheduler>, SchedError>,
) -> SchedulerInfo {
    SchedulerInfo {
        name: profile.name,
        brief: profile.brief,
        source: profile.source,
        work_conserving: true,
        weights: true,
        caps: true,
        ticks: true,
        params,
        domain_params: &[],
        make,
    }
}

static SCHEDULERS: &[SchedulerInfo] = &[
    credit(&Profile::TODAY, credit::TODAY_PARAMS, |p| {
        Ok(Box::new(Credit::new(&Profile::TODAY, p)?))
    }),
    credit(&Profile::Y2016, credit::Y2016_PARAMS, |p| {
        Ok(Box::new(Credit::new(&Profile::Y2016, p)?))
    }),
    credit(&Profile::Y2013, credit::Y2013_PARAMS, |p| {
        Ok(Box::new(Credit::new(&Profile::Y2013, p)?))
    }),
    credit(&Profile::Y2008, credit::Y2008_PARAMS, |p| {
        Ok(Box::new(Credit::new(&Profile::Y2008, p)?))
    }),
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

/// All schedulers, each profile on its own.
pub fn schedulers() -> &'static [SchedulerInfo] {
    SCHEDULERS
}

/// What there is to know about the scheduler `name`.
///
/// # Errors
/// [`SchedError::UnknownScheduler`] with the names there are.
pub fn find(name: &str) -> Result<&'static SchedulerInfo, SchedError> {
    SCHEDULERS.iter().find(|s| s.name == name).ok_or_else(|| {
        let known: Vec<_> = SCHEDULERS.iter().map(|s| s.name).collect();
        SchedError::UnknownScheduler { name: name.to_owned(), known: known.join(", ") }
    })
}

/// Makes a scheduler by name. Parameters that are left out are the profile's.
///
/// # Errors
/// [`SchedError::UnknownScheduler`] with the names there are; [`SchedError::UnknownParam`] or
/// [`SchedError::IllegalParam`] for a parameter that it does not have or allow.
pub fn make(name: &str, params: &Params) -> Result<Box<dyn Scheduler>, SchedError> {
    let info = find(name)?;
    params.check(info.name, info.params)?;
    (info.make)(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_unique_and_make_what_they_say() {
        for info in schedulers() {
            assert_eq!(make(info.name, &Params::default()).unwrap().name(), info.name);
            assert_eq!(schedulers().iter().filter(|s| s.name == info.name).count(), 1);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = make("fcfs", &Params::default()).unwrap_err().to_string();
        assert!(error.starts_with("there is no scheduler `fcfs`; there are: credit, "), "{error}");
    }
}
