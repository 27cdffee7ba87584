//! Halt polling in the simulator: when a vCPU begins to poll on its pCPU, and when it ends.
//! `overspin_host::halt_polling` has the rules.

use crate::engine::Engine;
use crate::events::Event;
use crate::vcpu::{Op, Vcpu};
use overspin_host::block::Block;
use overspin_host::{Doing, Moment, halt_polling};
use overspin_scenario::Picos;
use overspin_sched::PcpuId;

impl Engine {
    /// Begins to poll for `v`, the current vCPU, which blocks as `how` says, if it may poll. Returns whether
    /// it polls.
    pub(crate) fn begin_poll(&self, v: &Vcpu, how: Block) -> bool {
        let window = v.halt.window.get();
        if window == Picos::ZERO || self.somebody_wants(v.run.pcpu.get()) {
            return false;
        }
        let now = self.now();
        v.op.kind.set(Op::HaltPoll(how));
        self.tell(Moment::PollBegins { vcpu: v.id, until: now + window });
        self.push(now + window, Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() });
        true
    }

    fn somebody_wants(&self, pcpu: u32) -> bool {
        self.any_vcpu(|h, v| halt_polling::wants(h, v, PcpuId(pcpu)))
    }

    fn end_poll(&self, v: &Vcpu, found: bool) {
        self.tell(Moment::PollEnds { vcpu: v.id, found });
        v.op.cancel();
        v.halt.polled.set(v.halt.polled.get() + self.now() - v.halt.since.get());
    }

    /// Ends the polling of `v` because a wake-up has come: it goes on at once.
    pub(crate) fn poll_succeeds(&self, v: &Vcpu) {
        self.end_poll(v, true);
        v.lock.doing.set(Doing::Wakes);
        self.tell(Moment::Wake { vcpu: v.id, pcpu: None, runnable: false });
        self.arm(v, Op::Step, Picos::ZERO);
    }

    /// Ends the polling of `v` without a wake-up: it gives its pCPU up.
    pub(crate) fn poll_fails(&self, v: &Vcpu, how: Block) {
        self.end_poll(v, false);
        v.op.kind.set(Op::Blocked(how));
        self.on_vcpu(v.run.pcpu.get(), v.id, |h, now, v, out| h.block(now, v, out));
    }

    /// Ends the polling of the vCPU on `pcpu`, if it polls, since `pcpu` is about to enter its scheduler.
    pub(crate) fn poll_yields(&self, pcpu: u32) {
        if self.scenario.host.halt_polling.is_some()
            && let Some(v) = self.current_on(pcpu)
            && let Op::HaltPoll(how) = v.op.kind.get()
        {
            self.poll_fails(v, how);
        }
    }

    /// Makes the home pCPU of `woken` schedule if a vCPU polls there, since `woken` may want that pCPU.
    pub(crate) fn end_poll_for(&self, woken: &Vcpu) {
        if self.scenario.host.halt_polling.is_some() {
            let home = self.look_at(woken.id, |h, v| h.machine().home(v));
            if self.current_on(home.0).is_some_and(Vcpu::polls) {
                self.raise_softirq(home.0, self.now());
            }
        }
    }

    /// Continues `v`, the current vCPU, after a block, and adapts its polling window.
    pub(crate) fn unblocked(&self, v: &Vcpu) {
        v.lock.doing.set(Doing::Runs);
        self.tell(Moment::Returns { vcpu: v.id });
        if let Some(polling) = &self.scenario.host.halt_polling {
            let blocked = self.now() - v.halt.since.get();
            v.halt.window.set(halt_polling::next_window(v.halt.window.get(), blocked, polling));
        }
    }
}
