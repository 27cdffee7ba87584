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
    AtomicCell, Budget, CpuId, Platform, Waiters, WrappedCell, forward_platform, spin_with,
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
    one_more(&TURNS);
    hint::spin_loop();
    // Relaxed: the number stands alone, and nobody writes it during a run.
    if ENDING.load(Ordering::Relaxed) > 0 {
        thread::yield_now();
    }
}

#[inline]
fn one_more(count: &'static thread::LocalKey<Cell<u64>>) {
    count.set(count.get() + 1);
}

/// The platform of locks of a run on threads; see the files beside this one.
#[derive(Debug)]
pub struct RunThreads;

/// A wait loop counts its turns.
impl Waiters for RunThreads {
    #[inline]
    fn spin<C: AtomicCell>(
        cell: &C,
        until: impl Fn(C::Value) -> bool + Copy,
        budget: Budget,
    ) -> Result<C::Value, C::Value> {
        spin_with(cell, until, budget, turn)
    }
}

impl Platform for RunThreads {
    // What waits and what wakes others is counted. Not `paravirtual`: each domain says whether its waiters may sleep.
    forward_platform!(
        Threads,
        except cells, relax, poll, kick, paravirtual, yield_now, yield_if_cheap, nap
    );

    type U8 = WrappedCell<AtomicU8, Self>;
    type U16 = WrappedCell<AtomicU16, Self>;
    type U32 = WrappedCell<AtomicU32, Self>;
    type Usize = WrappedCell<AtomicUsize, Self>;

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
        Threads::wait(cell.inner(), value);
    }
    fn wait_until(cell: &Self::U32, value: u32, deadline_ns: u64) {
        one_more(&SLEEPS);
        Threads::wait_until(cell.inner(), value, deadline_ns);
    }
    fn wake_one(address: *const Self::U32) {
        one_more(&KICKS);
        // The cell is the atomic, and the address is only compared.
        Threads::wake_one(address.cast());
    }
    fn yield_now() {
        one_more(&TURNS);
        Threads::yield_now();
    }
    fn yield_if_cheap() {
        one_more(&TURNS);
        Threads::yield_if_cheap();
    }
    fn nap(nanos: u64) {
        one_more(&TURNS);
        Threads::nap(nanos);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use overspin_locks::Note;

    use super::*;

    /// What it does, how many turns, sleeps and kicks it counts, and how long it takes at least.
    fn counted(does: impl FnOnce(), least: Duration) -> [u64; 3] {
        let (_, begin) = (counts(), Instant::now());
        does();
        assert!(begin.elapsed() >= least, "{:?}", begin.elapsed());
        let Counts { turns, sleeps, kicks } = counts();
        [turns, sleeps, kicks]
    }

    /// A lock finds here what it finds in a program.
    #[test]
    fn it_is_threads_with_counts() {
        let (cell, now) = (<RunThreads as Platform>::U32::new(7), Duration::ZERO);
        let ms = Duration::from_millis(1);
        let soon = || RunThreads::now() + 1_000_000;
        assert_eq!(counted(|| RunThreads::nap(1_000_000), ms), [1, 0, 0]);
        assert_eq!(counted(|| RunThreads::wait_until(&cell, 7, soon()), ms), [0, 1, 0]);
        assert_eq!(counted(|| RunThreads::wait(&cell, 8), now), [0, 1, 0]);
        assert_eq!(counted(|| RunThreads::wake_one(&raw const cell), now), [0, 0, 1]);
        assert_eq!(counted(|| RunThreads::kick(RunThreads::cpu_id()), now), [0, 0, 1]);
        assert_eq!(counted(RunThreads::poll, now), [0, 1, 0]);
        for yields in [RunThreads::relax, RunThreads::yield_now, RunThreads::yield_if_cheap] {
            assert_eq!(counted(yields, now), [1, 0, 0]);
        }
        let looks = Budget::Iterations(3);
        assert_eq!(counted(|| _ = cell.spin_until(|v| v == 8, looks), now), [2, 0, 0]);

        let note = Note { lock: 1, released: 2, held: 3, owed: 4 };
        RunThreads::remember(note);
        assert_eq!((Threads::recall(), RunThreads::recall()), (note, note));
        assert_eq!(RunThreads::yield_is_dear(), Threads::yield_is_dear());
        // The thread may be moved between the calls, but hardly each time.
        assert!((0..100).any(|_| RunThreads::processor() == Threads::processor()));
    }
}
