//! Preemption notification: a vCPU that is about to be preempted gets a *window* in which its guest
//! may finish its critical sections and then give up the pCPU itself.
//!
//! This is the host's side of the protocol for one vCPU, as a state machine that a world drives. It
//! has no clock, no interrupts and no shared pages.
//!
//! ```text
//!            preempt: worth asking, not barred            give_up
//!   closed ───────────────────────────────────▶ open ───────────────▶ answered
//!     ▲                                          │                        │
//!     │  preempt at or after its end (expired)   │                        │
//!     │  close (blocked, or nobody wants it now) │                        │
//!     └──────────────────────────────────────────┴─────── preempt ────────┘
//! ```
//!
//! The bounds prevent abuse. The host does not trust the guest, and the guest cannot make a window
//! longer:
//! - A window ends after `window` of the [`PreemptionNotification`], used or not, and a scheduling
//!   pass follows. So there is at most one window for each decision of the scheduler.
//! - For the scheduler, a vCPU in its window runs, and is charged for that time as for any other. It
//!   pays for an overrun with its later share.
//! - After `strikes` expired windows in a row, the vCPU gets none for `back_off`. So a guest that
//!   never gives up delays others by at most `strikes` windows in that time. A guest that gives up
//!   just before the end delays each preemption by less than a window.
//!
//! Source: locks specification §24.1 to §24.3, after Uhlig et al., VM 2004, and IBM's patch for Xen of
//! May 2005, of which only the report is available.

use overspin_scenario::{Picos, PreemptionNotification, WindowOutcome};

/// The host's decision about a vCPU that it is about to preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Preempt it now.
    Preempt,
    /// A window was opened: tell the guest, and call again at this time or when the guest has given
    /// up.
    Opened(Picos),
    /// Its window is open until this time.
    Wait(Picos),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Open {
        since: Picos,
        until: Picos,
    },
    Answered,
}

/// The windows of one vCPU. All calls are O(1).
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows {
    state: State,
    /// Expired windows in a row; always below the strikes of the terms.
    strikes: u32,
    barred_until: Picos,
    outcome: WindowOutcome,
}

impl Windows {
    /// Decides about a preemption: the scheduler is about to run on the pCPU of this vCPU, which could
    /// go on, and another vCPU wants the pCPU. `worth`: the guest may have a critical section to
    /// finish first.
    pub(crate) fn preempt(
        &mut self,
        now: Picos,
        terms: &PreemptionNotification,
        worth: bool,
    ) -> Verdict {
        match self.state {
            State::Open { until, .. } if now < until => return Verdict::Wait(until),
            State::Open { since, .. } => {
                self.outcome.expired += 1;
                self.outcome.time += now - since;
                self.strikes += 1;
                if self.strikes >= terms.strikes {
                    self.strikes = 0;
                    self.barred_until = now.saturating_add(terms.back_off);
                }
            }
            State::Answered => {}
            State::Closed if !worth => {}
            State::Closed if now < self.barred_until => self.outcome.refused += 1,
            State::Closed => {
                let until = now.saturating_add(terms.window);
                self.state = State::Open { since: now, until };
                self.outcome.offered += 1;
                return Verdict::Opened(until);
            }
        }
        self.state = State::Closed;
        Verdict::Preempt
    }

    /// The guest is ready to be preempted. Returns whether it was asked; if so, the host runs its
    /// scheduler now. If not, the window has ended meanwhile, and there is nothing to do.
    pub(crate) fn give_up(&mut self, now: Picos) -> bool {
        let State::Open { since, .. } = self.state else { return false };
        self.state = State::Answered;
        self.strikes = 0;
        self.outcome.used += 1;
        self.outcome.time += now - since;
        true
    }

    /// Closes the window because there is nothing to preempt: the vCPU gives way by itself, or no
    /// other vCPU wants its pCPU.
    pub(crate) fn close(&mut self, now: Picos) {
        if let State::Open { since, .. } = self.state {
            self.outcome.left += 1;
            self.outcome.time += now - since;
        }
        self.state = State::Closed;
    }

