//! The parts that scenarios can name: locks, schedulers and workloads, built-in ones and yours. Readers and writers of
//! scenarios get them as an argument, so they need no world.
#![forbid(unsafe_code)]

use overspin_locks::LockInfo;
use overspin_scenario::{Domain, Picos};
use overspin_sched::{SchedError, SchedulerInfo, Schedulers};
use overspin_workload::{Kinds, Loads, WorkloadInfo};

/// The parts by name. By default those that come with the program.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Locks besides those of the registry, or instead of some of them.
    own_locks: Vec<LockInfo>,
    schedulers: Schedulers,
    workloads: Kinds,
}

impl Names {
    /// Adds this lock; it replaces one of the same name.
    #[must_use]
    pub fn with_lock(mut self, lock: LockInfo) -> Self {
        self.own_locks.retain(|own| own.name != lock.name);
        self.own_locks.push(lock);
        self
    }

    /// Adds this scheduler.
    ///
    /// # Errors
    /// If one of its names already stands for another scheduler.
    pub fn with_scheduler(self, scheduler: SchedulerInfo) -> Result<Self, SchedError> {
        Ok(Self { schedulers: self.schedulers.with(scheduler)?, ..self })
    }

    /// Adds this workload; it replaces one of the same name.
    #[must_use]
    pub fn with_workload(self, workload: WorkloadInfo) -> Self {
        Self { workloads: self.workloads.with(workload), ..self }
    }

    /// Every lock with its aliases: first the registry's locks that no lock of yours replaces, then yours.
    pub fn locks<'a>(
        &'a self,
    ) -> impl Iterator<Item = (&'a LockInfo, &'static [&'static str])> + 'a {
        let registered = overspin_locks::infos_and_aliases();
        let registered = registered.filter(|(info, _)| self.own_lock(info.name).is_none());
        let registered = registered.map(|(info, aliases)| -> (&'a LockInfo, _) { (info, aliases) });
        registered.chain(self.own_locks.iter().map(|own| (own, [].as_slice())))
    }

    /// The lock of this name or alias.
    #[must_use]
    pub fn lock(&self, name: &str) -> Option<&LockInfo> {
        self.own_lock(name).or_else(|| overspin_locks::find(name))
    }

    fn own_lock(&self, name: &str) -> Option<&LockInfo> {
        self.own_locks.iter().find(|own| own.name == name)
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

    /// The name that `value` stands for, if `key` takes a lock or a scheduler and `value` is an alias of one;
    /// otherwise `value` itself.
    #[must_use]
    pub fn own_name<'a>(&self, key: &str, value: &'a str) -> &'a str {
        match key.rsplit('.').next() {
            Some("lock") => self.lock(value).map_or(value, |info| info.name),
            Some("scheduler") => self.schedulers.find(value).map_or(value, |info| info.name),
            _ => value,
        }
    }

    /// Names of the kernel locks that the workloads of a domain use, in the order of their numbers; empty if the
    /// workloads could not run.
    #[must_use]
    pub fn locks_of(&self, domain: &Domain) -> Vec<String> {
        Loads::of(domain, &self.workloads).map_or_else(|_| Vec::new(), |loads| loads.lock_names())
    }

    /// The mean CPU time of an item of a domain's work, if it is known.
    #[must_use]
    pub fn work_per_item(&self, domain: &Domain) -> Option<Picos> {
        Loads::of(domain, &self.workloads).ok()?.work_per_item()
    }

    /// Names of all locks of a domain's kernel, in the order of their numbers: those that the workloads use, then
    /// those of its run queues. Reports and traces use these names.
    #[must_use]
    pub fn all_locks_of(&self, domain: &Domain) -> Vec<String> {
        let mut names = self.locks_of(domain);
        names.extend((0..domain.vcpus).map(overspin_workload::run_queue_lock));
        names
    }

    /// Whether a workload of a domain takes locks in user mode.
    #[must_use]
    pub fn locks_in_user_mode(&self, domain: &Domain) -> bool {
        Loads::of(domain, &self.workloads).is_ok_and(|loads| loads.locks_in_user_mode())
    }

    /// Names of the tasks with which a domain starts, in the order of their numbers.
    #[must_use]
    pub fn first_tasks_of(&self, domain: &Domain) -> Vec<String> {
        let loads = Loads::of(domain, &self.workloads);
        let names =
            |loads: Loads| loads.start(domain.vcpus).into_iter().map(|t| t.start.name).collect();
        loads.map_or_else(|_| Vec::new(), names)
    }
}
