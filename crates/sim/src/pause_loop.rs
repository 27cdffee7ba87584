//! Pause-loop exits in the simulator: which guest loops count as pause loops, and what an exit costs.
//! `overspin_host::pause_loop` has the rules.
//!
//! A guest has two kinds of PAUSE loops. For a spin on a line, the engine arms the exit as an event. For a
//! loop of `Platform::relax`, it checks the window at each call. Only loops in the guest's kernel exit, as with Intel's
//! processors (AMD's watch all code).

use crate::engine::Engine;
use crate::vcpu::{Op, Vcpu};
use overspin_host::Moment;
use overspin_scenario::{PauseLoopExiting, Picos, Why};
use overspin_workload::Mode;
use std::cell::Cell;

/// Statistics of a vCPU's pause-loop exits.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    pub count: Cell<u64>,
    /// Number of exits that ended with a directed yield.
    pub directed: Cell<u64>,
    /// Time on a pCPU that the exits took.
    pub time: Cell<Picos>,
}

impl Engine {
    /// The host's pause-loop exits, if `v` may have them.
    fn pause_loop_exiting(&self, v: &Vcpu) -> Option<&PauseLoopExiting> {
        let host = &self.scenario.host;
        // If an iteration takes longer than the gap, the processor sees no loop.
        let sees = |ple: &&PauseLoopExiting| v.exits && host.costs.spin_iteration <= ple.gap;
        host.pause_loop_exiting.as_ref().filter(sees)
    }

    /// Resets the pause-loop window of `v`, which was just dispatched.
    pub(crate) fn reset_window(&self, v: &Vcpu) {
        if let Some(ple) = &self.scenario.host.pause_loop_exiting {
            v.spin.pauses.dispatched(ple);
        }
    }

    /// Arms a spin of `v` for `left` of CPU time, and its pause-loop exit if that comes earlier.
    pub(crate) fn arm_spin(&self, v: &Vcpu, left: Picos) {
        self.arm(v, Op::Spin, left);
        if let Some(ple) = self.pause_loop_exiting(v)
            && in_kernel(v)
        {
            let at = v.spin.pauses.arm(self.now(), ple);
            if at < v.op.end.get() {
                self.push_operation(v, at);
            }
        }
    }

    /// Executes one PAUSE on the current vCPU.
    pub(crate) fn pause(&self) {
        let began = self.now();
        self.burn(self.scenario.host.costs.spin_iteration);
        if let Some(ple) = self.pause_loop_exiting(self.cpu())
            && in_kernel(self.cpu())
            && self.cpu().spin.pauses.paused(began, self.now(), ple)
        {
            self.pause_loop_exit();
            self.take_interrupts();
        }
    }

    /// Makes the current vCPU exit to the hypervisor because it spins.
    pub(crate) fn pause_loop_exit(&self) {
        let me = self.cpu();
        let Some(ple) = self.pause_loop_exiting(me) else { return };
        let began = me.run.clock(self.now());
        me.spin.exits.count.set(me.spin.exits.count.get() + 1);
        self.tell(Moment::PauseLoopExit { vcpu: me.id });
        me.spin.pauses.exit_begins(ple);
        self.writes_state(me, me.run.pcpu.get());
        let exit = me.run.stretch(self.scenario.host.costs.pause_loop_exit);
        self.host_until(self.now().saturating_add(exit));
        let directs = || self.look_at(me.id, |h, _| h.scheduler().directs_yields());
        let gives_way = if self.scenario.host.directed_yield && directs() {
            let boosted = self.boost_a_sibling(me, ple);
            me.spin.exits.directed.set(me.spin.exits.directed.get() + u64::from(boosted));
            boosted
        } else {
            me.leave.yielded.set((self.now(), Why::PauseLoop));
            self.give_way(me);
            true
        };
        if gives_way {
            self.let_the_pass_come();
        }
        me.spin.pauses.exit_ends();
        self.writes_state(me, me.run.pcpu.get());
        let took = me.run.clock(self.now()) - began;
        me.spin.exits.time.set(me.spin.exits.time.get() + took);
    }
}

/// Whether `v` executes kernel code: an interrupt handler or a task in kernel mode.
pub(crate) fn in_kernel(v: &Vcpu) -> bool {
    v.irqs.nesting.get() > 0 || v.task.get().mode.get() == Mode::Kernel
}
