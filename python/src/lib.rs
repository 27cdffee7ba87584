//! The native part of the Python package `overspin`: scenarios, runs and tables. `overspin-lab` computes what it
//! returns; `python/overspin` makes the classes of it that a user sees, and has their documentation.
#![cfg(feature = "extension")]

mod command;
mod compare;
mod errors;
mod interrupt;
mod listing;
mod own;
mod record;
mod reproduce;
mod run;
mod scenario;
mod sweep;
mod table;
mod tables;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The native part of `overspin`.
#[pymodule]
mod _overspin {
    #[pymodule_export]
    use crate::command::main;
    #[pymodule_export]
    use crate::compare::{Comparison, compare};
    #[pymodule_export]
    use crate::listing::{examples, experiments, locks, machines, schedulers, workloads};
    #[pymodule_export]
    use crate::own::{Env, Machine, check_scheduler, register_scheduler, register_workload};
    #[pymodule_export]
    use crate::record::Record;
    #[pymodule_export]
    use crate::reproduce::reproduce;
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::scenario::{Scenario, argument};
    #[pymodule_export]
    use crate::sweep::{Stop, Template, interval};
    #[pymodule_export]
    use crate::table::{Table, join, merge_parquet, parquet_note, read_parquet};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        overspin_cli::build().is_of_this_program();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("MODEL_VERSION", overspin_sim::MODEL_VERSION)?;
        let measures = overspin_runs::sweep::MEASURES.iter();
        let told: Vec<_> = measures.map(|m| (m.metric.name, m.title, m.metric.unit)).collect();
        module.add("MEASURES", PyTuple::new(module.py(), told)?)
    }
}
