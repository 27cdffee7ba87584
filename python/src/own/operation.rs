//! The operations that a program in Python yields.

use super::machine::nanos;
use overspin_host::picos;
use overspin_scenario::Picos;
use overspin_workload::{Env, LockUse, Mode};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// One step of a program, as [`Env`] has it. A lock is its number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Compute(Picos, Mode),
    Sleep(Picos),
    YieldVcpu,
    Section(usize, LockUse, Picos),
    Acquire(usize, LockUse),
    Release(usize),
    ItemDone,
    Answered(Picos),
}

impl Operation {
    /// Reads what a program has yielded: a tuple of a name and arguments, as `overspin/operations.py` makes it.
    pub(super) fn read(yielded: &Bound<'_, PyAny>, locks: &[String]) -> PyResult<Self> {
        let wrong = || {
            let shown = yielded.repr().map_or_else(|_| "a value".into(), |text| text.to_string());
            PyTypeError::new_err(format!(
                "a workload yielded {shown}, which is no operation; operations are made by compute, sleep, yield_vcpu, \
                 section, acquire, release, item_done and answered of `overspin.operations`"
            ))
        };
        let tuple = yielded.cast::<PyTuple>().map_err(|_| wrong())?;
        let name = tuple.get_item(0).map_err(|_| wrong())?;
        let name = name.cast::<PyString>().map_err(|_| wrong())?;
        let argument = |i: usize| tuple.get_item(i).map_err(|_| wrong());
        let time = |i: usize| argument(i).and_then(|value| time(&value));
        let lock = |i: usize| argument(i).and_then(|name| lock(&name, locks));
        let mode = |i: usize| -> PyResult<LockUse> {
            Ok(if argument(i)?.is_truthy()? { LockUse::IrqSave } else { LockUse::Plain })
        };
        Ok(match name.to_str()? {
            "compute" if argument(2)?.is_truthy()? => Self::Compute(time(1)?, Mode::Kernel),
            "compute" => Self::Compute(time(1)?, Mode::User),
            "sleep" => Self::Sleep(time(1)?),
            "yield_vcpu" => Self::YieldVcpu,
            "section" => Self::Section(lock(1)?, mode(3)?, time(2)?),
            "acquire" => Self::Acquire(lock(1)?, mode(2)?),
            "release" => Self::Release(lock(1)?),
            "item_done" => Self::ItemDone,
            "answered" => Self::Answered(time(1)?),
            _ => return Err(wrong()),
        })
    }

    /// Does it.
    pub(super) fn act(self, env: &dyn Env) {
        match self {
            Self::Compute(work, mode) => env.compute(work, mode),
            Self::Sleep(time) => env.sleep(time),
            Self::YieldVcpu => env.yield_vcpu(),
            Self::Section(lock, how, work) => env.section(lock, how, work),
            Self::Acquire(lock, how) => env.acquire(lock, how),
            Self::Release(lock) => env.release(lock),
            Self::ItemDone => env.item_done(),
            Self::Answered(since) => env.answered(since),
        }
    }
}

/// A time of a program: a number of nanoseconds, which is rounded to a whole one.
pub(super) fn time(value: &Bound<'_, PyAny>) -> PyResult<Picos> {
    let time = nanos(value)?;
    if time.0 < 0 {
        return Err(PyValueError::new_err(format!(
            "a time is {} ns, but must be 0 or more",
            time.0
        )));
    }
    Ok(picos(time))
}

/// The number of a lock.
fn lock(name: &Bound<'_, PyAny>, locks: &[String]) -> PyResult<usize> {
    let name = name.cast::<PyString>().map_err(|_| PyTypeError::new_err("a lock is a name"))?;
    let name = name.to_str()?;
    locks.iter().position(|known| known == name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "the workload has no lock `{name}`; its locks are: {}; name them all in locks=[...] where it is registered",
            if locks.is_empty() { "none".into() } else { locks.join(", ") }
        ))
    })
}
