//! What a program can do in a guest: [`Env`] for simulated tasks.

use super::data::Section;
use super::{Guest, SemaphoreState, TaskRef, TaskState};
use crate::world::World;
use overspin_scenario::{NS, Picos, WorkerReport};
use overspin_sched::{PcpuId, TimerId};
use overspin_workload::{Env, LockId, LockUse, Mode, Program, Random, Semaphore, Ticks, WordId};
use std::cell::Cell;
use std::sync::Arc;

/// The purpose of the random numbers for [`Env::offset`]; workloads count theirs from 0.
const OFFSET: u32 = u16::MAX as u32;

/// A task's view of its guest.
#[derive(Debug)]
pub(crate) struct TaskEnv<'a> {
    world: &'a World,
    guest: &'a Guest,
    task: TaskRef,
    /// Critical section that it is in, or was in last.
    section: Cell<Section>,
}

impl<'a> TaskEnv<'a> {
    pub(crate) fn new(world: &'a World, guest: &'a Guest, task: TaskRef) -> Self {
        Self { world, guest, task, section: Cell::new(0) }
    }
}

impl Env for TaskEnv<'_> {
    fn compute(&self, work: Picos, mode: Mode) {
        if mode == Mode::User {
            self.guest.schedule_if_needed(self.world);
        }
        self.task.mode.set(mode);
        if work > 0 {
            self.world.burn(work);
        }
        self.task.mode.set(Mode::Kernel);
    }

    fn sleep(&self, time: Picos) {
        if time == 0 {
            return;
        }
        let until = self.world.now.get() + time;
        self.task.state.set(TaskState::Sleeping);
        let v = self.world.cpu();
        self.guest.queue(v).sleep_until(until, self.task);
        self.guest.schedule(self.world);
    }

    fn yield_vcpu(&self) {
        self.world.yield_now();
    }

    fn next_tick(&self, of: Ticks) -> Option<Picos> {
        let (world, v) = (self.world, self.world.cpu());
        let at = match of {
            Ticks::Guest => self.guest.tick_after(v, world.now.get()),
            Ticks::Host => {
                let tick = TimerId::Tick(PcpuId(v.pcpu.get()));
                world.timers[world.timer_slot(tick)].due()
            }
        };
        (at != Picos::MAX).then_some(at)
    }

    fn section(&self, lock: LockId, how: LockUse, work: Picos) {
        self.guest.bank.section(self.world, lock, how, work);
    }

    fn acquire(&self, lock: LockId, how: LockUse) {
        self.guest.bank.acquire(self.world, lock, how);
        self.section.set(self.guest.data.enter(lock));
    }

    fn release(&self, lock: LockId) {
        self.guest.bank.release(self.world, lock);
    }

    fn read(&self, word: WordId) -> usize {
        self.guest.data.read(self.world, self.section.get(), word)
    }

    fn write(&self, word: WordId, value: usize) {
        self.guest.data.write(self.world, self.section.get(), word, value);
    }

    fn write_out(&self, pages: &[u64]) {
        self.guest.write_out(self.world, self.task, pages);
    }

    fn spawn(&self, name: String, vcpu: Option<u32>, program: Program) {
        let inherited = (Arc::clone(&self.task.vcpus), self.task.awaited);
        let task = self.guest.new_task(self.world, name, program, inherited);
        let target = vcpu.unwrap_or_else(|| self.guest.idlest(self.world, task));
        self.guest.lock_queue(self.world, target);
        self.guest.enqueue(self.world, task, target);
    }

    fn semaphore(&self, count: u32) -> Semaphore {
        let mut all = self.guest.semaphores.borrow_mut();
        all.push(SemaphoreState { count, ..SemaphoreState::default() });
        Semaphore(all.len() - 1)
    }

    fn down(&self, semaphore: Semaphore) {
        {
            let mut all = self.guest.semaphores.borrow_mut();
            let s = &mut all[semaphore.0];
            if s.count > 0 {
                s.count -= 1;
                return;
            }
            s.waiters.push_back(self.task);
            self.task.state.set(TaskState::Waiting);
        }
        // The unit is handed over by whoever wakes this task.
        self.guest.schedule(self.world);
    }

    fn up(&self, semaphore: Semaphore) {
        let woken = {
            let mut all = self.guest.semaphores.borrow_mut();
            let s = &mut all[semaphore.0];
            let woken = s.waiters.pop_front();
            if woken.is_none() {
                s.count += 1;
            }
            woken
        };
        if let Some(task) = woken {
            // A synchronous wake-up: the sleeper comes to the waker's vCPU.
            self.guest.wake(self.world, task, self.world.cpu().index);
        }
    }

    fn item_done(&self) {
        self.task.items.set(self.task.items.get() + 1);
    }

    fn now(&self) -> Picos {
        self.world.now.get()
    }

    fn cpu_time(&self) -> Picos {
        let now = self.world.nanos();
        let times = self.world.look_at(self.world.cpu().id, |h, v| h.run_times(v, now));
        times.running.max(0) as Picos * NS
    }

    fn report(&self, report: WorkerReport) {
        self.task.reports.borrow_mut().push(report);
    }

    fn offset(&self, below: Picos) -> Picos {
        if self.world.scenario.host.stagger == 0 { 0 } else { self.random(OFFSET).below(below) }
    }

    fn all_up(&self) -> Picos {
        self.world.all_up.get()
    }

    fn random(&self, purpose: u32) -> Random {
        let task = self.task.index.unwrap_or(u32::MAX);
        Random::new(self.guest.random_bits(self.world, task, purpose))
    }
}
