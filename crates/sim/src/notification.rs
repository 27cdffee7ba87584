//! Preemption notification: before the hypervisor preempts a vCPU in favour of another, it opens a
//! window in which the guest may finish what it does under locks (locks specification §24.1 to
//! §24.3). The bounds of a window are those of [`Windows`]; this file says who is
//! asked, what the guest does, and what that costs.
//!
//! ```text
//!   host: is to schedule, another vCPU waits ── upcall, or count of held locks > 0 ──▶ window
//!   guest: upcall with no lock held, or last lock released ── hypercall ──▶ the pass that was put off
//!   host: end of the window ──▶ the same, by force
//! ```
//!
//! The guest counts the locks that each vCPU *holds*. One that spins for a lock is not counted: it
//! would waste a window at each preemption, and delay whoever holds the lock.
//!
//! Whether somebody waits is seen as the scheduler could see it at most: a vCPU that is runnable and
//! may run on this pCPU. The scheduler may decide otherwise in the pass that follows; then a window
//! was for nothing, which its counts show as `used` or `expired` without a switch.

use crate::engine::Engine;
use crate::memory::NONE;
use crate::vcpu::Vcpu;
use overspin_host::{Moment, WindowEnd, irq};
use overspin_scenario::{
    NotificationProtocol, NotifiedGuests, PreemptionNotification, WindowOutcome,
};
use overspin_sched::PcpuId;
use overspin_sched::notification::{Terms, Verdict, Windows};
use std::cell::{Cell, RefCell};

/// What host and guest keep of a vCPU that may get windows.
#[derive(Debug, Default)]
pub(crate) struct Notified {
    windows: RefCell<Windows>,
    /// Locks that it holds: the word in the page that guest and host share.
    held: Cell<u32>,
    /// It gives its pCPU up by itself; the next pass is no preemption.
    pub gives_way: Cell<bool>,
}

fn terms(options: &PreemptionNotification) -> Terms {
    Terms { window: options.window, strikes: options.strikes, back_off: options.back_off }
}

impl Engine {
    /// The terms on which `v` is asked, if it is.
    #[inline]
    fn notification(&self, v: &Vcpu) -> Option<&PreemptionNotification> {
        let options = self.scenario.host.preemption_notification.as_ref()?;
        let asked = match options.guests {
            NotifiedGuests::Smp => self.guest(v.guest).vcpus > 1,
            NotifiedGuests::All => true,
        };
        asked.then_some(options)
    }

    /// `pcpu` is to enter its scheduler. Returns whether that is put off for a window of what runs
    /// there; then it is to do so again at the end of the window, or when the guest gives up.
    #[inline]
    pub(crate) fn postpones(&self, pcpu: u32) -> bool {
        self.scenario.host.preemption_notification.is_some() && self.opens_a_window(pcpu)
    }

    fn opens_a_window(&self, pcpu: u32) -> bool {
        let Some(v) = self.current_on(pcpu) else { return false };
        let Some(options) = self.notification(v) else { return false };
        let now = self.now.get();
        let gives_way = v.notified.gives_way.replace(false);
        if gives_way || !self.look_at(v.id, |h, v| h.is_runnable(v)) || !self.is_wanted(pcpu) {
            self.closes(v, WindowEnd::Left, |w| w.close(now));
            return false;
        }
        let worth = match options.protocol {
            NotificationProtocol::Upcall => true,
            NotificationProtocol::Deferral => v.notified.held.get() > 0,
        };
        let verdict =
            self.closes(v, WindowEnd::Expired, |w| w.preempt(now, &terms(options), worth));
        let (until, opened) = match verdict {
            Verdict::Preempt => return false,
            Verdict::Opened(until) => (until, true),
            Verdict::Wait(until) => (until, false),
        };
        self.raise_softirq(pcpu, until);
        if opened {
            self.tell(Moment::WindowOpens { vcpu: v.id, until });
            if options.protocol == NotificationProtocol::Upcall {
                self.deliver(v, irq::NOTIFY, NONE);
            }
        }
        true
    }

    /// Whether a vCPU waits that may run on `pcpu`. O(vCPUs).
    fn is_wanted(&self, pcpu: u32) -> bool {
        self.somebody_waits(|h, v| h.machine().affinity(v).hard().contains(PcpuId(pcpu)))
    }

    /// The current vCPU has got a lock: its guest counts that, by an increment here and a decrement
    /// and a look at the flag later.
    #[inline]
    pub(crate) fn section_begins(&self) {
        if self.scenario.host.preemption_notification.is_some() {
            self.counts_a_lock();
        }
    }

    fn counts_a_lock(&self) {
        let v = self.cpu();
        if self.notification(v).is_some() {
            v.notified.held.set(v.notified.held.get() + 1);
            self.burn(2 * self.scenario.host.costs.cache_hit);
        }
    }

    /// The current vCPU has released a lock; if it was the last, and it is asked to, it gives up.
    #[inline]
    pub(crate) fn section_ends(&self) {
        if self.scenario.host.preemption_notification.is_some() {
            let v = self.cpu();
            if self.notification(v).is_some() {
                v.notified.held.set(v.notified.held.get() - 1);
                self.asked_to_give_up();
            }
        }
    }

    /// The current vCPU gives up if it is asked to and holds no lock. Otherwise the release of the
    /// last lock will.
    pub(crate) fn asked_to_give_up(&self) {
        let asks = |v: &Vcpu| v.notified.windows.borrow().is_open();
        if self.cpu().notified.held.get() > 0 || !asks(self.cpu()) {
            return;
        }
        self.burn(self.scenario.host.costs.hypercall);
        // It may have been preempted by force before the hypervisor heard it.
        let v = self.cpu();
        if self.closes(v, WindowEnd::Used, |w| w.give_up(self.now.get())) {
            self.raise_softirq(v.pcpu.get(), self.now.get());
            self.let_the_pass_come();
            self.take_interrupts();
        }
    }

    /// Does `what` with the windows of `v`; if that closes the one that is open, it is told how.
    fn closes<R>(&self, v: &Vcpu, end: WindowEnd, what: impl FnOnce(&mut Windows) -> R) -> R {
        let mut windows = v.notified.windows.borrow_mut();
        let was_open = windows.is_open();
        let result = what(&mut windows);
        if was_open && !windows.is_open() {
            self.tell(Moment::WindowCloses { vcpu: v.id, end });
        }
        result
    }

    /// What became of the windows of `v`.
    pub(crate) fn window_outcome(&self, v: &Vcpu) -> Option<WindowOutcome> {
        self.notification(v)?;
        let counts = v.notified.windows.borrow().counts(self.now.get());
        Some(WindowOutcome {
            offered: counts.offered,
            used: counts.used,
            expired: counts.expired,
            left: counts.left,
            refused: counts.refused,
            time: counts.time,
        })
    }
}
