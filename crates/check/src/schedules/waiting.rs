//! How the CPUs of a plan wait.
//!
//! A CPU whose look fails, with no bound on its looks, is parked until another CPU writes the cell. If all
//! unfinished CPUs are parked, none can make progress, and the plan fails. Loops with a bound, and
//! [`Platform::relax`](overspin_locks::Platform::relax), yield.

use super::world::{Cpu, Waits, World};
use crate::model::DEADLOCK_MESSAGE;

impl World {
    /// Whether all CPUs but this one wait or are done.
    pub(super) fn others_wait(&self) -> bool {
        let waits = |cpu: &Cpu| cpu.done.get() || cpu.waits.get().is_some() && !cpu.timed.get();
        self.cpus.iter().enumerate().all(|(index, cpu)| index == self.me() || waits(cpu))
    }

    pub(super) fn await_write(&self, address: usize) {
        self.park(Waits::Write(address));
    }

    /// Parks this CPU until another CPU clears its `waits`.
    pub(super) fn park(&self, waits: Waits) {
        let cpu = self.here();
        cpu.tries.assert_may_wait(cpu.level.get());
        *cpu.thread.borrow_mut() = Some(shuttle::thread::current());
        cpu.waits.set(Some(waits));
        if cpu.acquires.get() && cpu.parked_at.get().is_none() {
            cpu.parked_at.set(Some(self.next_stamp()));
        }
        self.assert_progress();
        while cpu.waits.get().is_some() {
            shuttle::thread::park();
        }
    }

    /// Parks this CPU until another CPU clears its `waits`, or until it has passed over a few turns.
    pub(super) fn park_for(&self, waits: Waits, turns: u32) {
        let cpu = self.here();
        *cpu.thread.borrow_mut() = Some(shuttle::thread::current());
        cpu.waits.set(Some(waits));
        cpu.timed.set(true);
        for _ in 0..turns {
            if cpu.waits.get().is_some() {
                self.turn();
            }
        }
        cpu.waits.set(None);
        cpu.timed.set(false);
    }

    /// Ends this CPU's work. It takes no more interrupts.
    pub(super) fn done(&self) {
        self.here().irqs.set(0);
        self.here().done.set(true);
        self.assert_progress();
    }

    fn assert_progress(&self) {
        let is_done = |cpu: &Cpu| cpu.done.get();
        let waits = |cpu: &Cpu| cpu.waits.get().is_some() && !cpu.timed.get();
        let is_stuck = |cpu: &Cpu| is_done(cpu) || waits(cpu);
        let deadlock = self.cpus.iter().all(is_stuck) && !self.cpus.iter().all(is_done);
        assert!(!deadlock, "{DEADLOCK_MESSAGE}");
    }

    pub(super) fn wake(&self, cpu: &Cpu) {
        cpu.waits.set(None);
        // A copy: other CPUs, and that one, may go on within the call.
        let thread = cpu.thread.borrow().clone();
        thread.expect("a waiter has registered its thread").unpark();
    }

    pub(super) fn wake_all(&self, whom: Waits) {
        self.cpus.iter().filter(|cpu| cpu.waits.get() == Some(whom)).for_each(|cpu| self.wake(cpu));
    }
}
