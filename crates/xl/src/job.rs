//! What to run.

use serde::{Deserialize, Serialize};

/// Schedulers that `xl cpupool-create` knows, of those that take any number of vCPUs and need no tables.
pub const SCHEDULERS: [&str; 4] = ["credit", "credit2", "rtds", "null"];

/// A run: guests that work in a pool of their own for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Name, for messages.
    pub name: String,
    /// The pool.
    pub pool: Pool,
    /// The guests.
    pub guests: Vec<Guest>,
    /// Length of the run from the moment in which all guests begin, in seconds.
    pub seconds: u64,
}

/// A cpupool, made for a run and destroyed after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Scheduler, one of [`SCHEDULERS`]; `None` for the hypervisor's own.
    pub scheduler: Option<String>,
    /// Its pCPUs, which `Pool-0` gives and gets back.
    pub cpus: Vec<u32>,
}

/// A guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// Name of the domain.
    pub name: String,
    /// vCPUs, with a thread on each.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory: u32,
    /// What each thread does, as the words of a worker's command line.
    pub work: Vec<String>,
    /// Seed of the threads' random numbers.
    pub seed: u64,
    /// More options of the guest's kernel, such as `nopvspin`.
    pub kernel_options: String,
}
