//! Whether a CPU starves among rivals that take a lock again and again.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The most acquisitions of others for each of them, from the moment when a CPU comes to its own acquisition.
///
/// CPUs are scheduled at random, all as often as each other, so a waiter of a lock without any order finds it free as often as
/// others do. It loses 100 times to each of several others by bad luck once in 10^20. A lottery lets a waiter in once in 4.
const OVERTAKEN: usize = 100;

/// One CPU takes a lock a few times; the others take it until that CPU has done. Schedules must be fair: at random, all CPUs
/// equally likely.
#[derive(Debug, Default)]
pub struct Rivalry {
    /// Sections of all CPUs when the one CPU came, or when its last section ended.
    came_at: AtomicUsize,
    is_over: AtomicBool,
}

impl Rivalry {
    /// For the one CPU: it comes to its next section, after so many sections of all CPUs.
    pub fn comes(&self, sections: usize) {
        self.came_at.store(sections, Relaxed);
    }

    /// For the one CPU: it has done.
    pub fn ends(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// Whether the one CPU has done.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// For a rival, one of so many, after its section: `sections` of all CPUs have been.
    ///
    /// # Panics
    /// If the one CPU starves.
    pub fn was_inside(&self, sections: usize, rivals: usize) {
        let overtaken = sections.saturating_sub(self.came_at.load(Relaxed));
        let starves = overtaken > OVERTAKEN * rivals && !self.is_over();
        assert!(!starves, "a waiter starves: {overtaken} others came first");
    }
}
