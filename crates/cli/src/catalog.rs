//! The parts that the commands know: the built-in ones, and yours.

use crate::checked::{Checkable, Checked};
use crate::failure::Failure;
use overspin_locks::RawLock;
use overspin_native::Threads;
use overspin_native::bench::OwnLock;
use overspin_native::world::RunThreads;
use overspin_runs::catalog::{self, Catalog as Named};
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
    pub checked: Checked,
    pub measured: Vec<OwnLock>,
}

impl Catalog {
    /// The parts that come with the program.
    #[must_use]
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Adds this lock; it replaces one of the same name.
    #[must_use]
    pub fn with_lock<F: Checkable>(mut self) -> Self
    where
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
        self.parts.checked.add::<F>(info);
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

/// The error for a lock that does not exist.
pub(crate) fn unknown_lock(name: &str) -> Failure {
    let names: Vec<&str> = catalog::names().locks().map(|(lock, _)| lock.name).collect();
    Failure::usage(format!("there is no lock `{name}`"), format!("locks are: {}", names.join(", ")))
}
