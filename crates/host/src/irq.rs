//! Virtual interrupts, as bits of the word of pending interrupts.

/// The guest's one-shot timer.
pub const TIMER: u32 = 1;
/// Another vCPU of the guest asks this one to look at its run queue.
pub const RESCHED: u32 = 2;
/// The host is about to preempt this vCPU.
pub const NOTIFY: u32 = 4;
/// The guest's disk has finished a write.
pub const DISK: u32 = 8;
/// A device has an event for the guest.
pub const DEVICE: u32 = 16;
/// Another vCPU of the guest has this one call a function, and waits for it.
pub const CALL: u32 = 32;
