//! The host: pCPUs, the hypervisor's scheduling softirq, event delivery, and the engine loop.
//!
//! The scheduler itself is the object of `overspin-sched`; this file gives it time, carries out its
//! actions, and charges what they cost. A pCPU is in one of three states:
//!
//! ```text
//!   runs a vCPU or idles --softirq--> switching --switch cost--> runs the next vCPU or idles
//! ```
//!
//! A softirq that comes while the pCPU is switching waits until it has switched.

use crate::events::Event;
use crate::guest::Guest;
use crate::memory::NONE;
use crate::world::{IRQ_RESCHED, IRQ_TIMER, Op, Vcpu, World};
use overspin_scenario::{NS, Picos, TraceEvent, VcpuState};
use overspin_sched::{Action, PcpuId, RunState, TimerId, VcpuId};
use std::cell::Cell;

/// A physical CPU (hardware thread).
#[derive(Debug, Default)]
pub(crate) struct Pcpu {
    /// In the middle of a switch; scheduling waits.
    switching: Cell<bool>,
    /// A softirq came meanwhile.
    again: Cell<bool>,
    softirq_epoch: Cell<u32>,
    /// When the pending softirq is due; `Picos::MAX` if none is.
    softirq_at: Cell<Picos>,
    pub busy: Cell<Picos>,
    pub switch_time: Cell<Picos>,
    pub switches: Cell<u64>,
    /// Since when it has been busy; `Picos::MAX` if idle.
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
}

/// How the engine loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Finished,
    Limit,
    Deadlock,
}

/// How often the watchdog looks, and how many looks without any progress make a deadlock.
const WATCHDOG: Picos = overspin_scenario::SEC;
const WATCHDOG_LOOKS: u32 = 10;
/// Events between two progress reports.
const PROGRESS_EVERY: u64 = 1 << 16;

fn state(of: RunState) -> VcpuState {
    match of {
        RunState::Running => VcpuState::Running,
        RunState::Runnable => VcpuState::Runnable,
        RunState::Blocked => VcpuState::Blocked,
        RunState::Offline => VcpuState::Offline,
    }
}

impl World {
    /// The hypervisor's clock: nanoseconds.
    pub(crate) fn nanos(&self) -> i64 {
        (self.now.get() / NS) as i64
    }

    fn timer_slot(&self, timer: TimerId) -> usize {
        match timer {
            TimerId::Tick(p) => p.0 as usize,
            TimerId::Slice(p) => self.pcpus.len() + p.0 as usize,
            TimerId::Accounting => 2 * self.pcpus.len(),
        }
    }

    /// Carries out what the scheduler asked for. `from` is the pCPU that asked, which needs no
    /// interprocessor interrupt to reach itself.
    pub(crate) fn act(&self, from: u32) {
        let mut actions = self.actions.take();
        for action in actions.drain(..) {
            match action {
                Action::Resched(p) => {
                    let delay = if p.0 == from { 0 } else { self.scenario.host.costs.ipi };
                    self.raise_softirq(p.0, self.now.get() + delay);
                }
                Action::SetTimer { timer, at } => {
                    let at = (at.max(0) as Picos).saturating_mul(NS).max(self.now.get());
                    self.push_timer(timer, self.timers[self.timer_slot(timer)].set(at));
                }
                Action::StopTimer { timer } => {
                    self.push_timer(timer, self.timers[self.timer_slot(timer)].set(Picos::MAX));
                }
            }
        }
        // Keep the allocation for the next time.
        self.actions.replace(actions);
    }

    fn push_timer(&self, timer: TimerId, at: Option<Picos>) {
        if let Some(at) = at {
            self.push(at, Event::Scheduler { timer });
        }
    }

