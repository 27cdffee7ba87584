//! What a program in Python asks of its world.

use overspin_scenario::NS;
use overspin_workload::Random;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The environment of one task.
#[pyclass(frozen, module = "overspin")]
#[derive(Debug)]
pub(crate) struct Env {
    /// Number of the task among those of its workload, from 0.
    #[pyo3(get)]
    task: u32,
    /// Number of tasks of the workload.
    #[pyo3(get)]
    tasks: u32,
    /// vCPUs that the workload may use.
    #[pyo3(get)]
    vcpus: u32,
    /// The time of the guest in ns, as it was when the last operation ended.
    now: AtomicU64,
    random: Mutex<Random>,
}

impl Env {
    pub(super) fn new(task: u32, tasks: u32, vcpus: u32, random: Random) -> Self {
        Self { task, tasks, vcpus, now: AtomicU64::new(0), random: Mutex::new(random) }
    }

    pub(super) fn set_now(&self, now: overspin_scenario::Picos) {
        self.now.store(now / NS, Ordering::Relaxed);
    }

    fn draw<R>(&self, draw: impl FnOnce(&mut Random) -> R) -> R {
        draw(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Env {
    #[getter]
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn random(&self) -> f64 {
        // 53 bits: every such number is a float.
        (self.draw(Random::bits) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&self, limit: u64) -> u64 {
        self.draw(|random| random.below(limit))
    }

    fn exponential(&self, mean: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mean = super::operation::time(mean)?;
        Ok(self.draw(|random| random.exponential(mean)) / NS)
    }

    fn __repr__(&self) -> String {
        format!("<overspin.Env of task {} of {}, at {} ns>", self.task, self.tasks, self.now())
    }
}
