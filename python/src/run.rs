//! One run.

use crate::errors;
use crate::interrupt::interruptible;
use crate::own;
use crate::record::Record;
use crate::scenario::Scenario;
use overspin_host::World;
use overspin_runs::catalog::{AnyWorld, catalog};
use overspin_runs::runner::{Runner, Until};
use overspin_runs::scenario_file::Loaded;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Runs a scenario once.
#[pyfunction]
#[pyo3(signature = (scenario, seed = None, world = None, max_wall = None))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    seed: Option<u64>,
    world: Option<&str>,
    max_wall: Option<f64>,
) -> PyResult<Record> {
    let (plain, first) = match &scenario.again.loaded {
        Loaded::One(plain) => (&**plain, plain.seed),
        Loaded::Seeds(plain, seeds) => (&**plain, seeds.first().copied().unwrap_or(plain.seed)),
        Loaded::Sweep(sweep) => {
            let axes: Vec<&str> = sweep.axes.iter().map(|axis| axis.name.as_str()).collect();
            return Err(errors::plain(
                "ScenarioError",
                &format!(
                    "{}: this is a sweep along {}, not one run",
                    scenario.file(),
                    axes.join(" and ")
                ),
                "run the command `overspin sweep`, or remove its [[vary]] tables",
            ));
        }
    };
    let world = named(world.or(scenario.again.world.as_deref()))?;
    own::refuse_elsewhere(plain, world.name())?;
    let deadline = max_wall.map(deadline).transpose()?.flatten();
    let seed = seed.unwrap_or(first);
    let outcome = interruptible(py, deadline, |until| {
        Runner { world, until }.run(plain, seed, &mut (), &|_| {})
    })?;
    let outcome = outcome.map_err(|cause| errors::refused(&scenario.file(), &cause))?;
    let made = Runner { world, until: Until::default() }.in_world([plain]);
    let record =
        overspin_runs::run::record(plain, &scenario.again.set, None, &outcome).in_world(&made);
    // As the command does: the record of a simulated run names no command and no machine.
    Ok(Record::new(match record.unrepeatable() {
        Some(_) => record.made_here("overspin.run(...)".into()),
        None => record,
    }))
}

/// The world of this name; the simulator without one.
fn named(name: Option<&str>) -> PyResult<AnyWorld> {
    let name = name.unwrap_or(catalog().simulator().name());
    catalog().world(name).ok_or_else(|| {
        let known: Vec<&str> = catalog().worlds().iter().map(|world| world.name()).collect();
        errors::unknown("world", name, &known)
    })
}

/// The moment in so many seconds; `None` if it is beyond the clock.
fn deadline(seconds: f64) -> PyResult<Option<Instant>> {
    let length = Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "max_wall is {seconds}, but must be a number of seconds, 0 or more"
        ))
    })?;
    Ok(Instant::now().checked_add(length))
}
