//! What a program can ask of the world that it runs in.

use crate::Random;
use alloc::boxed::Box;
use alloc::string::String;
use overspin_scenario::{Picos, WorkerReport};

/// A program: the code of one task. It may run on any thread.
pub type Program = Box<dyn FnOnce(&dyn Env) + Send>;

/// Number of a named kernel lock, in the order of [`Loads::lock_names`](crate::Loads::lock_names).
pub type LockId = usize;

/// Number of a word of the kernel's data, in the order of [`Layout::words`](crate::Layout).
pub type WordId = usize;

/// A counting semaphore on which tasks sleep; made by [`Env::semaphore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semaphore(pub usize);

/// Whose code runs, for the kernel's accounting. Kernel code is not preempted by other tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Application.
    User,
    /// Kernel, on behalf of the application.
    Kernel,
}

/// Whose ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    /// The guest kernel's, on the vCPU that the task is on.
    Guest,
    /// The hypervisor's scheduler's, on the pCPU that the task's vCPU is on.
    Host,
}

/// How a lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockUse {
    /// Interrupts stay as they are.
    Plain,
    /// Interrupts are off while it is held (`lock_irqsave`).
    IrqSave,
}

/// The world as a task sees it.
///
/// All calls are made by the task itself. CPU time is time on an undisturbed CPU at full speed.
pub trait Env {
    /// Uses the CPU for `work`.
    fn compute(&self, work: Picos, mode: Mode);
    /// Sleeps for at least `time`; zero returns at once.
    fn sleep(&self, time: Picos);
    /// Has the vCPU give its pCPU up; it stays runnable. Other tasks of the guest get no turn by it.
    fn yield_vcpu(&self);
    /// When the next tick of `of` comes, if it ticks.
    fn next_tick(&self, of: Ticks) -> Option<Picos>;
    /// Takes a lock, computes for `work` in kernel mode, releases it.
    fn section(&self, lock: LockId, how: LockUse, work: Picos);
    /// Takes a lock, which this task releases.
    fn acquire(&self, lock: LockId, how: LockUse);
    /// Releases a lock that this task has taken.
    fn release(&self, lock: LockId);
    /// Reads a word of the kernel's data; the caller holds the lock that protects it.
    fn read(&self, word: WordId) -> usize;
    /// Writes a word of the kernel's data; the caller holds the lock that protects it.
    fn write(&self, word: WordId, value: usize);
    /// Writes pages to the disk, and sleeps until all are there. A page is not written twice at a
    /// time.
    fn write_out(&self, pages: &[u64]);
    /// Starts a task near this one, or on the given vCPU.
    fn spawn(&self, name: String, vcpu: Option<u32>, program: Program);
    /// A new semaphore.
    fn semaphore(&self, count: u32) -> Semaphore;
    /// Takes one unit, sleeping until there is one.
    fn down(&self, semaphore: Semaphore);
    /// Gives one unit and wakes the first sleeper.
    fn up(&self, semaphore: Semaphore);
    /// In `time` from now a device interrupts the first vCPU that this task may use: the handler works for
    /// `work` in the kernel, interrupts off, and then gives one unit to `semaphore`.
    fn interrupt_in(&self, time: Picos, work: Picos, semaphore: Semaphore);
    /// Counts one work item of this task as done.
    fn item_done(&self);
    /// Counts one work item as done for which somebody has waited since `since`, and keeps how long.
    fn answered(&self, since: Picos);
    /// Time since the start of the run, by the guest's clock.
    fn now(&self) -> Picos;
    /// CPU time of this task's vCPU since the start of the run, by the hypervisor's account.
    fn cpu_time(&self) -> Picos;
    /// Adds to what is known of this task.
    fn report(&self, report: WorkerReport);
    /// A random time less than `below` by which this task begins late what it does periodically, so that
    /// it is not in step with others; 0 where the world begins everything at once.
    fn offset(&self, below: Picos) -> Picos;
    /// When the last domain that the host begins with came up.
    /// A tool that starts a benchmark in several machines waits for that.
    fn all_up(&self) -> Picos;
    /// A stream of random numbers for `purpose`, the same for the same seed.
    fn random(&self, purpose: u32) -> Random;
}
