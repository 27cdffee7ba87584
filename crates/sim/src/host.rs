//! The host: pCPUs, the hypervisor's scheduling softirq, and the switch between vCPUs.
//!
//! The scheduler itself is in `overspin-sched`. This file tells it the time, carries out its actions, and
//! charges their costs. A pCPU is in one of three states:
//!
//! ```text
//!   runs a vCPU or idles --softirq--> switching --switch cost--> runs the next vCPU or idles
//! ```
//!
//! A softirq that comes while the pCPU is switching waits until the switch is over.

use crate::engine::Engine;
use crate::events::Event;
use crate::host_interrupt::HostInterrupt;
use crate::memory::NONE;
use crate::run_queue::RunQueueLock;
use crate::vcpu::{Op, Vcpu};
use overspin_host::{Doing, Leaving, Moment, VcpuState, nanos, picos, why};
use overspin_scenario::{Picos, Why};
use overspin_sched::{Action, Hypervisor, Nanos, PcpuId, Pools, RunState, Switch, TimerId, VcpuId};
use std::cell::Cell;

/// A physical CPU (hardware thread).
#[derive(Debug, Default)]
pub(crate) struct Pcpu {
    /// The vCPU that it runs or is switching to.
    pub current: Cell<Option<u32>>,
    /// It is in the middle of a switch; scheduling waits.
    pub switching: Cell<bool>,
    /// A softirq came during the switch.
    again: Cell<bool>,
    pub softirq_epoch: Cell<u32>,
    /// The slice of its vCPU has ended since the last scheduling pass.
    pub slice_over: Cell<bool>,
    /// When the pending softirq is due; `Picos::MAX` if none is.
    softirq_at: Cell<Picos>,
    pub busy: Cell<Picos>,
    pub switch_time: Cell<Picos>,
    /// What the current or last switch costs.
    switch_cost: Cell<Picos>,
    pub switches: Cell<u64>,
    /// The pending softirq comes with an interprocessor interrupt.
    pub resched_ipi: Cell<bool>,
    /// The lock of its run queue, and the interrupts of the host.
    pub run_queue: RunQueueLock,
    pub interrupt: HostInterrupt,
    /// When it became busy; `Picos::MAX` if it is idle.
    pub busy_since: Cell<Picos>,
}

impl Pcpu {
    pub(crate) fn new() -> Self {
        Self {
            softirq_at: Cell::new(Picos::MAX),
            busy_since: Cell::new(Picos::MAX),
            ..Self::default()
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy_since.get() != Picos::MAX
    }

    /// Its total busy time up to `now`.
    pub(crate) fn busy_time(&self, now: Picos) -> Picos {
        let since = self.busy_since.get();
        self.busy.get() + if since == Picos::MAX { Picos::ZERO } else { now - since }
    }
}

fn state(of: RunState) -> VcpuState {
    match of {
        RunState::Running => VcpuState::Running,
        RunState::Runnable => VcpuState::Runnable,
        RunState::Blocked => VcpuState::Blocked,
        RunState::Offline => VcpuState::Offline,
    }
}

impl Engine {
    /// The hypervisor's clock.
    pub(crate) fn nanos(&self) -> Nanos {
        nanos(self.now())
    }

    pub(crate) fn timer_slot(&self, timer: TimerId) -> usize {
        match timer {
            TimerId::Tick(p) => p.0 as usize,
            TimerId::Slice(p) => self.machine.pcpus.len() + p.0 as usize,
            TimerId::Accounting => 2 * self.machine.pcpus.len(),
        }
    }

    /// Carries out the scheduler's actions. `from` is the pCPU that asked for them; it needs no
    /// interprocessor interrupt to reach itself.
    pub(crate) fn act(&self, from: u32) {
        let mut actions = self.hypervisor.actions.take();
        for action in actions.drain(..) {
            match action {
                Action::Resched(p) => {
                    let ipi = p.0 != from;
                    let delay = if ipi { self.costs.ipi.next() } else { Picos::ZERO };
                    if self.raise_softirq(p.0, self.now() + delay) {
                        self.machine.pcpus[p.0 as usize].resched_ipi.set(ipi);
                    }
                }
                Action::SetTimer { timer, at } => {
                    let at = picos(at).max(self.now()) + self.costs.host_timer.next();
                    self.push_timer(timer, self.hypervisor.timers[self.timer_slot(timer)].set(at));
                }
                Action::StopTimer { timer } => {
                    self.push_timer(
                        timer,
                        self.hypervisor.timers[self.timer_slot(timer)].set(Picos::MAX),
                    );
                }
                Action::Throttle { vcpu, on } => self.tell(Moment::Throttle { vcpu: vcpu.0, on }),
            }
        }
        // Keep the allocation for the next call.
        self.hypervisor.actions.replace(actions);
    }

