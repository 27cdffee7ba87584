//! The simulated world: an execution-driven, deterministic discrete-event simulation of hosts,
//! hypervisor scheduling, and guests that run real lock code and real workload code.
//!
//! Start reading at `execution.rs` (how code uses time: run-ahead, preemption), then `memory.rs` and
//! `watchers.rs` (what a cache line costs, who spins on it), `engine.rs` (the loop), `host.rs` and
//! `hypercalls.rs` (pCPUs, and what guests ask for) and `guest/` (the kernel in the guest). Options of
//! the host have files of their own: `pause_loop.rs`, `directed_yield.rs`, `halt_polling.rs`,
//! `notification.rs`.
//! `attribution/` has what waits for locks are spent on.
//!
//! This crate needs `unsafe` for three things: following the pointer to the world of the running
//! simulation, calling the condition of a suspended spinner on its own stack, and placing values
//! in the simulated memory.

mod admin;
mod attribution;
mod boot;
mod cell;
mod check;
mod directed_yield;
mod engine;
mod events;
mod execution;
mod foresight;
mod guest;
mod halt_polling;
mod host;
mod hypercalls;
mod memory;
mod notification;
mod outcome;
mod pause_loop;
mod queue;
mod speed;
mod vcpu;
mod watchers;
mod world;

pub use admin::scheduler_params;
pub use cell::{SimCell, SimPlatform, SimSlots};

use guest::{LockKinds, Made, MakeBank};
use overspin_locks::{LockVisitor, RawLock};
use overspin_scenario::{Outcome, Picos, Scenario, Stopped, TraceSink};
use overspin_workload::Kinds;
use std::ops::ControlFlow;
use world::Entered;

/// Version of the model. It changes whenever a change alters simulated results.
pub const MODEL_VERSION: u32 = 2;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The lock does not exist.
    #[error("domain `{domain}`: no lock is called `{lock}`; locks are: {known}")]
    UnknownLock {
        /// Domain.
        domain: String,
        /// Asked for.
        lock: String,
        /// What there is.
        known: String,
    },
    /// An event of the scenario is not possible.
    #[error("event {index}: {cause}")]
    Event {
        /// Its index in the scenario.
        index: usize,
        /// Why.
        cause: String,
    },
    /// Anything else that a scenario asks for and cannot have.
    #[error("{0}")]
    Invalid(String),
}

/// What a caller wants besides the outcome.
#[derive(Default)]
pub struct Options<'a> {
    /// Receives scheduling and lock events.
    pub trace: Option<&'a mut dyn TraceSink>,
    /// Called now and then with the simulated time; what it breaks with stops the run, which then ends
    /// with [`Ending::Stopped`](overspin_scenario::Ending::Stopped).
    pub progress: Option<&'a mut dyn FnMut(Picos) -> ControlFlow<Stopped>>,
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("trace", &self.trace.is_some()).finish_non_exhaustive()
    }
}

/// Names of all locks, for messages.
fn lock_names() -> String {
    overspin_locks::infos().iter().map(|i| i.name).collect::<Vec<_>>().join(", ")
}

/// Makes locks of the kinds in the registry.
fn registered(name: &str, make: MakeBank<'_>) -> Option<Made> {
    overspin_locks::with_lock::<SimPlatform, _>(name, make)
}

/// Checks what [`run`] would refuse, except for locks.
///
/// # Errors
/// If the scenario asks for what does not exist or cannot be.
pub fn check(scenario: &Scenario) -> Result<(), SimError> {
    let all = overspin_workload::with_noise(scenario);
    check::check(scenario, &all, &Kinds::builtin()).map(|_| ())
}

/// Runs a scenario to its end or its limit. Time and memory grow with the events of the run; equal
/// arguments give equal outcomes, bit for bit.
///
/// # Errors
/// If the scenario asks for what does not exist or cannot be.
pub fn run(scenario: &Scenario, seed: u64, options: Options<'_>) -> Result<Outcome, SimError> {
    run_kinds(scenario, seed, options, &registered, &Kinds::builtin())
}

/// Runs a scenario whose workloads are of these kinds, of your own among them. Otherwise as [`run`].
///
/// # Errors
/// If the scenario asks for what does not exist or cannot be.
pub fn run_with_workloads(
    scenario: &Scenario,
    seed: u64,
    options: Options<'_>,
    workloads: &Kinds,
) -> Result<Outcome, SimError> {
    run_kinds(scenario, seed, options, &registered, workloads)
}

/// Runs a scenario with a lock of your own: domains whose lock is `L::INFO.name` use `L`, whether
/// or not the registry has a lock of that name; other domains use the registry's. Otherwise as
/// [`run`].
///
/// Write the lock against [`Platform`](overspin_locks::Platform), as those in `overspin-locks` are.
/// A lock that loses a wake-up or forgets a waiter shows as
/// [`Ending::Deadlock`](overspin_scenario::Ending::Deadlock).
///
/// # Errors
/// If the scenario asks for what does not exist or cannot be.
///
/// # Panics
/// If `L` panics, or needs more than 2 KiB of shared memory a vCPU.
pub fn run_with_lock<L: RawLock<SimPlatform> + 'static>(
    scenario: &Scenario,
    seed: u64,
    options: Options<'_>,
) -> Result<Outcome, SimError> {
    let locks = |name: &str, make: MakeBank<'_>| {
        if name == L::INFO.name { Some(make.visit::<L>()) } else { registered(name, make) }
    };
    run_kinds(scenario, seed, options, &locks, &Kinds::builtin())
}

fn run_kinds(
    scenario: &Scenario,
    seed: u64,
    mut options: Options<'_>,
    locks: &LockKinds,
    workloads: &Kinds,
) -> Result<Outcome, SimError> {
    let (world, loads) = boot::build(scenario, seed, workloads)?;
    if let Some(sink) = options.trace.take() {
        let sink: *mut (dyn TraceSink + '_) = sink;
        // SAFETY: only the lifetime changes. `options` is borrowed for this whole call, and the
        // world, which holds the pointer, is dropped before it returns.
        let sink: *mut (dyn TraceSink + 'static) = unsafe { std::mem::transmute(sink) };
        world.trace.set(Some(sink));
    }
    let _entered = Entered::new(&world);
    boot::start(&world, locks, loads)?;
    let stop = world.run(&mut options.progress);
    Ok(outcome::outcome(&world, stop))
}