    fn raise_softirq(&self, pcpu: u32, at: Picos) {
        let p = &self.pcpus[pcpu as usize];
        if p.softirq_at.get() <= at {
            return;
        }
        p.softirq_epoch.set(p.softirq_epoch.get().wrapping_add(1));
        p.softirq_at.set(at);
        self.push(at, Event::Softirq { pcpu, epoch: p.softirq_epoch.get() });
    }

    /// Calls the hypervisor layer and carries out the actions that result.
    pub(crate) fn hypervisor<R>(
        &self,
        from: u32,
        call: impl FnOnce(&mut overspin_sched::Hypervisor, i64, &mut Vec<Action>) -> R,
    ) -> R {
        let result = {
            let mut hypervisor = self.hypervisor.borrow_mut();
            if from != NONE {
                hypervisor.set_executing(PcpuId(from));
            }
            call(&mut hypervisor, self.nanos(), &mut self.actions.borrow_mut())
        };
        self.act(from);
        result
    }

    /// One scheduling pass of a pCPU.
    fn schedule(&self, pcpu: u32) {
        let p = &self.pcpus[pcpu as usize];
        p.softirq_at.set(Picos::MAX);
        if p.switching.get() {
            p.again.set(true);
            return;
        }
        let switch = self.hypervisor(pcpu, |h, now, out| h.schedule(now, PcpuId(pcpu), out));
        if switch.prev == switch.next {
            return;
        }
        let now = self.now.get();
        if let Some(prev) = switch.prev {
            self.stop(&self.vcpus[prev.0 as usize]);
            p.busy.set(p.busy.get() + now - p.busy_since.get());
        }
        p.switches.set(p.switches.get() + 1);
        let name = |v: Option<VcpuId>| v.map(|v| v.0);
        self.mix(u64::from(pcpu) << 32 | u64::from(name(switch.next).unwrap_or(NONE)));
        self.trace(|| TraceEvent::Switch {
            pcpu,
            prev: name(switch.prev),
            prev_state: switch
                .prev
                .map_or(VcpuState::Running, |v| state(self.hypervisor.borrow().runstate(v))),
            next: name(switch.next),
        });
        // Falling idle saves registers lazily: only a switch to a vCPU costs.
        let cost = if switch.next.is_some() { self.scenario.host.costs.context_switch } else { 0 };
        p.busy_since.set(if switch.next.is_some() { now } else { Picos::MAX });
        p.switching.set(true);
        p.switch_time.set(p.switch_time.get() + cost);
        self.push(now + cost, Event::Switched { pcpu });
        if self.scenario.host.threads > 1 {
            self.slow_siblings(pcpu);
        }
    }

    /// Threads of one core share it: adjusts the speed of all of them to who is busy.
    fn slow_siblings(&self, pcpu: u32) {
        let threads = self.scenario.host.threads;
        let first = pcpu / threads * threads;
        let busy = |p: u32| self.pcpus[p as usize].busy_since.get() != Picos::MAX;
        let shared = (first..first + threads).filter(|p| busy(*p)).count() > 1;
        let speed = if shared { self.scenario.host.smt_permille } else { 1000 };
        for p in first..first + threads {
            let running = self.hypervisor.borrow().current(PcpuId(p));
            let Some(v) = running.map(|v| &self.vcpus[v.0 as usize]) else { continue };
            if v.speed.get() == speed {
                continue;
            }
            let armed = v.running.get() && matches!(v.op.get(), Op::Burn | Op::Step | Op::Spin);
            if armed {
                self.disarm(v);
            }
            v.speed.set(speed);
            if armed {
                self.continue_on(v);
            }
        }
    }

