//! A parallel compile, `make -jN`, as kernbench runs it.
//!
//! `make` keeps `jobs` units going. A unit is a driver that starts a compiler and an assembler joined by a
//! pipe, as `gcc -pipe` does. The compiler computes and now and then writes a buffer; the assembler sleeps
//! until there is one. Each pipe sleep is one voluntary switch. When the woken assembler displaces the
//! compiler on its vCPU, that is one involuntary switch. This pairing is why kernbench's two switch counts
//! are so close in the published runs.
//!
//! Kernel time takes named global locks (see `kernel.rs`).

use crate::kernel_work::{KERNEL_LOCK, KernelLock, Work, distinct, names};
use crate::parameters::parameters;
use crate::{Env, Fault, Load, Program, Semaphore, Start, WorkloadInfo};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{Parameters, Picos};

parameters! {
    Kernbench: pub(crate) KEYS at "[domain.workload] with kind = \"kernbench\"",
    "A parallel compile, `make -jN`." {
        jobs: u32 = integer(1, 10_000), Required, "N of `make -jN`.";
        units: u32 = integer(1, 1_000_000), Is("100"),
            "Compile units: groups of processes that `make` starts.";
        user: Picos = time(NS, LONGEST), Is("400ms"), "Mean user CPU time of a unit.";
        system: Picos = ANY, Is("80ms"),
            "Mean kernel CPU time of a unit, without waiting for locks.";
        pipe_sleeps: u32 = integer(1, 1_000_000), Is("30"),
            "Buffers that a compiler hands to its assembler, which sleeps for each.";
        locks: Vec<KernelLock> = Tables(&KERNEL_LOCK), Means("no locks"),
            "Kernel locks, one `[[domain.workload.locks]]` each.";
    }
}

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Kernbench>(
    "a parallel compile: make -jN with compilers, assemblers, pipes and kernel locks",
    "Con Kolivas' kernbench; figures of July 2008",
    &KEYS,
);

impl Parameters for Kernbench {
    const KIND: &'static str = "kernbench";
}

/// Pipe buffers between compiler and assembler: 16 pages, as Linux pipes have had since 2.6.11.
const PIPE_BUFFERS: u32 = 16;
/// Thousandths of a unit's user time that the assembler uses.
const ASSEMBLER_PERMILLE: u64 = 60;
/// Unit sizes vary uniformly by this much around their mean.
const SIZE_SPREAD_PERMILLE: u64 = 600;

impl Load for Kernbench {
    fn check(&self) -> Result<(), Fault> {
        distinct(&self.locks)
    }

    fn lock_names(&self) -> Vec<String> {
        names(&self.locks)
    }

    fn is_endless(&self) -> bool {
        false
    }

    /// `make`, and for each unit under way a driver, a compiler and an assembler.
    fn most_tasks(&self, _vcpus: u32) -> u64 {
        1 + 3 * u64::from(self.jobs.min(self.units))
    }

    fn start(&self, _vcpus: u32) -> Vec<Start> {
        let w = Arc::new(self.clone());
        let program: Program = Box::new(move |env| make(env, &w));
        vec![Start { name: "make".into(), vcpu: None, program }]
    }
}

fn make(env: &dyn Env, w: &Arc<Kernbench>) {
    let slots = env.semaphore(w.jobs);
    let finished = env.semaphore(0);
    let mut random = env.random(0);
    for unit in 0..w.units {
        env.down(slots);
        let size = random.around(1_000_000, SIZE_SPREAD_PERMILLE);
        let w = Arc::clone(w);
        let driver: Program = Box::new(move |env| {
            env.exec();
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

/// The compiler driver: starts compiler and assembler and waits for both. Every new process goes to the
/// idlest vCPU.
fn compile(env: &dyn Env, w: &Arc<Kernbench>, unit: u32, size: u64) {
    let data = env.semaphore(0);
    let space = env.semaphore(PIPE_BUFFERS);
    let exits = env.semaphore(0);
    let child =
        |name: &str, permille: u64, run: fn(&dyn Env, &mut dyn FnMut(), Semaphore, Semaphore)| {
            let w = Arc::clone(w);
            let program: Program = Box::new(move |env| {
                env.exec();
                let mut work = Work::new(env, &w.locks);
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

impl Kernbench {
    /// User and kernel time of one pipe buffer's worth of work.
    fn share(&self, size_ppm: u64, permille: u64) -> (Picos, Picos) {
        let part = |mean: Picos| {
            let total = u128::from(mean.0) * u128::from(size_ppm) * u128::from(permille);
            Picos((total / 1_000_000_000 / u128::from(self.pipe_sleeps.max(1))) as u64)
        };
        (part(self.user), part(self.system))
    }
}
