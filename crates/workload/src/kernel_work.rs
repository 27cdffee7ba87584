//! What processes do in the kernel: stretches of work between acquisitions of a few named locks, with
//! exponential gaps and hold times.

use crate::parameters::parameters;
use crate::{Env, Fault, LockUse, Mode, Random};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use overspin_scenario::{Picos, SEC};

parameters! {
    KernelLock: pub(crate) KERNEL_LOCK at "[[domain.workload.locks]]",
    "A lock of the guest kernel, for workloads that take such locks." {
        name: String = Text, Required, "Name; no two locks of a workload share one.";
        hold: Picos = COST, Is("2us"), "Mean hold time (exponential).";
        every: Picos = time(NS, SEC), Is("100us"),
            "Mean kernel time between two acquisitions by one task (exponential).";
        irqs_off: bool = Boolean, Is("false"),
            "Interrupts are off while it is held and waited for.";
    }
}

/// The names of locks.
pub(crate) fn names(locks: &[KernelLock]) -> Vec<String> {
    locks.iter().map(|lock| lock.name.clone()).collect()
}

/// Checks that each lock has its own name.
pub(crate) fn distinct(locks: &[KernelLock]) -> Result<(), Fault> {
    let again = |(i, lock): &(usize, &KernelLock)| locks[..*i].iter().any(|l| l.name == lock.name);
    match locks.iter().enumerate().find(again) {
        Some((i, lock)) => Err(Fault::new(
            format!("locks.{i}.name"),
            format!("an earlier lock is also called `{}`", lock.name),
            "give each lock its own name",
        )),
        None => Ok(()),
    }
}

/// The grain at which user and kernel time alternate, as system calls and page faults make them.
const GRAIN: Picos = Picos::us(400);

/// A process that alternates between user and kernel work.
pub(crate) struct Work<'a> {
    env: &'a dyn Env,
    locks: &'a [KernelLock],
    /// Acquisitions of each lock per second of kernel time.
    rates: Vec<u64>,
    random: Random,
    /// Kernel time until the next lock acquisition.
    gap: Picos,
    /// Mean kernel time between acquisitions of any lock.
    mean_gap: Picos,
}

impl<'a> Work<'a> {
    pub(crate) fn new(env: &'a dyn Env, locks: &'a [KernelLock]) -> Self {
        let mut random = env.random(1);
        let rates: Vec<u64> = locks.iter().map(|l| SEC / l.every.max(Picos(1))).collect();
        let rate: u64 = rates.iter().sum();
        let mean_gap = SEC.checked_div(rate).unwrap_or(Picos::MAX);
        let gap = if rate == 0 { Picos::MAX } else { random.exponential(mean_gap) };
        Self { env, locks, rates, random, gap, mean_gap }
    }

    /// Uses `user` and `kernel` CPU time in alternating stretches.
    pub(crate) fn run(&mut self, user: Picos, kernel: Picos) {
        let rounds = (user + kernel).div_ceil(GRAIN).max(1);
        for round in 0..rounds {
            // The last round takes what integer division left over.
            let part = |total: Picos| {
                if round + 1 == rounds {
                    total - total / rounds * (rounds - 1)
                } else {
                    total / rounds
                }
            };
            self.env.compute(part(user), Mode::User);
            self.kernel(part(kernel));
        }
    }

    /// Uses `time` in the kernel, including the hold times of the locks that it takes.
    pub(crate) fn kernel(&mut self, mut time: Picos) {
        while self.gap < time {
            self.env.compute(self.gap, Mode::Kernel);
            time -= self.gap;
            let lock = self.pick();
            let spec = &self.locks[lock];
            let hold = self.random.exponential(spec.hold).min(time);
            let how = if spec.irqs_off { LockUse::IrqSave } else { LockUse::Plain };
            self.env.section(lock, how, hold);
            time -= hold;
            self.gap = self.random.exponential(self.mean_gap);
        }
        if self.gap != Picos::MAX {
            self.gap -= time;
        }
        self.env.compute(time, Mode::Kernel);
    }

    /// Picks a lock by its share of the acquisitions.
    fn pick(&mut self) -> usize {
        let mut draw = self.random.below(self.rates.iter().sum());
        for (i, rate) in self.rates.iter().enumerate() {
            if draw < *rate {
                return i;
            }
            draw -= rate;
        }
        0
    }
}
