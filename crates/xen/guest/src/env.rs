//! The world of a worker in a guest: the workloads of `overspin-workload` see it as any other world.

use crate::clock;
use crate::runstate::{Times, Xen};
use crate::worker::{Samples, counted};
use overspin_scenario::{NS, Picos, WorkerReport};
use overspin_workload::{Env, LockId, LockUse, Mode, Program, Random, Semaphore, Ticks, WordId};
use overspin_xl::Sample;
use std::hint::black_box;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

/// Begin and end of a run, in nanoseconds of the guest's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A thread's view.
#[derive(Debug)]
pub(crate) struct Task {
    vcpu: u32,
    rate: u32,
    seed: u64,
    over: Over,
    xen: Arc<Xen>,
    samples: Samples,
}

impl Task {
    pub(crate) fn new(
        vcpu: u32,
        rate: u32,
        seed: u64,
        over: Over,
        xen: Arc<Xen>,
        samples: Samples,
    ) -> Self {
        Self { vcpu, rate, seed, over, xen, samples }
    }

    /// Time since the start of the run, in nanoseconds.
    pub(crate) fn since_start(&self, now: u64) -> u64 {
        now.saturating_sub(self.over.start)
    }

    /// Length of the run, in nanoseconds.
    pub(crate) fn length(&self) -> u64 {
        self.over.end - self.over.start
    }

    /// A report in operations, which a workload that counts them itself makes once a second.
    pub(crate) fn sample(&self, at: u64, operations: u64) {
        self.push(counted(self.vcpu, at, operations, self.times()));
    }

    fn times(&self) -> Times {
        // They could be asked for when the guest came up.
        self.xen.times(self.vcpu).unwrap_or_default()
    }

    fn push(&self, sample: Sample) {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
    }

    /// Ends this thread's part once the run is over. The guest goes on until the host destroys it.
    pub(crate) fn stay_if_over(&self) {
        while clock::now() > self.over.end {
            thread::park();
        }
    }
}

/// This many operations. An operation is a multiplication and a rotation that need the result of the one before.
fn operations(count: u64) {
    let mut x: u64 = black_box(1);
    for _ in 0..count {
        x = x.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(5);
    }
    black_box(x);
}

/// A worker of schedbench uses only the part of [`Env`] that is not this.
fn not_for_workers() -> ! {
    unreachable!("a worker neither starts tasks nor takes simulated locks")
}

impl Env for Task {
    fn compute(&self, work: Picos, _: Mode) {
        let count = u128::from(work.0) * u128::from(self.rate) / 1_000_000;
        operations(u64::try_from(count).unwrap_or(u64::MAX));
    }

    fn sleep(&self, time: Picos) {
        if time > Picos::ZERO {
            thread::sleep(Duration::from_nanos(time / NS));
        }
        self.stay_if_over();
    }

    fn yield_vcpu(&self) {
        thread::yield_now();
    }

    fn item_done(&self) {}

    fn now(&self) -> Picos {
        clock::now().saturating_sub(self.over.start) * NS
    }

    fn cpu_time(&self) -> Picos {
        self.times().running * NS
    }

    fn report(&self, report: WorkerReport) {
        self.push(Sample {
            vcpu: self.vcpu,
            at: report.at / NS,
            operations: report.kops * 1000,
            max_delta: report.max_delta / NS,
            cpu_time: report.cpu_time / NS,
            deadlines: report.deadlines,
            missed: report.missed,
            ..Sample::default()
        });
    }

    fn offset(&self, below: Picos) -> Picos {
        self.random(1).time_below(below)
    }

    fn all_up(&self) -> Picos {
        // The start of the run is the zero of its clock, and a thread is there before.
        clock::sleep_until(self.over.start);
        Picos::ZERO
    }

    fn random(&self, purpose: u32) -> Random {
        Random::new(self.seed ^ u64::from(self.vcpu) << 48 ^ u64::from(purpose) << 40)
    }

    fn next_tick(&self, _: Ticks) -> Option<Picos> {
        None
    }

    fn section(&self, _: LockId, _: LockUse, _: Picos) {
        not_for_workers()
    }

    fn acquire(&self, _: LockId, _: LockUse) {
        not_for_workers()
    }

    fn release(&self, _: LockId) {
        not_for_workers()
    }

    fn read(&self, _: WordId) -> usize {
        not_for_workers()
    }

    fn write(&self, _: WordId, _: usize) {
        not_for_workers()
    }

    fn write_out(&self, _: &[u64]) {
        not_for_workers()
    }

    fn spawn(&self, _: String, _: Option<u32>, _: Program) {
        not_for_workers()
    }

    fn semaphore(&self, _: u32) -> Semaphore {
        not_for_workers()
    }

    fn down(&self, _: Semaphore) {
        not_for_workers()
    }

    fn up(&self, _: Semaphore) {
        not_for_workers()
    }

    fn interrupt_in(&self, _: Picos, _: Picos, _: Semaphore) {
        not_for_workers()
    }

    fn answered(&self, _: Picos) {
        not_for_workers()
    }
}
