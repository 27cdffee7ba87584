//! Moments at locks, for the host: which vCPU waits for which, since when.

use crate::cpu;
use core::sync::atomic::{AtomicU32, Ordering};
use overspin_guest_abi::{Traced, kind, port};

/// What the trace has to know of each lock. There is one for each of the first locks: no workload that runs here has
/// more.
static STATES: [State; 64] =
    [const { State { holder: AtomicU32::new(0), waiters: AtomicU32::new(0) } }; 64];

/// On a cache line of its own. A contended acquisition costs its waiter two transfers of this line; an uncontended
/// one costs nothing but hits.
#[repr(align(64))]
struct State {
    /// The vCPU that holds the lock, plus one.
    holder: AtomicU32,
    /// vCPUs that wait for it.
    waiters: AtomicU32,
}

/// Most locks that a domain may have.
pub const MOST_LOCKS: usize = STATES.len();

/// Whether the host wants to know.
#[inline(always)]
pub fn is_on() -> bool {
    cpu::info().traces.load(Ordering::Relaxed) != 0
}

/// This vCPU starts to wait for a lock.
pub fn waits(now: u64, lock: u32) {
    if is_on() {
        let state = &STATES[lock as usize];
        state.waiters.fetch_add(1, Ordering::Relaxed);
        write(now, kind::WAIT, lock, state.holder.load(Ordering::Relaxed));
    }
}

/// This vCPU has a lock, for which it has `waited` or not.
#[inline(always)]
pub fn acquired(now: u64, lock: u32, waited: bool) {
    if is_on() {
        let state = &STATES[lock as usize];
        state.holder.store(cpu::id() as u32 + 1, Ordering::Relaxed);
        if waited {
            state.waiters.fetch_sub(1, Ordering::Relaxed);
        }
        if waited || state.waiters.load(Ordering::Relaxed) > 0 {
            write(now, kind::ACQUIRED_CONTENDED, lock, 0);
        }
    }
}

/// This vCPU begins to release a lock. Returns whether others wait for it.
#[inline(always)]
pub fn releases(now: u64, lock: u32) -> bool {
    if !is_on() {
        return false;
    }
    let state = &STATES[lock as usize];
    // Now, while it still holds the lock: after the release another may have it.
    state.holder.store(0, Ordering::Relaxed);
    let contended = state.waiters.load(Ordering::Relaxed) > 0;
    if contended {
        write(now, kind::RELEASED, lock, 0);
    }
    contended
}

/// This vCPU has released a contended lock.
pub fn freed(now: u64, lock: u32) {
    write(now, kind::FREED, lock, 0);
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
