//! Where the running task is in its wait for a lock: when it began, and what it did meanwhile.

use crate::local::Local;
use crate::{cpu, trace, upcall};
use core::sync::atomic::{AtomicU64, Ordering};

/// A wait that is over. Times are in nanoseconds.
#[derive(Debug)]
pub struct Wait {
    /// When it began.
    pub since: u64,
    /// CPU time that it took.
    pub cpu: u64,
    /// How often the task slept.
    pub slept: u64,
}

/// The running task wants `lock`.
#[inline(always)]
pub fn wants_lock(lock: usize) {
    let local = cpu::current();
    local.slept.store(0, Ordering::Relaxed);
    local.since.store(0, Ordering::Relaxed);
    local.wants.store(lock as u64 + 1, Ordering::Relaxed);
}

/// It has the lock. Returns its wait, if it had to wait.
#[inline(always)]
pub fn has_lock() -> Option<Wait> {
    let local = cpu::current();
    local.wants.store(0, Ordering::Relaxed);
    match local.since.load(Ordering::Relaxed) {
        0 => None,
        began => Some(Wait {
            since: began - 1,
            cpu: cpu::task_time().saturating_sub(local.cpu_then.load(Ordering::Relaxed)),
            slept: local.slept.load(Ordering::Relaxed),
        }),
    }
}

/// The first look at the lock has failed, or a later one.
#[inline(always)]
pub fn begins() {
    let local = cpu::current();
    let lock = local.wants.load(Ordering::Relaxed);
    if lock != 0 && local.since.load(Ordering::Relaxed) == 0 {
        first(local, lock as u32 - 1);
    }
}

#[cold]
fn first(local: &Local, lock: u32) {
    // Time, vCPU and trace belong together.
    let masked = cpu::mask();
    let now = cpu::now();
    local.since.store(now + 1, Ordering::Relaxed);
    local.cpu_then.store(cpu::task_time(), Ordering::Relaxed);
    trace::waits(now, lock);
    upcall::restore(masked);
}

fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// It is about to sleep.
pub fn sleeps() {
    add_one(&cpu::current().slept);
}

/// It sends a kick.
pub fn kicks() {
    add_one(&cpu::current().kicked);
}

/// The kicks that it has sent so far.
pub fn kicks_so_far() -> u64 {
    cpu::current().kicked.load(Ordering::Relaxed)
}
