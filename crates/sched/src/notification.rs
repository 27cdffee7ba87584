//! Preemption notification: a vCPU that is about to be preempted gets a *window* in which its guest
//! may finish what it does under locks, and then gives the pCPU up itself.
//!
//! This is the host's side of the protocol for one vCPU, as a state machine that a world drives; it
//! knows no clock, no interrupts and no shared pages.
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
//! Bounds against abuse. The guest is not trusted: nothing that it says makes a window longer.
//! - A window ends after [`Terms::window`], used or not, and is followed by a scheduling pass: so
//!   there is at most one for each decision of the scheduler.
//! - A vCPU that is in its window runs, as far as the scheduler knows, and is charged for that time
//!   as for any other: what it overruns is missing from its share afterwards.
//! - After [`Terms::strikes`] windows in a row that expired it gets none for [`Terms::back_off`]. So
//!   a guest that never gives up delays others by at most `strikes` windows in that time. One that
//!   gives up just before the end delays each preemption, by less than a window.
//!
//! Source: locks specification §24.1 to §24.3, after Uhlig et al., VM 2004, and IBM's patch for Xen
//! of May 2005, of which only the report is known.

/// Time, or a length of time, in one unit of the world's choice; a world may be finer than the
/// nanoseconds of schedulers.
pub type Time = u64;

/// What a host grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Longest window, at least 1.
    pub window: Time,
    /// Windows in a row that expire until there are none for a while, at least 1.
    pub strikes: u32,
    /// How long that while is.
    pub back_off: Time,
}

/// What the host does with a vCPU that it is about to preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Preempt it now.
    Preempt,
    /// A window was opened: tell the guest, and come back at this time or when it has given up.
    Opened(Time),
    /// Its window is open until this time.
    Wait(Time),
}

/// What became of the windows of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// Windows opened.
    pub offered: u64,
    /// Closed by the guest giving up.
    pub used: u64,
    /// Closed by force.
    pub expired: u64,
    /// Closed since the vCPU left its pCPU by itself or nobody wanted that any more.
    pub left: u64,
    /// Preemptions while it was barred.
    pub refused: u64,
    /// Time for which windows were open.
    pub time: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open { since: Time, until: Time },
    Answered,
}

/// The windows of one vCPU. All calls are O(1).
#[derive(Clone, Debug)]
pub struct Windows {
    state: State,
    /// Windows in a row that expired; below the strikes of the terms.
    strikes: u32,
    barred_until: Time,
    counts: WindowCounts,
}

impl Default for Windows {
    fn default() -> Self {
        Self { state: State::Closed, strikes: 0, barred_until: 0, counts: WindowCounts::default() }
    }
}

impl Windows {
    /// The scheduler is about to run on the pCPU of this vCPU, which could go on, and another wants
    /// that pCPU. `worth`: the guest may have something to finish first.
    pub fn preempt(&mut self, now: Time, terms: &Terms, worth: bool) -> Verdict {
        match self.state {
            State::Open { until, .. } if now < until => return Verdict::Wait(until),
            State::Open { since, .. } => {
                self.counts.expired += 1;
                self.counts.time += now - since;
                self.strikes += 1;
                if self.strikes >= terms.strikes {
                    self.strikes = 0;
                    self.barred_until = now.saturating_add(terms.back_off);
                }
            }
            State::Answered => {}
            State::Closed if !worth => {}
            State::Closed if now < self.barred_until => self.counts.refused += 1,
            State::Closed => {
                let until = now.saturating_add(terms.window);
                self.state = State::Open { since: now, until };
                self.counts.offered += 1;
                return Verdict::Opened(until);
            }
        }
        self.state = State::Closed;
        Verdict::Preempt
    }

    /// The guest says that it is ready to be preempted. Returns whether it was asked: then the host
    /// runs its scheduler now. Otherwise the window has ended meanwhile, and nothing is to be done.
    pub fn give_up(&mut self, now: Time) -> bool {
        let State::Open { since, .. } = self.state else { return false };
        self.state = State::Answered;
        self.strikes = 0;
        self.counts.used += 1;
        self.counts.time += now - since;
        true
    }

    /// There is nothing to preempt: the vCPU gives way by itself, or nobody wants its pCPU.
    pub fn close(&mut self, now: Time) {
        if let State::Open { since, .. } = self.state {
            self.counts.left += 1;
            self.counts.time += now - since;
        }
        self.state = State::Closed;
    }

