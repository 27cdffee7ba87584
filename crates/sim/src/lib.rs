#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! The simulation is driven by execution: guests run real lock code and real workload code.
//! Start reading at `execution.rs` (how code uses time: run-ahead, preemption). Then read `memory.rs`
//! and `watchers.rs` (cache lines: their cost, and the vCPUs that spin on them), `main_loop.rs`,
//! `host.rs` and `hypercalls.rs` (pCPUs, and the requests of guests) and `guest/` (the guest's kernel). `counting.rs` begins to count after
//! the warm-up.
//! Each option of the host has its own file: `pause_loop.rs`, `directed_yield.rs`, `halt_polling.rs`,
//! `notification.rs`. `telling.rs` tells observers what happens.
//!
//! This crate needs `unsafe` for three things: following the pointer to the engine of the running
//! simulation, calling the condition of a suspended spinner on its own stack, and placing values
//! in the simulated memory.

mod asking;
mod boot;
mod callers_stack;
mod costs;
mod counting;
mod directed_yield;
mod engine;
mod events;
mod execution;
mod guest;
mod halt_polling;
mod host;
mod host_interrupt;
mod hypercalls;
mod main_loop;
mod memory;
mod notification;
mod outcome;
mod pause_loop;
mod platform;
mod prefetch;
mod queue;
mod run_queue;
mod speed;
mod telling;
mod timeline;
mod validity;
mod vcpu;
mod watch;
mod watch_list;
mod watchers;

pub use callers_stack::on_callers_stack;
pub use platform::{SimCell, SimPlatform, SimSlots};

use engine::Entered;
use guest::{BankResult, MakeBank};
use overspin_host::{Cancel, Ignored, Observer, Refused, Unhonoured, World};
use overspin_locks::{LockInfo, LockVisitor, RawLock};
use overspin_scenario::{Outcome, Scenario};
use overspin_sched::Schedulers;
use overspin_workload::{Kinds, with_noise};

pub use overspin_host::MODEL_VERSION;

/// A kind of lock from outside the registry.
#[derive(Clone, Debug)]
struct OwnLock {
    info: LockInfo,
    make: fn(MakeBank<'_>) -> BankResult,
}

/// The simulated world. It is deterministic: equal scenarios and seeds give equal outcomes, bit for bit.
/// Time and memory grow with the number of events in the run.
///
/// ```
/// use overspin_scenario::{Domain, Scenario};
/// # fn outcome(scenario: &Scenario) -> Result<(), overspin_host::Refused> {
/// use overspin_host::{Timed, run};
/// use overspin_sim::Simulator;
///
/// let mut moments: Vec<Timed> = Vec::new();
/// let outcome = run(&Simulator::new(), scenario, 1, &mut moments, &())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    locks: Vec<OwnLock>,
    schedulers: Schedulers,
    workloads: Kinds,
}

impl Simulator {
    /// A simulator with the locks, schedulers and workloads of the registries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a lock of your own: domains whose lock is `L::INFO.name` use `L`. It replaces a lock of that
    /// name, whether from the registry or added before.
    ///
    /// Write the lock against [`Platform`](overspin_locks::Platform), like the locks in `overspin-locks`.
    /// If the lock loses a wake-up or forgets a waiter, the run ends with
    /// [`Ending::Deadlock`](overspin_scenario::Ending::Deadlock). A run panics if `L` panics, or if it
    /// needs more than 2 KiB of shared memory per vCPU.
    #[must_use]
    pub fn with_lock<L: RawLock<SimPlatform> + 'static>(mut self) -> Self {
        let info = L::INFO;
        self.locks.retain(|own| own.info.name != info.name);
        self.locks.push(OwnLock { info, make: |make| make.visit::<L>() });
        self
    }

    /// Replaces the registry's schedulers by these, which may be your own.
    #[must_use]
    pub fn with_schedulers(mut self, schedulers: Schedulers) -> Self {
        self.schedulers = schedulers;
        self
    }

    /// Replaces the registry's kinds of workloads by these, which may be your own.
    #[must_use]
    pub fn with_workloads(mut self, workloads: Kinds) -> Self {
        self.workloads = workloads;
        self
    }

    /// Every lock with its aliases: first the registry's locks that no lock of yours replaces, then yours.
    pub fn locks<'a>(
        &'a self,
    ) -> impl Iterator<Item = (&'a LockInfo, &'static [&'static str])> + 'a {
        let registered = overspin_locks::infos_and_aliases();
        let registered = registered.filter(|(info, _)| self.own(info.name).is_none());
        let registered = registered.map(|(info, aliases)| -> (&'a LockInfo, _) { (info, aliases) });
        registered.chain(self.locks.iter().map(|own| (&own.info, [].as_slice())))
    }

    fn own(&self, name: &str) -> Option<&OwnLock> {
        self.locks.iter().find(|own| own.info.name == name)
    }

    /// The names of all locks, for messages.
    fn lock_names(&self) -> String {
        self.locks().map(|(info, _)| info.name).collect::<Vec<_>>().join(", ")
    }

    /// Makes the locks of a guest; `None` if no lock has this name.
    fn make(&self, name: &str, make: MakeBank<'_>) -> Option<BankResult> {
        match self.own(name) {
            Some(own) => Some((own.make)(make)),
            None => overspin_locks::with_lock::<SimPlatform, _>(name, make),
        }
    }
}

impl World for Simulator {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn is_deterministic(&self) -> bool {
        true
    }

    fn supports(&self, scenario: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        validity::check(scenario, &with_noise(scenario), self)?;
        Ok(Ignored::of(&[Ignored::WEIGHTS], scenario))
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        let (engine, loads) = boot::build(scenario, seed, self)?;
        // SAFETY: `observer` is borrowed for this whole call, and the engine is dropped before the call returns.
        unsafe { engine.telling.begin(observer) };
        // SAFETY: as for `observer`.
        unsafe { engine.end.asking.begin(cancel) };
        let _entered = Entered::new(&engine);
        boot::start(&engine, self, loads)?;
        let stop = engine.run();
        let outcome = engine.outcome(stop);
        engine.telling.end();
        Ok(outcome)
    }
}

/// Checks a scenario without running it.
///
/// The run itself checks the rest: the locks and, if the scenario has no events, the schedulers, pools and
/// affinities.
///
/// # Errors
/// If the scenario asks for something that does not exist or is impossible.
pub fn check(scenario: &Scenario) -> Result<(), Refused> {
    Simulator::new().supports(scenario).map(|_| ())
}

/// Runs a scenario to its end or its limit, with the locks of the registry and no observer. This is
/// [`overspin_host::run`] for the simplest case.
///
/// # Errors
/// If the scenario asks for something that does not exist or is impossible.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Outcome, Refused> {
    overspin_host::run(&Simulator::new(), scenario, seed, &mut (), &())
}
