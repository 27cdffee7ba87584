//! Moments at locks and of tasks, for the host: which vCPU, or task in user mode, waits for which lock, since when; which
//! task each vCPU runs.

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
    /// The vCPU that holds the lock, or its task in user mode, plus one.
    holder: AtomicU32,
    /// vCPUs, or tasks, that wait for it.
    waiters: AtomicU32,
}

/// Most locks that a domain may have.
pub const MOST_LOCKS: usize = STATES.len();

/// Whether the host wants to know.
#[inline(always)]
pub fn is_on() -> bool {
    cpu::info().traces.load(Ordering::Relaxed) != 0
}

/// A kind of moment at a lock, by a vCPU or a task in user mode; and the number of that, plus one.
fn by_whom(kind: u8) -> (u8, u32) {
    let local = cpu::current();
    match local.user.load(Ordering::Relaxed) {
        true => (kind | kind::USER, local.task + 1),
        false => (kind, cpu::id() as u32 + 1),
    }
}

/// This vCPU or task starts to wait for a lock.
pub fn waits(now: u64, lock: u32) {
    if is_on() {
        let state = &STATES[lock as usize];
        state.waiters.fetch_add(1, Ordering::Relaxed);
        write(now, by_whom(kind::WAIT).0, lock, state.holder.load(Ordering::Relaxed));
    }
}

/// This vCPU runs a task from now on, or none. Upcalls are masked.
pub fn runs(now: u64, task: Option<u32>) {
    if is_on() {
        write(now, kind::TASK, 0, task.map_or(0, |task| task + 1));
    }
}

/// A task sleeps, is woken or returns: `kind` says which.
pub fn sleeps(now: u64, kind: u8, task: u32) {
    if is_on() {
        write(now, kind, 0, task + 1);
    }
}

/// This vCPU or task has a lock, for which it has `waited` or not.
#[inline(always)]
pub fn acquired(now: u64, lock: u32, waited: bool) {
    if is_on() {
        let state = &STATES[lock as usize];
        let (kind, me) = by_whom(kind::ACQUIRED_CONTENDED);
        state.holder.store(me, Ordering::Relaxed);
        if waited {
            state.waiters.fetch_sub(1, Ordering::Relaxed);
        }
        if waited || state.waiters.load(Ordering::Relaxed) > 0 {
            write(now, kind, lock, 0);
        }
    }
}

/// This vCPU or task begins to release a lock. Returns whether others wait for it.
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
        write(now, by_whom(kind::RELEASED).0, lock, 0);
    }
    contended
}

/// This vCPU or task has released a contended lock.
pub fn freed(now: u64, lock: u32) {
    write(now, by_whom(kind::FREED).0, lock, 0);
}

/// Writes a moment to the ring of this vCPU. Code of user mode has masked upcalls.
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