    fn switched(&self, pcpu: u32) {
        let p = &self.pcpus[pcpu as usize];
        p.switching.set(false);
        self.hypervisor(pcpu, |h, now, out| h.context_saved(now, PcpuId(pcpu), out));
        if p.again.take() {
            self.raise_softirq(pcpu, self.now.get());
        }
        let next = self.hypervisor.borrow().current(PcpuId(pcpu));
        let Some(v) = next.map(|v| &self.vcpus[v.0 as usize]) else { return };
        let from = v.pcpu.replace(pcpu);
        v.dispatches.set(v.dispatches.get() + 1);
        if from != pcpu && from != NONE {
            v.migrations.set(v.migrations.get() + 1);
            if v.op.get() == Op::Burn {
                // Work lost to cold caches.
                v.op_left.set(v.op_left.get() + self.scenario.host.costs.migration);
            }
        }
        v.running.set(true);
        v.since.set(self.now.get());
        self.continue_on(v);
    }

    /// A virtual interrupt for `v`. Called when it arrives; `from` is the pCPU it comes from.
    pub(crate) fn deliver(&self, v: &Vcpu, irq: u32, from: u32) {
        v.irqs_pending.set(v.irqs_pending.get() | irq);
        match v.op.get() {
            // An idle vCPU halts with interrupts on.
            Op::Halt => self.unblock(v, from),
            Op::Poll if v.irqs_on.get() => self.unblock(v, from),
            _ => self.interrupt(v),
        }
    }

    /// Wakes a vCPU that halts or polls.
    fn unblock(&self, v: &Vcpu, from: u32) {
        let woken = self.hypervisor(from, |h, now, out| h.unblock(now, VcpuId(v.id), out));
        if woken {
            self.mix(u64::from(v.id) | 1 << 40);
            self.trace(|| TraceEvent::Wake { vcpu: v.id, pcpu: (from != NONE).then_some(from) });
        }
        if v.running.get() {
            // It had not left its pCPU yet: the blocking call returns at once.
            self.arm(v, Op::Step, 0);
        }
    }

    /// Sends a rescheduling interrupt from the current vCPU to another of its guest.
    pub(crate) fn send_resched(&self, to: &Vcpu) {
        self.burn(self.scenario.host.costs.hypercall);
        if to.running.get() {
            self.push(
                self.now.get() + self.scenario.host.costs.ipi,
                Event::Interrupt { vcpu: to.id },
            );
        } else {
            self.deliver(to, IRQ_RESCHED, self.cpu().pcpu.get());
        }
    }

    /// Kicks `to`: sets its latch and wakes it if it polls.
    pub(crate) fn kick(&self, to: &Vcpu) {
        self.burn(self.scenario.host.costs.hypercall);
        to.latch.set(true);
        let from = self.cpu();
        self.trace(|| TraceEvent::Kick { from: from.id, to: to.id });
        if to.op.get() == Op::Poll {
            self.unblock(to, from.pcpu.get());
        }
    }

    /// Blocks the current vCPU in the hypervisor; returns after a wake-up (maybe a spurious one).
    pub(crate) fn block(&self, op: Op) {
        self.burn(self.scenario.host.costs.hypercall);
        let v = self.cpu();
        // The flag is set before pending events are looked at, and a sender sets the event before
        // it looks at the flag; here that is one instant.
        let must_return = match op {
            Op::Poll => v.latch.get() || v.interruptible(),
            _ => v.irqs_pending.get() != 0,
        };
        if must_return {
            return;
        }
        v.op.set(op);
        self.hypervisor(v.pcpu.get(), |h, now, out| h.block(now, VcpuId(v.id), out));
        self.suspend(crate::world::Suspend::Operation);
    }

    /// The current vCPU gives its pCPU up and stays runnable.
    pub(crate) fn yield_now(&self) {
        self.burn(self.scenario.host.costs.hypercall);
        let v = self.cpu();
        self.hypervisor(v.pcpu.get(), |h, now, out| h.yield_now(now, VcpuId(v.id), out));
        // The scheduling pass is due now: let it come before the next instruction.
        self.burn(0);
    }

    /// When the slice of what `pcpu` runs ends; `Picos::MAX` if it has no end.
    pub(crate) fn slice_end(&self, pcpu: u32) -> Picos {
        self.timers[self.timer_slot(TimerId::Slice(PcpuId(pcpu)))].due()
    }

