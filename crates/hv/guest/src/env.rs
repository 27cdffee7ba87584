//! What a task of a workload can do in this guest.

use crate::job::Job;
use crate::kernel::World;
use crate::{cpu, touch};
use alloc::string::String;
use alloc::sync::Arc;
use core::cell::Cell;
use core::sync::atomic::{Ordering, compiler_fence};
use overspin_guest_abi::{NEVER, TaskStats, burn, port};
use overspin_scenario::{Picos, Preemption, WorkerReport};
use overspin_workload::{Env, LockId, LockUse, Mode, Program, Random, Semaphore, Ticks, WordId};

/// A task that runs.
pub struct Task {
    world: &'static World,
    /// Its number in the domain.
    number: usize,
    by: Inherited,
    /// Number of kernel locks that it holds or takes.
    held: Cell<u32>,
}

/// What the tasks that a task starts have of it.
#[derive(Clone)]
pub struct Inherited {
    /// Whether the domain waits for its end.
    pub awaited: bool,
    /// vCPUs that these tasks may use; all if empty.
    pub vcpus: Arc<[u32]>,
}

/// Purpose of the random offset, apart from the purposes of workloads.
const OFFSET: u32 = 1 << 31;

impl Task {
    /// Task `number` of this world.
    pub fn new(world: &'static World, number: usize, by: Inherited) -> Self {
        Self { world, number, by, held: Cell::new(0) }
    }

    /// From now on its code is of user mode, or of kernel mode: then no other task takes over.
    #[inline(always)]
    fn user_mode(on: bool) {
        if on {
            compiler_fence(Ordering::SeqCst);
        }
        cpu::current().user.store(on, Ordering::Relaxed);
        // An upcall that interrupts the code in between finds it so.
        compiler_fence(Ordering::SeqCst);
    }

    fn preemption(&self) -> Preemption {
        self.world.job.domain.kernel.preemption
    }

    /// Before an operation that takes a lock.
    #[inline]
    fn begin(&self, how: LockUse) {
        if how == LockUse::User {
            self.world.before_user_mode();
            Self::user_mode(true);
        } else {
            self.held.set(self.held.get() + 1);
        }
    }

    /// After an operation that released a lock. The end of the last section is where a preemptible kernel catches up.
    #[inline]
    fn end(&self, how: LockUse) {
        if how == LockUse::User {
            return Self::user_mode(false);
        }
        self.held.set(self.held.get() - 1);
        if self.held.get() == 0 {
            self.world.at_end_of_kernel_work();
        }
    }

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
    fn compute(&self, work: Picos, mode: Mode) {
        if mode == Mode::User {
            self.world.before_user_mode();
            Self::user_mode(true);
            compute(work);
            return Self::user_mode(false);
        }
        let preemption = self.preemption();
        if preemption == Preemption::None || self.held.get() > 0 {
            return compute(work);
        }
        if preemption == Preemption::Voluntary {
            compute(work);
            return self.world.before_user_mode();
        }
        let preemptible = &cpu::current().preemptible;
        preemptible.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        compute(work);
        compiler_fence(Ordering::SeqCst);
        preemptible.store(false, Ordering::Relaxed);
    }

    fn touch_page(&self) {
        touch::page();
    }

    fn unmap(&self) {
        self.world.unmap();
    }

    fn sleep(&self, time: Picos) {
        if time == Picos::ZERO {
            return;
        }
        let end = cpu::now().saturating_add(ns(time)).min(NEVER - 1);
        self.world.sleep_until(end);
    }

    fn yield_vcpu(&self) {
        cpu::hypercall(port::YIELD, 0);
    }

    fn next_tick(&self, _: Ticks) -> Option<Picos> {
        None
    }

    fn section(&self, lock: LockId, how: LockUse, work: Picos) {
        self.begin(how);
        self.world.locks.acquire(lock, how);
        compute(work);
        self.world.locks.release(lock);
        self.end(how);
    }

    fn acquire(&self, lock: LockId, how: LockUse) {
        self.begin(how);
        self.world.locks.acquire(lock, how);
        Self::user_mode(false);
    }

    fn release(&self, lock: LockId) {
        let how = self.world.locks.taken(lock);
        if how == LockUse::User {
            Self::user_mode(true);
        }
        self.world.locks.release(lock);
        self.end(how);
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

    fn spawn(&self, name: String, vcpu: Option<u32>, program: Program) {
        let may_use = Arc::clone(&self.by.vcpus);
        self.world.add((&name, may_use), self.by.clone(), vcpu, program);
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
        random(&self.world.job, (self.number as u64) << 32 | u64::from(purpose))
    }
}

/// A stream of random numbers: the task in the upper half of its number, the purpose in the lower one.
pub fn random(job: &Job, stream: u64) -> Random {
    Random::new(job.seed ^ Random::new(stream).bits())
}
