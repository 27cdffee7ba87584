//! The operations of a program in a guest: [`Env`] for simulated tasks.

use super::data::Section;
use super::locks::is_of_user_mode;
use super::slice::Ends;
use super::{Guest, SemaphoreState, TaskRef, TaskState};
use crate::engine::Engine;
use overspin_host::picos;
use overspin_scenario::{Picos, Preemption, WorkerReport};
use overspin_sched::{PcpuId, TimerId};
use overspin_workload::{
    Env, LockId, LockUse, Mode, Program, Random, Semaphore, SliceRequest, Ticks, Trip, WordId,
};
use std::cell::Cell;
use std::sync::Arc;

/// The purpose of the random numbers for [`Env::offset`]; workloads count theirs from 0.
const OFFSET: u32 = u16::MAX as u32;

/// A task's view of its guest.
#[derive(Debug)]
pub(crate) struct TaskEnv<'a> {
    engine: &'a Engine,
    guest: &'a Guest,
    task: TaskRef,
    /// The critical section that the task is in, or was in last.
    section: Cell<Section>,
    /// Number of kernel locks that it holds or takes.
    held: Cell<u32>,
    /// When it asks for extensions of its time slice.
    asks: Cell<SliceRequest>,
}

impl<'a> TaskEnv<'a> {
    pub(crate) fn new(engine: &'a Engine, guest: &'a Guest, task: TaskRef) -> Self {
        Self {
            engine,
            guest,
            task,
            section: Cell::new(0),
            held: Cell::new(0),
            asks: Cell::new(SliceRequest::Never),
        }
    }

    /// Whether it asks for extensions of its time slice around a lock that is taken so.
    fn asks_around(&self, how: LockUse) -> bool {
        how == LockUse::User && self.asks.get() != SliceRequest::Never
    }
}

impl TaskEnv<'_> {
    /// Before an operation that takes a lock.
    #[inline]
    fn begin(&self, how: LockUse) {
        if how == LockUse::User {
            self.guest.schedule_if_needed(self.engine);
            self.task.mode.set(Mode::User);
        } else {
            self.held.set(self.held.get() + 1);
        }
    }

    /// Takes a lock that is released by another operation.
    fn take(&self, lock: LockId, how: LockUse) {
        if self.asks_around(how) {
            self.guest.ask_to_take(self.engine, self.task, self.asks.get());
        }
        self.guest.bank.acquire(self.engine, lock, how);
        self.task.slice.holds();
    }

    /// After an operation that released a lock. The end of the last section is where a preemptible kernel catches up.
    #[inline]
    fn end(&self, user: bool) {
        if user {
            self.task.mode.set(Mode::Kernel);
            return;
        }
        self.held.set(self.held.get() - 1);
        let preemption = self.guest.domain.kernel.preemption;
        if preemption >= Preemption::Lazy && self.held.get() == 0 {
            self.guest.preempt_kernel(self.engine);
        }
    }
}

