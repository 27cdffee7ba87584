//! Moments at locks, for the host: which vCPU waits for which, since when.

use crate::cpu;
use core::sync::atomic::{AtomicU32, Ordering};
use overspin_guest_abi::{Traced, kind, port};

/// The vCPU that holds each lock, plus one. There is one word for each of the first locks: no workload that runs
/// here has more.
static HOLDERS: [Holder; 64] = [const { Holder(AtomicU32::new(0)) }; 64];

/// A word on a cache line of its own, so that it costs a waiter one miss and the holder none.
#[repr(align(64))]
struct Holder(AtomicU32);

/// Most locks that a domain may have.
pub const MOST_LOCKS: usize = HOLDERS.len();

/// Whether the host wants to know.
#[inline(always)]
pub fn is_on() -> bool {
    cpu::info().traces.load(Ordering::Relaxed) != 0
}

/// This vCPU starts to wait for a lock.
pub fn waits(now: u64, lock: u32) {
    if is_on() {
        let holder = HOLDERS[lock as usize].0.load(Ordering::Relaxed);
        write(now, kind::WAIT, lock, holder);
    }
}

/// This vCPU has a lock.
#[inline(always)]
pub fn acquired(now: u64, lock: u32, contended: bool) {
    if is_on() {
        HOLDERS[lock as usize].0.store(cpu::id() as u32 + 1, Ordering::Relaxed);
        if contended {
            write(now, kind::ACQUIRED_CONTENDED, lock, 0);
        }
    }
}

/// This vCPU begins to release a contended lock.
pub fn releases(now: u64, lock: u32) {
    if is_on() {
        write(now, kind::RELEASED, lock, 0);
    }
}

/// This vCPU has released a contended lock.
pub fn freed(now: u64, lock: u32) {
    if is_on() {
        write(now, kind::FREED, lock, 0);
    }
}

fn write(now: u64, kind: u8, lock: u32, holder: u32) {
    let (info, page) = (cpu::info(), cpu::page());
    let len = info.ring_len.load(Ordering::Relaxed);
    if u64::from(page.traced.load(Ordering::Relaxed)) >= len {
        cpu::hypercall(port::FLUSH, 0);
    }
    let at = u64::from(page.traced.load(Ordering::Relaxed));
    let ring = info.rings.load(Ordering::Relaxed) as *const Traced;
    // SAFETY: the host has made a ring of that many moments for each vCPU.
    let slot = unsafe { &*ring.add((cpu::id() as u64 * len + at) as usize) };
    slot.write(now, kind, lock, holder);
    page.traced.store(at as u32 + 1, Ordering::Release);
}
