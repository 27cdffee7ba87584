//! When a thread of this process was last seen on each CPU.
//!
//! Threads that wait for each other read the clock every few microseconds, and note where they are then. It answers
//! a question about a thread that was away from its CPU for some milliseconds: whether threads of its own process ran
//! there meanwhile, or another process did.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overspin_locks::CachePadded;

/// CPUs with the same number modulo this one share a time, and then a yield can seem cheap that was not.
const CPUS: usize = 128;

/// The times of a [`Platform::now`](overspin_locks::Platform::now), in nanoseconds. Accesses are relaxed: it is for
/// hints.
pub(crate) struct Sightings([CachePadded<AtomicU64>; CPUS]);

impl Sightings {
    pub(crate) const fn new() -> Self {
        Self([const { CachePadded::new(AtomicU64::new(0)) }; CPUS])
    }

    /// The calling thread is seen, at the time `now`.
    pub(crate) fn note(&self, now: u64) {
        self.here().store(now, Relaxed);
    }

    /// When a thread was last seen on this CPU; 0 for never.
    pub(crate) fn last(&self) -> u64 {
        self.here().load(Relaxed)
    }

    fn here(&self) -> &AtomicU64 {
        // If the processor is unknown, all are one, and then yields never seem dear.
        &self.0[processor() % CPUS]
    }
}

/// The processor of this thread; 0 if it is unknown.
pub(crate) fn processor() -> usize {
    // SAFETY: it has no preconditions. Where the call is forbidden it gives -1.
    unsafe { libc::sched_getcpu() }.max(0).cast_unsigned() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sighting_is_found() {
        let it = Sightings::new();
        assert_eq!(it.last(), 0);
        // The thread may be moved to another CPU between the calls, but hardly each time.
        let found = (1..1000).filter(|&now| {
            it.note(now);
            it.last() == now
        });
        assert!(found.count() > 500);
    }
}
