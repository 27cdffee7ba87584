//! Pause-loop exits: when a guest that spins leaves for the hypervisor (schedulers specification §9.3).
//!
//! The processor notices PAUSE instructions that follow each other closely, and exits to the
//! hypervisor when that has gone on for longer than the vCPU's window. Two things in a guest are
//! such loops: a spin on a line, for which the exit is armed as an event, and a loop of
//! `Platform::relax`, which is looked at each time. An interrupt or a new dispatch ends a loop, since
//! it takes far longer than the gap. (Intel looks at kernel code only; all locks here are the kernel's.)
//!
//! The host then lets others run: by a plain yield, as Xen does, or with a directed yield as KVM does
//! (`directed_yield.rs`). If KVM finds nobody, the guest spins on.

use crate::engine::Engine;
use crate::vcpu::{Op, Vcpu};
use overspin_host::Moment;
use overspin_scenario::{PauseLoopExiting, Picos, Why};
use overspin_workload::Mode;
use std::cell::Cell;

/// What the processor and the host keep of a vCPU that spins.
#[derive(Debug)]
pub(crate) struct Pauses {
    /// Since when PAUSEs have followed each other, and when the last was over; 0 if there was none.
    since: Cell<Picos>,
    last: Cell<Picos>,
    window: Cell<Picos>,
    /// When the spin under way exits; `Picos::MAX` if it does not.
    exit_at: Cell<Picos>,
    /// The host is looking for somebody to run instead, or has found and not come back yet.
    pub in_exit: Cell<bool>,
    /// A spinner that was passed over is eligible the next time.
    passed_over: Cell<bool>,
    pub exits: Cell<u64>,
    /// Exits that ended with a directed yield.
    pub directed: Cell<u64>,
    /// Time on a pCPU that the exits took.
    pub exiting: Cell<Picos>,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self {
            since: Cell::new(0),
            last: Cell::new(0),
            window: Cell::new(0),
            exit_at: Cell::new(Picos::MAX),
            in_exit: Cell::new(false),
            passed_over: Cell::new(false),
            exits: Cell::new(0),
            directed: Cell::new(0),
            exiting: Cell::new(0),
        }
    }

    /// A PAUSE begins at `now`; returns since when they have followed each other.
    fn begin(&self, now: Picos, gap: Picos) -> Picos {
        if self.last.get() == 0 || now > self.last.get().saturating_add(gap) {
            self.since.set(now);
        }
        self.since.get()
    }

    /// Whether the spin under way is to exit at `now`.
    pub(crate) fn exit_due(&self, now: Picos) -> bool {
        now >= self.exit_at.get()
    }

    /// The loop was left or interrupted at `now`.
    pub(crate) fn end(&self, now: Picos) {
        self.last.set(now);
        self.exit_at.set(Picos::MAX);
    }

    /// Whether it may be boosted: not a spinner, or one that was passed over the last time.
    pub(crate) fn eligible(&self) -> bool {
        !self.in_exit.get() || self.passed_over.replace(!self.passed_over.get())
    }
}

fn grown(window: Picos, ple: &PauseLoopExiting) -> Picos {
    window.saturating_mul(ple.grow.into()).clamp(ple.window, ple.max)
}

fn shrunk(window: Picos, ple: &PauseLoopExiting) -> Picos {
    window.checked_div(ple.shrink.into()).unwrap_or(0).max(ple.window)
}

impl Engine {
    fn pause_loop_exiting(&self) -> Option<&PauseLoopExiting> {
        let host = &self.scenario.host;
        // With iterations that long the processor sees no loop.
        host.pause_loop_exiting.as_ref().filter(|ple| host.costs.spin_iteration <= ple.gap)
    }

    /// `v` was put on a pCPU.
    pub(crate) fn reset_window(&self, v: &Vcpu) {
        if let Some(ple) = &self.scenario.host.pause_loop_exiting {
            v.pauses.window.set(shrunk(v.pauses.window.get(), ple));
            v.pauses.last.set(0);
        }
    }

    /// Arms a spin of `v` for `left` of CPU time.
    pub(crate) fn arm_spin(&self, v: &Vcpu, left: Picos) {
        self.arm(v, Op::Spin, left);
        if let Some(ple) = self.pause_loop_exiting() {
            let now = self.now.get();
            let at = v.pauses.begin(now, ple.gap).saturating_add(v.pauses.window.get()).max(now);
            v.pauses.exit_at.set(at);
            if at < v.op_end.get() {
                self.push_operation(v, at);
            }
        }
    }

    /// One PAUSE of the current vCPU.
    pub(crate) fn pause(&self) {
        let began = self.now.get();
        self.burn(self.scenario.host.costs.spin_iteration);
        if let Some(ple) = self.pause_loop_exiting() {
            let (v, now) = (self.cpu(), self.now.get());
            let since = v.pauses.begin(began, ple.gap);
            v.pauses.end(now);
            if now.saturating_sub(since) > v.pauses.window.get() {
                self.pause_loop_exit();
                self.take_interrupts();
            }
        }
    }

    /// The current vCPU exits to the hypervisor because it spins.
    pub(crate) fn pause_loop_exit(&self) {
        let Some(ple) = self.pause_loop_exiting() else { return };
        let (me, rules) = (self.cpu(), ple.rules);
        let began = me.run_clock(self.now.get());
        me.pauses.exits.set(me.pauses.exits.get() + 1);
        self.tell(Moment::PauseLoopExit { vcpu: me.id });
        me.pauses.window.set(grown(me.pauses.window.get(), ple));
        me.pauses.in_exit.set(true);
        let exit = me.stretch(self.scenario.host.costs.pause_loop_exit);
        self.host_until(self.now.get().saturating_add(exit));
        let directs = || self.look_at(me.id, |h, _| h.scheduler().directs_yields());
        let gives_way = if self.scenario.host.directed_yield && directs() {
            let boosted = self.boost_a_sibling(me, rules);
            me.pauses.directed.set(me.pauses.directed.get() + u64::from(boosted));
            boosted
        } else {
            me.yielded.set((self.now.get(), Why::PauseLoop));
            self.give_way(me);
            true
        };
        if gives_way {
            self.let_the_pass_come();
        }
        // A guest that is entered anew is in no loop.
        me.pauses.last.set(0);
        me.pauses.in_exit.set(false);
        me.pauses.passed_over.set(false);
        let took = me.run_clock(self.now.get()) - began;
        me.pauses.exiting.set(me.pauses.exiting.get() + took);
    }
}

pub(crate) fn in_kernel(v: &Vcpu) -> bool {
    v.nesting.get() > 0 || v.task.get().mode.get() == Mode::Kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_by_a_factor_up_to_the_longest_and_start_anew() {
        let ple = PauseLoopExiting { window: 100, max: 350, ..PauseLoopExiting::default() };
        assert_eq!([100, 200, 350].map(|w| grown(w, &ple)), [200, 350, 350]);
        assert_eq!(shrunk(350, &ple), 100);
        let ple = PauseLoopExiting { grow: 1, shrink: 3, ..ple };
        assert_eq!(grown(100, &ple), 100);
        assert_eq!([350, 200].map(|w| shrunk(w, &ple)), [116, 100]);
    }

    #[test]
    fn a_loop_lasts_as_long_as_its_pauses_are_close() {
        let p = Pauses::new();
        assert_eq!(p.begin(1000, 64), 1000);
        p.end(1020);
        assert_eq!(p.begin(1084, 64), 1000, "just close enough");
        p.end(1104);
        assert_eq!(p.begin(1169, 64), 1169, "one too far");
    }
}
