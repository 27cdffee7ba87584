//! A test suite for schedulers of your own. It makes random calls from a seed, and checks the
//! contract of [`Scheduler`] after each.
//!
//! ```
//! use overspin_sched::{conformance::Suite, make, Params};
//!
//! for seed in 0..3 {
//!     let report = Suite::new(seed).run(|| make("rr", &Params::default()).unwrap());
//!     assert!(report?.switches > 0);
//! }
//! # Ok::<(), overspin_sched::conformance::Failure>(())
//! ```
//!
//! The suite checks (names in parentheses are those of the schedulers specification, where it has
//! one):
//!
//! - after each call: [`Scheduler::is_valid`], and the layer's invariants (I1 a vCPU is on one pCPU,
//!   I2 runstates sum to elapsed time, I3 no vCPU runs outside its affinity or pool);
//! - at each pass: the chosen vCPU is runnable, runs nowhere else, may run there, and has its home
//!   there; the slice is not negative;
//! - at each wake-up: a second one changes nothing (I6, T7);
//! - at each placement: it is within the affinity (T8), while pCPUs leave the pool and come back;
//! - at each action: its pCPU exists; no pass sets the timer of its own slice;
//! - at the end: every vCPU runs and no pCPU idles beside work, if the suite is asked to check that
//!   (T6, T2); passes at one instant come to an end; a second run from the same seed makes the same
//!   decisions (T9). During the run, time stands still and jumps (T10).
//!
//! A failure names the seed and the last calls. The suite does not check shares, which depend on what
//! a scheduler promises. [`Equals`] measures them where they should be equal.

mod calls;
mod end;
mod equals;
mod watched;
mod world;

use crate::scheduler::Scheduler;
use crate::time::Nanos;
use crate::topology::Topology;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
pub use equals::{Equals, Shares};
use world::World;

/// What to run. You may change all fields; [`Suite::new`] sets usable values.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The seed of all random choices.
    pub seed: u64,
    /// The machine; by default chosen by the seed, up to 3 sockets of 3 cores of 2 threads.
    pub topology: Topology,
    /// Number of random calls.
    pub calls: u32,
    /// At the end all vCPUs compute, and each must then run within this time, in ns. None if the
    /// scheduler lets some starve.
    pub runs_within: Option<Nanos>,
    /// At the end no pCPU may idle for longer than this, in ns, while a vCPU that may run there
    /// waits. None if the scheduler is not work-conserving.
    pub idles_at_most: Option<Nanos>,
}

/// What a run without a failure did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of calls of the layer.
    pub calls: u64,
    /// Number of passes after which a pCPU ran something else.
    pub switches: u64,
    /// A digest of all actions and decisions.
    pub digest: u64,
}

/// A broken rule, and how to reproduce it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// The broken rule, in words.
    pub broken: String,
    /// The last calls before the failure, oldest first.
    pub calls: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.broken)?;
        writeln!(f, "seed {}; the last calls were:", self.seed)?;
        self.calls.iter().try_for_each(|call| writeln!(f, "  {call}"))
    }
}

impl core::error::Error for Failure {}

impl Suite {
    /// 2,000 calls on a machine that the seed chooses, without the two checks at the end.
    pub fn new(seed: u64) -> Self {
        let mut random = world::Random::new(seed);
        let topology = Topology {
            sockets: 1 + random.below(3),
            cores_per_socket: 1 + random.below(3),
            threads_per_core: 1 + random.below(2),
        };
        Self { seed, topology, calls: 2_000, runs_within: None, idles_at_most: None }
    }

    /// Runs the suite twice, on schedulers from `make`, which must return a new one each time. Takes
    /// tens of milliseconds.
    ///
    /// # Errors
    /// The first rule that was broken.
    ///
    /// # Panics
    /// If the scheduler does, or if [`Topology::check`] refuses the topology.
    pub fn run(&self, make: impl Fn() -> Box<dyn Scheduler>) -> Result<Report, Failure> {
        let first = self.once(make())?;
        let second = self.once(make())?;
        if first == second {
            return Ok(first);
        }
        let broken = "T9: two runs from one seed decided differently".into();
        Err(Failure { seed: self.seed, broken, calls: Vec::new() })
    }

    fn once(&self, scheduler: Box<dyn Scheduler>) -> Result<Report, Failure> {
        let mut world = World::new(self, scheduler);
        let result = world.random_calls(self.calls).and_then(|()| self.end(&mut world));
        result.map_err(|broken| Failure { seed: self.seed, broken, calls: world.last_calls() })?;
        Ok(world.report())
    }

    /// Makes all vCPUs compute; checks that each runs and that no pCPU idles beside work.
    fn end(&self, world: &mut World) -> Result<(), String> {
        world.wake_all()?;
        let longest = self.runs_within.max(self.idles_at_most).unwrap_or(Nanos::ms(100));
        world.watch(longest + Nanos::MS, self.runs_within, self.idles_at_most)
    }
}
