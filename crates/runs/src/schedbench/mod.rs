//! schedbench: workers that burn and wait, on a simulated host under each scheduler, or on real Xen.
//!
//! A plan states which workers to run, alone and together ([`BenchFile`]). [`simulate`] runs the remaining
//! runs. [`summarize`] computes the columns of the report.

mod file;
pub mod metrics;
mod origin;
mod record;
mod report;
mod run;
mod summary;
mod xen;

pub use file::{BenchFile, Report, Run, RunConfig, WorkerId, WorkerSet};
pub use origin::{MachineRecord, Origin, XenHost};
pub use overspin_workload::{WorkerArgs, WorkerError};
pub use record::record;
pub use report::report;
pub use run::{Machine, RunError, done, run_in, scenario, simulate};
pub use summary::{Fairness, RunSummary, SetSummary, Window, WorkerSummary, fairness, summarize};
pub use xen::{XenCpus, xen_done, xen_job};
