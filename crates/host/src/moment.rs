//! The one stream of moments: what happens in a world, told once, in order of time.
//!
//! The trace hash, attribution, traces, timelines and live views are [`Observer`]s of it. An
//! observer says what it is interested in; a world pays a branch for every other moment.

use alloc::vec::Vec;
use overspin_scenario::{Picos, Why};

/// Runstate of a vCPU, as Xen names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VcpuState {
    /// On a pCPU.
    Running,
    /// Wants a pCPU.
    Runnable,
    /// Idle by its own will.
    Blocked,
    /// Any other reason.
    Offline,
}

/// How a window before a preemption ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowEnd {
    /// The guest gave its pCPU up.
    Used,
    /// Its time was over: the vCPU is preempted by force.
    Expired,
    /// The vCPU left by itself, or nobody wants its pCPU any more.
    Left,
}

/// A moment. vCPUs are numbered over all domains in scenario order, those of the host's noise last;
/// locks and tasks within their domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// `pcpu` goes from one vCPU to another (`None`: idle).
    Switch {
        /// Where.
        pcpu: u32,
        /// The vCPU that leaves.
        prev: Option<u32>,
        /// What it becomes.
        prev_state: VcpuState,
        /// Why it leaves, if that is against its will.
        why: Option<Why>,
        /// The vCPU that comes.
        next: Option<u32>,
    },
    /// The switch to a vCPU is over: it executes its guest's code from now on.
    Runs {
        /// Which.
        vcpu: u32,
        /// Where.
        pcpu: u32,
    },
    /// A vCPU that halts or polls gives its pCPU up, or begins to poll on it for a while.
    Sleeps {
        /// Which.
        vcpu: u32,
    },
    /// Something came for a vCPU that sleeps.
    Wake {
        /// Which.
        vcpu: u32,
        /// The pCPU on which the waker ran, if any.
        pcpu: Option<u32>,
        /// It became runnable by this. Otherwise it had not left its pCPU yet, or cannot run now.
        runnable: bool,
    },
    /// The call in which a vCPU slept returns in its guest.
    Returns {
        /// Which.
        vcpu: u32,
    },
    /// A vCPU that is to sleep polls on its pCPU first (halt polling).
    PollBegins {
        /// Which.
        vcpu: u32,
        /// Until when at most.
        until: Picos,
    },
    /// Its halt polling is over.
    PollEnds {
        /// Which.
        vcpu: u32,
        /// Something came for it meanwhile.
        found: bool,
    },
    /// A vCPU yields its pCPU by its own will.
    Yield {
        /// Which.
        vcpu: u32,
    },
    /// A vCPU exits to the host because it spins.
    PauseLoopExit {
        /// Which.
        vcpu: u32,
    },
    /// The host ran another vCPU in favour of one that spins.
    DirectedYield {
        /// The spinner.
        from: u32,
        /// The vCPU that is boosted.
        to: u32,
    },
    /// A window opens for a vCPU that is about to be preempted.
    WindowOpens {
        /// Which.
        vcpu: u32,
        /// Until when at most.
        until: Picos,
    },
    /// Its window is over.
    WindowCloses {
        /// Which.
        vcpu: u32,
        /// How.
        end: WindowEnd,
    },
    /// A vCPU takes interrupts.
    Interrupt {
        /// Which vCPU.
        vcpu: u32,
        /// Which interrupts: bits of [`irq`](crate::irq).
        pending: u32,
    },
    /// Its handlers have returned.
    InterruptEnds {
        /// Which vCPU.
        vcpu: u32,
    },
    /// The code on a vCPU starts to wait for a lock.
    LockWait {
        /// Which vCPU.
        vcpu: u32,
        /// Which lock.
        lock: u32,
        /// The vCPU that holds it or is releasing it.
        holder: Option<u32>,
        /// That one is releasing it.
        releasing: bool,
    },
    /// It has got a lock.
    LockAcquired {
        /// Which vCPU.
        vcpu: u32,
        /// Which lock.
        lock: u32,
        /// It had to wait, or others wait.
        contended: bool,
    },
    /// It begins to release a lock.
    LockReleased {
        /// Which vCPU.
        vcpu: u32,
        /// Which lock.
        lock: u32,
        /// Others wait for it.
        contended: bool,
    },
    /// It is done with releasing a lock, which somebody else may have by now.
    LockFreed {
        /// Which vCPU.
        vcpu: u32,
        /// Which lock.
        lock: u32,
        /// Others wait for it.
        contended: bool,
    },
    /// A vCPU kicks a waiter that sleeps.
    Kick {
        /// The vCPU that kicks.
        from: u32,
        /// The vCPU that is kicked.
        to: u32,
    },
    /// The administrator did something.
    Change {
        /// Index of the event in the scenario.
        event: u32,
    },
    /// A task starts to run on a vCPU (`None`: the guest's idle task).
    Task {
        /// Where.
        vcpu: u32,
        /// Index in the domain's tasks.
        task: Option<u32>,
    },
}

