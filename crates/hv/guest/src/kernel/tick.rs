//! Interrupts: ticks, timers, and what other vCPUs tell.

use super::switching::next_sleeper;
use super::{CALL, LAZY, NOW, READY, World};
use crate::cpu;
use core::sync::atomic::Ordering;
use overspin_guest_abi::{NEVER, TaskStats, event};

/// Ticks between two attempts of a busy vCPU to balance the load.
const BALANCE_TICKS: u64 = 16;

impl World {
    /// Handles the pending events on top of the code that runs, and lets another task take over if that code allows it.
    /// Upcalls are masked.
    pub fn interrupts(&self) {
        self.events();
        let local = cpu::current();
        if local.user.swap(false, Ordering::SeqCst) {
            self.schedule_if_needed();
            local.user.store(true, Ordering::SeqCst);
        } else if local.preemptible.swap(false, Ordering::SeqCst) {
            self.preempt_kernel();
            local.preemptible.store(true, Ordering::SeqCst);
        }
    }

    /// Handles the pending events. Upcalls are masked.
    pub(super) fn events(&self) {
        let handled = event::TICK | event::TIMER | event::WAKE | READY | CALL;
        let pending = cpu::page().pending.fetch_and(!handled, Ordering::AcqRel) & handled;
        let id = cpu::id();
        if pending & event::TIMER != 0 {
            self.cpus[id].armed.set(NEVER);
            cpu::page().deadline.store(NEVER, Ordering::Relaxed);
        }
        if pending & CALL != 0 {
            self.answer(id);
        }
        if pending & event::TICK != 0 {
            self.tick(id);
        }
        self.wake_sleepers(id);
        if pending & READY != 0 {
            self.cpus[id].resched.store(NOW, Ordering::Relaxed);
        }
    }

    fn tick(&self, id: usize) {
        let state = self.take();
        let cpu = &self.cpus[id];
        let Some(task) = state.queues[id].current else { return self.give() };
        // One period, however much time has passed since the last tick: as in the simulator.
        let mode = usize::from(!cpu::current().user.load(Ordering::Relaxed));
        let period = 1_000_000_000_u64.checked_div(self.job.domain.kernel.hz.into());
        TaskStats::add(&state.task(task).stats.ticks[mode], period.unwrap_or(0));
        let lazily = cpu.resched.load(Ordering::Relaxed) == LAZY;
        self.charge(state, id);
        if lazily {
            cpu.resched.store(NOW, Ordering::Relaxed);
        } else if state.policy.tick(id) {
            self.ask(id);
        }
        cpu.ticks.set(cpu.ticks.get() + 1);
        let mut idle = None;
        if cpu.ticks.get().is_multiple_of(BALANCE_TICKS) && !state.queues[id].waiting.is_empty() {
            // It will pull one.
            let others = (1..self.cpus.len()).map(|i| (id + i) % self.cpus.len());
            idle = others.into_iter().find(|other| state.load(*other) == 0);
        }
        self.give();
        self.tell(idle);
    }

    /// Makes the tasks ready that sleep on this vCPU and whose time has come.
    fn wake_sleepers(&self, id: usize) {
        loop {
            let (state, now) = (self.take(), cpu::now());
            let sleeper = next_sleeper(state, id);
            let queue = &mut state.queues[id];
            if sleeper > now {
                let runs = queue.current.is_some();
                self.give();
                if runs {
                    self.arm(id, sleeper);
                }
                return;
            }
            let due = queue.sleepers.pop();
            let tell = due.and_then(|due| self.wake(state, due.0.2, id));
            self.give();
            self.tell(tell);
        }
    }
}
