//! Schedulers and workloads that are written in Python: their names, and the calls to them.
//!
//! A class or function is registered once and stands in the catalog under its name, like a part written in Rust. The run
//! takes Python's lock for each call and gives it back, so that other threads go on. It calls Python on the stack of
//! its thread, because a simulated task has only 64 KiB of stack. An exception ends the run: it unwinds as a panic
//! whose value is the exception, and [`raised`] takes it from there.

mod check;
mod env;
mod machine;
mod operation;
mod program;
mod registry;
mod scheduler;
mod thread;

pub(crate) use check::check_scheduler;
pub(crate) use env::Env;
pub(crate) use machine::Machine;
pub(crate) use registry::{refuse_elsewhere, register_scheduler, register_workload};
pub(crate) use thread::Worker;

use pyo3::prelude::*;
use std::any::Any;

/// Calls Python from a run.
///
/// # Panics
/// Unwinds with the exception if `what` returns one.
fn call<R: Send>(what: impl FnOnce(Python<'_>) -> PyResult<R> + Send) -> R {
    let result = overspin_sim::on_callers_stack(|| Python::attach(what));
    result.unwrap_or_else(|error| std::panic::resume_unwind(Box::new(error)))
}

/// The exception that ended a run, from the value with which its thread unwound.
///
/// # Panics
/// With `panic`, if it is no exception.
pub(crate) fn raised(panic: Box<dyn Any + Send>) -> PyErr {
    match panic.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