impl Moment {
    /// The interests that want to know of it.
    #[inline(always)]
    #[must_use]
    pub fn concerns(&self) -> Interest {
        match self {
            Self::Switch { .. }
            | Self::Change { .. }
            | Self::WindowOpens { .. }
            | Self::Wake { runnable: true, .. } => Interest::SCHEDULING.and(Interest::HASH),
            Self::Runs { .. } | Self::Sleeps { .. } | Self::Wake { .. } | Self::Returns { .. } => {
                Interest::SCHEDULING
            }
            Self::LockWait { .. }
            | Self::LockReleased { contended: true, .. }
            | Self::LockFreed { contended: true, .. } => Interest::WAITS.and(Interest::LOCKS),
            Self::LockAcquired { contended: true, .. } => {
                Interest::WAITS.and(Interest::LOCKS).and(Interest::HASH)
            }
            Self::LockAcquired { contended: false, .. } => Interest::LOCKS.and(Interest::HASH),
            Self::LockReleased { .. } | Self::LockFreed { .. } => Interest::LOCKS,
            Self::Task { .. } => Interest::TASKS.and(Interest::HASH),
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

/// Which moments an observer wants to be told: a world pays for those only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// In none.
    pub const NOTHING: Self = Self(0);
    /// Which vCPU runs where, sleeps, is woken; windows that open; what the administrator does.
    pub const SCHEDULING: Self = Self(1);
    /// What happens at locks for which somebody waits.
    pub const WAITS: Self = Self(2);
    /// Everything that happens at locks.
    pub const LOCKS: Self = Self(4);
    /// Which task runs on which vCPU.
    pub const TASKS: Self = Self(8);
    /// All the rest: interrupts, kicks, exits, polls, how windows end.
    pub const DETAILS: Self = Self(16);
    /// In every moment.
    pub const ALL: Self = Self(31);
    /// Not in moments, but in the [trace hash](crate::TraceHash) of the run: the world has it in its outcome.
    ///
    /// A hash is a chain of multiplications. Where a moment happens, the processor does them beside the
    /// simulation; in an observer they would take a tenth of the time of an uncontended lock.
    pub const HASH: Self = Self(32);

    /// In these and in those.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// In these, but not in those.
    #[inline(always)]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether there is anything that both are about.
    #[inline(always)]
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A moment and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// When, since the beginning of the run.
    pub at: Picos,
    /// What.
    pub moment: Moment,
}

/// Is told the moments of a run, in order of time.
pub trait Observer {
    /// What it wants to be told; it may be told more. A world asks once, before the run.
    fn interest(&self) -> Interest {
        Interest::ALL
    }

    /// These happened, after all that it was told before. A world tells many at once, at the latest when
    /// it looks whether it is to stop, and the rest at the end.
    fn observe(&mut self, moments: &[Timed]);
}

/// Nobody: the world need not tell anything.
impl Observer for () {
    fn interest(&self) -> Interest {
        Interest::NOTHING
    }

    fn observe(&mut self, _: &[Timed]) {}
}

/// Keeps them all.
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

/// Both, one after the other.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn interest(&self) -> Interest {
        self.0.interest().and(self.1.interest())
    }

    fn observe(&mut self, moments: &[Timed]) {
        self.0.observe(moments);
        self.1.observe(moments);
    }
}
