//! Schedulers by name: descriptions of schedulers, and collections to choose from.
//!
//! [`Schedulers`] holds the built-in schedulers and yours. Code that reads names from a file or a command
//! line takes a `Schedulers`, so that users choose a scheduler from outside this crate like any other.
//! [`schedulers`], [`find`] and [`make`] are shortcuts for the built-in ones.

use crate::builtin::BUILTIN;
use crate::error::SchedError;
use crate::nearest::nearest;
use crate::params::{ParamInfo, Params};
use crate::scheduler::Scheduler;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// Makes a scheduler from parameters that were checked against [`SchedulerInfo::params`].
pub type MakeScheduler =
    &'static (dyn Fn(&Params) -> Result<Box<dyn Scheduler>, SchedError> + Send + Sync);

/// The description of a scheduler, for choosing and making it by name.
///
/// To describe your own scheduler, use [`SchedulerInfo::new`] and the functions that follow it, in a constant
/// or at run time. `examples/stride.rs` of this crate does so.
///
/// ```
/// # use overspin_sched::{SchedulerInfo, make, Params};
/// const MINE: SchedulerInfo = SchedulerInfo::new("mine", &|_| make("rr", &Params::default()))
///     .brief("round robin under another name")
///     .weights(false);
/// assert_eq!(MINE.name, "mine");
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct SchedulerInfo {
    /// Name in scenarios and on command lines. [`Scheduler::name`] returns the same.
    pub name: &'static str,
    /// Other names by which it is found. Reports do not use them.
    pub aliases: &'static [&'static str],
    /// One line for a list.
    pub brief: &'static str,
    /// The software and versions whose behaviour it follows.
    pub source: &'static str,
    /// Whether it is work-conserving, at least in a weak form: a pCPU idles only if no vCPU that may run
    /// there waits. Caps and reservations are exceptions.
    pub work_conserving: bool,
    /// Whether domains share contended time by their weights.
    pub weights: bool,
    /// Whether a vCPU can have a weight of its own ([`Hypervisor::set_weight`](crate::Hypervisor::set_weight)).
    pub vcpu_weights: bool,
    /// Whether its hypervisor has paravirtual guests. Linux and VMware virtualise by hardware only.
    pub pv_guests: bool,
    /// Whether domains can be capped.
    pub caps: bool,
    /// Whether it has periodic ticks ([`TimerId::Tick`](crate::TimerId)) at which it samples or decides.
    pub ticks: bool,
    /// Its parameters.
    pub params: &'static [ParamInfo],
    /// Parameters of a domain, or of one of its vCPUs, besides weight and cap; set with
    /// [`Hypervisor::configure`](crate::Hypervisor::configure).
    pub domain_params: &'static [ParamInfo],
    pub(crate) make: MakeScheduler,
}

impl fmt::Debug for SchedulerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchedulerInfo").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SchedulerInfo {
    /// Describes a scheduler by its name and constructor alone: it is not work-conserving, and has no
    /// weights, caps, ticks or parameters. Its hypervisor may have paravirtual guests.
    #[must_use]
    pub const fn new(name: &'static str, make: MakeScheduler) -> Self {
        Self {
            name,
            aliases: &[],
            brief: "",
            source: "",
            work_conserving: false,
            weights: false,
            vcpu_weights: false,
            pv_guests: true,
            caps: false,
            ticks: false,
            params: &[],
            domain_params: &[],
            make,
        }
    }

    /// Makes the scheduler. Omitted parameters have its defaults.
    ///
    /// # Errors
    /// [`SchedError::UnknownParam`] or [`SchedError::IllegalParam`] for a parameter that it does not have or allow.
    pub fn make(&self, params: &Params) -> Result<Box<dyn Scheduler>, SchedError> {
        params.check(self.name, self.params)?;
        (self.make)(params)
    }

    /// Whether `name` is its name or an alias.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        core::iter::once(self.name).chain(self.aliases.iter().copied())
    }
}