    pub(crate) fn push_timer(&self, timer: TimerId, at: Option<Picos>) {
        if let Some(at) = at {
            self.push(at, Event::Scheduler { timer });
        }
    }

    /// Arranges a scheduling pass of `pcpu` at `at`. Returns false if an earlier one is due anyway.
    pub(crate) fn raise_softirq(&self, pcpu: u32, at: Picos) -> bool {
        let p = &self.machine.pcpus[pcpu as usize];
        if p.softirq_at.get() <= at {
            return false;
        }
        p.resched_ipi.set(false);
        p.softirq_epoch.set(p.softirq_epoch.get().wrapping_add(1));
        p.softirq_at.set(at);
        self.push(at, Event::Softirq { pcpu, epoch: p.softirq_epoch.get() });
        true
    }

    /// Calls the hypervisor layer and carries out the resulting actions. `from` is as for [`Self::act`].
    pub(crate) fn hypervisor<R>(
        &self,
        from: u32,
        call: impl FnOnce(&mut Pools, Nanos, &mut Vec<Action>) -> R,
    ) -> R {
        let result = {
            let mut pools = self.hypervisor.pools.borrow_mut();
            if from != NONE {
                pools.set_executing(PcpuId(from));
            }
            call(&mut pools, self.nanos(), &mut self.hypervisor.actions.borrow_mut())
        };
        self.act(from);
        result
    }

    /// Calls the hypervisor layer of vCPU `v`'s pool, with the id that `v` has there.
    pub(crate) fn on_vcpu<R>(
        &self,
        from: u32,
        v: u32,
        call: impl FnOnce(&mut Hypervisor, Nanos, VcpuId, &mut Vec<Action>) -> R,
    ) -> R {
        self.hypervisor(from, |h, now, out| {
            h.on_vcpu(VcpuId(v), out, |h, v, out| call(h, now, v, out))
        })
    }

    /// Reads from the hypervisor layer of vCPU `v`'s pool, with the id that `v` has there.
    pub(crate) fn look_at<R>(&self, v: u32, look: impl FnOnce(&Hypervisor, VcpuId) -> R) -> R {
        let pools = self.hypervisor.pools.borrow();
        let (pool, local) = pools.local(VcpuId(v));
        look(pools.hypervisor(pool).expect("no pool is ever destroyed"), local)
    }

    pub(crate) fn runstate(&self, v: u32) -> RunState {
        self.look_at(v, Hypervisor::runstate)
    }

    /// Whether `that` is true of at least one vCPU. O(vCPUs).
    pub(crate) fn any_vcpu(&self, that: impl Fn(&Hypervisor, VcpuId) -> bool) -> bool {
        self.vcpus.iter().any(|v| self.look_at(v.id, &that))
    }

    /// Makes one scheduling pass of `pcpu`.
    pub(crate) fn schedule(&self, pcpu: u32) {
        let p = &self.machine.pcpus[pcpu as usize];
        p.softirq_at.set(Picos::MAX);
        if p.switching.get() {
            p.again.set(true);
            return;
        }
        if self.awaits_run_queue(pcpu) {
            return;
        }
        self.poll_yields(pcpu);
        if self.postpones(pcpu) {
            return;
        }
        let switch = self.hypervisor(pcpu, |h, now, out| h.schedule(now, PcpuId(pcpu), out));
        if switch.prev == switch.next {
            p.slice_over.set(false);
            self.keeps_its_guest(pcpu);
            return;
        }
        p.current.set(switch.next.map(|v| v.0));
        if let (Some(prefetch), Some(next)) = (&self.prefetch, switch.next) {
            prefetch.chosen(self, next.0);
        }
        let now = self.now();
        if let Some(prev) = switch.prev {
            let v = &self.vcpus[prev.0 as usize];
            self.stop(v);
            self.writes_state(v, pcpu);
            v.run.busy_before.set(p.busy_time(now));
            p.busy.set(p.busy.get() + now - p.busy_since.get());
        }
        let forced = self.tell_switch(pcpu, switch);
        p.slice_over.set(false);
        p.switches.set(p.switches.get() + 1);
        // A pCPU that becomes idle saves registers lazily: only a switch to a vCPU costs time.
        let cost = match switch.next {
            Some(_) => self.costs.context_switch.next() + forced,
            None => Picos::ZERO,
        };
        p.switch_cost.set(cost);
        p.busy_since.set(if switch.next.is_some() { now } else { Picos::MAX });
        p.switching.set(true);
        self.holds_run_queue(pcpu, cost);
        self.push(now + cost, Event::Switched { pcpu });
        self.adjust_core(pcpu);
    }

