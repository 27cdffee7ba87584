//! The list of schedulers, and how to make one by name. One line for each.

use crate::credit::{Credit, CreditParams, Profile};
use crate::error::SchedError;
use crate::scheduler::Scheduler;
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
    /// Whether a pCPU idles only if no vCPU that may run there waits. No scheduler here promises
    /// more than a weak form of it; caps suspend it.
    pub work_conserving: bool,
    /// Whether domains can be capped.
    pub caps: bool,
    profile: &'static Profile,
}

const fn credit(profile: &'static Profile) -> SchedulerInfo {
    SchedulerInfo {
        name: profile.name,
        brief: profile.brief,
        source: profile.source,
        work_conserving: true,
        caps: true,
        profile,
    }
}

static SCHEDULERS: [SchedulerInfo; 3] =
    [credit(&Profile::TODAY), credit(&Profile::Y2013), credit(&Profile::Y2008)];

/// All schedulers, each profile on its own.
pub fn schedulers() -> &'static [SchedulerInfo] {
    &SCHEDULERS
}

/// Makes a scheduler by name. Parameters that are left out are the profile's.
///
/// # Errors
/// [`SchedError::UnknownScheduler`] with the names there are; [`SchedError::Param`] or
/// [`SchedError::NotInProfile`] for a parameter that is out of range or not known to the profile.
pub fn make(name: &str, params: &CreditParams) -> Result<Box<dyn Scheduler>, SchedError> {
    let Some(info) = SCHEDULERS.iter().find(|s| s.name == name) else {
        let known: Vec<_> = SCHEDULERS.iter().map(|s| s.name).collect();
        return Err(SchedError::UnknownScheduler {
            name: name.to_owned(),
            known: known.join(", "),
        });
    };
    Ok(Box::new(Credit::new(info.profile, params)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_unique_and_make_what_they_say() {
        for info in schedulers() {
            assert_eq!(make(info.name, &CreditParams::default()).unwrap().name(), info.name);
            assert_eq!(schedulers().iter().filter(|s| s.name == info.name).count(), 1);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = make("cfs", &CreditParams::default()).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no scheduler `cfs`; there are: credit, credit-2013, credit-2008"
        );
    }
}
