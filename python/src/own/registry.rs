//! The registered parts: classes of schedulers and functions of workloads, by name.

use super::program::Load;
use super::scheduler::PyScheduler;
use super::thread::ANY;
use crate::errors;
use overspin_runs::catalog::{Catalog, SchedulerInfo, WorkloadInfo, names};
use overspin_scenario::Scenario;
use overspin_scenario::keys::{Absent, Kind, Section, key};
use overspin_sched::{Params, SchedError, Scheduler};
use overspin_workload::Fault;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A workload of one function.
#[derive(Debug)]
pub(super) struct Function {
    /// Returns the operations of a task.
    pub(super) function: Py<PyAny>,
    pub(super) locks: Vec<String>,
    pub(super) endless: bool,
}

/// What is registered. The catalog has the names; these are what they stand for now.
struct Parts {
    schedulers: BTreeMap<&'static str, Py<PyAny>>,
    workloads: BTreeMap<&'static str, Arc<Function>>,
}

static PARTS: Mutex<Parts> =
    Mutex::new(Parts { schedulers: BTreeMap::new(), workloads: BTreeMap::new() });

fn parts() -> MutexGuard<'static, Parts> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken(what: &str, name: &str) -> PyErr {
    errors::plain(
        "NameTaken",
        &format!("a built-in {what} is called `{name}`"),
        "give yours another name",
    )
}

/// Makes `name` stand for `cls` from now on.
#[pyfunction]
pub(crate) fn register_scheduler(name: &str, brief: &str, cls: Py<PyAny>) -> PyResult<()> {
    let known = parts().schedulers.contains_key(name);
    let name: &'static str = match names().schedulers().find(name) {
        Ok(info) if known && info.name == name => info.name,
        Ok(_) => return Err(taken("scheduler", name)),
        Err(_) => name.to_owned().leak(),
    };
    if !known {
        let make = move |_: &Params| -> Result<Box<dyn Scheduler>, SchedError> {
            Ok(Box::new(PyScheduler::new(name, true)))
        };
        let info = SchedulerInfo::new(name, Box::leak(Box::new(make)))
            .brief(brief.to_owned().leak())
            .source("Python, in this process")
            .weights(true);
        Catalog::extend(|catalog| catalog.with_scheduler(info))
            .map_err(|_| taken("scheduler", name))?;
    }
    // Dropped without the lock: what is dropped may be Python code that registers something.
    let _old = parts().schedulers.insert(name, cls);
    ANY.store(true, Ordering::Relaxed);
    Ok(())
}

/// Makes `name` stand for `function` from now on.
#[pyfunction]
pub(crate) fn register_workload(
    name: &str,
    brief: &str,
    function: Py<PyAny>,
    locks: Vec<String>,
    endless: bool,
) -> PyResult<()> {
    let known = parts().workloads.contains_key(name);
    let name: &'static str = match names().workloads().find(name) {
        Ok(info) if known => info.name,
        Ok(_) => return Err(taken("workload", name)),
        Err(_) => name.to_owned().leak(),
    };
    if !known {
        let threads = Kind::Integer { min: 0, max: 100_000 };
        let doc = "Tasks; 0 means one on each vCPU.";
        let keys: &'static Section = Box::leak(Box::new(Section {
            heading: format!("[domain.workload] with kind = \"{name}\"").leak(),
            doc: "A workload in Python.",
            keys: vec![key("threads", threads, Absent::Is("0"), doc)].leak(),
        }));
        let brief = brief.to_owned().leak();
        let info = WorkloadInfo::made_by(name, brief, "Python, in this process", keys, Load::load);
        let extended: Result<(), std::convert::Infallible> =
            Catalog::extend(|catalog| Ok(catalog.with_workload(info)));
        let Ok(()) = extended;
    }
    let _old = parts().workloads.insert(name, Arc::new(Function { function, locks, endless }));
    ANY.store(true, Ordering::Relaxed);
    Ok(())
}

/// The class that `name` stands for.
pub(super) fn class(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    let class = parts().schedulers.get(name).map(|class| class.clone_ref(py));
    class.ok_or_else(|| errors::unknown("scheduler in Python", name, &[]))
}

/// The function that `name` stands for.
pub(super) fn function(name: &str) -> Result<Arc<Function>, Fault> {
    let none = || Fault::new("kind", format!("there is no workload `{name}`"), "register it");
    parts().workloads.get(name).cloned().ok_or_else(none)
}

/// Refuses parts in Python in a world other than the simulator.
pub(crate) fn refuse_elsewhere(scenario: &Scenario, world: &str) -> PyResult<()> {
    if world == "sim" {
        return Ok(());
    }
    let parts = parts();
    let schedulers = std::iter::once(&scenario.host.scheduler)
        .chain(scenario.host.pools.iter().map(|pool| &pool.scheduler));
    let workloads =
        scenario.domains.iter().flat_map(|domain| domain.workload.0.iter().map(|w| &w.kind));
    let own = schedulers
        .filter(|name| parts.schedulers.contains_key(name.as_str()))
        .chain(workloads.filter(|kind| parts.workloads.contains_key(kind.as_str())))
        .next();
    match own {
        None => Ok(()),
        Some(name) => Err(errors::plain(
            "RunError",
            &format!(
                "{}: `{name}` is written in Python, and the world `{world}` cannot run it",
                scenario.name
            ),
            "run it in the simulator: leave `world` out",
        )),
    }
}
