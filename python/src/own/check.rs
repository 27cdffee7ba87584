//! The conformance suite of schedulers, for a class in Python or for a scheduler in Rust.

use super::registry;
use super::scheduler::PyScheduler;
use crate::errors;
use crate::interrupt::interruptible;
use overspin_runs::catalog::names;
use overspin_sched::conformance::{Failure, Report, Suite};
use overspin_sched::{Nanos, Params, Scheduler};
use pyo3::prelude::*;
use std::time::Duration;

/// Time in ns from seconds.
fn time(seconds: Option<f64>) -> PyResult<Option<Nanos>> {
    let convert = |s: f64| {
        let time =
            Duration::try_from_secs_f64(s).ok().and_then(|d| i64::try_from(d.as_nanos()).ok());
        time.map(Nanos).ok_or_else(|| {
            pyo3::exceptions::PyValueError::new_err(format!("{s} is no number of seconds"))
        })
    };
    seconds.map(convert).transpose()
}

/// Runs the suite with `seeds` seeds. Returns the numbers of calls and switches, and a digest of all decisions.
#[pyfunction]
pub(crate) fn check_scheduler(
    py: Python<'_>,
    name: &str,
    seeds: u64,
    calls: u32,
    runs_within: Option<f64>,
    idles_at_most: Option<f64>,
) -> PyResult<(u64, u64, u64)> {
    let all = names().schedulers();
    let info = *all.find(name).map_err(|_| {
        let known: Vec<&str> = all.iter().map(|info| info.name).collect();
        errors::unknown("scheduler", name, &known)
    })?;
    let is_python = registry::class(py, info.name).is_ok();
    let (runs_within, idles_at_most) = (time(runs_within)?, time(idles_at_most)?);
    let done = interruptible(py, None, |until| -> Result<(u64, u64, u64), Failure> {
        let mut sum = (0, 0, 0_u64);
        for seed in 0..seeds {
            if until.over().is_some() {
                break;
            }
            let suite = Suite { calls, runs_within, idles_at_most, ..Suite::new(seed) };
            let Report { calls, switches, digest } = suite.run(|| -> Box<dyn Scheduler> {
                if is_python {
                    // The suite checks the answers.
                    return Box::new(PyScheduler::new(info.name, false));
                }
                info.make(&Params::default()).expect("its own defaults are legal")
            })?;
            sum = (sum.0 + calls, sum.1 + switches, sum.2.rotate_left(1) ^ digest);
        }
        Ok(sum)
    })?;
    done.map_err(|failure| {
        let message = format!("`{}` breaks a rule of schedulers: {failure}", info.name);
        errors::plain("SchedulerError", message.trim_end(), "")
    })
}
