//! The desk at which runs are made: one at a time, no longer than its limit, and only for a client that still waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use overspin_runs::runner::Until;

/// How often a waiting or running request looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(20);

/// Where runs are made.
#[derive(Debug)]
pub(crate) struct Desk {
    /// Real time of a run.
    max_wall: Duration,
    is_busy: Mutex<bool>,
    freed: Condvar,
    /// Set to interrupt the run under way.
    interrupted: &'static AtomicBool,
    /// Set by the user who ends the server.
    stop: &'static AtomicBool,
    progress: Progress,
}

/// How far the run under way is. The figures stand alone: no other memory depends on them.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    all: AtomicU64,
}

impl Progress {
    pub(crate) fn is(&self, done: u64, all: u64) {
        self.all.store(all, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    /// From 0 to 1; `None` if nothing is known.
    fn part(&self) -> Option<f64> {
        let (done, all) = (self.done.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        (all > 0).then(|| (done as f64 / all as f64).min(1.0))
    }
}

/// The client has gone, or the server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unwanted;

/// Frees the desk, even if a run panics.
struct Seat<'a>(&'a Desk);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        *self.0.is_busy.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.progress.is(0, 0);
        self.0.freed.notify_one();
    }
}

impl Desk {
    pub(crate) fn new(max_wall: Duration, stop: &'static AtomicBool) -> Self {
        // A server has one for as long as the process lasts: runs hold on to it.
        let interrupted = Box::leak(Box::new(AtomicBool::new(false)));
        let (is_busy, freed) = (Mutex::new(false), Condvar::new());
        Self { max_wall, is_busy, freed, interrupted, stop, progress: Progress::default() }
    }

    /// How far the run under way is, as a number from 0 to 1; empty if nothing is known.
    pub(crate) fn progress(&self) -> String {
        self.progress.part().map_or_else(String::new, |part| format!("{part:.3}"))
    }

    /// Real time of a run.
    pub(crate) fn max_wall(&self) -> Duration {
        self.max_wall
    }

    /// Does `work` when it is its turn. It is interrupted as soon as `has_gone` says that nobody waits for it.
    pub(crate) fn take<T>(
        &self,
        has_gone: &(dyn Fn() -> bool + Sync),
        work: impl FnOnce(Until, &Progress) -> T,
    ) -> Result<T, Unwanted> {
        let is_unwanted = || has_gone() || self.stop.load(Ordering::Relaxed);
        let seat = self.seat(&is_unwanted)?;
        self.interrupted.store(false, Ordering::Relaxed);
        let deadline = Instant::now().checked_add(self.max_wall);
        let until = Until { deadline, interrupted: Some(self.interrupted) };
        let is_done = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !is_done.load(Ordering::Acquire) {
                    if is_unwanted() {
                        self.interrupted.store(true, Ordering::Relaxed);
                    }
                    thread::park_timeout(LOOK);
                }
            });
            // Ends the watcher, even if the work panics.
            struct Done<'a>(&'a AtomicBool, &'a thread::Thread);
            impl Drop for Done<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Release);
                    self.1.unpark();
                }
            }
            let _done = Done(&is_done, watcher.thread());
            work(until, &self.progress)
        });
        drop(seat);
        if self.interrupted.load(Ordering::Relaxed) { Err(Unwanted) } else { Ok(result) }
    }

    fn seat(&self, is_unwanted: &dyn Fn() -> bool) -> Result<Seat<'_>, Unwanted> {
        let mut is_busy = self.is_busy.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Before the first run too: its watcher may get a CPU later than a short run ends.
            if is_unwanted() {
                return Err(Unwanted);
            }
            if !*is_busy {
                *is_busy = true;
                return Ok(Seat(self));
            }
            let waited = self.freed.wait_timeout(is_busy, LOOK);
            is_busy = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static STOP: AtomicBool = AtomicBool::new(false);

    /// Works until it is told to stop; returns whether that was an interruption.
    fn endless(until: Until) -> bool {
        while until.over().is_none() {
            thread::yield_now();
        }
        until.interrupted.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    #[test]
    fn a_run_ends_at_its_limit_or_when_nobody_waits() {
        let desk = Desk::new(Duration::from_millis(30), &STOP);
        assert_eq!(desk.take(&|| false, |until, _| endless(until)), Ok(false), "the limit");
        let desk = Desk::new(Duration::from_secs(3600), &STOP);
        let begun = AtomicBool::new(false);
        let goes_then = || begun.load(Ordering::Relaxed);
        let work = |until, _: &Progress| {
            begun.store(true, Ordering::Relaxed);
            endless(until)
        };
        assert_eq!(desk.take(&goes_then, work), Err(Unwanted));
        // A client that has gone before has no run at all.
        assert_eq!(
            desk.take(&|| true, |_, _| unreachable!("nobody waits")),
            Err::<(), _>(Unwanted)
        );
        // The next one is not interrupted.
        assert_eq!(desk.take(&|| false, |_, _| 7), Ok(7));
    }

    #[test]
    fn runs_are_made_one_at_a_time() {
        let desk = Desk::new(Duration::from_secs(60), &STOP);
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    desk.take(&|| false, |_, progress| {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        progress.is(1, 4);
                        assert_eq!(desk.progress(), "0.250");
                        thread::sleep(Duration::from_millis(5));
                        now.fetch_sub(1, Ordering::SeqCst);
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
        assert_eq!(desk.progress(), "", "nothing is under way");
    }

    #[test]
    fn a_client_that_goes_while_it_waits_is_not_served() {
        let desk = Desk::new(Duration::from_secs(60), &STOP);
        let begun = AtomicBool::new(false);
        let release = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                desk.take(&|| false, |_, _| {
                    begun.store(true, Ordering::SeqCst);
                    while !release.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                })
            });
            overspin_testing::until("the first run begins", || begun.load(Ordering::SeqCst));
            let served = desk.take(&|| true, |_, _| ());
            release.store(true, Ordering::SeqCst);
            assert_eq!(served, Err(Unwanted));
        });
    }
}
