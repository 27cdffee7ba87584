//! The single stream of moments: everything that happens in a world, once, in order of time.
//!
//! The trace hash, attribution, traces, timelines and live views are [`Observer`]s of this stream. An
//! observer declares its interests; every other moment costs the world a branch.

use alloc::vec::Vec;
use overspin_scenario::{Picos, Why};

/// Runstate of a vCPU, named as in Xen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VcpuState {
    /// On a pCPU.
    Running,
    /// Wants a pCPU.
    Runnable,
    /// Blocked voluntarily.
    Blocked,
    /// Any other reason.
    Offline,
}

/// How a window before a preemption ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowEnd {
    /// The guest gave up its pCPU.
    Used,
    /// Its time was over: the host preempts the vCPU by force.
    Expired,
    /// The vCPU left by itself, or no other vCPU wants its pCPU any more.
    Left,
}

/// What a task does at a lock of user mode. Holders are tasks of the same domain; `contended`: others wait, or it waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockEvent {
    /// It starts to wait.
    Waits {
        /// The task that holds the lock or is releasing it.
        holder: Option<u32>,
        /// Whether that task is releasing it.
        releasing: bool,
    },
    /// It has acquired the lock.
    Acquired {
        /// Whether it had to wait, or others wait.
        contended: bool,
    },
    /// It begins to release the lock.
    Released {
        /// Whether others wait.
        contended: bool,
    },
    /// It has finished releasing the lock, which another task may hold by now.
    Freed {
        /// Whether others wait.
        contended: bool,
    },
}

/// What happens to a task that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SleepEvent {
    /// It goes to sleep.
    Begins,
    /// It is woken.
    Wakes,
    /// The system call in which it slept is over.
    Returns,
}

