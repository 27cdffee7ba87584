//! What there is: locks, schedulers, workloads, machines, experiments, examples. The columns are the keys of
//! `overspin list --json`.

use crate::errors;
use crate::table::{Sort, Table, of_rows};
use Sort::{Count, Flag, Number, Text, Texts};
use overspin_experiment as experiment;
use overspin_page::listing;
use overspin_runs::examples as scenarios;
use overspin_runs::scenario_file::machine::MACHINES;
use pyo3::prelude::*;

/// Every lock.
#[pyfunction]
pub(crate) fn locks() -> PyResult<Table> {
    of_rows(
        &listing::locks(),
        &[
            ("name", Text, ""),
            ("aliases", Texts, ""),
            ("brief", Text, ""),
            ("source", Text, ""),
            ("fair", Flag, ""),
            ("local_spin", Flag, ""),
            ("lhp", Text, ""),
            ("lwp", Text, ""),
            ("lhp_safe", Flag, ""),
            ("lwp_safe", Flag, ""),
            ("abortable", Flag, ""),
            ("blocks", Flag, ""),
            ("max_cpus", Count, ""),
            ("size_bytes", Count, "B"),
        ],
    )
}

/// Every scheduler.
#[pyfunction]
pub(crate) fn schedulers() -> PyResult<Table> {
    let parameters: Sort = Sort::Rows(&["key", "legal", "default", "doc"]);
    of_rows(
        &listing::schedulers(),
        &[
            ("name", Text, ""),
            ("aliases", Texts, ""),
            ("brief", Text, ""),
            ("source", Text, ""),
            ("work_conserving", Flag, ""),
            ("caps", Flag, ""),
            ("params", parameters, ""),
            ("domain_params", parameters, ""),
        ],
    )
}

/// Every workload.
#[pyfunction]
pub(crate) fn workloads() -> PyResult<Table> {
    of_rows(&listing::workloads(), &[("name", Text, ""), ("brief", Text, ""), ("source", Text, "")])
}

/// Every simulated machine.
#[pyfunction]
pub(crate) fn machines() -> PyResult<Table> {
    of_rows(
        &listing::machines(MACHINES),
        &[("name", Text, ""), ("brief", Text, ""), ("year", Count, ""), ("mhz", Number, "MHz")],
    )
}

/// Every experiment that comes with the program.
#[pyfunction]
pub(crate) fn experiments() -> PyResult<Table> {
    let all = experiment::all().map_err(|error| errors::scenario(&error))?;
    of_rows(
        &listing::experiments(&all),
        &[
            ("name", Text, ""),
            ("title", Text, ""),
            ("source", Text, ""),
            ("figures", Count, ""),
            ("claims", Count, ""),
        ],
    )
}

/// Names of the example scenarios.
#[pyfunction]
pub(crate) fn examples() -> Vec<&'static str> {
    scenarios::EXAMPLES.map(|(name, _)| name).to_vec()
}
