//! A scheduler in Python, as the hypervisor layer sees it.
//!
//! The class decides who runs. This adapter does what every scheduler must do beside that: it knows which vCPUs wait,
//! tells an idle pCPU that there is work, and checks the answers. It does this exactly as the built-in round robin does
//! (`round_robin.rs` of `overspin-sched`), so a round robin in Python makes the same decisions.

use super::machine::{Lent, can_run};
use super::{call, registry};
use crate::errors;
use overspin_sched::{
    Context, CpuSet, Decision, DomainId, DomainParams, Machine, Nanos, PcpuId, Scheduler, TimerId,
    VcpuId,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::BTreeMap;

/// The methods of a scheduler, bound to the object.
#[derive(Debug)]
struct Methods {
    wake: Py<PyAny>,
    sleep: Py<PyAny>,
    yield_now: Py<PyAny>,
    schedule: Py<PyAny>,
    timer: Py<PyAny>,
}

/// A scheduler whose decisions an object in Python makes. The object is made by [`Scheduler::start`].
#[derive(Debug)]
pub(super) struct PyScheduler {
    name: &'static str,
    /// Whether it raises an exception for a decision that breaks a rule. The conformance suite reports those itself.
    strict: bool,
    methods: Option<Methods>,
    domains: Vec<DomainParams>,
    /// vCPUs that wait for a pCPU, in the order in which they began to.
    waiting: Vec<VcpuId>,
    /// pCPUs that run their idle vCPU and were not told to look for work since.
    idle: CpuSet,
    /// When the slice of the last decision for each pCPU ends.
    ends: BTreeMap<PcpuId, Option<Nanos>>,
}

/// What `schedule` of a class has returned: a vCPU, or none, and for how long.
type Answer = (Option<u32>, Option<Nanos>);

impl PyScheduler {
    /// The scheduler that `name` stands for.
    pub(super) fn new(name: &'static str, strict: bool) -> Self {
        Self {
            name,
            strict,
            methods: None,
            domains: Vec::new(),
            waiting: Vec::new(),
            idle: CpuSet::empty(0),
            ends: BTreeMap::new(),
        }
    }

    /// Calls a method, which may use `cx`.
    fn call<R: Send>(
        &self,
        cx: &mut Context<'_>,
        which: impl FnOnce(&Methods) -> &Py<PyAny> + Send,
        call_it: impl FnOnce(&Bound<'_, PyAny>, Nanos) -> PyResult<R> + Send,
    ) -> R {
        let now = cx.now();
        let methods = self.methods.as_ref().expect("`start` is called first");
        let domains = &self.domains[..];
        call(|py| Lent::with(cx, domains, || call_it(which(methods).bind(py), now)))
    }

    fn waits(&self, v: VcpuId) -> Option<usize> {
        self.waiting.iter().position(|waiting| *waiting == v)
    }

    /// Tells an idle pCPU to look for `v`, which waits, unless `v` has not left its pCPU yet. Returns whether it told
    /// one.
    fn tell(&mut self, cx: &mut Context<'_>, v: VcpuId) -> bool {
        if cx.is_running(v) {
            return false;
        }
        let Some(p) = self.idle.toc_and(cx.home(v), cx.affinity(v).hard()) else { return false };
        self.idle.remove(p);
        cx.resched(p);
        true
    }

    /// Checks an answer of `schedule`; ends the run if it breaks a rule.
    fn checked(&self, cx: &Context<'_>, p: PcpuId, (next, slice): Answer) -> Decision {
        let broken = |rule: &str| -> ! {
            let answer = next.map_or_else(|| "None".into(), |v| format!("vCPU {v}"));
            let at = cx.now().0;
            let message =
                format!("{}.schedule({at}, {}) returned {answer}, which {rule}", self.name, p.0);
            let remedy = "choose a vCPU for which self.machine.can_run(vcpu, pcpu) holds, or None";
            let error = errors::plain("SchedulerError", &message, remedy);
            std::panic::resume_unwind(Box::new(error))
        };
        if let Some(slice) = slice.filter(|slice| *slice < Nanos::ZERO) {
            broken(&format!("has a slice of {} ns", slice.0));
        }
        let Some(v) = next else { return Decision { next: None, slice } };
        let count = cx.vcpu_count();
        if v >= count {
            broken(&format!("does not exist: there are {count}, from 0"));
        }
        let v = VcpuId(v);
        if self.strict && !can_run(cx, v, p) {
            if !cx.is_runnable(v) {
                broken("is not runnable");
            } else if !cx.affinity(v).hard().contains(p) {
                broken("may not run there (affinity)");
            }
            broken("runs on another pCPU");
        }
        Decision { next: Some(v), slice }
    }
}

/// Reads what `schedule` returned: None, a vCPU, or either with a time.
fn answer(returned: &Bound<'_, PyAny>) -> PyResult<Answer> {
    let one = |value: &Bound<'_, PyAny>| -> PyResult<Option<u32>> {
        if value.is_none() { Ok(None) } else { value.extract().map(Some) }
    };
    let Ok(pair) = returned.cast::<PyTuple>() else { return Ok((one(returned)?, None)) };
    let (next, slice): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
    let slice = if slice.is_none() { None } else { Some(super::machine::nanos(&slice)?) };
    Ok((one(&next)?, slice))
}

impl Scheduler for PyScheduler {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.idle = CpuSet::all(cx.pcpus());
        let (name, domains, now) = (self.name, &self.domains[..], cx.now());
        let methods = call(|py| {
            Lent::with(cx, domains, || {
                let object = registry::class(py, name)?.bind(py).call0()?;
                let method = |name: &str| object.getattr(name).map(Bound::unbind);
                object.call_method1("start", (now.0,))?;
                Ok(Methods {
                    wake: method("wake")?,
                    sleep: method("sleep")?,
                    yield_now: method("yield_now")?,
                    schedule: method("schedule")?,
                    timer: method("timer")?,
                })
            })
        });
        self.methods = Some(methods);
    }

    fn create_domain(&mut self, _d: DomainId, params: DomainParams) {
        self.domains.push(params);
    }

    fn set_domain(&mut self, _cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        if let Some(known) = self.domains.get_mut(d.0 as usize) {
            *known = params;
        }
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = self.pick(cx, v);
        cx.set_home(v, home);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) || self.waits(v).is_some() {
            return;
        }
        self.waiting.push(v);
        self.call(cx, |m| &m.wake, |wake, now| wake.call1((now.0, v.0)).map(drop));
        self.tell(cx, v);
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if cx.is_current(v) {
            cx.resched(cx.home(v));
        } else if let Some(i) = self.waits(v) {
            self.waiting.remove(i);
            self.call(cx, |m| &m.sleep, |sleep, now| sleep.call1((now.0, v.0)).map(drop));
        }
    }

    fn yield_now(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |m| &m.yield_now, |yields, now| yields.call1((now.0, v.0)).map(drop));
    }

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        let home = cx.home(v);
        cx.affinity(v).hard().toc(home).unwrap_or(home)
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let current = cx.current(p);
        let returned =
            self.call(cx, |m| &m.schedule, |pass, now| answer(&pass.call1((now.0, p.0))?));
        let decision = self.checked(cx, p, returned);
        let end = decision.slice.map(|slice| cx.now().saturating_add(slice));
        let earlier = self.ends.insert(p, end);
        if decision.next.is_some() && decision.next == current && earlier == Some(end) {
            // The earlier decision stands.
            return decision;
        }
        self.waiting.extend(current.filter(|v| cx.is_runnable(*v)));
        if let Some(v) = decision.next {
            if let Some(i) = self.waits(v) {
                self.waiting.remove(i);
            }
            cx.set_home(v, p);
        }
        self.idle.set(p, decision.next.is_none());
        // A class may hold back a vCPU that could run here. It would hold it back on another pCPU, too, so none is told.
        let holds_back = decision.next.is_none() && self.waiting.iter().any(|v| can_run(cx, *v, p));
        // The pCPU that was told about the chosen vCPU may be unable to run those that still wait, so this tells one
        // that can.
        if !holds_back && !self.idle.is_empty() {
            for i in 0..self.waiting.len() {
                if self.tell(cx, self.waiting[i]) {
                    break;
                }
            }
        }
        decision
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.waits(v).is_some() {
            self.tell(cx, v);
        }
    }

    fn timer(&mut self, cx: &mut Context<'_>, _timer: TimerId) {
        self.call(cx, |m| &m.timer, |timer, now| timer.call1((now.0,)).map(drop));
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        for v in (0..machine.vcpu_count()).map(VcpuId) {
            let waits = machine.is_runnable(v) && !machine.is_current(v);
            if waits != self.waits(v).is_some() {
                return Err(format!("{v:?} is lost or waits wrongly: waits = {waits}"));
            }
        }
        match self.idle.iter().find(|p| machine.current(*p).is_some()) {
            Some(p) => Err(format!("{p:?} is busy and counts as idle")),
            None => Ok(()),
        }
    }
}
