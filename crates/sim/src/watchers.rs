//! Memory operations, and spinning on lines that they change.
//!
//! A vCPU that spins is in the list of watchers of its line, and its coroutine is suspended. A write finds the watchers
//! whose conditions hold at once (`watch_list/`). For each watcher whose condition now holds, it arms a
//! look at the time when the line has reached that watcher. So a long spin costs one event for each change
//! that matters, not one for each iteration of the loop.

use crate::engine::{Engine, Suspend};
use crate::events::Event;
use crate::memory::{Access, NONE};
use crate::vcpu::{Reason, Vcpu};
use crate::watch::Watch;
use crate::watch_list::WatchList;
use overspin_scenario::Picos;

impl Engine {
    /// Performs a memory operation on `cell`: charges it, calls `apply` when it completes, and after a write
    /// notifies the vCPUs that spin on the line.
    #[inline(always)]
    pub(crate) fn access<C, R>(&self, cell: &C, access: Access, apply: impl FnOnce(&C) -> R) -> R {
        let line = self.machine.memory.line_of(cell);
        let end = self.machine.memory.access(line, self.cpu().run.pcpu.get(), access, self.now());
        let suspended = self.step_until(end);
        let result = apply(cell);
        if access != Access::Load
            && let Some(line) = line
            && self.machine.memory.spinning(line).get() > 0
        {
            self.notify(line, suspended);
        }
        if suspended {
            self.take_interrupts();
        }
        result
    }

    /// Notifies the watchers of a line that was written. A running watcher whose condition now holds sees
    /// that when the line has reached it; the line reaches one after another. The other watchers read the
    /// line again too, and go on spinning.
    fn notify(&self, line: usize, suspended: bool) {
        let watchers = &*self.machine.memory.watchers(line);
        match watchers.index() {
            None => self.notify_those(line, suspended, watchers, watchers.held()),
            Some(index) => self.notify_those(line, suspended, watchers, index.held()),
        }
        let spinning = self.machine.memory.spinning(line).get();
        self.machine.memory.refetch(line, spinning.into(), self.now());
    }

