//! Preemption notification: before a host preempts a vCPU in favour of another, it opens a window in which
//! the guest may finish its critical sections (locks specification §24.1 to §24.3). `windows.rs` has the
//! bounds of a window; this file decides which vCPUs are asked, and when a window opens.
//!
//! ```text
//!   host: is to schedule, another vCPU waits ── upcall, or count of held locks > 0 ──▶ window
//!   guest: upcall with no lock held, or last lock released ── hypercall ──▶ the pass that was put off
//!   host: end of the window ──▶ the same, by force
//! ```
//!
//! The guest counts the locks that each vCPU *holds*. It does not count locks for which a vCPU spins: a
//! spinner would waste a window at each preemption, and delay the holder of the lock.
//!
//! A vCPU counts as waiting if it is runnable and may run on this pCPU. The scheduler may decide otherwise
//! in the pass that follows; then the window was unnecessary, which the counts show as `used` or `expired`
//! without a switch.

use crate::moment::WindowEnd;
use crate::windows::{Verdict, Windows};
use overspin_scenario::{
    NotificationProtocol, NotifiedGuests, Picos, PreemptionNotification, WindowOutcome,
};
use overspin_sched::{Hypervisor, PcpuId, RunState, VcpuId};

/// The state that host and guest keep for a vCPU that may get windows.
#[derive(Clone, Debug, Default)]
pub struct Notified {
    windows: Windows,
    /// Number of locks that it holds: the word in the page shared by guest and host.
    held: u32,
}

/// Whether a scheduling pass takes place now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// It takes place.
    Now,
    /// It is postponed until this time, or until the guest gives up its pCPU.
    PutOff {
        /// The latest time at which it takes place.
        until: Picos,
        /// Whether a window has just been opened.
        opened: bool,
        /// Whether the guest gets an upcall.
        upcall: bool,
    },
}

/// Whether the host asks the vCPUs of a guest with this number of vCPUs.
#[must_use]
pub fn asks(options: &PreemptionNotification, vcpus: u32) -> bool {
    match options.guests {
        NotifiedGuests::Smp => vcpus > 1,
        NotifiedGuests::All => true,
    }
}

/// Whether vCPU `v` waits for a pCPU and may run on `pcpu`.
#[must_use]
pub fn wants(hypervisor: &Hypervisor, v: VcpuId, pcpu: PcpuId) -> bool {
    hypervisor.runstate(v) == RunState::Runnable
        && hypervisor.machine().affinity(v).hard().contains(pcpu)
}

impl Notified {
    /// Decides about a pending scheduling pass of the pCPU on which this vCPU runs. `preempts`: the vCPU
    /// could go on, and another wants the pCPU. Returns whether the pass takes place, and how an open
    /// window has ended.
    pub fn pass(
        &mut self,
        now: Picos,
        options: &PreemptionNotification,
        preempts: bool,
    ) -> (Pass, Option<WindowEnd>) {
        let was_open = self.is_asked();
        if !preempts {
            self.windows.close(now);
            return (Pass::Now, was_open.then_some(WindowEnd::Left));
        }
        let upcall = options.protocol == NotificationProtocol::Upcall;
        let worth = upcall || self.held > 0;
        match self.windows.preempt(now, options, worth) {
            Verdict::Preempt => (Pass::Now, was_open.then_some(WindowEnd::Expired)),
            Verdict::Opened(until) => (Pass::PutOff { until, opened: true, upcall }, None),
            Verdict::Wait(until) => (Pass::PutOff { until, opened: false, upcall: false }, None),
        }
    }

    /// Records how many locks the vCPU holds, where the guest keeps the count in a page.
    pub fn holds(&mut self, locks: u32) {
        self.held = locks;
    }

    /// Records that the vCPU has acquired a lock.
    pub fn holds_one_more(&mut self) {
        self.held += 1;
    }

    /// Records that the vCPU has released a lock.
    pub fn holds_one_less(&mut self) {
        self.held -= 1;
    }

    /// Whether the vCPU holds a lock.
    #[must_use]
    pub fn holds_locks(&self) -> bool {
        self.held > 0
    }

    /// Whether the vCPU is currently asked to give up its pCPU.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.windows.is_open()
    }

    /// Records that the vCPU gives up. Returns whether it was still asked to; if so, its pCPU schedules
    /// now.
    pub fn give_up(&mut self, now: Picos) -> bool {
        self.windows.give_up(now)
    }

    /// The counts of its windows up to `now`.
    #[must_use]
    pub fn outcome(&self, now: Picos) -> WindowOutcome {
        self.windows.outcome(now)
    }
}
