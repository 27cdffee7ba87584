//! What a guest reports about itself: counts of its locks, and what its vCPUs and tasks wait for.

use super::Guest;
use super::locks::{USER, is_of_user_mode};
use crate::engine::Engine;
use crate::memory::NONE;
use crate::vcpu::{Op, Vcpu};
use overspin_host::{LockEvent, Moment};
use overspin_sched::RunState;
use overspin_workload::{Mode, run_queue_lock};

impl Guest {
    /// Counts a slow path at the lock for which the current vCPU waits.
    pub(crate) fn count_slow_path(&self, engine: &Engine) {
        let lock = engine.cpu().lock.wants.get();
        if lock != NONE {
            let c = &self.bank.counters(lock as usize).slow_paths;
            c.set(c.get() + 1);
        }
    }

    /// Counts a kick at the lock that the current vCPU releases.
    pub(crate) fn count_kick(&self, engine: &Engine) {
        let lock = engine.cpu().lock.releases.get();
        if lock != NONE {
            let c = &self.bank.counters(lock as usize).kicks;
            c.set(c.get() + 1);
        }
    }

    /// The current vCPU, `v`, begins to wait for a lock.
    pub(crate) fn waits_for(&self, engine: &Engine, v: &Vcpu, lock: u32) {
        let holder = self.bank.waits(lock as usize);
        // Not `user_task`: a handler may run above the task. It takes the locks of run queues only.
        let waiter = v.task.get();
        if waiter.mode.get() == Mode::User && (lock as usize) < self.named_locks.len() {
            let holder = (holder != NONE).then_some(holder & !USER);
            let releasing = holder.is_some_and(|h| self.releases(engine, h) == lock);
            let what = LockEvent::Waits { holder, releasing };
            let (domain, task) = (self.id as u16, waiter.number());
            engine.tell(Moment::TaskLock { domain, task, lock, what });
            return;
        }
        let of = |h: u32| engine.vcpus[h as usize].lock.releases.get() == lock;
        let (holder, releasing) =
            if holder == NONE { (None, false) } else { (Some(holder), of(holder)) };
        engine.tell(Moment::LockWait { vcpu: v.id, lock, holder, releasing });
    }

    /// The lock that a task is releasing, `NONE` if none.
    fn releases(&self, engine: &Engine, task: u32) -> u32 {
        let task = self.task(task as usize);
        let own = self.first as usize..(self.first + self.vcpus) as usize;
        let on = engine.vcpus[own].iter().find(|v| v.task.get() == task);
        on.map_or(task.lock.get().releases, |v| v.lock.releases.get())
    }

    /// Statistics of all locks, named ones first.
    pub(crate) fn lock_outcomes(&self) -> Vec<overspin_scenario::LockOutcome> {
        let queues = (0..self.vcpus).map(run_queue_lock);
        self.named_locks
            .iter()
            .cloned()
            .chain(queues)
            .enumerate()
            .map(|(i, name)| self.bank.counters(i).outcome(name))
            .collect()
    }

    /// The warm-up is over: longest times and distributions begin anew, and with them all that belongs to the same lock.
    pub(crate) fn count_from_here(&self) {
        for lock in 0..self.named_locks.len() + self.vcpus as usize {
            self.bank.counters(lock).clear();
        }
        self.tasks.borrow().iter().for_each(|task| task.latencies.clear());
    }

    fn lock_name(&self, lock: u32) -> String {
        let lock = lock as usize;
        match self.named_locks.get(lock) {
            Some(name) => name.clone(),
            None => run_queue_lock((lock - self.named_locks.len()) as u32),
        }
    }

    /// The lines of a deadlock report: what each vCPU and task of this guest waits for.
    pub(crate) fn waits(&self, engine: &Engine) -> Vec<String> {
        let mut lines = Vec::new();
        let full = |v: u32| format!("{}/v{}", self.domain.name, v - self.first);
        for v in &engine.vcpus[self.first as usize..(self.first + self.vcpus) as usize] {
            let state = engine.runstate(v.id);
            if state == RunState::Runnable {
                lines.push(format!("{} waits for a pCPU, which it never gets", full(v.id)));
            }
            let lock = v.lock.wants.get();
            if lock == NONE {
                continue;
            }
            let how = match v.op.kind.get() {
                Op::Blocked(_) | Op::HaltPoll(_) => "sleeps in the hypervisor waiting for",
                Op::Spin => "spins on",
                _ => "is in the slow path of",
            };
            let holder = match self.bank.holder(lock as usize) {
                NONE => "held by no vCPU (a lost wake-up)".into(),
                h if is_of_user_mode(h) => {
                    format!("held by task {}", self.tasks.borrow()[(h ^ USER) as usize].name)
                }
                h => format!("held by {}", full(h)),
            };
            lines.push(format!(
                "{} (task {}) {how} lock {}, {holder}",
                full(v.id),
                v.task.get().name,
                self.lock_name(lock)
            ));
        }
        for (i, s) in self.semaphores.borrow().iter().enumerate() {
            for t in &s.waiters {
                lines.push(format!(
                    "{}: task {} sleeps on semaphore {i}, which no task or device raises",
                    self.domain.name, t.name
                ));
            }
        }
        lines
    }
}