    /// Whether the guest is asked to give up.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// What became of its windows up to `now`; one that is open counts as far as it came.
    pub fn counts(&self, now: Time) -> WindowCounts {
        let open = match self.state {
            State::Open { since, .. } => now - since,
            State::Closed | State::Answered => 0,
        };
        WindowCounts { time: self.counts.time + open, ..self.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { window: 100, strikes: 3, back_off: 1000 };

    #[test]
    fn a_guest_that_gives_up_is_preempted_then_and_not_asked_again_before() {
        let mut w = Windows::default();
        assert_eq!(w.preempt(10, &TERMS, true), Verdict::Opened(110));
        // Another reason to schedule comes meanwhile.
        assert_eq!(w.preempt(50, &TERMS, true), Verdict::Wait(110));
        assert!(w.give_up(60));
        assert!(!w.give_up(61), "once is enough");
        assert_eq!(w.preempt(60, &TERMS, true), Verdict::Preempt);
        let expected = WindowCounts { offered: 1, used: 1, time: 50, ..Default::default() };
        assert_eq!(w.counts(60), expected);
    }

    #[test]
    fn a_guest_that_holds_nothing_is_not_asked() {
        let mut w = Windows::default();
        assert_eq!(w.preempt(0, &TERMS, false), Verdict::Preempt);
        assert_eq!(w.counts(0), WindowCounts::default());
    }

    #[test]
    fn a_guest_that_never_gives_up_is_preempted_at_the_end_and_then_barred() {
        let mut w = Windows::default();
        let mut now = 0;
        for _ in 0..TERMS.strikes {
            let end = now + TERMS.window;
            assert_eq!(w.preempt(now, &TERMS, true), Verdict::Opened(end));
            assert_eq!(w.preempt(end - 1, &TERMS, true), Verdict::Wait(end));
            assert_eq!(w.preempt(end, &TERMS, true), Verdict::Preempt);
            assert!(!w.give_up(end), "too late");
            now = end;
        }
        assert_eq!(w.preempt(now + 999, &TERMS, true), Verdict::Preempt);
        assert_eq!(w.preempt(now + 1000, &TERMS, true), Verdict::Opened(now + 1100));
        let expected =
            WindowCounts { offered: 4, expired: 3, refused: 1, time: 300, ..Default::default() };
        assert_eq!(w.counts(now + 1000), expected);
    }

    /// Two windows out of three expire, for ever: it is never barred. A third would do it.
    #[test]
    fn only_windows_in_a_row_count() {
        let mut w = Windows::default();
        for round in 0..10 {
            let now = round * 1000;
            for at in [now, now + 200] {
                assert_eq!(w.preempt(at, &TERMS, true), Verdict::Opened(at + 100));
                assert_eq!(w.preempt(at + 100, &TERMS, true), Verdict::Preempt);
            }
            assert_eq!(w.preempt(now + 400, &TERMS, true), Verdict::Opened(now + 500));
            assert!(w.give_up(now + 499));
            assert_eq!(w.preempt(now + 499, &TERMS, true), Verdict::Preempt);
        }
        assert_eq!(w.counts(10_000).refused, 0);
    }

    /// The worst that a guest can do, whatever it does: no stretch of the back-off time has more than
    /// `strikes` windows that expire, and no window is longer than the terms.
    #[test]
    fn forced_windows_are_limited_in_each_period() {
        let mut x = 1_u64;
        let mut w = Windows::default();
        let (mut now, mut opened) = (0, None);
        let mut expiries: alloc::vec::Vec<Time> = alloc::vec::Vec::new();
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += (x >> 60) * 5;
            if x >> 40 & 15 == 0 {
                w.give_up(now);
                opened = None;
            }
            let before = w.counts(now).expired;
            match w.preempt(now, &TERMS, true) {
                Verdict::Opened(until) => {
                    assert_eq!(until, now + TERMS.window);
                    opened = Some(now);
                }
                Verdict::Wait(until) => {
                    let since = opened.expect("it was opened");
                    assert!(now < until && until == since + TERMS.window);
                }
                Verdict::Preempt => opened = None,
            }
            if w.counts(now).expired > before {
                expiries.push(now);
            }
        }
        assert!(expiries.len() > 20, "{} expiries", expiries.len());
        // A window that expires right before the bar, then the bar, then the next three.
        for four in expiries.windows(TERMS.strikes as usize + 1) {
            let took = four[TERMS.strikes as usize] - four[0];
            assert!(took >= TERMS.window * Time::from(TERMS.strikes), "{four:?}");
        }
        let in_a_row = w.counts(now);
        assert_eq!(
            in_a_row.offered,
            in_a_row.used + in_a_row.expired + in_a_row.left + u64::from(w.is_open())
        );
    }

    #[test]
    fn a_vcpu_that_leaves_by_itself_closes_its_window() {
        let mut w = Windows::default();
        assert_eq!(w.preempt(0, &TERMS, true), Verdict::Opened(100));
        w.close(30);
        assert!(!w.is_open());
        w.close(40);
        assert_eq!(
            w.counts(50),
            WindowCounts { offered: 1, left: 1, time: 30, ..Default::default() }
        );
    }
}
