//! A wrapper around a scheduler that checks its answers before the layer acts on them.

use crate::error::SchedError;
use crate::ids::{Action, DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::Machine;
use crate::params::Params;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler, Whose};
use crate::time::Nanos;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Forwards every call and remembers the first broken rule, which [`Scheduler::is_valid`] then
/// reports.
#[derive(Debug)]
pub(super) struct Watched {
    inner: Box<dyn Scheduler>,
    broken: Option<String>,
}

impl Watched {
    pub(super) fn new(inner: Box<dyn Scheduler>) -> Self {
        Self { inner, broken: None }
    }

    fn ensure(&mut self, holds: bool, broken: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(broken());
        }
    }

    /// Makes a call, and checks the actions that it added.
    fn call<R>(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut dyn Scheduler, &mut Context<'_>) -> R,
    ) -> R {
        let before = cx.actions.len();
        let result = call(&mut *self.inner, cx);
        for i in before..cx.actions.len() {
            let action = cx.actions[i];
            let (Action::Resched(p)
            | Action::SetTimer { timer: TimerId::Tick(p) | TimerId::Slice(p), .. }) = action
            else {
                continue;
            };
            self.ensure(p.0 < cx.pcpus(), || format!("{action:?}: there is no such pCPU"));
        }
        result
    }

    fn ensure_allowed(&mut self, cx: &Context<'_>, what: &str, v: VcpuId, p: PcpuId) {
        let allowed = p.0 < cx.pcpus() && cx.affinity(v).hard().contains(p);
        self.ensure(allowed, || format!("T8: {what} put {v:?} on {p:?}, where it may not run"));
    }
}

impl Scheduler for Watched {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        self.call(cx, |s, cx| s.start(cx));
    }

    fn create_domain(&mut self, d: DomainId, params: DomainParams) {
        self.inner.create_domain(d, params);
    }

    fn set_domain(&mut self, cx: &mut Context<'_>, d: DomainId, params: DomainParams) {
        self.call(cx, |s, cx| s.set_domain(cx, d, params));
    }

    fn configure(
        &mut self,
        cx: &mut Context<'_>,
        whose: Whose,
        params: &Params,
    ) -> Result<(), SchedError> {
        self.call(cx, |s, cx| s.configure(cx, whose, params))
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |s, cx| s.insert(cx, v));
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |s, cx| s.remove(cx, v));
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |s, cx| s.wake(cx, v));
        let before = cx.actions.len();
        self.call(cx, |s, cx| s.wake(cx, v));
        let again = cx.actions.len() - before;
        self.ensure(again == 0, || format!("I6: a second wake-up of {v:?} had {again} effects"));
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |s, cx| s.sleep(cx, v));
    }

    fn yield_now(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |s, cx| s.yield_now(cx, v));
    }

    fn yield_to(&mut self, cx: &mut Context<'_>, v: VcpuId, to: VcpuId) -> bool {
        self.call(cx, |s, cx| s.yield_to(cx, v, to))
    }

    fn directs_yields(&self) -> bool {
        self.inner.directs_yields()
    }

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        let p = self.call(cx, |s, cx| s.pick(cx, v));
        self.ensure_allowed(cx, "pick", v, p);
        p
    }

    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        self.call(cx, |s, cx| s.migrate(cx, v, p));
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let before = cx.actions.len();
        let vcpus = (0..cx.vcpu_count()).map(VcpuId);
        let runnable: Vec<bool> = vcpus.map(|v| cx.is_runnable(v)).collect();
        let decision = self.call(cx, |s, cx| s.schedule(cx, p));
        let sets =
            |a: &Action| matches!(a, Action::SetTimer { timer: TimerId::Slice(x), .. } if *x == p);
        let own = cx.actions[before..].iter().any(sets);
        self.ensure(!own, || {
            format!("a pass of {p:?} set its slice timer: the decision says that")
        });
        if let Some(slice) = decision.slice {
            self.ensure(slice >= Nanos::ZERO, || format!("{p:?} got a slice of {} ns", slice.0));
        }
        let Some(v) = decision.next else { return decision };
        self.ensure_allowed(cx, "a pass", v, p);
        let (was_runnable, home) = (runnable.get(v.index()).is_some_and(|r| *r), cx.home(v));
        // A pass may ask the vCPU that it chooses to migrate, but only once it has run.
        let may_run = cx.is_runnable(v) || was_runnable && cx.is_migrating(v);
        self.ensure(may_run, || format!("{p:?} chose {v:?}, which is not runnable"));
        self.ensure(home == p, || format!("{p:?} chose {v:?}, whose home is {home:?}"));
        let elsewhere = cx.is_running(v) && cx.current(p) != Some(v);
        self.ensure(!elsewhere, || format!("I1: {p:?} chose {v:?}, which runs elsewhere"));
        // The layer must not act on a wrong answer.
        if self.broken.is_some() { Decision { next: None, slice: None } } else { decision }
    }

    fn context_saved(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |s, cx| s.context_saved(cx, v));
    }

    fn timer(&mut self, cx: &mut Context<'_>, timer: TimerId) {
        self.call(cx, |s, cx| s.timer(cx, timer));
    }

    fn affinity_changed(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.call(cx, |s, cx| s.affinity_changed(cx, v));
    }

    fn pcpu_added(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        self.call(cx, |s, cx| s.pcpu_added(cx, p));
    }

    fn pcpu_removed(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        self.call(cx, |s, cx| s.pcpu_removed(cx, p));
    }

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        self.inner.detail(v)
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        match &self.broken {
            Some(broken) => Err(broken.clone()),
            None => self.inner.is_valid(machine),
        }
    }
}
