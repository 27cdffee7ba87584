//! The timer interrupt: tick accounting, time-slice checks and sleepers. One one-shot timer serves
//! ticks, sleepers, extensions of time slices and the governor of stolen time. Idle vCPUs take no ticks (`NO_HZ`).

use super::Guest;
use super::runqueue::Resched;
use crate::engine::Engine;
use crate::vcpu::Vcpu;
use overspin_host::SleepEvent;
use overspin_scenario::Picos;
use overspin_workload::Mode;

/// Number of ticks between two attempts of a busy vCPU to balance the load.
const BALANCE_TICKS: u64 = 16;

impl Guest {
    /// Time of the vCPU's first tick after `now`: ticks keep their phase.
    pub(super) fn tick_after(&self, v: &Vcpu, now: Picos) -> Picos {
        if self.period == Picos::MAX {
            return Picos::MAX;
        }
        let phase = self.queue(v).phase.get();
        (now + self.period - phase) / self.period * self.period + phase
    }

    /// Programs the vCPU's timer for the next tick, sleeper, end of an extension, or look at the steal clocks.
    pub(super) fn program_timer(&self, engine: &Engine, v: &Vcpu) {
        let queue = self.queue(v);
        let sleeper = queue.sleepers.borrow().peek().map_or(Picos::MAX, |s| s.0.until);
        let extension = queue.extension.get().unwrap_or(Picos::MAX);
        let at = queue.next_tick.get().min(sleeper).min(extension).min(self.next_look(v));
        if v.irqs.timer.due() != at {
            engine.burn(engine.costs.hypercall.next());
            engine.set_guest_timer(engine.cpu(), at);
        }
    }

    /// Starts the ticks of a vCPU that has work.
    pub(super) fn start_tick(&self, engine: &Engine, v: &Vcpu) {
        let queue = self.queue(v);
        if queue.next_tick.get() == Picos::MAX || queue.next_tick.get() == Picos::ZERO {
            queue.next_tick.set(self.tick_after(v, engine.now()));
        }
        self.program_timer(engine, v);
    }

    /// Stops the ticks of a vCPU that idles: only sleepers need its timer.
    pub(super) fn stop_tick(&self, engine: &Engine, v: &Vcpu) {
        self.queue(v).next_tick.set(Picos::MAX);
        self.program_timer(engine, v);
    }

    /// Handles the timer interrupt on the current vCPU, with interrupts off.
    pub(super) fn timer_interrupt(&self, engine: &Engine) {
        let v = engine.cpu();
        let queue = self.queue(v);
        if engine.now() >= queue.next_tick.get() {
            self.tick(engine, v);
            queue.next_tick.set(self.tick_after(v, engine.now()));
        }
        loop {
            let due = {
                let mut sleepers = queue.sleepers.borrow_mut();
                match sleepers.peek() {
                    Some(s) if s.0.until <= engine.now() => sleepers.pop().map(|s| s.0.task),
                    _ => None,
                }
            };
            let Some(task) = due else { break };
            if task.lock.get().wants() {
                self.tell_sleep(engine, task, SleepEvent::Wakes);
            }
            let target = self.woken_on(engine, task, v.index);
            self.wake(engine, task, target);
        }
        self.extension_expires(engine);
        self.govern(engine);
        self.program_timer(engine, v);
    }

    fn tick(&self, engine: &Engine, v: &Vcpu) {
        v.irqs.ticks.set(v.irqs.ticks.get() + 1);
        let task = v.task.get();
        if task.index.is_none() {
            engine.burn(self.domain.kernel.tick_work);
            return;
        }
        // One period, however much time has passed since the last tick: see the documentation of `guest`.
        let account =
            if task.mode.get() == Mode::User { &task.user_ticks } else { &task.system_ticks };
        account.set(account.get() + self.period);
        self.lock_queue(engine, v.index);
        engine.burn(self.domain.kernel.tick_work);
        let queue = self.queue(v);
        // As in Linux, before the tick looks at the slice: a slice that ends now waits for the next tick.
        if queue.resched.get() == Resched::Lazy {
            queue.resched.set(Resched::Now);
        }
        self.charge(engine, v);
        if queue.resched.get() != Resched::Now
            && self.eevdf.is_none()
            && let Some(least) = queue.least()
            && task.vruntime.get() > least + self.domain.kernel.slice
        {
            self.ask(queue);
        }
        self.push_away(engine, v, task);
        self.unlock_queue(engine, v.index);
        if v.irqs.ticks.get().is_multiple_of(BALANCE_TICKS) {
            self.kick_an_idle_vcpu(engine, v);
        }
    }

    /// If tasks wait here while another vCPU idles, wakes that vCPU; it will pull one.
    fn kick_an_idle_vcpu(&self, engine: &Engine, v: &Vcpu) {
        if self.queue(v).len() == 0 {
            return;
        }
        let idle = (1..self.vcpus)
            .map(|i| &engine.vcpus[(self.first + (v.index + i) % self.vcpus) as usize])
            .find(|o| self.is_preferred(o.index) && self.is_idle(o) && self.queue(o).len() == 0);
        if let Some(other) = idle {
            engine.send_resched(other);
        }
    }
}
