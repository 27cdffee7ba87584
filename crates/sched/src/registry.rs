//! Schedulers by name: what there is to know about one before it is chosen, and collections of them.
//!
//! [`Schedulers`] is the built-in ones and yours. Whoever reads names from a file or a command line takes one, so that a
//! scheduler from outside this crate is chosen like any other; [`schedulers`], [`find`] and [`make`] are short for the
//! built-in ones.

use crate::builtin::BUILTIN;
use crate::error::SchedError;
use crate::nearest::nearest;
use crate::params::{ParamInfo, Params};
use crate::scheduler::Scheduler;
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Makes a scheduler from parameters that were checked against [`SchedulerInfo::params`].
pub type MakeScheduler = fn(&Params) -> Result<Box<dyn Scheduler>, SchedError>;

/// What there is to know about a scheduler before it is chosen.
///
/// One of your own is made with [`SchedulerInfo::new`] and described by the functions that follow it, in a constant or
/// at run time. `examples/stride.rs` of this crate does so.
///
/// ```
/// # use overspin_sched::{ParamInfo, ParamKind, SchedulerInfo, make, Params};
/// const MINE: SchedulerInfo = SchedulerInfo::new("mine", |_| make("rr", &Params::default()))
///     .brief("round robin under another name")
///     .weights(false);
/// assert_eq!(MINE.name, "mine");
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SchedulerInfo {
    /// Name in scenarios and on command lines. [`Scheduler::name`] returns the same.
    pub name: &'static str,
    /// Other names by which it is found. Nothing is reported under them.
    pub aliases: &'static [&'static str],
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
    pub(crate) make: MakeScheduler,
}

impl SchedulerInfo {
    /// A scheduler of which nothing is known but its name and how to make it: it may idle, knows no weights or caps,
    /// does not tick, and has no parameters.
    #[must_use]
    pub const fn new(name: &'static str, make: MakeScheduler) -> Self {
        Self {
            name,
            aliases: &[],
            brief: "",
            source: "",
            work_conserving: false,
            weights: false,
            caps: false,
            ticks: false,
            params: &[],
            domain_params: &[],
            make,
        }
    }

    /// Makes it. Parameters that are left out are its own defaults.
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
        /// The same, with one thing more said about it.
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
    caps: bool,
    ticks: bool,
    params: &'static [ParamInfo],
    domain_params: &'static [ParamInfo],
}

/// Schedulers that can be chosen by name: the built-in ones, and those that were added.
///
/// ```
/// use overspin_sched::{Params, SchedulerInfo, Schedulers, make};
///
/// const MINE: SchedulerInfo = SchedulerInfo::new("mine", |_| make("rr", &Params::default()));
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
    /// Those of this crate.
    #[must_use]
    pub fn builtin() -> Self {
        Self(BUILTIN.to_vec())
    }

    /// The same and one more.
    ///
    /// # Errors
    /// [`SchedError::NameTaken`] if one of its names stands for another scheduler already.
    pub fn with(mut self, scheduler: SchedulerInfo) -> Result<Self, SchedError> {
        let taken = |name: &&str| self.iter().any(|other| other.is_called(name));
        if let Some(name) = scheduler.names().find(taken) {
            return Err(SchedError::NameTaken { name });
        }
        self.0.push(scheduler);
        Ok(self)
    }

    /// All of them: the built-in ones, then the others in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &SchedulerInfo> + Clone {
        self.0.iter()
    }

    /// The scheduler of that name or alias.
    ///
    /// # Errors
    /// [`SchedError::UnknownScheduler`] with the nearest name and all names there are.
    pub fn find(&self, name: &str) -> Result<&SchedulerInfo, SchedError> {
        find_in(&self.0, name)
    }

    /// Makes the scheduler of that name or alias. Parameters that are left out are its own defaults.
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

/// All built-in schedulers, each profile on its own.
#[must_use]
pub fn schedulers() -> &'static [SchedulerInfo] {
    BUILTIN
}

/// What there is to know about the built-in scheduler of that name or alias.
///
/// # Errors
/// As [`Schedulers::find`].
pub fn find(name: &str) -> Result<&'static SchedulerInfo, SchedError> {
    find_in(BUILTIN, name)
}

/// Makes a built-in scheduler by name or alias. Parameters that are left out are the profile's.
///
/// # Errors
/// As [`Schedulers::make`].
pub fn make(name: &str, params: &Params) -> Result<Box<dyn Scheduler>, SchedError> {
    find(name)?.make(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{ParamKind, ParamValue};
    use alloc::string::ToString;

    const PARAMS: &[ParamInfo] =
        &[ParamInfo { key: "quantum", kind: ParamKind::Flag, default: "false", doc: "" }];
    const OWN: SchedulerInfo = SchedulerInfo::new("own", |_| make("rr", &Params::default()))
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
        assert!(error.starts_with("there is no scheduler `bogus`; there are: credit, "), "{error}");
        let error = make("fcfs", &Params::default()).unwrap_err().to_string();
        let start = "there is no scheduler `fcfs`; did you mean `cfs`? There are: credit, ";
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
            assert!(error.starts_with("there is a scheduler `"), "{error}");
        }
    }
}
