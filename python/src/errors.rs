//! Errors as exceptions of `overspin.errors`, which is Python: its classes are also those of the built-in exceptions
//! that a Python program expects.

use overspin_host::Refused;
use overspin_located as located;
use overspin_located::LocatedError;
use overspin_record::output::OutputError;
use overspin_runs::catalog::suggestion;
use overspin_runs::record::LoadError;
use overspin_runs::scenario_file;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::io::ErrorKind;

/// Makes an exception of this class of `overspin.errors`.
fn made(class: &str, arguments: impl FnOnce(&Bound<'_, PyType>) -> PyResult<Py<PyAny>>) -> PyErr {
    Python::attach(|py| {
        let exception = || -> PyResult<Bound<'_, PyAny>> {
            let class = py.import("overspin.errors")?.getattr(class)?.cast_into::<PyType>()?;
            Ok(arguments(&class)?.into_bound(py))
        };
        exception().map_or_else(|error| error, PyErr::from_value)
    })
}

/// An exception with a message and a remedy.
pub(crate) fn plain(class: &str, message: &str, remedy: &str) -> PyErr {
    made(class, |class| Ok(class.call1((message, remedy))?.unbind()))
}

/// An argument that is none of `known`.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> PyErr {
    let message = format!("there is no {what} `{name}`");
    plain("UnknownName", &message, &suggestion(name, "there are", known))
}

/// A fault in a scenario, with its place, as the command draws it.
pub(crate) fn scenario(error: &LocatedError) -> PyErr {
    let text = format!("{error}\n{}", located::plain(error));
    made("ScenarioError", |class| {
        let arguments = (
            &*error.message,
            &*error.help,
            text,
            &*error.path,
            error.line,
            error.column,
            &*error.key,
        );
        Ok(class.call1(arguments)?.unbind())
    })
}

pub(crate) fn load(error: &LoadError) -> PyErr {
    match error {
        LoadError::File(error) => file(error),
        LoadError::Results(cause) => plain("RunError", &cause.to_string(), cause.remedy()),
    }
}

/// A file that cannot be read is an `OSError`, as everywhere in Python.
fn file(error: &scenario_file::LoadError) -> PyErr {
    match error {
        scenario_file::LoadError::Invalid(error) => scenario(error),
        scenario_file::LoadError::Read { path, cause } => {
            match (cause.raw_os_error(), cause.kind()) {
                (Some(code), _) => {
                    let words = cause.to_string();
                    let words = words.split(" (os error").next().unwrap_or_default().to_owned();
                    PyOSError::new_err((code, words, path.clone()))
                }
                (None, ErrorKind::InvalidData) => {
                    plain("ScenarioError", &error.to_string(), "scenarios are UTF-8 text")
                }
                (None, _) => PyOSError::new_err(error.to_string()),
            }
        }
    }
}

/// The world cannot run the scenario.
pub(crate) fn refused(name: &str, cause: &Refused) -> PyErr {
    let remedy = match cause {
        Refused::Machine { remedy, .. } => remedy.as_str(),
        _ => "change the scenario; docs/scenario.md lists what it can contain",
    };
    plain("RunError", &format!("{name}: {cause}"), remedy)
}

/// A file that cannot be written is an `OSError`.
pub(crate) fn output(error: &OutputError) -> PyErr {
    match error.cause.raw_os_error() {
        Some(code) => {
            PyOSError::new_err((code, format!("{error}; {}", error.remedy()), error.path.clone()))
        }
        None => PyOSError::new_err(error.to_string()),
    }
}
