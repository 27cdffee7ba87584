//! Whether a CPU starves among rivals that take a lock again and again.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// What a waiter says that starves.
pub(crate) const STARVES: &str = "a waiter starves";

/// One CPU takes a lock a few times; the others take it until that CPU has done. Schedules must be fair.
#[derive(Debug)]
pub struct Rivalry {
    /// The most acquisitions of others for each of them, from the moment when the one CPU comes to its own.
    most: usize,
    /// Sections of all CPUs when the one CPU came, or when its last section ended.
    came_at: AtomicUsize,
    is_over: AtomicBool,
}

impl Rivalry {
    /// Each rival may take the lock up to `most` times while the one CPU wants it.
    pub fn new(most: usize) -> Self {
        Self { most, came_at: AtomicUsize::new(0), is_over: AtomicBool::new(false) }
    }

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
        let starves = overtaken > self.most * rivals && !self.is_over();
        assert!(!starves, "{STARVES}: {overtaken} others came first");
    }
}
