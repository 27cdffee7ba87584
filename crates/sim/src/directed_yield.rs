//! Directed yields in the simulator: a spinning vCPU tries to let a sibling run instead, at a cost.
//! `overspin_host::directed_yield` has the rules by which KVM chooses the sibling.
//!
//! # What it costs
//! - A look at a sibling reads the line of its state, which its own pCPU writes when it comes, goes, and begins or ends an
//!   exit. The reads of one scan follow one another. A spinner that passes over another writes that one's line.
//! - A try takes a reference to the sibling's thread, an atomic operation on a line that all spinners share.
//! - Then it takes the locks of two run queues (`run_queue.rs`).
//!
//! All this is host time on the spinner's thread: the thread runs, does not spin, and takes no
//! interrupts. If the target has meanwhile moved to another queue, the spinner tries again there. After
//! a successful yield, the spinner's own pass waits for its queue anew.
//!
//! # What the scheduler makes of it
//! The target becomes the next buddy of its own queue. Its pCPU makes a scheduling pass, and so does the
//! spinner's. A buddy is only a hint: the scheduler does not pick a buddy that has run for longer than is
//! fair (`crates/sched`, `linux`).

use crate::engine::Engine;
use crate::memory::Access;
use crate::pause_loop::in_kernel;
use crate::vcpu::{Op, Vcpu};
use overspin_host::Moment;
use overspin_host::directed_yield::{Known, boost};
use overspin_scenario::{DirectedYieldRules as Rules, PauseLoopExiting, Picos, Why};
use overspin_sched::RunState;

/// The number of lines that the host has for each vCPU.
pub(crate) const HOST_LINES: usize = 2;

/// The line of what others may know of `v`.
fn state_line(v: &Vcpu) -> usize {
    v.id as usize * HOST_LINES
}

/// The line of the count of references to the thread of `v`.
fn task_line(v: &Vcpu) -> usize {
    state_line(v) + 1
}

impl Engine {
    fn known(&self, v: &Vcpu, ple: &PauseLoopExiting) -> Known {
        let asked = || self.cpu().irqs.ipis.waits_for(v.index, self.now(), ple.ipi_window);
        Known {
            state: self.runstate(v.id),
            in_host: v.spin.pauses.in_exit() || v.run.is_interrupted(),
            preempted: matches!(v.op.kind.get(), Op::Burn | Op::Step | Op::Spin),
            in_kernel: in_kernel(v),
            interrupt: ple.apicv && v.irqs.pending.get() != 0,
            asked: ple.rules == Rules::IpiAware && asked(),
        }
    }

    /// What KVM knows of `v`, once it has read that.
    fn look_at_sibling(&self, v: &Vcpu, ple: &PauseLoopExiting) -> Known {
        self.charge(state_line(v), Access::Load);
        self.known(v, ple)
    }

    /// The host's settings, if it notes which vCPUs send interrupts to each other. Notes cost nothing here: they are
    /// taken where the interrupt is carried, which costs far more.
    fn notes_ipis(&self) -> Option<&PauseLoopExiting> {
        let host = &self.scenario.host;
        let ple = host.pause_loop_exiting.as_ref().filter(|ple| ple.rules == Rules::IpiAware);
        ple.filter(|_| host.directed_yield)
    }

    /// The current vCPU sends an interprocessor interrupt to `to`.
    pub(crate) fn notes_ipi(&self, to: &Vcpu) {
        if self.notes_ipis().is_some() {
            let me = self.cpu();
            me.irqs.ipis.sent(me.index, (to.index, &to.irqs.ipis), self.now());
        }
    }

    /// The current vCPU ends an interrupt, which the host sees unless the processor does that by itself.
    pub(crate) fn notes_end_of_interrupt(&self) {
        if let Some(ple) = self.notes_ipis().filter(|ple| !ple.apicv) {
            let me = self.cpu();
            let first = self.guest(me.guest).first;
            let of = |index: u32| &self.vcpus[(first + index) as usize].irqs.ipis;
            me.irqs.ipis.ended(me.index, of, self.now(), ple.ipi_window);
        }
    }

    fn is_eligible(&self, v: &Vcpu) -> bool {
        if v.spin.pauses.in_exit() {
            self.charge(state_line(v), Access::Store);
        }
        v.spin.pauses.eligible()
    }

    /// Charges the current vCPU, which is in the host, for an access to one of the host's lines.
    fn charge(&self, line: usize, access: Access) {
        let line = self.machine.host_lines + line;
        let pcpu = self.cpu().run.pcpu.get();
        self.host_until(self.machine.memory.access(Some(line), pcpu, access, self.now()));
    }

    /// `pcpu` writes the state of `v` for its siblings. It goes on at once: the store waits in its buffer.
    pub(crate) fn writes_state(&self, v: &Vcpu, pcpu: u32) {
        if self.locks_run_queues() {
            let line = self.machine.host_lines + state_line(v);
            self.machine.memory.access(Some(line), pcpu, Access::Store, self.now());
        }
    }

    /// Looks for a sibling of `me`, the current vCPU, that may run instead, and yields to it. Returns
    /// whether the scheduler accepted such a yield. O(vCPUs of the domain).
    pub(crate) fn boost_a_sibling(&self, me: &Vcpu, ple: &PauseLoopExiting) -> bool {
        let guest = self.guest(me.guest);
        let siblings = &self.vcpus[guest.first as usize..(guest.first + guest.vcpus) as usize];
        let boosted = boost(
            (ple.rules, ple.relaxed_round),
            in_kernel(me),
            (siblings.len(), me.index as usize, guest.last_boosted.get() as usize),
            |i| self.look_at_sibling(&siblings[i], ple),
            |i| self.is_eligible(&siblings[i]),
            |i| self.yield_to(me, &siblings[i]),
        );
        if let Some(boosted) = boosted {
            guest.last_boosted.set(boosted as u32);
        }
        boosted.is_some()
    }

    /// Makes `me`, the current vCPU, yield to `to`. Returns whether the scheduler accepted; if so, the
    /// scheduling pass of `me`'s pCPU is due.
    fn yield_to(&self, me: &Vcpu, to: &Vcpu) -> bool {
        self.charge(task_line(to), Access::Atomic);
        let queue_of = |v: &Vcpu| self.look_at(v.id, |h, local| h.machine().home(local).0);
        loop {
            let (queue, here) = (queue_of(to), me.run.pcpu.get());
            let work = if self.runstate(to.id) == RunState::Running {
                // Linux sees this as soon as it has the locks.
                self.machine.memory.distance(queue, here)
            } else {
                self.scenario.host.costs.yield_to
            };
            self.host_until(self.lock_run_queues(here, queue, work));
            if queue_of(to) != queue {
                continue;
            }
            // A domain is in one pool.
            let local = self.look_at(to.id, |_, local| local);
            let taken = self
                .on_vcpu(me.run.pcpu.get(), me.id, |h, now, v, out| h.yield_to(now, v, local, out));
            if taken {
                self.tell(Moment::DirectedYield { from: me.id, to: to.id });
                me.leave.by_itself.set(true);
                self.host_until(self.machine.pcpus[here as usize].run_queue.free());
                me.leave.yielded.set((self.now(), Why::PauseLoop));
            }
            return taken;
        }
    }

    /// Keeps the thread of the current vCPU in the host until `end`, where it takes no interrupt. `end` is a
    /// fixed time even on a slowed thread: a conversion to work and back would round it, but only if another event comes
    /// first.
    pub(crate) fn host_until(&self, end: Picos) {
        if end > self.now() {
            self.step_until(end);
        }
    }
}
