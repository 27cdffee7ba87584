//! What a task has of its own, wherever it runs: its mode, and where it is in a wait for a lock.
//!
//! User-mode code may lose its vCPU between any two instructions, and go on on another one. So it must not keep what belongs
//! to a vCPU, as the page of that. What it finds here stays its own.

use core::sync::atomic::{AtomicBool, AtomicU64};

/// The words of a task, or of the loop of a vCPU that has no task. Only its own code writes them, and interrupt handlers on
/// top of that; the latch is also set by others.
#[derive(Debug)]
pub struct Local {
    /// Its number as a CPU of locks of user mode.
    pub locker: usize,
    /// Its number as a task.
    pub task: u32,
    /// Whether it executes user-mode code.
    pub user: AtomicBool,
    /// Whether it does kernel work in which another task may take over.
    pub preemptible: AtomicBool,
    /// A wake-up has come since it began to look whether it must sleep.
    pub latch: AtomicBool,
    /// How often another task took its vCPU over, although it wanted to go on.
    pub preemptions: AtomicU64,
    /// CPU time that it was charged for.
    pub cpu: AtomicU64,
    /// The lock that it wants, plus one; 0: none.
    pub wants: AtomicU64,
    /// When its wait began, plus one; 0: it does not wait.
    pub since: AtomicU64,
    /// Its CPU time then.
    pub cpu_then: AtomicU64,
    /// How often it slept in this wait.
    pub slept: AtomicU64,
    /// Kicks that it has sent, in all.
    pub kicked: AtomicU64,
}

impl Local {
    /// That of a task, which is this CPU to locks of user mode.
    pub const fn new(locker: usize, task: u32) -> Self {
        Self {
            locker,
            task,
            user: AtomicBool::new(false),
            preemptible: AtomicBool::new(false),
            latch: AtomicBool::new(false),
            preemptions: AtomicU64::new(0),
            cpu: AtomicU64::new(0),
            wants: AtomicU64::new(0),
            since: AtomicU64::new(0),
            cpu_then: AtomicU64::new(0),
            slept: AtomicU64::new(0),
            kicked: AtomicU64::new(0),
        }
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::new(0, 0)
    }
}
