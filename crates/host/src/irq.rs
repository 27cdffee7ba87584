//! Virtual interrupts, as bits of a word of pending ones.

/// The guest's one-shot timer.
pub const TIMER: u32 = 1;
/// Another vCPU of the guest asks this one to look at its run queue.
pub const RESCHED: u32 = 2;
/// The host is about to preempt this vCPU.
pub const NOTIFY: u32 = 4;
/// The disk has written something.
pub const DISK: u32 = 8;
/// A device has something.
pub const DEVICE: u32 = 16;
