//! What a program can ask of its world.

use crate::Random;
use alloc::boxed::Box;
use alloc::string::String;
use overspin_scenario::{Picos, WorkerReport, words};

/// A program: the code of one task. It may run on any thread.
pub type Program = Box<dyn FnOnce(&dyn Env) + Send>;

/// Number of a named kernel lock, in the order of [`Loads::lock_names`](crate::Loads::lock_names).
pub type LockId = usize;

/// Number of a word of the kernel's data, in the order of [`Layout::words`](crate::Layout).
pub type WordId = usize;

/// A counting semaphore on which tasks sleep; made by [`Env::semaphore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Semaphore(pub usize);

words! {
    Mode, "Which code runs: whom ticks charge, and whether another task may take over." {
        User = "user", "Application: the kernel preempts it.";
        Kernel = "kernel", "Kernel, on behalf of the application: `domain.kernel.preemption` says where it is preempted.";
    }
}

/// The source of ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    /// The guest kernel's ticks, on the vCPU that the task is on.
    Guest,
    /// The ticks of the hypervisor's scheduler, on the pCPU that the task's vCPU is on.
    Host,
}

words! {
    SliceRequest, "When a task asks its kernel for an extension of its time slice (`domain.kernel.slice_extension`). The request ends with \
     the section, or with the next switch to another task." {
        Never = "never", "It does not ask.";
        Holding = "holding", "When it tries to take the lock and while it holds it. Meanwhile, while it waits, it does not ask.";
        Waiting = "waiting", "Before it takes the lock, and while it waits.";
    }
}

words! {
    Excursion, "How a task in user mode enters its kernel in a section." {
        Fault = "fault", "A page fault: an exception, whose return to user mode may grant an extension of the time slice.";
        SystemCall = "system-call", "A system call: it ends an extension of the time slice.";
    }
}

words! {
    Waking, "What wakes a thread that sleeps between sections." {
        Timer = "timer", "The timer of the vCPU on which it went to sleep.";
        Elsewhere = "elsewhere", "An interrupt of another vCPU, by lot, as where a network card or another process wakes it: \
                                  that vCPU's kernel says so to the thread's own, by an interrupt or lazily (`kernel.preemption`).";
    }
}

/// A section of user mode in which the task may enter its kernel.
#[derive(Clone, Copy, Debug)]
pub struct Trip {
    /// Time in user mode from the latest return out of the kernel to the lock.
    pub run_up: Picos,
    /// Time in user mode in the section.
    pub work: Picos,
    /// What happens halfway through the section, and the time that the kernel takes for it.
    pub excursion: Option<(Excursion, Picos)>,
}

/// How a lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockUse {
    /// Interrupts stay as they are.
    Plain,
    /// Interrupts are off while it is held (`lock_irqsave`).
    IrqSave,
    /// By user-mode code: the guest's kernel may preempt the task that holds it, and those that wait. In its memory, each
    /// task is a CPU of its own.
    User,
}

/// The world as a task sees it.
///
/// The task itself makes all calls. CPU time is time on an undisturbed CPU at full speed.
pub trait Env {
    /// Uses the CPU for `work`.
    fn compute(&self, work: Picos, mode: Mode);
    /// Touches a page of memory that nobody has touched before. In a world with real memory that takes what it takes;
    /// elsewhere the workload says what it costs.
    fn touch_page(&self) {}
    /// Unmaps memory: waits until the vCPUs of all other tasks have forgotten it (TLB shootdown). Only where
    /// [`Load::unmaps`](crate::Load::unmaps) says so.
    fn unmap(&self) {}
    /// Sleeps for at least `time`; zero returns at once.
    fn sleep(&self, time: Picos);
    /// Makes the vCPU give up its pCPU; it stays runnable. This gives other tasks of the guest no turn.
    fn yield_vcpu(&self);
    /// When the next tick of `of` comes; `None` if it does not tick.
    fn next_tick(&self, of: Ticks) -> Option<Picos>;
    /// From now on, asks for extensions of the time slice around locks of user mode, of which it takes one at a time.
    fn ask_for_extensions(&self, _when: SliceRequest) {}
    /// Takes a lock of user mode and releases it, with excursions. Only where
    /// [`Load::makes_excursions`](crate::Load::makes_excursions) says so.
    fn trip(&self, lock: LockId, trip: Trip) {
        self.compute(trip.run_up, Mode::User);
        self.section(lock, LockUse::User, trip.work);
    }
    /// [`sleep`](Self::sleep), until an interrupt of another vCPU wakes the task.
    fn sleep_until_woken(&self, time: Picos) {
        self.sleep(time);
    }
    /// Takes a lock, computes for `work` in kernel mode, releases it.
    fn section(&self, lock: LockId, how: LockUse, work: Picos);
    /// Takes a lock, which this task must release.
    fn acquire(&self, lock: LockId, how: LockUse);
    /// Releases a lock that this task has taken.
    fn release(&self, lock: LockId);
    /// Reads a word of the kernel's data; the caller holds the lock that protects it.
    fn read(&self, word: WordId) -> usize;
    /// Writes a word of the kernel's data; the caller holds the lock that protects it.
    fn write(&self, word: WordId, value: usize);
    /// Writes pages to the disk, and sleeps until all are there. No page may be in two writes at a time.
    fn write_out(&self, pages: &[u64]);
    /// Starts a task near this one, or on the given vCPU.
    fn spawn(&self, name: String, vcpu: Option<u32>, program: Program);
    /// For a task that begins to execute a program: where that is how kernels balance their load, it may be moved.
    fn exec(&self) {}
    /// A new semaphore.
    fn semaphore(&self, count: u32) -> Semaphore;
    /// Takes one unit, sleeping until there is one.
    fn down(&self, semaphore: Semaphore);
    /// Gives one unit and wakes the first sleeper.
    fn up(&self, semaphore: Semaphore);
    /// After `time`, a device interrupts the first vCPU that this task may use. The handler works for `work`
    /// in the kernel with interrupts off, and then gives one unit to `semaphore`.
    fn interrupt_in(&self, time: Picos, work: Picos, semaphore: Semaphore);
    /// Counts one work item of this task as done.
    fn item_done(&self);
    /// Counts one work item as done for a requester that has waited since `since`, and records the wait.
    fn answered(&self, since: Picos);
    /// Time since the start of the run, by the guest's clock.
    fn now(&self) -> Picos;
    /// CPU time of this task's vCPU since the start of the run, by the hypervisor's account.
    fn cpu_time(&self) -> Picos;
    /// Adds to the report on this task.
    fn report(&self, report: WorkerReport);
    /// A random time less than `below`. This task delays its periodic work by it, so that it is not in step
    /// with other tasks. It is 0 in a world that begins everything at once.
    fn offset(&self, below: Picos) -> Picos;
    /// When the last of the host's initial domains came up. A tool that starts a benchmark in several
    /// machines waits for that.
    fn all_up(&self) -> Picos;
    /// A stream of random numbers for `purpose`; the same seed gives the same stream.
    fn random(&self, purpose: u32) -> Random;
}
