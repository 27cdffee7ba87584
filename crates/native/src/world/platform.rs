//! The platform of locks in this world: [`Threads`], with counts of waiting, and a way to end a run.
//!
//! A wait loop counts its turns in a value of its thread. That is how the world knows whether an acquisition had
//! to wait, without a shared word that would cost a cache miss. At the end of a run every turn also gives the CPU
//! up: a queue of descheduled waiters would otherwise need a time slice for each of them to dissolve.

use std::cell::Cell;
use std::hint;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::thread;

use overspin_locks::{
    AtomicCell, Budget, CpuId, Platform, WrappedCell, forward_platform, spin_with,
};

use crate::Threads;

/// The number of runs that are ending in this process. A process usually makes one run at a time; a run beside an
/// ending one yields in its wait loops for some milliseconds, which is harmless.
static ENDING: AtomicU32 = AtomicU32::new(0);

/// What a thread did in lock operations since it last asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Turns of wait loops.
    pub turns: u64,
    /// Sleeps.
    pub sleeps: u64,
    /// Wake-ups of others.
    pub kicks: u64,
}

thread_local! {
    static TURNS: Cell<u64> = const { Cell::new(0) };
    static SLEEPS: Cell<u64> = const { Cell::new(0) };
    static KICKS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the counts of this thread, and begins anew.
#[inline]
pub(super) fn counts() -> Counts {
    Counts { turns: TURNS.replace(0), sleeps: SLEEPS.replace(0), kicks: KICKS.replace(0) }
}

/// As long as this exists, waiters give their CPUs up.
#[derive(Debug)]
pub(super) struct Ending(());

impl Ending {
    pub(super) fn begin() -> Self {
        ENDING.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[inline]
fn turn() {
    TURNS.set(TURNS.get() + 1);
    hint::spin_loop();
    // Relaxed: the number stands alone, and nobody writes it during a run.
    if ENDING.load(Ordering::Relaxed) > 0 {
        thread::yield_now();
    }
}

fn one_more(count: &'static thread::LocalKey<Cell<u64>>) {
    count.set(count.get() + 1);
}

/// The platform of locks of a run on threads; see the files beside this one.
#[derive(Debug)]
pub struct RunThreads;

/// An atomic of the machine whose wait loop counts its turns.
#[derive(Debug)]
#[repr(transparent)]
pub struct Counting<A>(A);

impl<A: AtomicCell> WrappedCell for Counting<A> {
    type Inner = A;

    #[inline]
    fn wrap(inner: A) -> Self {
        Self(inner)
    }
    #[inline]
    fn inner(&self) -> &A {
        &self.0
    }
    #[inline]
    fn spin(
        &self,
        until: impl Fn(A::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<A::Value, A::Value> {
        spin_with(&self.0, until, budget, turn)
    }
}

impl Platform for RunThreads {
    // Those from `paravirtual` on keep their defaults, with which this world has always measured.
    forward_platform!(
        Threads,
        except cells, relax, poll, kick, yield_now, paravirtual, processor, yield_if_cheap,
        yield_is_dear, nap, recall, remember
    );

    type U8 = Counting<AtomicU8>;
    type U16 = Counting<AtomicU16>;
    type U32 = Counting<AtomicU32>;
    type Usize = Counting<AtomicUsize>;

    #[inline]
    fn relax() {
        turn();
    }
    fn poll() {
        one_more(&SLEEPS);
        Threads::poll();
    }
    fn kick(cpu: CpuId) {
        one_more(&KICKS);
        Threads::kick(cpu);
    }
    fn wait(cell: &Self::U32, value: u32) {
        one_more(&SLEEPS);
        Threads::wait(&cell.0, value);
    }
    fn wake_one(address: *const Self::U32) {
        one_more(&KICKS);
        // The cell is the atomic, and the address is only compared.
        Threads::wake_one(address.cast());
    }
    fn yield_now() {
        TURNS.set(TURNS.get() + 1);
        Threads::yield_now();
    }
}
