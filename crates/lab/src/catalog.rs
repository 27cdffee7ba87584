//! The parts that scenarios can name: the built-in locks, schedulers and workloads, and yours.
//!
//! There is one catalog in a process. It is the built-in one, unless [`Catalog::install`] was called before
//! anybody looked: names are resolved while files are read, which is long before a world is made.

use overspin_host::World;
use overspin_locks::{LockFamily, LockInfo, RawLock};
use overspin_sched::{SchedError, SchedulerInfo, Schedulers};
use overspin_sim::{SimPlatform, Simulator};
use overspin_workload::{Kinds, WorkloadInfo};
use std::sync::OnceLock;

/// A world that runs may share.
pub type AnyWorld = &'static (dyn World + Sync);

static CATALOG: OnceLock<Catalog> = OnceLock::new();

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    locks: Vec<LockInfo>,
    schedulers: Schedulers,
    workloads: Kinds,
    simulator: Simulator,
}

/// Somebody has looked at the catalog of this process already, or installed one.
#[derive(Debug, thiserror::Error)]
#[error("the catalog is in use already: install yours before anything else")]
pub struct InUse;

impl Catalog {
    /// What comes with the program.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default()
    }

    /// And this lock; it replaces one of the same name.
    #[must_use]
    pub fn with_lock<F: LockFamily>(mut self) -> Self {
        let info = <F::On<SimPlatform> as RawLock<SimPlatform>>::INFO;
        self.locks.retain(|own| own.name != info.name);
        self.locks.push(info);
        self.simulator = self.simulator.with_lock::<F::On<SimPlatform>>();
        self
    }

    /// And this scheduler.
    ///
    /// # Errors
    /// If one of its names stands for another scheduler already.
    pub fn with_scheduler(mut self, scheduler: SchedulerInfo) -> Result<Self, SchedError> {
        self.schedulers = self.schedulers.with(scheduler)?;
        self.simulator = self.simulator.with_schedulers(self.schedulers.clone());
        Ok(self)
    }

    /// And this workload; it replaces one of the same name.
    #[must_use]
    pub fn with_workload(mut self, workload: WorkloadInfo) -> Self {
        self.workloads = self.workloads.with(workload);
        self.simulator = self.simulator.with_workloads(self.workloads.clone());
        self
    }

    /// Makes it the catalog of this process.
    ///
    /// # Errors
    /// If somebody has looked at that before.
    pub fn install(self) -> Result<(), InUse> {
        CATALOG.set(self).map_err(|_| InUse)
    }

    /// Every lock with the other names by which it is found.
    pub fn locks<'a>(
        &'a self,
    ) -> impl Iterator<Item = (&'a LockInfo, &'static [&'static str])> + 'a {
        let own = |name: &str| self.locks.iter().any(|own| own.name == name);
        let registered = overspin_locks::infos_and_aliases().filter(move |(l, _)| !own(l.name));
        let registered = registered.map(|(info, aliases)| -> (&'a LockInfo, _) { (info, aliases) });
        registered.chain(self.locks.iter().map(|own| (own, [].as_slice())))
    }

    /// The lock of this name or alias.
    #[must_use]
    pub fn lock(&self, name: &str) -> Option<&LockInfo> {
        let own = self.locks.iter().find(|own| own.name == name);
        own.or_else(|| overspin_locks::find(name))
    }

    /// All schedulers.
    #[must_use]
    pub fn schedulers(&self) -> &Schedulers {
        &self.schedulers
    }

    /// All workloads.
    #[must_use]
    pub fn workloads(&self) -> &Kinds {
        &self.workloads
    }

    /// The world of this name.
    #[must_use]
    pub fn world(&'static self, name: &str) -> Option<AnyWorld> {
        self.worlds().into_iter().find(|world| world.name() == name)
    }

    /// Every world that runs scenarios with these parts.
    #[must_use]
    pub fn worlds(&'static self) -> Vec<AnyWorld> {
        vec![&self.simulator]
    }

    /// The simulator that knows all of this.
    #[must_use]
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }
}

/// The catalog of this process.
#[must_use]
pub fn catalog() -> &'static Catalog {
    CATALOG.get_or_init(Catalog::builtin)
}
