//! Halt polling: a vCPU that halts keeps its pCPU for a while, in case something comes at once
//! (schedulers specification §9.3, after KVM).
//!
//! ```text
//!   guest code --halts, window > 0, nobody else wants the pCPU--> polls --interrupt, kick--> guest code
//!        ^                                                          |
//!        |                    window over, or its pCPU is to schedule
//!        +----- woken, dispatched ----- blocked <-------------------+
//! ```
//!
//! Polling is time of the host that hides from the guest: the vCPU runs as far as the scheduler
//! knows. Who else wants the pCPU is whoever waits with that pCPU as its home; with schedulers that
//! have one queue for many pCPUs, others may wait meanwhile, as they do for any vCPU that runs.

use crate::engine::Engine;
use crate::events::Event;
use crate::vcpu::{Op, Vcpu};
use overspin_host::{Doing, Moment};
use overspin_scenario::{HaltPolling, Picos};
use overspin_sched::PcpuId;

/// The window after a halt that took `blocked` from its beginning to its end.
fn next_window(window: Picos, blocked: Picos, polling: &HaltPolling) -> Picos {
    if blocked <= window {
        window
    } else if window > 0 && blocked > polling.max {
        let shrunk = window.checked_div(polling.shrink.into()).unwrap_or(0);
        if shrunk < polling.start { 0 } else { shrunk }
    } else if window < polling.max && blocked < polling.max {
        window.saturating_mul(polling.grow.into()).clamp(polling.start, polling.max)
    } else {
        window
    }
}

impl Engine {
    /// The current vCPU halts or blocks in `op`: it begins to poll, if it may.
    pub(crate) fn begin_poll(&self, v: &Vcpu, op: Op) -> bool {
        let window = v.poll_window.get();
        if window == 0 || self.somebody_wants(v.pcpu.get()) {
            return false;
        }
        let now = self.now.get();
        v.polls_for.set(op);
        v.op.set(Op::HaltPoll);
        self.tell(Moment::PollBegins { vcpu: v.id, until: now + window });
        self.push(now + window, Event::Operation { vcpu: v.id, epoch: v.epoch.get() });
        true
    }

    fn somebody_wants(&self, pcpu: u32) -> bool {
        self.somebody_waits(|h, v| h.machine().home(v) == PcpuId(pcpu))
    }

    fn end_poll(&self, v: &Vcpu, found: bool) {
        self.tell(Moment::PollEnds { vcpu: v.id, found });
        v.epoch.set(v.epoch.get().wrapping_add(1));
        v.polling.set(v.polling.get() + self.now.get() - v.blocked_since.get());
    }

    /// Something has come for `v`, which polls: it goes on at once.
    pub(crate) fn poll_succeeds(&self, v: &Vcpu) {
        self.end_poll(v, true);
        v.doing.set(Doing::Wakes);
        self.tell(Moment::Wake { vcpu: v.id, pcpu: None, runnable: false });
        self.arm(v, Op::Step, 0);
    }

    /// `v` has polled in vain: it gives its pCPU up.
    pub(crate) fn poll_fails(&self, v: &Vcpu) {
        self.end_poll(v, false);
        v.op.set(v.polls_for.get());
        self.on_vcpu(v.pcpu.get(), v.id, |h, now, v, out| h.block(now, v, out));
    }

    /// `pcpu` is about to enter its scheduler: what polls there does so no more.
    pub(crate) fn poll_yields(&self, pcpu: u32) {
        if self.scenario.host.halt_polling.is_some()
            && let Some(v) = self.current_on(pcpu)
            && v.op.get() == Op::HaltPoll
        {
            self.poll_fails(v);
        }
    }

    /// `woken` may want a pCPU on which somebody polls.
    pub(crate) fn end_poll_for(&self, woken: &Vcpu) {
        if self.scenario.host.halt_polling.is_some() {
            let home = self.look_at(woken.id, |h, v| h.machine().home(v));
            if self.current_on(home.0).is_some_and(|v| v.op.get() == Op::HaltPoll) {
                self.raise_softirq(home.0, self.now.get());
            }
        }
    }

    /// `v`, which is the current vCPU, goes on after a halt.
    pub(crate) fn unblocked(&self, v: &Vcpu) {
        v.doing.set(Doing::Runs);
        self.tell(Moment::Returns { vcpu: v.id });
        if let Some(polling) = &self.scenario.host.halt_polling {
            let blocked = self.now.get() - v.blocked_since.get();
            v.poll_window.set(next_window(v.poll_window.get(), blocked, polling));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::US;

    #[test]
    fn a_window_grows_while_it_would_have_helped_and_shrinks_when_it_never_can() {
        let p = HaltPolling { max: 200 * US, start: 10 * US, grow: 2, shrink: 2 };
        let after = |window: Picos, blocked: Picos| next_window(window * US, blocked * US, &p) / US;
        assert_eq!(after(0, 50), 10, "the first window");
        assert_eq!([after(10, 50), after(160, 190)], [20, 200], "too short: longer, up to max");
        assert_eq!([after(80, 80), after(80, 10)], [80, 80], "long enough");
        assert_eq!([after(80, 300), after(10, 300)], [40, 0], "in vain, and 0 rather than tiny");
        assert_eq!([after(0, 300), after(200, 200)], [0, 200]);
        assert_eq!(next_window(80 * US, 300 * US, &HaltPolling { shrink: 0, ..p }), 0);
    }
}
