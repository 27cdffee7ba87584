//! Pause-loop exits, and what the host does with a vCPU that spins (schedulers specification §9.3).
//!
//! The processor notices PAUSE instructions that follow each other closely, and exits to the
//! hypervisor when that has gone on for longer than the vCPU's window. Two things in a guest are
//! such loops: a spin on a line, for which the exit is armed as an event, and a loop of
//! `Platform::relax`, which is looked at each time. An interrupt or a new dispatch ends a loop, since
//! it takes far longer than the gap.
//!
//! The host then lets others run: by a plain yield, as Xen does, or with *directed yields* as KVM
//! does, which gives the pCPU to a vCPU of the same domain that was preempted and may hold the lock.
//! Candidates are tried in turn, from the one after the last that was boosted. One that spins itself
//! is passed over every other time. If there is none, whoever it waits for is running, and it spins
//! on; if the scheduler refuses all that are tried, a plain yield is left.

use crate::vcpu::{Op, Vcpu};
use crate::world::World;
use overspin_scenario::{PauseLoopExiting, Picos, Why};
use overspin_sched::RunState;
use overspin_workload::Mode;
use std::cell::Cell;

/// Refused directed yields after which the host gives up (KVM's three).
const TRIES: u32 = 3;

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
    in_exit: Cell<bool>,
    /// A spinner that was passed over is eligible the next time.
    passed_over: Cell<bool>,
    pub exits: Cell<u64>,
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
    fn eligible(&self) -> bool {
        !self.in_exit.get() || self.passed_over.replace(!self.passed_over.get())
    }
}

fn grown(window: Picos, ple: &PauseLoopExiting) -> Picos {
    window.saturating_mul(ple.grow.into()).clamp(ple.window, ple.max)
}

fn shrunk(window: Picos, ple: &PauseLoopExiting) -> Picos {
    window.checked_div(ple.shrink.into()).unwrap_or(0).max(ple.window)
}

/// Whom to try instead of `me`, in turn: vCPUs of its domain that are `ready`.
fn targets<'a>(
    siblings: &'a [Vcpu],
    me: &'a Vcpu,
    last_boosted: usize,
    ready: impl Fn(&Vcpu) -> bool + 'a,
) -> impl Iterator<Item = &'a Vcpu> {
    let (first, then) = siblings.split_at((last_boosted + 1).min(siblings.len()));
    then.iter().chain(first).filter(move |v| v.id != me.id && ready(v) && v.pauses.eligible())
}

impl World {
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
            }
        }
    }

    /// The current vCPU exits to the hypervisor because it spins.
    pub(crate) fn pause_loop_exit(&self) {
        let Some(ple) = self.pause_loop_exiting() else { return };
        let me = self.cpu();
        me.pauses.exits.set(me.pauses.exits.get() + 1);
        me.pauses.window.set(grown(me.pauses.window.get(), ple));
        self.burn(self.scenario.host.costs.hypercall);
        me.pauses.in_exit.set(true);
        me.yielded.set((self.now.get(), Why::PauseLoop));
        if !self.scenario.host.directed_yield || self.boost_a_sibling(me) == Boost::Refused {
            self.give_way(me);
        }
        // The scheduling pass, if any, is due now: let it come before the next instruction.
        self.burn(0);
        // A guest that is entered anew is in no loop.
        me.pauses.last.set(0);
        me.pauses.in_exit.set(false);
        me.pauses.passed_over.set(false);
    }

    /// Looks for a sibling of `me` that was preempted, and yields to it.
    fn boost_a_sibling(&self, me: &Vcpu) -> Boost {
        let guest = self.guest(me.guest);
        let siblings = &self.vcpus[guest.first as usize..(guest.first + guest.vcpus) as usize];
        // A spinner in the kernel waits for kernel code: whoever was preempted in user mode holds
        // nothing that it wants.
        let useful = |v: &Vcpu| in_kernel(v) || !in_kernel(me);
        let ready = |v: &Vcpu| useful(v) && self.runstate(v.id) == RunState::Runnable;
        let mut outcome = Boost::Nobody;
        let last = guest.last_boosted.get() as usize;
        let mut tries = TRIES;
        for target in targets(siblings, me, last, ready) {
            // A domain is in one pool.
            let to = self.look_at(target.id, |_, local| local);
            if self.on_vcpu(me.pcpu.get(), me.id, |h, now, v, out| h.yield_to(now, v, to, out)) {
                guest.last_boosted.set(target.index);
                me.notified.gives_way.set(true);
                return Boost::Done;
            }
            outcome = Boost::Refused;
            tries -= 1;
            if tries == 0 {
                break;
            }
        }
        outcome
    }
}

/// What came of a directed yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Boost {
    Done,
    /// There was a candidate, and the scheduler did not take it.
    Refused,
    /// No sibling was preempted.
    Nobody,
}

fn in_kernel(v: &Vcpu) -> bool {
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

    /// Example L6 of the schedulers specification: vCPUs 0 to 3, last boosted 1, 0 spins; 1 is ready,
    /// 2 runs, 3 is ready and spins.
    #[test]
    fn spinners_are_passed_over_every_other_time() {
        let vcpus: Vec<Vcpu> = (0..4).map(|i| Vcpu::new(i, 0, i)).collect();
        vcpus[3].pauses.in_exit.set(true);
        let first =
            |last| targets(&vcpus, &vcpus[0], last, |v| v.id == 1 || v.id == 3).next().unwrap().id;
        // 3 comes before 1, but is passed over.
        assert_eq!(first(1), 1);
        assert_eq!(first(1), 3);
        assert_eq!(first(3), 1, "after the last boosted it goes on from the beginning");
    }
}
