//! The parts that the commands know: the built-in ones, and yours.

use crate::failure::Failure;
use overspin_check::descheduled::Away;
use overspin_check::model::LoomPlatform;
use overspin_check::schedules::SchedulePlatform;
use overspin_check::threads::StdPlatform;
use overspin_check::{Check, Limits, checks_by_name, name_of, own_checks};
use overspin_lab::catalog::Catalog as Named;
use overspin_locks::{LockFamily, LockInfo, RawLock};
use overspin_native::Threads;
use overspin_native::bench::OwnLock;
use overspin_native::world::RunThreads;
use overspin_sched::{SchedError, SchedulerInfo};
use overspin_workload::WorkloadInfo;

/// The built-in locks, schedulers and workloads, and yours: in `list`, `run`, `check`, `bench` and sweeps.
/// (`overspin exec` has only the built-in locks, because its library is a separate program.)
#[derive(Debug, Default)]
pub struct Catalog {
    named: Named,
    parts: Parts,
    /// The first part that was refused.
    refused: Option<SchedError>,
}

/// The aspects of the parts that no scenario names: how to check and to measure a lock.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    checked: Vec<Checked>,
    pub measured: Vec<OwnLock>,
}

#[derive(Debug)]
struct Checked {
    info: LockInfo,
    checks: fn(&Limits) -> Vec<Check>,
}

impl Catalog {
    /// The parts that come with the program.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Adds this lock; it replaces one of the same name.
    #[must_use]
    pub fn with_lock<F: LockFamily>(mut self) -> Self
    where
        F::On<SchedulePlatform>: Send + Sync,
        <F::On<SchedulePlatform> as RawLock<SchedulePlatform>>::Shared: Send + Sync,
        F::On<Away>: Send + Sync,
        <F::On<Away> as RawLock<Away>>::Shared: Send + Sync,
        F::On<StdPlatform>: Sync,
        <F::On<StdPlatform> as RawLock<StdPlatform>>::Shared: Sync,
        F::On<Threads>: Send + Sync,
        <F::On<Threads> as RawLock<Threads>>::Shared: Send + Sync,
        F::On<RunThreads>: Send + Sync,
        <F::On<RunThreads> as RawLock<RunThreads>>::Shared: Send + Sync,
    {
        self.named = self.named.with_lock::<F>();
        let measured = OwnLock::of::<F::On<Threads>>();
        let info = measured.info;
        self.parts.measured.retain(|own| own.info.name != info.name);
        self.parts.measured.push(measured);
        let checks = own_checks::<
            F::On<LoomPlatform>,
            F::On<SchedulePlatform>,
            F::On<StdPlatform>,
            F::On<Away>,
        >;
        self.parts.checked.retain(|own| own.info.name != info.name);
        self.parts.checked.push(Checked { info, checks });
        self
    }

    /// Adds this scheduler. If one of its names stands for another scheduler, [`main_with`](crate::main_with)
    /// reports this and ends.
    #[must_use]
    pub fn with_scheduler(mut self, scheduler: SchedulerInfo) -> Self {
        match self.named.clone().with_scheduler(scheduler) {
            Ok(named) => self.named = named,
            Err(error) => self.refused = self.refused.or(Some(error)),
        }
        self
    }

    /// Adds this workload; it replaces one of the same name.
    #[must_use]
    pub fn with_workload(mut self, workload: WorkloadInfo) -> Self {
        self.named = self.named.with_workload(workload);
        self
    }

    /// Makes it the catalog of this process.
    pub(crate) fn install(self) -> Result<Parts, Failure> {
        if let Some(error) = self.refused {
            return Err(Failure::usage(error.to_string(), "give your scheduler another name"));
        }
        match self.named.install() {
            Ok(()) => Ok(self.parts),
            Err(error) => Err(Failure::usage(
                error.to_string(),
                "call `main_with` only once, before anything else",
            )),
        }
    }
}

impl Parts {
    /// The lock's own name, for a name or an alias.
    pub(crate) fn lock(&self, name: &str) -> Option<&'static str> {
        self.checked(name).map(|own| own.info.name).or_else(|| name_of(name))
    }

    /// All checks of a lock.
    pub(crate) fn checks(&self, name: &str, limits: &Limits) -> Option<Vec<Check>> {
        match self.checked(name) {
            Some(own) => Some((own.checks)(limits)),
            None => checks_by_name(name, limits),
        }
    }

    /// Whether a lock is one of yours: no bugs were inserted into it on purpose.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.checked(name).is_some()
    }

    fn checked(&self, name: &str) -> Option<&Checked> {
        self.checked.iter().find(|own| own.info.name == name)
    }
}
