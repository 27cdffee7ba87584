//! The parts that scenarios can name: the built-in locks, schedulers and workloads, and yours.
//!
//! A process has one catalog. It is the built-in one, unless [`Catalog::install`] was called before its first
//! use: [names](Names) are resolved while files are read, which is long before a world is made. [`Catalog::extend`] adds
//! parts later, for a program in which parts are written while it runs.

use overspin_host::World;
use overspin_hv::Hv;
use overspin_linux::world::Linux;
pub use overspin_locks::LockInfo;
use overspin_locks::{LockFamily, RawLock};
use overspin_names::Names;
use overspin_native::world::{ProcessesWorld, RunThreads, ThreadsWorld};
use overspin_sched::SchedError;
pub use overspin_sched::{ParamInfo, SchedulerInfo, suggestion};
use overspin_sim::{SimPlatform, Simulator};
pub use overspin_workload::WorkloadInfo;
use std::sync::{PoisonError, RwLock};

/// A world that several runs may share.
pub type AnyWorld = &'static (dyn World + Sync);

/// Catalogs are leaked, because worlds are used for as long as the process lives.
static CATALOG: RwLock<Option<&'static Catalog>> = RwLock::new(None);

/// See the [module](self). The simulator knows all parts; the other worlds take theirs from it.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    names: Names,
    simulator: Simulator,
    hv: Hv,
    threads: ThreadsWorld,
    processes: ProcessesWorld,
}

/// The catalog of this process was already used or installed.
#[derive(Debug, thiserror::Error)]
#[error("the catalog is already in use: install yours before anything else")]
pub struct InUse;

impl Catalog {
    /// The parts that come with the program.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Adds this lock; it replaces one of the same name.
    #[must_use]
    pub fn with_lock<F: LockFamily>(self) -> Self
    where
        F::On<RunThreads>: Send + Sync,
        <F::On<RunThreads> as RawLock<RunThreads>>::Shared: Send + Sync,
    {
        Self {
            names: self.names.with_lock(F::On::<SimPlatform>::INFO),
            simulator: self.simulator.with_lock::<F::On<SimPlatform>>(),
            threads: self.threads.with_lock::<F::On<RunThreads>>(),
            processes: self.processes.with_lock::<F::On<RunThreads>>(),
            ..self
        }
    }

    /// Adds this scheduler.
    ///
    /// # Errors
    /// If one of its names already stands for another scheduler.
    pub fn with_scheduler(self, scheduler: SchedulerInfo) -> Result<Self, SchedError> {
        let names = self.names.with_scheduler(scheduler)?;
        let schedulers = names.schedulers().clone();
        Ok(Self {
            names,
            hv: self.hv.with_schedulers(schedulers.clone()),
            simulator: self.simulator.with_schedulers(schedulers),
            ..self
        })
    }

    /// Adds this workload; it replaces one of the same name.
    #[must_use]
    pub fn with_workload(self, workload: WorkloadInfo) -> Self {
        let names = self.names.with_workload(workload);
        let workloads = names.workloads().clone();
        Self {
            names,
            simulator: self.simulator.with_workloads(workloads.clone()),
            threads: self.threads.with_workloads(workloads.clone()),
            processes: self.processes.with_workloads(workloads),
            ..self
        }
    }

    /// Makes it the catalog of this process.
    ///
    /// # Errors
    /// If the catalog was used before.
    pub fn install(self) -> Result<(), InUse> {
        let mut slot = CATALOG.write().unwrap_or_else(PoisonError::into_inner);
        match *slot {
            Some(_) => Err(InUse),
            None => {
                *slot = Some(Box::leak(Box::new(self)));
                Ok(())
            }
        }
    }

    /// Makes what `with` returns for the catalog of this process its new catalog. Whatever is under way goes on with
    /// the old one, which is never freed.
    ///
    /// # Errors
    /// The error of `with`. Then nothing has changed.
    pub fn extend<E>(with: impl FnOnce(Self) -> Result<Self, E>) -> Result<(), E> {
        let mut slot = CATALOG.write().unwrap_or_else(PoisonError::into_inner);
        let extended = with(slot.cloned().unwrap_or_default())?;
        *slot = Some(Box::leak(Box::new(extended)));
        Ok(())
    }

    /// What scenarios can name.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The world of this name.
    #[must_use]
    pub fn world(&'static self, name: &str) -> Option<AnyWorld> {
        self.worlds().into_iter().find(|world| world.name() == name)
    }

    /// Every world that runs scenarios with these parts, the simulator first. A new world is one more line.
    #[must_use]
    pub fn worlds(&'static self) -> Vec<AnyWorld> {
        vec![
            &self.simulator, // sim
            &self.threads,   // threads
            &self.processes, // processes
            &self.hv,        // hv
            &Linux,          // linux
        ]
    }

    /// The world of real vCPUs, with these schedulers and with `program` in every guest; see
    /// [`Hv::with_guest`]. It lasts as long as the process.
    ///
    /// # Errors
    /// Why the program cannot be a guest.
    pub fn world_of_guest(&'static self, program: Vec<u8>) -> Result<AnyWorld, String> {
        Ok(Box::leak(Box::new(self.hv.clone().with_guest(program)?)))
    }

    /// The simulator that knows all of these parts.
    #[must_use]
    pub fn simulator(&self) -> &Simulator {
        &self.simulator
    }
}

/// The catalog of this process.
#[must_use]
pub fn catalog() -> &'static Catalog {
    if let Some(catalog) = *CATALOG.read().unwrap_or_else(PoisonError::into_inner) {
        return catalog;
    }
    let mut slot = CATALOG.write().unwrap_or_else(PoisonError::into_inner);
    slot.get_or_insert_with(|| Box::leak(Box::new(Catalog::builtin())))
}

/// What scenarios can name in this process.
#[must_use]
pub fn names() -> &'static Names {
    catalog().names()
}

/// Properties of the lock of this name; an alias is not found.
#[must_use]
pub fn lock(name: &str) -> Option<LockInfo> {
    names().lock(name).filter(|info| info.name == name).copied()
}

/// The scheduler of this name; an alias is not found.
#[must_use]
pub fn scheduler(name: &str) -> Option<SchedulerInfo> {
    names().schedulers().iter().find(|info| info.name == name).copied()
}