/// A moment. vCPUs are numbered over all domains in scenario order, with those of the host's noise last;
/// locks and tasks are numbered within their domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// `pcpu` goes from one vCPU to another (`None`: idle).
    Switch {
        /// The pCPU.
        pcpu: u32,
        /// The outgoing vCPU.
        prev: Option<u32>,
        /// The state of the outgoing vCPU after the switch.
        prev_state: VcpuState,
        /// Why it leaves, if it wanted to run on.
        why: Option<Why>,
        /// The incoming vCPU.
        next: Option<u32>,
    },
    /// The switch to a vCPU is over: it now executes its guest's code.
    Runs {
        /// The vCPU.
        vcpu: u32,
        /// The pCPU.
        pcpu: u32,
    },
    /// A vCPU that halts or polls gives up its pCPU, or begins halt polling on it.
    Sleeps {
        /// The vCPU.
        vcpu: u32,
    },
    /// Its domain's cap keeps a vCPU from running from now on, or no longer does.
    Throttle {
        /// The vCPU.
        vcpu: u32,
        /// Whether it does.
        on: bool,
    },
    /// An event has arrived for a sleeping vCPU.
    Wake {
        /// The vCPU.
        vcpu: u32,
        /// The pCPU on which the waker ran, if any.
        pcpu: Option<u32>,
        /// Whether this made it runnable. If not, it had not left its pCPU yet, or cannot run now.
        runnable: bool,
    },
    /// The call in which a vCPU slept returns in its guest.
    Returns {
        /// The vCPU.
        vcpu: u32,
    },
    /// A vCPU that is about to sleep polls on its pCPU first (halt polling).
    PollBegins {
        /// The vCPU.
        vcpu: u32,
        /// The latest end.
        until: Picos,
    },
    /// The halt polling of a vCPU is over.
    PollEnds {
        /// The vCPU.
        vcpu: u32,
        /// Whether an event arrived for it meanwhile.
        found: bool,
    },
    /// A vCPU yields its pCPU voluntarily.
    Yield {
        /// The vCPU.
        vcpu: u32,
    },
    /// A vCPU exits to the host because it spins.
    PauseLoopExit {
        /// The vCPU.
        vcpu: u32,
    },
    /// The host runs another vCPU of the domain in place of a spinner.
    DirectedYield {
        /// The spinner.
        from: u32,
        /// The boosted vCPU.
        to: u32,
    },
    /// A window opens for a vCPU that is about to be preempted.
    WindowOpens {
        /// The vCPU.
        vcpu: u32,
        /// The latest end.
        until: Picos,
    },
    /// The window of a vCPU is over.
    WindowCloses {
        /// The vCPU.
        vcpu: u32,
        /// How it ended.
        end: WindowEnd,
    },
    /// A vCPU takes interrupts.
    Interrupt {
        /// The vCPU.
        vcpu: u32,
        /// The interrupts: bits of [`irq`](crate::irq).
        pending: u32,
    },
    /// The interrupt handlers of a vCPU have returned.
    InterruptEnds {
        /// The vCPU.
        vcpu: u32,
    },
    /// The code on a vCPU starts to wait for a lock.
    LockWait {
        /// The vCPU.
        vcpu: u32,
        /// The lock.
        lock: u32,
        /// The vCPU that holds it or is releasing it.
        holder: Option<u32>,
        /// Whether that vCPU is releasing it.
        releasing: bool,
    },
    /// A vCPU has acquired a lock.
    LockAcquired {
        /// The vCPU.
        vcpu: u32,
        /// The lock.
        lock: u32,
        /// Whether it had to wait, or others wait.
        contended: bool,
    },
    /// A vCPU begins to release a lock.
    LockReleased {
        /// The vCPU.
        vcpu: u32,
        /// The lock.
        lock: u32,
        /// Whether others wait for it.
        contended: bool,
    },
    /// A vCPU has finished releasing a lock, which another vCPU may hold by now.
    LockFreed {
        /// The vCPU.
        vcpu: u32,
        /// The lock.
        lock: u32,
        /// Whether others wait for it.
        contended: bool,
    },
    /// A vCPU kicks a sleeping waiter.
    Kick {
        /// The kicking vCPU.
        from: u32,
        /// The kicked vCPU.
        to: u32,
    },
    /// The warm-up is over: from now on, everything counts.
    Counts,
    /// The administrator carried out an event.
    Change {
        /// Index of the event in the scenario.
        event: u32,
    },
    /// Something happens at a lock that tasks take in user mode.
    TaskLock {
        /// Index of the domain. With 16 bits no moment is larger than one without tasks.
        domain: u16,
        /// The task.
        task: u32,
        /// The lock.
        lock: u32,
        /// What the task does.
        what: LockEvent,
    },
    /// A task sleeps in a wait for a lock.
    TaskSleep {
        /// Index of the domain.
        domain: u16,
        /// The task.
        task: u32,
        /// What happens.
        what: SleepEvent,
    },
    /// A task starts to run on a vCPU (`None`: the guest's idle task).
    Task {
        /// The vCPU.
        vcpu: u32,
        /// Index in the domain's tasks.
        task: Option<u32>,
    },
}

