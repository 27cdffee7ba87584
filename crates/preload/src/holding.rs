//! What holders of mutexes do while they hold them: how long they have a CPU, are ready without one, or sleep.
//!
//! With statistics, each thread looks at one acquisition in 256: it reads its clocks when it has acquired the mutex and when it
//! releases it. Time that passed while the thread used no CPU, it was off its CPU. If it has not gone to sleep meanwhile, it
//! was descheduled: by the kernel, by a quota, or by the hypervisor if the kernel counts steal.
//!
//! The order of the readings, CPU, clock, clock, CPU, makes the CPU time too long by the calls: a holder that keeps its CPU never
//! counts as off it.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;

use crate::record;
use crate::shadow::{Holder, Shadow};
use crate::tally::tally;

/// One acquisition of so many is looked at. A look takes six system calls, 3 us in a virtual machine.
const EVERY: u32 = 256;

/// An acquisition that is looked at.
#[derive(Clone, Copy)]
struct Look {
    shadow: *const Shadow,
    holder: Holder,
    began_ns: u64,
    cpu_ns: u64,
    sleeps: i64,
}

thread_local! {
    /// Acquisitions of this thread.
    static ACQUIRED: Cell<u32> = const { Cell::new(0) };
    static LOOK: Cell<Option<Look>> = const { Cell::new(None) };
}

/// The thread has acquired the mutex. A thread that looks at an outer mutex goes on with that.
#[inline]
pub(crate) fn begin(shadow: &Shadow, holder: Holder) {
    let acquired = ACQUIRED.get().wrapping_add(1);
    ACQUIRED.set(acquired);
    if acquired.is_multiple_of(EVERY) && tally().is_some() {
        look(shadow, holder);
    }
}

#[cold]
fn look(shadow: &Shadow, holder: Holder) {
    // SAFETY: shadows stay where they are; see `slots`.
    let still_holds = |it: Look| unsafe { &*it.shadow }.holder() == Some(it.holder);
    // One that has ended past this library is forgotten.
    if LOOK.get().is_some_and(still_holds) {
        return;
    }
    let sleeps = sleeps();
    let cpu_ns = cpu_ns();
    LOOK.set(Some(Look {
        shadow: ptr::from_ref(shadow),
        holder,
        began_ns: record::now(),
        cpu_ns,
        sleeps,
    }));
}

/// The thread is about to release the mutex.
#[inline]
pub(crate) fn end(shadow: &Shadow) {
    if let Some(look) = LOOK.get().filter(|look| ptr::eq(look.shadow, shadow)) {
        LOOK.set(None);
        finish(look);
    }
}

#[cold]
fn finish(look: Look) {
    let held = record::now().saturating_sub(look.began_ns);
    let off = held.saturating_sub(cpu_ns().saturating_sub(look.cpu_ns));
    let slept = sleeps() != look.sleeps;
    if let Some(tally) = tally() {
        tally.held(held, off, slept);
    }
}

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    record::read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How often this thread has gone to sleep.
fn sleeps() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes `usage`, which zeros are, too.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nvcsw
    }
}
