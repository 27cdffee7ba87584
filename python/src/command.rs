//! The command `overspin`, for the script that comes with the package.

use overspin_cli::{Catalog, main_of};
use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments, the first of which is its name; returns the exit code. Once in a process.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| main_of(Catalog::builtin(), arguments))
}
