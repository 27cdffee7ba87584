//! schedbench: workers that burn and wait, on a simulated host under each scheduler.
//!
//! A plan states which workers to run, alone and together ([`BenchFile`]). [`simulate`] runs the remaining
//! runs. [`summarize`] computes the columns of the report.

mod file;
mod origin;
mod report;
mod run;
mod summary;

pub use file::{BenchFile, Report, Run, RunConfig, WorkerId, WorkerSet};
pub use origin::{MachineRecord, Origin};
pub use overspin_workload::{WorkerArgs, WorkerError};
pub use report::report;
pub(crate) use run::done;
pub use run::{Machine, RunError, run_in, scenario, simulate};
pub use summary::{Fairness, RunSummary, SetSummary, Window, WorkerSummary, fairness, summarize};
