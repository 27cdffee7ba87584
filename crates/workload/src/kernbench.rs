//! A parallel compile, `make -jN`, as kernbench runs it.
//!
//! `make` keeps `jobs` units going. A unit is a driver that starts a compiler and an assembler
//! joined by a pipe, as `gcc -pipe` does: the compiler computes, now
//! and then writes a buffer, and the assembler sleeps until there is one. Each pipe sleep is one voluntary switch; when the woken assembler
//! displaces the compiler on its vCPU, that is one involuntary switch. This pairing is why
//! kernbench's two switch counts are so near to each other in the published runs.
//!
//! Kernel time is made of stretches between acquisitions of a few named global locks, with
//! exponential gaps and hold times.

use crate::{Env, LockUse, Mode, Program, Random, Semaphore, WorkloadInfo};
use overspin_scenario::{Kernbench, Picos};
use std::rc::Rc;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "kernbench",
    brief: "a parallel compile: make -jN with compilers, assemblers, pipes and kernel locks",
    source: "Con Kolivas' kernbench; figures of July 2008",
};

/// Pipe buffers between compiler and assembler: 16 pages, as Linux pipes have had since 2.6.11.
const PIPE_BUFFERS: u32 = 16;
/// Thousandths of a unit's user time that the assembler uses.
const ASSEMBLER_PERMILLE: u64 = 60;
/// User and kernel time alternate at this grain: a system call or a page fault every so often.
const GRAIN: Picos = 400 * overspin_scenario::US;
/// Unit sizes vary uniformly by this much around their mean.
const SIZE_SPREAD_PERMILLE: u64 = 600;

pub(crate) fn start(w: &Kernbench) -> Vec<(String, Option<u32>, Program)> {
    let w = Rc::new(w.clone());
    vec![("make".into(), None, Box::new(move |env| make(env, &w)))]
}

fn make(env: &dyn Env, w: &Rc<Kernbench>) {
    let slots = env.semaphore(w.jobs);
    let finished = env.semaphore(0);
    let mut random = env.random(0);
    for unit in 0..w.units {
        env.down(slots);
        let size = random.around(1_000_000, SIZE_SPREAD_PERMILLE);
        let w = Rc::clone(w);
        let driver: Program = Box::new(move |env| {
            compile(env, &w, unit, size);
            env.item_done();
            env.up(slots);
            env.up(finished);
        });
        env.spawn(format!("gcc-{unit}"), None, driver);
    }
    for _ in 0..w.units {
        env.down(finished);
    }
}

/// The compiler driver: starts compiler and assembler and waits for both. Every process that starts
/// goes to the idlest vCPU.
fn compile(env: &dyn Env, w: &Rc<Kernbench>, unit: u32, size: u64) {
    let data = env.semaphore(0);
    let space = env.semaphore(PIPE_BUFFERS);
    let exits = env.semaphore(0);
    let child =
        |name: &str, permille: u64, run: fn(&dyn Env, &mut dyn FnMut(), Semaphore, Semaphore)| {
            let w = Rc::clone(w);
            let program: Program = Box::new(move |env| {
                let mut work = Work::new(env, &w);
                let each = w.share(size, permille);
                for _ in 0..w.pipe_sleeps {
                    run(env, &mut || work.run(each.0, each.1), data, space);
                }
                env.item_done();
                env.up(exits);
            });
            env.spawn(format!("{name}-{unit}"), None, program);
        };
    child("cc1", 1000 - ASSEMBLER_PERMILLE, |env, work, data, space| {
        work();
        env.down(space);
        env.up(data);
    });
    child("as", ASSEMBLER_PERMILLE, |env, work, data, space| {
        env.down(data);
        work();
        env.up(space);
    });
    env.down(exits);
    env.down(exits);
}

/// Extension of the plain data with what the program needs.
trait Share {
    /// User and kernel time of one pipe buffer's worth of work.
    fn share(&self, size_ppm: u64, permille: u64) -> (Picos, Picos);
}

impl Share for Kernbench {
    fn share(&self, size_ppm: u64, permille: u64) -> (Picos, Picos) {
        let part = |mean: Picos| {
            let total = u128::from(mean) * u128::from(size_ppm) * u128::from(permille);
            (total / 1_000_000_000 / u128::from(self.pipe_sleeps.max(1))) as Picos
        };
        (part(self.user), part(self.system))
    }
}

/// A process that alternates between user and kernel work.
struct Work<'a> {
    env: &'a dyn Env,
    bench: &'a Kernbench,
    random: Random,
    /// Kernel time until the next lock acquisition.
    gap: Picos,
    /// Mean kernel time between acquisitions of any lock.
    mean_gap: Picos,
}

impl<'a> Work<'a> {
    fn new(env: &'a dyn Env, bench: &'a Kernbench) -> Self {
        let mut random = env.random(1);
        // Rates add: acquisitions per second of kernel time.
        let rate: u64 = bench.locks.iter().map(|l| overspin_scenario::SEC / l.every.max(1)).sum();
        let mean_gap = overspin_scenario::SEC.checked_div(rate).unwrap_or(Picos::MAX);
        let gap = if rate == 0 { Picos::MAX } else { random.exponential(mean_gap) };
        Self { env, bench, random, gap, mean_gap }
    }

    /// Uses `user` and `kernel` CPU time in alternating stretches.
    fn run(&mut self, user: Picos, kernel: Picos) {
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

    /// Uses `time` in the kernel, with lock sections on the way. Hold times are part of it.
    fn kernel(&mut self, mut time: Picos) {
        while self.gap < time {
            self.env.compute(self.gap, Mode::Kernel);
            time -= self.gap;
            let lock = self.pick();
            let spec = &self.bench.locks[lock];
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

    /// A lock, by its share of the acquisitions.
    fn pick(&mut self) -> usize {
        let rate = |every: Picos| overspin_scenario::SEC / every.max(1);
        let total: u64 = self.bench.locks.iter().map(|l| rate(l.every)).sum();
        let mut draw = self.random.below(total);
        for (i, lock) in self.bench.locks.iter().enumerate() {
            let r = rate(lock.every);
            if draw < r {
                return i;
            }
            draw -= r;
        }
        0
    }
}
