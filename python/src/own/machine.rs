//! The machine as a scheduler in Python sees it, during a call.

use overspin_sched::{Context, DomainParams, Nanos, PcpuId, TimerId, VcpuId};
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use std::cell::Cell;
use std::ptr::null_mut;

/// What the current call may use.
#[derive(Clone, Copy)]
struct Now {
    context: *mut Context<'static>,
    domains: *const [DomainParams],
}

thread_local! {
    /// The call to a scheduler that this thread is in. Another thread that gets hold of a `Machine` sees no call.
    static NOW: Cell<Now> = const { Cell::new(Now { context: null_mut(), domains: &[] }) };
}

/// Lets Python use a context, on this thread, until dropped.
pub(super) struct Lent(Now);

impl Lent {
    pub(super) fn with<R>(
        context: &mut Context<'_>,
        domains: &[DomainParams],
        call: impl FnOnce() -> R,
    ) -> R {
        let context = (&raw mut *context).cast::<Context<'static>>();
        let _lent = Self(NOW.replace(Now { context, domains }));
        call()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        NOW.set(self.0);
    }
}

/// Uses the context of the current call.
fn with<R>(what: impl FnOnce(&mut Context<'_>, &[DomainParams]) -> PyResult<R>) -> PyResult<R> {
    let now = NOW.get();
    if now.context.is_null() {
        return Err(PyRuntimeError::new_err(
            "the machine of a scheduler is there only while a method of the scheduler is called",
        ));
    }
    // SAFETY: `Lent::with` set both pointers on this thread, from references that it holds until it returns, and it has
    // not returned: `Lent` would have removed them. It uses neither meanwhile. No two references exist at a time,
    // because `what` calls no Python and so cannot come here again.
    unsafe { what(&mut *now.context, &*now.domains) }
}

fn known_vcpu(cx: &Context<'_>, v: u32) -> PyResult<VcpuId> {
    let count = cx.vcpu_count();
    if v < count {
        return Ok(VcpuId(v));
    }
    Err(PyIndexError::new_err(format!("there is no vCPU {v}: the machine has {count}, from 0")))
}

fn known_pcpu(cx: &Context<'_>, p: u32) -> PyResult<PcpuId> {
    let count = cx.pcpus();
    if p < count {
        return Ok(PcpuId(p));
    }
    Err(PyIndexError::new_err(format!("there is no pCPU {p}: the machine has {count}, from 0")))
}

/// Whether a pass of `p` may choose `v`.
pub(super) fn can_run(cx: &Context<'_>, v: VcpuId, p: PcpuId) -> bool {
    let here = cx.current(p) == Some(v) || !cx.is_running(v);
    here && cx.is_runnable(v) && cx.affinity(v).hard().contains(p)
}

/// A number of nanoseconds, rounded to a whole one.
pub(super) fn nanos(value: &Bound<'_, PyAny>) -> PyResult<Nanos> {
    if let Ok(whole) = value.extract::<i64>() {
        return Ok(Nanos(whole));
    }
    match value.extract::<f64>() {
        Ok(time) if time.is_finite() && time.abs() < 9e18 => Ok(Nanos(time.round() as i64)),
        _ => Err(PyTypeError::new_err(format!(
            "{} is no time: give a number of nanoseconds, for example 10 * overspin.US",
            value.repr()?
        ))),
    }
}

/// The machine of a scheduler.
#[pyclass(frozen, module = "overspin")]
#[derive(Debug)]
pub(crate) struct Machine;

#[pymethods]
impl Machine {
    #[new]
    fn new() -> Self {
        Self
    }

    #[getter]
    fn pcpus(&self) -> PyResult<u32> {
        with(|cx, _| Ok(cx.pcpus()))
    }

    #[getter]
    fn vcpus(&self) -> PyResult<u32> {
        with(|cx, _| Ok(cx.vcpu_count()))
    }

    fn current(&self, pcpu: u32) -> PyResult<Option<u32>> {
        with(|cx, _| Ok(cx.current(known_pcpu(cx, pcpu)?).map(|v| v.0)))
    }

    fn is_runnable(&self, vcpu: u32) -> PyResult<bool> {
        with(|cx, _| Ok(cx.is_runnable(known_vcpu(cx, vcpu)?)))
    }

    fn can_run(&self, vcpu: u32, pcpu: u32) -> PyResult<bool> {
        with(|cx, _| Ok(can_run(cx, known_vcpu(cx, vcpu)?, known_pcpu(cx, pcpu)?)))
    }

    fn home(&self, vcpu: u32) -> PyResult<u32> {
        with(|cx, _| Ok(cx.home(known_vcpu(cx, vcpu)?).0))
    }

    fn entry(&self, vcpu: u32) -> PyResult<i64> {
        with(|cx, _| Ok(cx.entry(known_vcpu(cx, vcpu)?).0))
    }

    fn domain(&self, vcpu: u32) -> PyResult<u32> {
        with(|cx, _| Ok(cx.domain_of(known_vcpu(cx, vcpu)?).0))
    }

    fn weight(&self, vcpu: u32) -> PyResult<u32> {
        with(|cx, domains| {
            let domain = cx.domain_of(known_vcpu(cx, vcpu)?);
            Ok(domains.get(domain.0 as usize).copied().unwrap_or_default().weight)
        })
    }

    fn resched(&self, pcpu: u32) -> PyResult<()> {
        with(|cx, _| {
            let p = known_pcpu(cx, pcpu)?;
            if !cx.pool().contains(p) {
                let message = format!("pCPU {} belongs to another scheduler", p.0);
                return Err(PyIndexError::new_err(message));
            }
            cx.resched(p);
            Ok(())
        })
    }

    fn set_timer(&self, at: &Bound<'_, PyAny>) -> PyResult<()> {
        let at = nanos(at)?;
        with(|cx, _| {
            cx.set_timer(TimerId::Accounting, at);
            Ok(())
        })
    }

    fn __repr__(&self) -> &'static str {
        "<overspin.Machine>"
    }
}