    /// Tells the observer of a switch, and why `prev` leaves if it was descheduled. Returns what that costs if `prev`
    /// did not ask for it.
    fn tell_switch(&self, pcpu: u32, switch: Switch) -> Picos {
        let name = |v: Option<VcpuId>| v.map(|v| v.0);
        let (prev, next) = (name(switch.prev), name(switch.next));
        let (mut why, mut forced) = (None, Picos::ZERO);
        if let Some(v) = prev.map(|v| &self.vcpus[v as usize])
            // A vCPU that sleeps, or was woken before it had left its pCPU, was not descheduled.
            && v.lock.doing.get() == Doing::Runs
        {
            v.lock.doing.set(Doing::Wants);
            let cost = self.costs.preemption.next();
            why = (cost > Picos::ZERO || self.telling.of_scheduling())
                .then(|| self.why(v, pcpu, next));
            // A vCPU that yields has exited already, by a hypercall or a pause-loop exit.
            if !matches!(why, Some(Why::Yield | Why::PauseLoop)) {
                forced = cost;
            }
        }
        let prev_state = state(switch.prev_state);
        self.tell(Moment::Switch { pcpu, prev, prev_state, why, next });
        forced
    }

    fn why(&self, v: &Vcpu, pcpu: u32, next: Option<u32>) -> Why {
        // The scheduling pass of a yield comes at the instant of the yield.
        let (at, yielded) = v.leave.yielded.get();
        let leaving = Leaving {
            yielded: (at == self.now()).then_some(yielded),
            slice_over: self.machine.pcpus[pcpu as usize].slice_over.get(),
            next: next.map(|next| self.vcpus[next as usize].lock.doing.get()),
        };
        self.look_at(v.id, |h, local| why(h, local, leaving))
    }

    /// The vCPU that `pcpu` runs or is switching to, as of its last pass.
    pub(crate) fn current_on(&self, pcpu: u32) -> Option<&Vcpu> {
        self.machine.pcpus[pcpu as usize].current.get().map(|v| &self.vcpus[v as usize])
    }

    /// What `v`, which returns to `p`, lost of its caches there to those that ran since it left.
    fn displaced_by_others(&self, v: &Vcpu, p: &Pcpu) -> Picos {
        let others = p.busy_time(self.now()) - v.run.busy_before.get();
        Picos((u128::from(others.0) * u128::from(self.scenario.host.rewarm_permille) / 1000) as u64)
    }

    /// Ends the switch of `pcpu`: its vCPU, if it has one, begins to run.
    pub(crate) fn switched(&self, pcpu: u32) {
        let p = &self.machine.pcpus[pcpu as usize];
        p.switching.set(false);
        self.hypervisor(pcpu, |h, now, out| h.context_saved(now, PcpuId(pcpu), out));
        if p.again.take() {
            self.raise_softirq(pcpu, self.now());
        }
        let Some(v) = self.current_on(pcpu) else { return };
        p.switch_time.set(p.switch_time.get() + p.switch_cost.get());
        let from = v.run.pcpu.replace(pcpu);
        v.run.dispatches.set(v.run.dispatches.get() + 1);
        if from != pcpu && from != NONE {
            v.run.migrations.set(v.run.migrations.get() + 1);
        }
        if v.op.kind.get() == Op::Burn && from != NONE {
            // The extra work that cold caches cause.
            let cold = self.scenario.host.costs.migration;
            let cold = if from == pcpu { cold.min(self.displaced_by_others(v, p)) } else { cold };
            v.op.left.set(v.op.left.get().saturating_add(cold));
        }
        self.reset_window(v);
        self.writes_state(v, pcpu);
        v.run.begin(self.now());
        self.spinner_runs(v, true);
        // `unblocked` does this for a vCPU that slept.
        if v.lock.doing.get() == Doing::Wants {
            v.lock.doing.set(Doing::Runs);
        }
        self.tell(Moment::Runs { vcpu: v.id, pcpu });
        self.continue_on(v);
    }
}
