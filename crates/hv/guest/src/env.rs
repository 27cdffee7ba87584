//! What a task of a workload can do in this guest.

use crate::tasks::World;
use crate::{cpu, touch};
use alloc::string::String;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use overspin_guest_abi::{NEVER, TaskStats, burn, port};
use overspin_scenario::{Picos, WorkerReport};
use overspin_workload::{Env, LockId, LockUse, Mode, Program, Random, Semaphore, Ticks, WordId};

/// A task that runs.
pub struct Task {
    /// Where it runs.
    pub world: &'static World,
    /// Its number in the domain.
    pub number: usize,
    /// Whether the domain waits for its end.
    pub awaited: bool,
    /// vCPUs that the tasks which it starts may use; all if empty.
    pub vcpus: Arc<[u32]>,
}

/// Purpose of the random offset, apart from the purposes of workloads.
const OFFSET: u32 = 1 << 31;

impl Task {
    /// What it did so far.
    pub fn stats(&self) -> &'static TaskStats {
        stats_of(self.number)
    }
}

/// What a task did so far. The last tasks share what the host has made for the last one.
pub fn stats_of(number: usize) -> &'static TaskStats {
    let info = cpu::info();
    let last = (info.tasks.load(Ordering::Relaxed) as usize).saturating_sub(1);
    let first = info.task_stats.load(Ordering::Relaxed) as *const TaskStats;
    // SAFETY: the host has made that many, and at least one if there is a task.
    unsafe { &*first.add(number.min(last)) }
}

/// Whole nanoseconds.
fn ns(time: Picos) -> u64 {
    time.0 / 1000
}

/// The time in picoseconds.
fn picos(ns: u64) -> Picos {
    Picos(ns.saturating_mul(1000))
}

/// Uses the CPU for `work`.
#[inline]
fn compute(work: Picos) {
    let rate = cpu::info().burn_rate.load(Ordering::Relaxed);
    // Picoseconds times iterations per 2^20 ns.
    burn(((u128::from(work.0) * u128::from(rate) / 1000) >> 20) as u64);
}

impl Env for Task {
    fn compute(&self, work: Picos, _: Mode) {
        compute(work);
    }

    fn touch_page(&self) {
        touch::page();
    }

    fn sleep(&self, time: Picos) {
        if time == Picos::ZERO {
            return;
        }
        let end = cpu::now().saturating_add(ns(time)).min(NEVER - 1);
        TaskStats::add(&self.stats().sleeps, 1);
        self.world.sleep_until(end);
    }

    fn yield_vcpu(&self) {
        cpu::hypercall(port::YIELD, 0);
    }

    fn next_tick(&self, _: Ticks) -> Option<Picos> {
        None
    }

    fn section(&self, lock: LockId, how: LockUse, work: Picos) {
        self.world.locks.acquire(lock, how);
        compute(work);
        self.world.locks.release(lock);
    }

    fn acquire(&self, lock: LockId, how: LockUse) {
        self.world.locks.acquire(lock, how);
    }

    fn release(&self, lock: LockId) {
        self.world.locks.release(lock);
    }

    fn read(&self, _: WordId) -> usize {
        panic!("this guest keeps no kernel data")
    }

    fn write(&self, _: WordId, _: usize) {
        panic!("this guest keeps no kernel data")
    }

    fn write_out(&self, _: &[u64]) {
        panic!("this guest has no disk")
    }

    fn spawn(&self, name: String, _: Option<u32>, program: Program) {
        self.world.spawn(self, &name, program);
    }

    fn semaphore(&self, count: u32) -> Semaphore {
        Semaphore(self.world.semaphore(count))
    }

    fn down(&self, semaphore: Semaphore) {
        self.world.down(semaphore.0);
    }

    fn up(&self, semaphore: Semaphore) {
        self.world.up(semaphore.0);
    }

    fn interrupt_in(&self, _: Picos, _: Picos, _: Semaphore) {
        panic!("this guest has no devices")
    }

    fn item_done(&self) {
        TaskStats::add(&self.stats().items, 1);
    }

    fn answered(&self, since: Picos) {
        self.item_done();
        self.stats().answered(ns(self.now().saturating_sub(since)));
    }

    fn now(&self) -> Picos {
        picos(cpu::now())
    }

    fn cpu_time(&self) -> Picos {
        picos(cpu::cpu_time())
    }

    fn report(&self, report: WorkerReport) {
        let words =
            [report.kops, report.max_delta.0, report.cpu_time.0, report.deadlines, report.missed];
        for (to, word) in cpu::page().args.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        cpu::hypercall(port::REPORT, self.number as u32);
    }

    fn offset(&self, below: Picos) -> Picos {
        if self.world.job.staggered { self.random(OFFSET).time_below(below) } else { Picos::ZERO }
    }

    fn all_up(&self) -> Picos {
        picos(cpu::info().all_up.load(Ordering::Relaxed))
    }

    fn random(&self, purpose: u32) -> Random {
        let stream = (self.number as u64) << 32 | u64::from(purpose);
        let seed = self.world.job.seed ^ Random::new(stream).bits();
        Random::new(seed)
    }
}