macro_rules! setters {
    ($($field:ident: $type:ty),+ $(,)?) => {
        /// Functions that each set one field.
        impl SchedulerInfo {
            $(
                #[doc = concat!("The same with this [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
                #[must_use]
                pub const fn $field(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}

setters! {
    aliases: &'static [&'static str],
    brief: &'static str,
    source: &'static str,
    work_conserving: bool,
    weights: bool,
    vcpu_weights: bool,
    pv_guests: bool,
    caps: bool,
    ticks: bool,
    params: &'static [ParamInfo],
    domain_params: &'static [ParamInfo],
}

/// Schedulers that can be chosen by name: the built-in ones and those that you add.
///
/// ```
/// use overspin_sched::{Params, SchedulerInfo, Schedulers, make};
///
/// const MINE: SchedulerInfo = SchedulerInfo::new("mine", &|_| make("rr", &Params::default()));
/// let all = Schedulers::builtin().with(MINE)?;
/// assert_eq!(all.find("mine")?.name, "mine");
/// assert_eq!(all.find("round-robin")?.name, "rr");
/// let error = all.find("mime").unwrap_err().to_string();
/// assert!(error.contains("did you mean `mine`?"));
/// # Ok::<(), overspin_sched::SchedError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedulers(Vec<SchedulerInfo>);

impl Schedulers {
    /// The schedulers of this crate.
    #[must_use]
    pub fn builtin() -> Self {
        Self(BUILTIN.to_vec())
    }

    /// Adds a scheduler.
    ///
    /// # Errors
    /// [`SchedError::NameTaken`] if another scheduler has one of its names already.
    pub fn with(mut self, scheduler: SchedulerInfo) -> Result<Self, SchedError> {
        let taken = |name: &&str| self.iter().any(|other| other.is_called(name));
        if let Some(name) = scheduler.names().find(taken) {
            return Err(SchedError::NameTaken { name });
        }
        self.0.push(scheduler);
        Ok(self)
    }

    /// All schedulers: the built-in ones, then the others in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &SchedulerInfo> + Clone {
        self.0.iter()
    }

    /// The scheduler with this name or alias.
    ///
    /// # Errors
    /// [`SchedError::UnknownScheduler`] with the nearest name and all known names.
    pub fn find(&self, name: &str) -> Result<&SchedulerInfo, SchedError> {
        find_in(&self.0, name)
    }

    /// Makes the scheduler with this name or alias. Omitted parameters have its defaults.
    ///
    /// # Errors
    /// As [`Schedulers::find`] and [`SchedulerInfo::make`].
    pub fn make(&self, name: &str, params: &Params) -> Result<Box<dyn Scheduler>, SchedError> {
        self.find(name)?.make(params)
    }
}

impl Default for Schedulers {
    /// The built-in ones.
    fn default() -> Self {
        Self::builtin()
    }
}

fn find_in<'a>(all: &'a [SchedulerInfo], name: &str) -> Result<&'a SchedulerInfo, SchedError> {
    all.iter().find(|s| s.is_called(name)).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|s| s.name).collect();
        SchedError::UnknownScheduler {
            name: name.to_owned(),
            near: nearest(name, all.iter().flat_map(SchedulerInfo::names)).map(ToOwned::to_owned),
            known: known.join(", "),
        }
    })
}

/// All built-in schedulers; each profile is a separate entry.
#[must_use]
pub fn schedulers() -> &'static [SchedulerInfo] {
    BUILTIN
}

/// The description of the built-in scheduler with this name or alias.
///
/// # Errors
/// As [`Schedulers::find`].
pub fn find(name: &str) -> Result<&'static SchedulerInfo, SchedError> {
    find_in(BUILTIN, name)
}

/// Makes a built-in scheduler by name or alias. Omitted parameters have the profile's values.
///
/// # Errors
/// As [`Schedulers::make`].
pub fn make(name: &str, params: &Params) -> Result<Box<dyn Scheduler>, SchedError> {
    find(name)?.make(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamValue;
    use alloc::string::ToString;

    const PARAMS: &[ParamInfo] = &[ParamInfo::flag("quantum", false, "")];
    const OWN: SchedulerInfo = SchedulerInfo::new("own", &|_| make("rr", &Params::default()))
        .aliases(&["mine"])
        .params(PARAMS);

    #[test]
    fn names_are_unique_and_make_what_they_say() {
        let names: Vec<_> = schedulers().iter().flat_map(SchedulerInfo::names).collect();
        for info in schedulers() {
            assert_eq!(make(info.name, &Params::default()).unwrap().name(), info.name);
            for name in info.names() {
                assert_eq!(find(name).unwrap().name, info.name);
                assert_eq!(names.iter().filter(|other| **other == name).count(), 1);
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = make("bogus", &Params::default()).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no scheduler `bogus`; known schedulers: credit, "),
            "{error}"
        );
        let error = make("fcfs", &Params::default()).unwrap_err().to_string();
        let start = "there is no scheduler `fcfs`; did you mean `cfs`? Known schedulers: credit, ";
        assert!(error.starts_with(start), "{error}");
    }

    #[test]
    fn one_of_your_own_is_found_made_and_checked_like_any_other() {
        let all = Schedulers::builtin().with(OWN).unwrap();
        assert_eq!(all.iter().count(), schedulers().len() + 1);
        assert_eq!(all.find("mine").unwrap().name, "own");
        assert_eq!(all.find("credit2").unwrap().name, "credit2");
        assert!(all.make("own", &Params::default()).is_ok());
        let params = Params::default().with("quantum", ParamValue::Number(1));
        let error = all.make("mine", &params).unwrap_err().to_string();
        assert_eq!(error, "quantum = 1 is not legal; legal values: true or false");
        let error = all.find("oww").unwrap_err().to_string();
        assert!(error.contains("did you mean `own`?") && error.ends_with(", own"), "{error}");
    }

    #[test]
    fn a_name_stands_for_one_scheduler() {
        let all = Schedulers::builtin().with(OWN).unwrap();
        for (name, aliases) in [("own", &[][..]), ("mine", &[]), ("new", &["round-robin"])] {
            let info = SchedulerInfo::new(name, OWN.make).aliases(aliases);
            let error = all.clone().with(info).unwrap_err().to_string();
            assert!(error.starts_with("another scheduler is named `"), "{error}");
        }
    }
}