impl Env for TaskEnv<'_> {
    fn compute(&self, work: Picos, mode: Mode) {
        if mode == Mode::User {
            self.guest.schedule_if_needed(self.engine);
            self.task.mode.set(Mode::User);
            if work > Picos::ZERO {
                self.engine.burn(work);
            }
            self.task.mode.set(Mode::Kernel);
            return;
        }
        let preemption = self.guest.domain.kernel.preemption;
        if preemption == Preemption::None || self.held.get() > 0 {
            if work > Picos::ZERO {
                self.engine.burn(work);
            }
            return;
        }
        self.guest.kernel_work(self.engine, self.task, work);
    }

    fn unmap(&self) {
        self.guest.shoot_down(self.engine);
    }

    fn sleep(&self, time: Picos) {
        if time == Picos::ZERO {
            return;
        }
        self.guest.end_extension(self.engine, Ends::Aborted);
        self.guest.sleep_for(self.engine, self.task, time);
    }

    fn yield_vcpu(&self) {
        self.engine.yield_now();
    }

    fn next_tick(&self, of: Ticks) -> Option<Picos> {
        let (engine, v) = (self.engine, self.engine.cpu());
        let at = match of {
            Ticks::Guest => self.guest.tick_after(v, engine.now()),
            Ticks::Host => {
                let tick = TimerId::Tick(PcpuId(v.run.pcpu.get()));
                engine.hypervisor.timers[engine.timer_slot(tick)].due()
            }
        };
        (at != Picos::MAX).then_some(at)
    }

    fn ask_for_extensions(&self, when: SliceRequest) {
        self.asks.set(when);
    }

    fn trip(&self, lock: LockId, trip: Trip) {
        self.begin(LockUse::User);
        self.engine.burn(trip.run_up);
        self.take(lock, LockUse::User);
        self.section.set(self.guest.data.enter(lock));
        let before = trip.excursion.map_or(Picos::ZERO, |_| trip.work / 2);
        self.engine.burn(before);
        if let Some((kind, time)) = trip.excursion {
            self.guest.excursion(self.engine, self.task, kind, time);
        }
        self.engine.burn(trip.work - before);
        self.release(lock);
    }

    fn sleep_until_woken(&self, time: Picos) {
        if time > Picos::ZERO {
            self.guest.sleep_until_woken(self.engine, self.task, time);
        }
    }

    fn section(&self, lock: LockId, how: LockUse, work: Picos) {
        if self.asks_around(how) {
            self.acquire(lock, how);
            self.compute(work, Mode::User);
            self.release(lock);
            return;
        }
        if how != LockUse::User && self.guest.domain.kernel.preemption == Preemption::None {
            // Nobody asks how many locks it holds.
            self.guest.bank.section(self.engine, lock, how, work);
            return;
        }
        self.begin(how);
        self.guest.bank.section(self.engine, lock, how, work);
        self.end(how == LockUse::User);
    }

    fn acquire(&self, lock: LockId, how: LockUse) {
        self.begin(how);
        self.take(lock, how);
        self.task.mode.set(Mode::Kernel);
        self.section.set(self.guest.data.enter(lock));
    }

    fn release(&self, lock: LockId) {
        let user = is_of_user_mode(self.guest.bank.holder(lock));
        if user {
            self.task.mode.set(Mode::User);
        }
        self.guest.bank.release(self.engine, lock);
        if user && self.asks.get() != SliceRequest::Never {
            self.guest.withdraw_request(self.engine, self.task);
        }
        self.end(user);
    }

    fn read(&self, word: WordId) -> usize {
        self.guest.data.read(self.engine, self.section.get(), word)
    }

    fn write(&self, word: WordId, value: usize) {
        self.guest.data.write(self.engine, self.section.get(), word, value);
    }

    fn write_out(&self, pages: &[u64]) {
        self.guest.write_out(self.engine, self.task, pages);
    }

    fn spawn(&self, name: String, vcpu: Option<u32>, program: Program) {
        let inherited = (Arc::clone(&self.task.vcpus), self.task.awaited);
        let task = self.guest.new_task(self.engine, name, program, inherited);
        self.guest.start_process(self.engine, task, vcpu);
    }

    fn exec(&self) {
        self.guest.exec(self.engine);
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
        // The task or interrupt handler that wakes this task hands over the unit.
        self.guest.schedule(self.engine);
    }

    fn up(&self, semaphore: Semaphore) {
        self.guest.up(self.engine, semaphore);
    }

    fn interrupt_in(&self, time: Picos, work: Picos, semaphore: Semaphore) {
        self.guest.interrupt_in(self.engine, self.task, (time, work, semaphore));
    }

    fn item_done(&self) {
        self.task.items.set(self.task.items.get() + 1);
    }

    fn answered(&self, since: Picos) {
        self.item_done();
        self.task.latencies.record(self.engine.now().saturating_sub(since));
    }

    fn now(&self) -> Picos {
        self.engine.now()
    }

    fn cpu_time(&self) -> Picos {
        let now = self.engine.nanos();
        let times = self.engine.look_at(self.engine.cpu().id, |h, v| h.run_times(v, now));
        picos(times.running)
    }

    fn report(&self, report: WorkerReport) {
        self.task.reports.borrow_mut().push(report);
    }

    fn offset(&self, below: Picos) -> Picos {
        if self.engine.scenario.host.stagger == Picos::ZERO {
            Picos::ZERO
        } else {
            self.random(OFFSET).time_below(below)
        }
    }

    fn all_up(&self) -> Picos {
        self.engine.all_up.get()
    }

    fn random(&self, purpose: u32) -> Random {
        let task = self.task.index.unwrap_or(u32::MAX);
        Random::new(self.guest.random_bits(self.engine, task, purpose))
    }
}