    /// Notifies the watchers at the places `held` of the list, whose conditions hold.
    #[inline(always)]
    fn notify_those(
        &self,
        line: usize,
        suspended: bool,
        watchers: &WatchList,
        held: impl Iterator<Item = usize>,
    ) {
        // `position`: number of running vCPUs among the first `counted` in the list.
        let (mut position, mut counted) = (0, 0);
        for at in held {
            let v = &self.vcpus[watchers.vcpu(at) as usize];
            if !v.run.is_on() || v.spin.armed.replace(true) {
                continue;
            }
            let (look, turn) = v.spin.look.get();
            if look > self.now() || look == self.now() && suspended && turn > self.time.turn() {
                self.arm_look(v);
                continue;
            }
            position += watchers.running(counted..at, &self.vcpus);
            counted = at;
            let sees = self.machine.memory.served(line, v.run.pcpu.get(), position, self.now());
            self.push(sees, Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() });
        }
    }

    /// Continues a spin of `v` after it was off its pCPU: `v` reads the line again, and looks at it when the
    /// line has arrived.
    ///
    /// Most such looks find nothing, and then their only effect is the read of the line. So the look becomes
    /// an event only if the condition holds already, or later, when a write makes it hold (see `notify`).
    /// Either way it comes in the turn that is taken here. Two other looks are events at once: one by whose
    /// time the spin ends or exits, and one at a cell outside the arena, whose writes notify no watcher.
    pub(crate) fn look_again(&self, v: &Vcpu) {
        let line = (v.spin.line.get() != NONE).then_some(v.spin.line.get() as usize);
        let sees = self.machine.memory.access(line, v.run.pcpu.get(), Access::Load, self.now());
        let event = Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() };
        v.spin.look.set((sees, self.time.take_turn(event)));
        let ends = sees >= v.op.end.get() || v.spin.pauses.exit_due(sees);
        let is_event = ends || line.is_none() || self.holds(v);
        v.spin.armed.set(is_event);
        if is_event {
            self.arm_look(v);
        }
    }

    fn arm_look(&self, v: &Vcpu) {
        let (at, turn) = v.spin.look.get();
        let event = Event::Operation { vcpu: v.id, epoch: v.op.epoch.get() };
        self.time.push_in_turn(at, turn, event);
    }

    /// Whether the cell that `v` spins on satisfies its condition now.
    pub(crate) fn holds(&self, v: &Vcpu) -> bool {
        v.spin.watch.get().expect("a spinning vCPU watches something").holds()
    }

    /// Spins on `line` until the condition of `watch` holds or `left` of CPU time is used up. Subtracts the
    /// time used from `left`.
    #[inline(always)]
    pub(crate) fn spin(&self, line: Option<usize>, watch: Watch, left: &mut Picos) {
        self.begin_wait();
        loop {
            let v = self.cpu();
            self.watch(v, watch, line);
            v.spin.since.set(v.run.clock(self.now()));
            self.arm_spin(v, *left);
            self.suspend(Suspend::Operation);
            // Interrupted or not, the vCPU that spun is the current one.
            let v = self.cpu();
            self.unwatch(v);
            v.spin.pauses.end(self.now());
            v.spin.time.set(v.spin.time_at(v.run.clock(self.now())));
            v.spin.since.set(Picos::MAX);
            match v.op.reason.get() {
                Reason::Hit => {
                    if v.op.end.get() != Picos::MAX {
                        *left = v.run.shrink(v.op.end.get().saturating_sub(self.now()));
                    }
                    self.take_interrupts();
                    return;
                }
                Reason::Done => {
                    *left = Picos::ZERO;
                    self.take_interrupts();
                    return;
                }
                reason @ (Reason::Interrupted | Reason::PauseLoop) => {
                    *left = v.op.left.get();
                    if reason == Reason::PauseLoop {
                        self.pause_loop_exit();
                    }
                    self.take_interrupts();
                    if watch.holds() {
                        return;
                    }
                }
            }
        }
    }

    /// Records that the lock operation of the current vCPU must wait, from now on if it did not wait before.
    #[inline(always)]
    pub(crate) fn begin_wait(&self) {
        let v = self.cpu();
        if v.lock.waits_since.get().is_none() {
            v.lock.waits_since.set(Some(self.now()));
            let lock = v.lock.wants.get();
            if lock != NONE {
                self.guest(v.guest).waits_for(self, v, lock);
            }
        }
    }

    fn watch(&self, v: &Vcpu, watch: Watch, line: Option<usize>) {
        let watch = watch.of(v.id);
        v.spin.watch.set(Some(watch));
        let Some(line) = line else { return };
        v.spin.line.set(line as u32);
        self.machine.memory.watchers(line).push(watch, &self.vcpus);
        self.add_spinners(line, 1);
    }

    fn unwatch(&self, v: &Vcpu) {
        v.spin.forget_look();
        v.spin.watch.set(None);
        let line = v.spin.line.get();
        if line == NONE {
            return;
        }
        self.add_spinners(line as usize, -1);
        v.spin.line.set(NONE);
        self.machine.memory.watchers(line as usize).remove(v);
    }

    /// Records that `v` goes to a pCPU or leaves it: it counts as a spinner of its line, if it has one, while it is there.
    pub(crate) fn spinner_runs(&self, v: &Vcpu, runs: bool) {
        let (line, place) = (v.spin.line.get(), v.spin.place.get());
        if line == NONE {
            return;
        }
        self.add_spinners(line as usize, if runs { 1 } else { -1 });
        if place != NONE {
            self.machine.memory.watchers(line as usize).set_running(place, runs);
        }
    }

    #[inline(always)]
    fn add_spinners(&self, line: usize, number: i32) {
        let spinning = self.machine.memory.spinning(line);
        spinning.set(spinning.get().strict_add_signed(number));
    }
}
