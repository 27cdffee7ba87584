//! Events: their kinds, their order at one instant, and timers that are set over and over.
//!
//! Operations are cancelled by epoch: the vCPU or pCPU that armed one increments its epoch, and the engine
//! drops an event that carries an old epoch. Timers are [`Timer`]s. Pending events are in the queue
//! (`queue.rs`).

use overspin_scenario::Picos;
use overspin_sched::{PcpuId, TimerId};
use std::cell::Cell;

/// An event. vCPUs and pCPUs are numbered over the whole host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A timer of the hypervisor's scheduler is due.
    Scheduler { timer: TimerId },
    /// A guest's one-shot timer is due.
    GuestTimer { vcpu: u32 },
    /// The current operation of a running vCPU ends, or the line that the vCPU spins on may have changed.
    Operation { vcpu: u32, epoch: u32 },
    /// An interprocessor interrupt reaches a vCPU that was running when it was sent.
    Interrupt { vcpu: u32, interrupt: u32 },
    /// The administrator carries out an event of the scenario.
    Change { index: u32 },
    /// A vCPU comes up.
    Boot { vcpu: u32 },
    /// A pCPU has finished switching to its next vCPU.
    Switched { pcpu: u32 },
    /// A pCPU has handled an interrupt of the host, and returns to its guest.
    Returns { pcpu: u32 },
    /// A pCPU enters its scheduler.
    Softirq { pcpu: u32, epoch: u32 },
    /// A write of a guest's disk is complete.
    Disk { guest: u32 },
    /// A device of a guest has something to report.
    Device { guest: u32, place: u32 },
    /// A guest's `vmstat` prints a line.
    Vmstat { guest: u32 },
    /// The governor looks how busy each socket is.
    Governor,
    /// The watchdog looks for a deadlock.
    Watchdog,
    /// Somebody looks how much work the domains have done.
    Look,
    /// The warm-up is over.
    Counts,
    /// The simulated-time limit is reached.
    Limit,
}

/// A power of two, at least the number of kinds that [`Event::pack`] tells apart.
pub(crate) const KINDS: u64 = 16;

impl Event {
    /// Order among events due at the same instant (schedulers §1.4): scheduler timers in their own
    /// order, guest timers, operations and interrupts, then the scheduling passes that these caused.
    #[inline(always)]
    pub(crate) fn class(self) -> u64 {
        match self {
            Event::Scheduler { timer: TimerId::Tick(_) } => 0,
            Event::Scheduler { timer: TimerId::Accounting } => 1,
            Event::Scheduler { .. } => 2,
            Event::GuestTimer { .. } => 3,
            Event::Operation { .. }
            | Event::Interrupt { .. }
            | Event::Change { .. }
            | Event::Boot { .. }
            | Event::Switched { .. }
            | Event::Returns { .. }
            | Event::Disk { .. }
            | Event::Device { .. }
            | Event::Governor => 4,
            Event::Softirq { .. } => 5,
            Event::Watchdog | Event::Vmstat { .. } | Event::Look | Event::Counts => 6,
            Event::Limit => 7,
        }
    }

    /// The event as two numbers; the first, its kind, is less than [`KINDS`]. Numbers stay in registers from
    /// where the event is armed to where it is stored. A structure would be written in parts and read as a
    /// whole at once, so that the processor waits for its own stores. Measured, that wait was a tenth of the
    /// time of a contended lock operation.
    #[inline(always)]
    pub(crate) fn pack(self) -> (u64, u64) {
        let two = |a: u32, b: u32| u64::from(a) | u64::from(b) << 32;
        match self {
            Event::Scheduler { timer: TimerId::Tick(p) } => (0, p.0.into()),
            Event::Scheduler { timer: TimerId::Slice(p) } => (1, p.0.into()),
            Event::Scheduler { timer: TimerId::Accounting } => (2, 0),
            Event::GuestTimer { vcpu } => (3, vcpu.into()),
            Event::Operation { vcpu, epoch } => (4, two(vcpu, epoch)),
            Event::Interrupt { vcpu, interrupt } => (5, two(vcpu, interrupt)),
            Event::Change { index } => (6, index.into()),
            Event::Boot { vcpu } => (7, vcpu.into()),
            Event::Switched { pcpu } => (8, two(pcpu, 0)),
            Event::Returns { pcpu } => (8, two(pcpu, 1)),
            Event::Softirq { pcpu, epoch } => (9, two(pcpu, epoch)),
            Event::Disk { guest } => (10, guest.into()),
            Event::Vmstat { guest } => (11, guest.into()),
            Event::Governor => (12, 0),
            Event::Watchdog => (13, 0),
            Event::Look => (13, 1),
            Event::Counts => (13, 2),
            Event::Limit => (14, 0),
            Event::Device { guest, place } => (15, two(guest, place)),
        }
    }

