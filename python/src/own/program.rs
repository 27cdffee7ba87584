//! Workloads in Python: each task is an iterator of operations.

use super::env::Env;
use super::operation::Operation;
use super::registry::{self, Function};
use overspin_scenario::Workload;
use overspin_workload::{self as workload, Fault, Program, Start};
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::sync::Arc;

/// A workload of a function, in one domain.
#[derive(Debug)]
pub(super) struct Load {
    name: String,
    function: Arc<Function>,
    /// Tasks; 0 is one on each vCPU.
    threads: u32,
}

impl Load {
    /// The load of `workload`, which names a registered function.
    pub(super) fn load(workload: &Workload) -> Result<Box<dyn workload::Load>, Fault> {
        let function = registry::function(&workload.kind)?;
        if let Some(key) = workload.parameters.keys().find(|key| *key != "threads") {
            let message = format!("a workload in Python has no parameter `{key}`");
            return Err(Fault::new(key, message, "it has: threads"));
        }
        let threads = workload.parameters.get("threads").and_then(|n| n.as_u64()).unwrap_or(0);
        Ok(Box::new(Self {
            name: workload.kind.clone(),
            function,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
        }))
    }

    fn tasks(&self, vcpus: u32) -> u32 {
        if self.threads == 0 { vcpus } else { self.threads }
    }
}

impl workload::Load for Load {
    fn lock_names(&self) -> Vec<String> {
        self.function.locks.clone()
    }

    fn is_endless(&self) -> bool {
        self.function.endless
    }

    fn most_tasks(&self, vcpus: u32) -> u64 {
        self.tasks(vcpus).into()
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        let tasks = self.tasks(vcpus);
        let one = |task| {
            let function = Arc::clone(&self.function);
            let program: Program = Box::new(move |env| {
                run(env, &function, |random| Env::new(task, tasks, vcpus, random))
            });
            Start { name: format!("{}{task}", self.name), vcpu: Some(task % vcpus), program }
        };
        (0..tasks).map(one).collect()
    }
}

/// Does the operations of one task, until there are no more.
fn run(
    env: &dyn workload::Env,
    function: &Function,
    view: impl FnOnce(workload::Random) -> Env + Send,
) {
    let (random, now) = (env.random(0), env.now());
    let (view, operations) = super::call(|py| {
        let view = Py::new(py, view(random))?;
        view.get().set_now(now);
        let operations = function.function.call1(py, (view.clone_ref(py),))?;
        let operations = PyIterator::from_object(operations.bind(py))?;
        Ok((view, operations.unbind()))
    });
    loop {
        view.get().set_now(env.now());
        let next = super::call(|py| {
            let yielded = operations.bind(py).clone().next().transpose()?;
            yielded.map(|yielded| Operation::read(&yielded, &function.locks)).transpose()
        });
        match next {
            Some(operation) => operation.act(env),
            None => return,
        }
    }
}
