//! Preemption notification: before a host preempts a vCPU in favour of another, it opens a window in which
//! the guest may finish what it does under locks (locks specification §24.1 to §24.3). The bounds of a
//! window are those of `windows.rs`; this file says which vCPUs are asked, and when a window opens.
//!
//! ```text
//!   host: is to schedule, another vCPU waits ── upcall, or count of held locks > 0 ──▶ window
//!   guest: upcall with no lock held, or last lock released ── hypercall ──▶ the pass that was put off
//!   host: end of the window ──▶ the same, by force
//! ```
//!
//! The guest counts the locks that each vCPU *holds*. One that spins for a lock is not counted: it
//! would waste a window at each preemption, and delay the holder of the lock.
//!
//! Whether somebody waits is seen as the scheduler could see it at most: a vCPU that is runnable and
//! may run on this pCPU. The scheduler may decide otherwise in the pass that follows; then a window
//! was for nothing, which its counts show as `used` or `expired` without a switch.

use crate::moment::WindowEnd;
use crate::windows::{Verdict, Windows};
use overspin_scenario::{
    NotificationProtocol, NotifiedGuests, Picos, PreemptionNotification, WindowOutcome,
};
use overspin_sched::{Hypervisor, PcpuId, RunState, VcpuId};

/// What host and guest keep of a vCPU that may get windows.
#[derive(Clone, Debug, Default)]
pub struct Notified {
    windows: Windows,
    /// Locks that it holds: the word in the page that guest and host share.
    held: u32,
}

/// What becomes of a scheduling pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// It takes place.
    Now,
    /// It is put off until this time, or until the guest gives up.
    PutOff {
        /// When it takes place at the latest.
        until: Picos,
        /// A window has just been opened.
        opened: bool,
        /// The guest is to get an upcall.
        upcall: bool,
    },
}

/// Whether the vCPUs of a guest with so many are asked.
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
    /// The pCPU on which this vCPU runs is to schedule. `preempts`: that would take the pCPU away from a
    /// vCPU that could go on, for another that wants it. Returns what becomes of the pass, and how a window
    /// that was open has ended.
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

    /// It has got a lock.
    pub fn holds_one_more(&mut self) {
        self.held += 1;
    }

    /// It has released a lock.
    pub fn holds_one_less(&mut self) {
        self.held -= 1;
    }

    /// Whether it holds a lock.
    #[must_use]
    pub fn holds_locks(&self) -> bool {
        self.held > 0
    }

    /// Whether it is asked to give up.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.windows.is_open()
    }

    /// It gives up. Returns whether it was still asked to: then its pCPU schedules now.
    pub fn give_up(&mut self, now: Picos) -> bool {
        self.windows.give_up(now)
    }

    /// What became of its windows up to `now`.
    #[must_use]
    pub fn outcome(&self, now: Picos) -> WindowOutcome {
        self.windows.outcome(now)
    }
}
