//! Runs work on the CPUs of a plan.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use overspin_locks::CpuId;

use super::world::world;
use crate::panic_message;

/// Runs `work` on all CPUs, in a plan; the calling thread is CPU 0.
///
/// # Panics
/// If called twice in one execution: shuttle numbers its tasks, and so the CPUs, without end.
pub fn on_cpus(cpus: usize, work: impl Fn(CpuId) + Send + Sync + 'static) {
    on_cpus_boxed(cpus, &(Arc::new(work) as Arc<_>));
}

/// What [`on_cpus`] does, compiled once for all kinds of work.
fn on_cpus_boxed(cpus: usize, work: &Arc<dyn Fn(CpuId) + Send + Sync>) {
    let others: Vec<_> = (1..cpus)
        .map(|cpu| {
            let work = Arc::clone(work);
            world().memory.hand_over(0, cpu);
            shuttle::thread::spawn(move || {
                catch(|| {
                    let world = world();
                    assert_eq!(world.me(), cpu, "CPUs are made once");
                    work(cpu);
                    world.done();
                });
            })
        })
        .collect();
    work(0);
    world().done();
    for (cpu, other) in (1..).zip(others) {
        other.join().expect("panics are caught");
        world().memory.hand_over(cpu, 0);
    }
}

/// Runs `work`. If it panics, the plan has failed, and the scheduler ends the execution at the next turn. A
/// panic that reached shuttle would do so too, but would print to standard error.
pub(super) fn catch(work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        if world().fault.set(panic_message(&*panic)).is_err() {
            // The execution is over, and shuttle unwinds the other CPUs.
            resume_unwind(panic);
        }
        shuttle::thread::yield_now();
    }
}
