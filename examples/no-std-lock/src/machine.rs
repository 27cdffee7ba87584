//! What a kernel supplies.

use core::fmt::Debug;

/// A machine: what the locks cannot know themselves.
///
/// # Safety
/// Two CPUs never have the same number. [`Machine::irq_save`] makes the rest of the code run on one CPU, without an
/// interrupt handler and without another task in between, until [`Machine::irq_restore`] is called with `true`.
pub unsafe trait Machine: Debug + Send + Sync + 'static {
    /// Dense number of the CPU that executes this call, from 0. It is called only with interrupts off.
    fn cpu() -> usize;
    /// Switches interrupts off on this CPU; returns whether they were on.
    fn irq_save() -> bool;
    /// Switches interrupts on again if `on`.
    fn irq_restore(on: bool);
}