impl Moment {
    /// The interests to which this moment belongs.
    #[inline(always)]
    #[must_use]
    pub fn concerns(&self) -> Interest {
        match self {
            Self::Switch { .. }
            | Self::Change { .. }
            | Self::WindowOpens { .. }
            | Self::Wake { runnable: true, .. } => Interest::SCHEDULING.and(Interest::HASH),
            Self::Runs { .. }
            | Self::Sleeps { .. }
            | Self::Throttle { .. }
            | Self::Wake { .. }
            | Self::Returns { .. } => Interest::SCHEDULING,
            Self::LockWait { .. }
            | Self::LockReleased { contended: true, .. }
            | Self::LockFreed { contended: true, .. } => Interest::WAITS.and(Interest::LOCKS),
            Self::LockAcquired { contended: true, .. } => {
                Interest::WAITS.and(Interest::LOCKS).and(Interest::HASH)
            }
            Self::LockAcquired { contended: false, .. } => Interest::LOCKS.and(Interest::HASH),
            Self::LockReleased { .. } | Self::LockFreed { .. } => Interest::LOCKS,
            Self::Counts => Interest::SCHEDULING.and(Interest::WAITS),
            Self::Task { .. } => Interest::TASKS.and(Interest::WAITS).and(Interest::HASH),
            Self::TaskLock { what: LockEvent::Acquired { .. }, .. } => {
                Interest::WAITS.and(Interest::LOCKS).and(Interest::HASH)
            }
            Self::TaskLock { .. } => Interest::WAITS.and(Interest::LOCKS),
            Self::TaskSleep { .. } => Interest::WAITS,
            Self::PollBegins { .. }
            | Self::PollEnds { .. }
            | Self::Yield { .. }
            | Self::PauseLoopExit { .. }
            | Self::DirectedYield { .. }
            | Self::WindowCloses { .. }
            | Self::Interrupt { .. }
            | Self::InterruptEnds { .. }
            | Self::Kick { .. } => Interest::DETAILS,
        }
    }
}

/// The moments that an observer wants to receive: a world pays for those only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// No moments.
    pub const NOTHING: Self = Self(0);
    /// Where vCPUs run, when they sleep and wake; windows that open; actions of the administrator.
    pub const SCHEDULING: Self = Self(1);
    /// Events at contended locks.
    pub const WAITS: Self = Self(2);
    /// All events at locks.
    pub const LOCKS: Self = Self(4);
    /// Which task runs on which vCPU.
    pub const TASKS: Self = Self(8);
    /// All other moments: interrupts, kicks, exits, polls, ends of windows.
    pub const DETAILS: Self = Self(16);
    /// Every moment.
    pub const ALL: Self = Self(31);
    /// Not a moment, but the [trace hash](crate::TraceHash) of the run, which the world puts into its
    /// outcome.
    ///
    /// A hash is a chain of multiplications. Where a moment happens, the processor overlaps them with the
    /// simulation; in an observer they would take a tenth of the time of an uncontended lock.
    pub const HASH: Self = Self(32);

    /// The union of both interests.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These interests without those of `other`.
    #[inline(always)]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the two interests overlap.
    #[inline(always)]
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

// A world copies a moment for each event at a lock.
const _: () = assert!(size_of::<Moment>() == 24);

/// A moment and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The time since the beginning of the run.
    pub at: Picos,
    /// The moment.
    pub moment: Moment,
}

/// Receives the moments of a run, in order of time.
pub trait Observer {
    /// The moments that it wants; it may receive more. A world asks once, before the run.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// Receives moments that happened after all earlier ones. A world delivers them in batches: at the latest
    /// when it checks whether to stop, and the rest at the end.
    fn observe(&mut self, moments: &[Timed]);
}

/// No observer: the world need not deliver anything.
impl Observer for () {
    fn interest(&self) -> Interest {
        Interest::NOTHING
    }

    fn observe(&mut self, _: &[Timed]) {}
}

/// Keeps all moments.
impl Observer for Vec<Timed> {
    fn observe(&mut self, moments: &[Timed]) {
        self.extend_from_slice(moments);
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn interest(&self) -> Interest {
        (**self).interest()
    }

    fn observe(&mut self, moments: &[Timed]) {
        (**self).observe(moments);
    }
}

impl<O: Observer> Observer for Option<O> {
    fn interest(&self) -> Interest {
        self.as_ref().map_or(Interest::NOTHING, O::interest)
    }

    fn observe(&mut self, moments: &[Timed]) {
        if let Some(observer) = self {
            observer.observe(moments);
        }
    }
}

/// Two observers, called one after the other.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn interest(&self) -> Interest {
        self.0.interest().and(self.1.interest())
    }

    fn observe(&mut self, moments: &[Timed]) {
        self.0.observe(moments);
        self.1.observe(moments);
    }
}