    /// Sets the one-shot timer of a vCPU; `Picos::MAX` cancels it.
    pub(crate) fn set_guest_timer(&self, v: &Vcpu, at: Picos) {
        let at = if at == Picos::MAX { at } else { at.max(self.now.get()) };
        if let Some(at) = v.timer.set(at) {
            self.push(at, Event::GuestTimer { vcpu: v.id });
        }
    }

    /// The engine: takes events in order until the run is over.
    pub(crate) fn run(&self, progress: &mut Option<&mut dyn FnMut(Picos)>) -> Stop {
        let mut looks = 0;
        let mut progress_seen = u64::MAX;
        self.push(WATCHDOG, Event::Watchdog);
        loop {
            let (at, event) = {
                let mut events = self.events.borrow_mut();
                let Some((at, event)) = events.pop() else { return Stop::Deadlock };
                self.horizon.set(events.next_time());
                (at, event)
            };
            debug_assert!(at >= self.now.get(), "time runs forward");
            self.now.set(at);
            let processed = self.processed.get() + 1;
            self.processed.set(processed);
            if processed.is_multiple_of(PROGRESS_EVERY)
                && let Some(report) = progress
            {
                report(at);
            }
            match event {
                Event::Operation { vcpu, epoch } => {
                    let v = &self.vcpus[vcpu as usize];
                    if v.epoch.get() == epoch {
                        self.operation_event(v);
                    }
                }
                Event::GuestTimer { vcpu } => {
                    let v = &self.vcpus[vcpu as usize];
                    match v.timer.event(at) {
                        Ok(()) => self.deliver(v, IRQ_TIMER, NONE),
                        Err(Some(at)) => self.push(at, event),
                        Err(None) => {}
                    }
                }
                Event::Interrupt { vcpu } => {
                    self.deliver(&self.vcpus[vcpu as usize], IRQ_RESCHED, NONE);
                }
                Event::Softirq { pcpu, epoch } => {
                    if self.pcpus[pcpu as usize].softirq_epoch.get() == epoch {
                        self.schedule(pcpu);
                    }
                }
                Event::Switched { pcpu } => self.switched(pcpu),
                Event::Boot { vcpu } => {
                    self.hypervisor(NONE, |h, now, out| h.up(now, VcpuId(vcpu), out));
                }
                Event::Scheduler { timer } => match self.timers[self.timer_slot(timer)].event(at) {
                    Ok(()) => {
                        let from = match timer {
                            TimerId::Tick(p) | TimerId::Slice(p) => p.0,
                            TimerId::Accounting => NONE,
                        };
                        self.hypervisor(from, |h, now, out| h.timer(now, timer, out));
                    }
                    Err(at) => self.push_timer(timer, at),
                },
                Event::Watchdog => {
                    let stuck = progress_seen == self.progress.get() && self.stuck();
                    looks = if stuck { looks + 1 } else { 0 };
                    progress_seen = self.progress.get();
                    if looks >= WATCHDOG_LOOKS {
                        return Stop::Deadlock;
                    }
                    self.push(at + WATCHDOG, Event::Watchdog);
                }
                Event::Limit => return Stop::Limit,
            }
            if self.unfinished.get() == 0 {
                return Stop::Finished;
            }
        }
    }

    /// Whether nobody will get anywhere unless something that is not there happens: every vCPU
    /// spins, polls or halts, and no task sleeps for a time.
    fn stuck(&self) -> bool {
        self.vcpus.iter().all(|v| match v.op.get() {
            Op::Burn | Op::Step => !self.guest(v.guest).works_for_a_task(v),
            Op::Spin => !self.holds(v),
            Op::Poll | Op::Halt | Op::None => true,
        }) && self.guests.get().expect("running").iter().all(Guest::nobody_sleeps_for_a_time)
    }
}
