//! Where this vCPU is in its wait for a lock: when it began, and what it did meanwhile.
//!
//! The words are in the vCPU's page, because a vCPU has no other memory of its own. Only the vCPU uses them.

use crate::{cpu, trace};
use core::sync::atomic::{AtomicU64, Ordering};
use overspin_guest_abi::VcpuPage;

/// The lock that it wants, plus one; 0: none.
fn wants(page: &VcpuPage) -> &AtomicU64 {
    &page.own[1]
}
/// When its wait began, plus one; 0: it does not wait.
fn since(page: &VcpuPage) -> &AtomicU64 {
    &page.own[2]
}
/// Its CPU time then.
fn cpu_then(page: &VcpuPage) -> &AtomicU64 {
    &page.own[3]
}
/// How often it slept in this wait.
fn slept(page: &VcpuPage) -> &AtomicU64 {
    &page.own[4]
}
/// Kicks that it has sent, in all.
fn kicked(page: &VcpuPage) -> &AtomicU64 {
    &page.own[5]
}

/// A wait that is over. Times are in nanoseconds.
#[derive(Debug)]
pub struct Wait {
    /// When it began.
    pub since: u64,
    /// CPU time that it took.
    pub cpu: u64,
    /// How often the vCPU slept.
    pub slept: u64,
}

/// This vCPU wants `lock`.
#[inline(always)]
pub fn wants_lock(lock: usize) {
    let page = cpu::page();
    slept(page).store(0, Ordering::Relaxed);
    since(page).store(0, Ordering::Relaxed);
    wants(page).store(lock as u64 + 1, Ordering::Relaxed);
}

/// It has the lock. Returns its wait, if it had to wait.
#[inline(always)]
pub fn has_lock() -> Option<Wait> {
    let page = cpu::page();
    wants(page).store(0, Ordering::Relaxed);
    match since(page).load(Ordering::Relaxed) {
        0 => None,
        began => Some(Wait {
            since: began - 1,
            cpu: cpu::cpu_time().saturating_sub(cpu_then(page).load(Ordering::Relaxed)),
            slept: slept(page).load(Ordering::Relaxed),
        }),
    }
}

/// The first look at the lock has failed, or a later one.
#[inline(always)]
pub fn begins() {
    let page = cpu::page();
    let lock = wants(page).load(Ordering::Relaxed);
    if lock != 0 && since(page).load(Ordering::Relaxed) == 0 {
        first(page, lock as u32 - 1);
    }
}

#[cold]
fn first(page: &VcpuPage, lock: u32) {
    let now = cpu::now();
    since(page).store(now + 1, Ordering::Relaxed);
    cpu_then(page).store(cpu::cpu_time(), Ordering::Relaxed);
    trace::waits(now, lock);
}

/// It is about to sleep.
pub fn sleeps() {
    let slept = slept(cpu::page());
    slept.store(slept.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// It sends a kick.
pub fn kicks() {
    let kicked = kicked(cpu::page());
    kicked.store(kicked.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The kicks that it has sent so far.
pub fn kicks_so_far() -> u64 {
    kicked(cpu::page()).load(Ordering::Relaxed)
}