    /// Whether the guest is currently asked to give up its pCPU.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// The counts of its windows up to `now`; an open window counts with its time so far.
    pub(crate) fn outcome(&self, now: Picos) -> WindowOutcome {
        let open = match self.state {
            State::Open { since, .. } => now - since,
            State::Closed | State::Answered => Picos::ZERO,
        };
        WindowOutcome { time: self.outcome.time + open, ..self.outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{NotificationProtocol, NotifiedGuests};

    const WINDOW: u64 = 100;
    const TERMS: PreemptionNotification = PreemptionNotification {
        guests: NotifiedGuests::All,
        protocol: NotificationProtocol::Upcall,
        window: Picos(WINDOW),
        strikes: 3,
        back_off: Picos(1000),
    };

    /// `preempt` with a time in plain numbers.
    fn preempt(w: &mut Windows, now: u64, worth: bool) -> Verdict {
        w.preempt(Picos(now), &TERMS, worth)
    }

    #[test]
    fn a_guest_that_gives_up_is_preempted_then_and_not_asked_again_before() {
        let mut w = Windows::default();
        assert_eq!(preempt(&mut w, 10, true), Verdict::Opened(Picos(110)));
        // Another reason to schedule arrives meanwhile.
        assert_eq!(preempt(&mut w, 50, true), Verdict::Wait(Picos(110)));
        assert!(w.give_up(Picos(60)));
        assert!(!w.give_up(Picos(61)), "once is enough");
        assert_eq!(preempt(&mut w, 60, true), Verdict::Preempt);
        let expected = WindowOutcome { offered: 1, used: 1, time: Picos(50), ..Default::default() };
        assert_eq!(w.outcome(Picos(60)), expected);
    }

    #[test]
    fn a_guest_that_holds_nothing_is_not_asked() {
        let mut w = Windows::default();
        assert_eq!(preempt(&mut w, 0, false), Verdict::Preempt);
        assert_eq!(w.outcome(Picos(0)), WindowOutcome::default());
    }

    #[test]
    fn a_guest_that_never_gives_up_is_preempted_at_the_end_and_then_barred() {
        let mut w = Windows::default();
        let mut now = 0;
        for _ in 0..TERMS.strikes {
            let end = now + WINDOW;
            assert_eq!(preempt(&mut w, now, true), Verdict::Opened(Picos(end)));
            assert_eq!(preempt(&mut w, end - 1, true), Verdict::Wait(Picos(end)));
            assert_eq!(preempt(&mut w, end, true), Verdict::Preempt);
            assert!(!w.give_up(Picos(end)), "too late");
            now = end;
        }
        assert_eq!(preempt(&mut w, now + 999, true), Verdict::Preempt);
        assert_eq!(preempt(&mut w, now + 1000, true), Verdict::Opened(Picos(now + 1100)));
        let expected = WindowOutcome {
            offered: 4,
            expired: 3,
            refused: 1,
            time: Picos(300),
            ..Default::default()
        };
        assert_eq!(w.outcome(Picos(now + 1000)), expected);
    }

    /// Two windows out of three expire, for ever: the vCPU is never barred. A third in a row would bar
    /// it.
    #[test]
    fn only_windows_in_a_row_count() {
        let mut w = Windows::default();
        for round in 0..10 {
            let now = round * 1000;
            for at in [now, now + 200] {
                assert_eq!(preempt(&mut w, at, true), Verdict::Opened(Picos(at + 100)));
                assert_eq!(preempt(&mut w, at + 100, true), Verdict::Preempt);
            }
            assert_eq!(preempt(&mut w, now + 400, true), Verdict::Opened(Picos(now + 500)));
            assert!(w.give_up(Picos(now + 499)));
            assert_eq!(preempt(&mut w, now + 499, true), Verdict::Preempt);
        }
        assert_eq!(w.outcome(Picos(10_000)).refused, 0);
    }

    /// Whatever a guest does, no window is longer than the terms, and `strikes` + 1 expired windows
    /// take at least the time of `strikes` windows.
    #[test]
    fn forced_windows_are_limited_in_each_period() {
        let mut x = 1_u64;
        let mut w = Windows::default();
        let (mut now, mut opened) = (0, None);
        let mut expiries: alloc::vec::Vec<u64> = alloc::vec::Vec::new();
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += (x >> 60) * 5;
            if x >> 40 & 15 == 0 {
                w.give_up(Picos(now));
                opened = None;
            }
            let before = w.outcome(Picos(now)).expired;
            match preempt(&mut w, now, true) {
                Verdict::Opened(Picos(until)) => {
                    assert_eq!(until, now + WINDOW);
                    opened = Some(now);
                }
                Verdict::Wait(Picos(until)) => {
                    let since = opened.expect("it was opened");
                    assert!(now < until && until == since + WINDOW);
                }
                Verdict::Preempt => opened = None,
            }
            if w.outcome(Picos(now)).expired > before {
                expiries.push(now);
            }
        }
        assert!(expiries.len() > 20, "{} expiries", expiries.len());
        // Windows do not overlap.
        for four in expiries.windows(TERMS.strikes as usize + 1) {
            let took = four[TERMS.strikes as usize] - four[0];
            assert!(took >= WINDOW * u64::from(TERMS.strikes), "{four:?}");
        }
        let in_a_row = w.outcome(Picos(now));
        assert_eq!(
            in_a_row.offered,
            in_a_row.used + in_a_row.expired + in_a_row.left + u64::from(w.is_open())
        );
    }

    #[test]
    fn a_vcpu_that_leaves_by_itself_closes_its_window() {
        let mut w = Windows::default();
        assert_eq!(preempt(&mut w, 0, true), Verdict::Opened(Picos(100)));
        w.close(Picos(30));
        assert!(!w.is_open());
        w.close(Picos(40));
        assert_eq!(
            w.outcome(Picos(50)),
            WindowOutcome { offered: 1, left: 1, time: Picos(30), ..Default::default() }
        );
    }
}