    /// The inverse of [`pack`](Self::pack).
    #[inline(always)]
    pub(crate) fn unpack(kind: u64, what: u64) -> Self {
        // The truncation is intended: it splits the two halves.
        let (a, b) = (what as u32, (what >> 32) as u32);
        if kind == 4 {
            // Most events are operations: a well predicted branch, before the one through the table.
            return Event::Operation { vcpu: a, epoch: b };
        }
        match kind {
            0 => Event::Scheduler { timer: TimerId::Tick(PcpuId(a)) },
            1 => Event::Scheduler { timer: TimerId::Slice(PcpuId(a)) },
            2 => Event::Scheduler { timer: TimerId::Accounting },
            3 => Event::GuestTimer { vcpu: a },
            5 => Event::Interrupt { vcpu: a, interrupt: b },
            6 => Event::Change { index: a },
            7 => Event::Boot { vcpu: a },
            8 if b == 0 => Event::Switched { pcpu: a },
            8 => Event::Returns { pcpu: a },
            9 => Event::Softirq { pcpu: a, epoch: b },
            10 => Event::Disk { guest: a },
            11 => Event::Vmstat { guest: a },
            12 => Event::Governor,
            13 => match a {
                0 => Event::Watchdog,
                1 => Event::Look,
                _ => Event::Counts,
            },
            15 => Event::Device { guest: a, place: b },
            _ => Event::Limit,
        }
    }
}

/// A timer that is set far more often than it fires.
///
/// Setting it to a later time, or stopping it, leaves the pending event where it is. When that event
/// comes, it is pushed again for the time wanted by then. So the queue holds about one event per timer,
/// instead of one for each time that the timer was set.
#[derive(Debug)]
pub(crate) struct Timer {
    /// When it is to fire; `Picos::MAX` if it is stopped.
    due: Cell<Picos>,
    /// The time of the pending event that counts; `Picos::MAX` if there is none. Other pending events are
    /// leftovers.
    armed: Cell<Picos>,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self { due: Cell::new(Picos::MAX), armed: Cell::new(Picos::MAX) }
    }

    /// When it is to fire; `Picos::MAX` if it is stopped.
    pub(crate) fn due(&self) -> Picos {
        self.due.get()
    }

    /// Sets the timer, or stops it with `Picos::MAX`. Returns the time of the event to push, if any.
    pub(crate) fn set(&self, at: Picos) -> Option<Picos> {
        self.due.set(at);
        (at < self.armed.get()).then(|| {
            self.armed.set(at);
            at
        })
    }

    /// Handles an event of the timer that has come at `now`. Returns `Ok` if the timer fires; otherwise the
    /// time of the event to push, if any.
    pub(crate) fn event(&self, now: Picos) -> Result<(), Option<Picos>> {
        if self.armed.get() != now {
            return Err(None);
        }
        self.armed.set(Picos::MAX);
        if self.due.get() <= now {
            self.due.set(Picos::MAX);
            return Ok(());
        }
        Err(self.set(self.due.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let (a, b) = (u32::MAX, 7);
        for event in [
            Event::Scheduler { timer: TimerId::Tick(PcpuId(a)) },
            Event::Scheduler { timer: TimerId::Slice(PcpuId(a)) },
            Event::Scheduler { timer: TimerId::Accounting },
            Event::GuestTimer { vcpu: a },
            Event::Operation { vcpu: a, epoch: b },
            Event::Interrupt { vcpu: a, interrupt: b },
            Event::Change { index: a },
            Event::Boot { vcpu: a },
            Event::Switched { pcpu: a },
            Event::Returns { pcpu: a },
            Event::Softirq { pcpu: a, epoch: b },
            Event::Disk { guest: a },
            Event::Device { guest: a, place: b },
            Event::Vmstat { guest: a },
            Event::Governor,
            Event::Watchdog,
            Event::Look,
            Event::Counts,
            Event::Limit,
        ] {
            let (kind, what) = event.pack();
            assert!(kind < KINDS);
            assert_eq!(Event::unpack(kind, what), event);
        }
    }

    #[test]
    fn a_timer_fires_once_at_the_time_wanted_last() {
        let t = Timer::new();
        assert_eq!(t.set(Picos(30)), Some(Picos(30)));
        // Set later twice: the event at 30 stays, and moves on when it comes.
        assert_eq!(t.set(Picos(40)), None);
        assert_eq!(t.set(Picos(50)), None);
        assert_eq!(t.event(Picos(30)), Err(Some(Picos(50))));
        // Set earlier: a new event; the one at 50 is a leftover.
        assert_eq!(t.set(Picos(45)), Some(Picos(45)));
        assert_eq!(t.event(Picos(45)), Ok(()));
        assert_eq!(t.event(Picos(50)), Err(None));
        // Stopped before it fires.
        assert_eq!(t.set(Picos(60)), Some(Picos(60)));
        assert_eq!(t.set(Picos::MAX), None);
        assert_eq!(t.event(Picos(60)), Err(None));
        assert_eq!(t.set(Picos(70)), Some(Picos(70)));
        assert_eq!(t.event(Picos(70)), Ok(()));
    }
}
