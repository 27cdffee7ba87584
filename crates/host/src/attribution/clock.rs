//! The clocks of one lock: how much of the time with waiters went into each cause.
//!
//! While there is a waiter, each moment belongs to one cause, by the state of the lock:
//!
//! | lock | deciding vCPU | it runs | it sleeps | woken, does not run yet | wants a pCPU |
//! |---|---|---|---|---|---|
//! | held | the holder | holder running | holder running | holder preempted or throttled | holder preempted or throttled |
//! | free | the next holder | line transfer | kick and wake-up | kick and wake-up, or next throttled | next preempted or throttled |
//!
//! The deciding vCPU is throttled while its domain's cap keeps it from running, whatever took it off its pCPU before.
//!
//! For a lock of user mode the deciding one is a task. A task wants a pCPU if its vCPU does, and if its guest runs another
//! task on that vCPU: then the holder, or the next one, is preempted by its guest.
//!
//! A release takes time: it writes the lock, and may have to wake a waiter. During a release the lock
//! counts as free while the releasing vCPU runs, and as held while that vCPU is off its pCPU, unless
//! another vCPU has taken the lock by then.
//!
//! The clocks advance when that state changes. A waiter's time is the difference of the clocks between
//! the ends of its wait, except for its own absences: from when it was descheduled until it runs again
//! (own preemption), and from when it was woken until it runs (kick and wake-up). All of these are sums
//! and differences of integers, so the causes of a wait add up to its length exactly.
//!
//! **The next holder** is the vCPU that takes the lock next. This definition needs no knowledge of the
//! lock algorithm, but the next holder is known only afterwards. A log therefore keeps the changes
//! while a lock is free, and is replayed once a vCPU has taken it. While that vCPU does not wait yet,
//! the longest waiter counts as next: if it runs and does not take the lock, the lock is on its way to
//! it.
//!
//! Cost: O(1) for the begin and the end of a wait and for each change of a waiter, amortised over the
//! replay; O(locks of the guest) for a change of a vCPU that holds a contended lock; nothing for a lock
//! without waiters.

use crate::why::Doing;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hint::black_box;
use overspin_scenario::{Cause, Picos, Why};

/// No vCPU, no lock, no wait.
pub(super) const NONE: u32 = u32::MAX;

/// Times by cause, in the order of [`Cause::ALL`].
pub(super) type Times = [Picos; Cause::ALL.len()];

/// The clocks of a lock. The two that move while all vCPUs run are separate fields, kept apart; the
/// others share a count of their moves. Most waits thus need to read only three numbers. (With one
/// array of all six, written one at a time and read at once, the processor would wait for its own
/// store.)
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Clocks {
    /// Holder running.
    running: Picos,
    /// The other clocks; the entries of the two separate ones stay 0.
    others: Times,
    /// Line transfer.
    transfer: Picos,
    /// How often any of `others` has moved.
    moves: u64,
}

impl Clocks {
    #[inline]
    fn advance(&mut self, cause: Cause, by: Picos) {
        match cause {
            Cause::HolderRunning => self.running += by,
            Cause::LineTransfer => self.transfer += by,
            _ => {
                self.others[cause as usize] += by;
                self.moves += 1;
            }
        }
    }

    /// A copy. Not `*self`, which would read freshly written fields together with older ones in one
    /// load.
    #[inline]
    fn stamp(&self) -> Self {
        Self { running: black_box(self.running), transfer: black_box(self.transfer), ..*self }
    }

    /// The time between `then` and now, by cause.
    #[inline]
    fn since(&self, then: &Self) -> Times {
        let mut times = [Picos::ZERO; Cause::ALL.len()];
        if self.moves != then.moves {
            for (time, (now, then)) in times.iter_mut().zip(self.others.iter().zip(&then.others)) {
                *time = *now - *then;
            }
        }
        times[Cause::HolderRunning as usize] = self.running - then.running;
        times[Cause::LineTransfer as usize] = self.transfer - then.transfer;
        times
    }

    /// Moves the clocks forward by the time between `from` and `to`.
    fn skip(&mut self, from: &Self, to: &Self) {
        self.running += to.running - from.running;
        self.transfer += to.transfer - from.transfer;
        for (clock, (from, to)) in self.others.iter_mut().zip(from.others.iter().zip(&to.others)) {
            *clock += *to - *from;
        }
        // Equal counts mean equal clocks, and these clocks no longer belong to a lock.
        self.moves = u64::MAX;
    }
}

/// Why a vCPU is off its pCPU. vCPU numbers are those of the whole host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descheduled {
    pub at: Picos,
    pub pcpu: u32,
    /// The vCPU that replaced it, `NONE` if the pCPU became idle.
    pub by: u32,
    pub why: Why,
}

/// What a waiter does from some moment on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absent {
    pub doing: Doing,
    pub throttled: bool,
    pub decision: Option<Descheduled>,
}

/// A time during which a vCPU was absent although it was its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    pub cause: Cause,
    /// vCPU.
    pub who: u32,
    pub decision: Option<Descheduled>,
    pub since: Picos,
    pub until: Picos,
    /// Acquisitions of the lock up to its beginning and its end.
    pub acquisitions: (u64, u64),
}

impl Absence {
    pub(super) fn time(&self) -> Picos {
        self.until - self.since
    }
}

/// A vCPU that waits for a lock.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    pub vcpu: u32,
    /// Index in its guest.
    pub lock: u32,
    /// The interrupted wait on the same vCPU, if this is the wait of an interrupt handler.
    pub outer: u32,
    /// Neighbours in the list of the lock, which is in order of arrival.
    prev: u32,
    next: u32,
    pub since: Picos,
    /// Its beginning is no longer in the log.
    begun: bool,
    doing: Doing,
    /// Its cap keeps it from running.
    throttled: bool,
    decision: Option<Descheduled>,
    /// The clocks of the lock at its beginning, moved forward over its own absences.
    base: Clocks,
    /// Time of its own absences: preempted, and woken but not yet running.
    own_preemption: Picos,
    own_wake: Picos,
    /// If it is absent: the time, and the clocks and acquisitions of the lock, when the absence began.
    left: (Picos, Clocks, u64),
    /// Its last absences, and the end of the last absence that was dropped.
    pub absences: VecDeque<Absence>,
    pub forgotten_until: Picos,
    /// The vCPU that held the lock at the beginning, `NONE` if the lock was free.
    pub holder: u32,
    /// Acquisitions of the lock up to its beginning.
    pub acquisitions: u64,
}

/// All waits of a run, by number.
#[derive(Debug, Default)]
pub(super) struct Waits {
    all: Vec<Wait>,
    free: Vec<u32>,
    /// Shorter absences of others are counted, but not kept for the lists.
    pub worth_a_line: Picos,
}

impl Waits {
    /// A number for a new wait of a running vCPU; the caller fills in the rest.
    fn add(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(Wait {
                vcpu: NONE,
                lock: NONE,
                outer: NONE,
                prev: NONE,
                next: NONE,
                since: Picos::ZERO,
                begun: false,
                doing: Doing::Runs,
                throttled: false,
                decision: None,
                base: Clocks::default(),
                own_preemption: Picos::ZERO,
                own_wake: Picos::ZERO,
                left: (Picos::ZERO, Clocks::default(), 0),
                absences: VecDeque::new(),
                forgotten_until: Picos::ZERO,
                holder: NONE,
                acquisitions: 0,
            });
            self.all.len() as u32 - 1
        })
    }

    pub(super) fn get(&self, id: u32) -> &Wait {
        &self.all[id as usize]
    }

    fn at(&mut self, id: u32) -> &mut Wait {
        &mut self.all[id as usize]
    }

    /// Removes a wait that is over; its vCPU runs. A real machine may tell so only later; the next wait with this
    /// number must not begin with an absence from another lock.
    pub(super) fn remove(&mut self, id: u32) {
        let w = self.at(id);
        (w.doing, w.throttled) = (Doing::Runs, false);
        (w.own_preemption, w.own_wake, w.forgotten_until) = (Picos::ZERO, Picos::ZERO, Picos::ZERO);
        w.absences.clear();
        self.free.push(id);
    }
}

/// An event while the lock was free.
#[derive(Clone, Copy, Debug)]
enum Logged {
    Begins {
        at: Picos,
        wait: u32,
    },
    Changes {
        at: Picos,
        wait: u32,
        now: Absent,
    },
    /// A change of the vCPU that is releasing it.
    HolderChanges {
        at: Picos,
        doing: Doing,
        decision: Option<Descheduled>,
    },
    Released {
        at: Picos,
    },
}

/// Number of absences that a lock remembers for the chains of its waiters, and that each waiter
/// remembers of its own.
const REMEMBERED: usize = 256;

/// The clocks of one lock; see the [module](self).
#[derive(Debug)]
pub(super) struct LockClock {
    /// The first and the last wait, in order of arrival.
    first: u32,
    last: u32,
    /// The time up to which the clocks have advanced.
    now: Picos,
    clocks: Clocks,
    /// The vCPU that holds it or is releasing it (`NONE` if it is free), and what that vCPU does.
    holder: u32,
    releasing: bool,
    holder_doing: Doing,
    holder_decision: Option<Descheduled>,
    log: Vec<Logged>,
    /// Acquisitions while there was a waiter.
    pub acquisitions: u64,
    pub absences: VecDeque<Absence>,
    /// Time of all finished waits.
    pub sum: Times,
}

impl LockClock {
    pub(super) fn new() -> Self {
        Self {
            first: NONE,
            last: NONE,
            now: Picos::ZERO,
            clocks: Clocks::default(),
            holder: NONE,
            releasing: false,
            holder_doing: Doing::Runs,
            holder_decision: None,
            log: Vec::new(),
            acquisitions: 0,
            absences: VecDeque::new(),
            sum: [Picos::ZERO; Cause::ALL.len()],
        }
    }

    #[inline]
    pub(super) fn somebody_waits(&self) -> bool {
        self.first != NONE
    }

    /// Sets the vCPU that holds the lock or is releasing it (`NONE`: the lock is free). Called before
    /// the first [`begin`](Self::begin), while there is no waiter.
    pub(super) fn held_by(
        &mut self,
        holder: u32,
        releasing: bool,
        doing: Doing,
        decision: Option<Descheduled>,
    ) {
        (self.holder, self.releasing) = (holder, releasing);
        (self.holder_doing, self.holder_decision) = (doing, decision);
    }

    /// Whether it is held and not being released.
    #[inline]
    fn is_held(&self) -> bool {
        self.holder != NONE && !self.releasing
    }

    /// The running `vcpu` starts to wait for `lock`, inside its wait `outer` (`NONE`: none).
    #[inline]
    pub(super) fn begin(
        &mut self,
        waits: &mut Waits,
        at: Picos,
        (vcpu, lock, outer): (u32, u32, u32),
    ) -> u32 {
        let held = self.is_held();
        if !self.somebody_waits() {
            self.now = at;
        } else if held {
            self.advance(waits, at, NONE);
        }
        let id = waits.add();
        let w = waits.at(id);
        (w.vcpu, w.lock, w.outer) = (vcpu, lock, outer);
        (w.prev, w.next) = (self.last, NONE);
        (w.since, w.begun, w.base) = (at, held, self.clocks.stamp());
        w.holder = if held { self.holder } else { NONE };
        w.acquisitions = self.acquisitions;
        match self.last {
            NONE => self.first = id,
            last => waits.at(last).next = id,
        }
        self.last = id;
        if !held {
            self.log.push(Logged::Begins { at, wait: id });
        }
        id
    }

    /// The holder begins to release the lock, which has a waiter.
    #[inline]
    pub(super) fn release(&mut self, waits: &Waits, at: Picos) {
        self.advance(waits, at, NONE);
        self.releasing = true;
    }

    /// The release is complete, the lock is not taken yet, and there is a waiter.
    #[inline]
    pub(super) fn released(&mut self, waits: &Waits, at: Picos) {
        if !self.releasing {
            // The first waiter came during the release, which was not visible.
            self.advance(waits, at, NONE);
            self.holder = NONE;
        } else if self.log.is_empty() {
            // The releasing vCPU ran all the time.
            self.holder = NONE;
        } else {
            self.log.push(Logged::Released { at });
        }
    }

    /// `vcpu` has acquired the lock, which has or had a waiter: with its wait `id`, or (`NONE`) without
    /// having waited.
    #[inline]
    pub(super) fn acquire(&mut self, waits: &mut Waits, at: Picos, vcpu: u32, id: u32) {
        self.settle(waits, at, id);
        self.held_by(vcpu, false, Doing::Runs, None);
    }

    /// Brings the clocks of a free lock to `at`, once it is known which wait (`NONE`: none) ends then.
    pub(super) fn settle(&mut self, waits: &mut Waits, at: Picos, next: u32) {
        if !self.log.is_empty() {
            self.replay(waits, next);
        }
        self.advance(waits, at, next);
    }

    #[inline(never)]
    fn replay(&mut self, waits: &mut Waits, next: u32) {
        for i in 0..self.log.len() {
            match self.log[i] {
                Logged::Begins { at, wait } => {
                    self.advance(waits, at, next);
                    let w = waits.at(wait);
                    (w.begun, w.base) = (true, self.clocks.stamp());
                }
                Logged::Changes { at, wait, now } => {
                    self.advance(waits, at, next);
                    self.apply(waits, at, wait, now);
                }
                Logged::HolderChanges { at, doing, decision } => {
                    self.advance(waits, at, next);
                    (self.holder_doing, self.holder_decision) = (doing, decision);
                }
                Logged::Released { at } => {
                    self.advance(waits, at, next);
                    self.holder = NONE;
                }
            }
        }
        self.log.clear();
    }

    /// Ends the wait `id`, just after [`acquire`](Self::acquire). Returns its time by cause.
    #[inline]
    pub(super) fn end(&mut self, waits: &mut Waits, id: u32) -> Times {
        let Wait { prev, next, .. } = *waits.get(id);
        match prev {
            NONE => self.first = next,
            prev => waits.at(prev).next = next,
        }
        match next {
            NONE => self.last = prev,
            next => waits.at(next).prev = prev,
        }
        let w = waits.at(id);
        let mut times = self.clocks.since(&w.base);
        times[Cause::OwnPreemption as usize] += w.own_preemption;
        times[Cause::KickWake as usize] += w.own_wake;
        times
    }

    /// Ends the wait `id` at the end of the run. Returns its time by cause so far.
    pub(super) fn cut(&mut self, waits: &mut Waits, at: Picos, id: u32) -> Times {
        self.settle(waits, at, NONE);
        let runs = Absent { doing: Doing::Runs, throttled: false, decision: None };
        self.apply(waits, at, id, runs);
        self.end(waits, id)
    }

    /// Called when there is no waiter any more.
    pub(super) fn forget(&mut self) {
        self.absences.clear();
    }

    /// Records a change of the vCPU that holds or releases the lock, which has a waiter.
    pub(super) fn holder_changes(
        &mut self,
        waits: &Waits,
        at: Picos,
        doing: Doing,
        decision: Option<Descheduled>,
    ) {
        if self.releasing {
            self.log.push(Logged::HolderChanges { at, doing, decision });
        } else {
            self.advance(waits, at, NONE);
            (self.holder_doing, self.holder_decision) = (doing, decision);
        }
    }

    /// Records a change of a waiter.
    pub(super) fn waiter_changes(&mut self, waits: &mut Waits, at: Picos, wait: u32, now: Absent) {
        if !self.is_held() {
            self.log.push(Logged::Changes { at, wait, now });
        } else {
            self.advance(waits, at, NONE);
            self.apply(waits, at, wait, now);
        }
    }

    /// Applies a change of a waiter; the clocks are at its time.
    fn apply(&self, waits: &mut Waits, at: Picos, wait: u32, now: Absent) {
        let Absent { doing, throttled, decision } = now;
        let w = waits.at(wait);
        if core::mem::replace(&mut w.throttled, throttled) != throttled && w.doing == doing {
            // Its absence goes on.
            return;
        }
        let absent = match w.doing {
            Doing::Wants | Doing::Throttled => Some((Cause::OwnPreemption, &mut w.own_preemption)),
            Doing::Wakes => Some((Cause::KickWake, &mut w.own_wake)),
            Doing::Runs | Doing::Sleeps => None,
        };
        if let Some((cause, own)) = absent {
            let (since, clocks, acquisitions) = w.left;
            w.base.skip(&clocks, &self.clocks);
            *own += at - since;
            if at > since {
                if w.absences.len() == REMEMBERED {
                    w.forgotten_until = w.absences.pop_front().map_or(Picos::ZERO, |a| a.until);
                }
                w.absences.push_back(Absence {
                    cause,
                    who: w.vcpu,
                    decision: w.decision,
                    since,
                    until: at,
                    acquisitions: (acquisitions, self.acquisitions),
                });
            }
        }
        if matches!(doing, Doing::Wants | Doing::Wakes) {
            w.left = (at, self.clocks, self.acquisitions);
        }
        (w.doing, w.decision) = (doing, decision);
    }

    /// Advances the clocks to `at`. `next` is the wait that takes the lock next, `NONE` if that is not
    /// known.
    #[inline]
    fn advance(&mut self, waits: &Waits, at: Picos, next: u32) {
        // Time never runs backward in a world that tells its moments in order. A real one may tell of a release
        // that was not there.
        if at <= self.now {
            return;
        }
        let since = core::mem::replace(&mut self.now, at);
        let throttled = self.holder_doing == Doing::Throttled;
        let away = throttled || matches!(self.holder_doing, Doing::Wakes | Doing::Wants);
        let (cause, who, decision) = if self.is_held() || (self.holder != NONE && away) {
            let cause = match self.holder_decision {
                Some(Descheduled { why: Why::Guest, .. }) if away => Cause::HolderPreemptedByGuest,
                _ if throttled => Cause::HolderThrottled,
                _ if away => Cause::HolderPreempted,
                _ => Cause::HolderRunning,
            };
            (cause, self.holder, self.holder_decision)
        } else {
            let id = if next != NONE && waits.get(next).begun { next } else { self.first };
            let w = waits.get(id);
            if !w.begun {
                // There was no waiter then: the beginnings of all current waits are still in the log.
                return;
            }
            let cause = match w.doing {
                Doing::Runs => Cause::LineTransfer,
                Doing::Wakes | Doing::Wants if w.throttled => Cause::NextThrottled,
                Doing::Sleeps | Doing::Wakes => Cause::KickWake,
                Doing::Wants | Doing::Throttled
                    if w.decision.is_some_and(|d| d.why == Why::Guest) =>
                {
                    Cause::NextPreemptedByGuest
                }
                Doing::Wants | Doing::Throttled => Cause::NextPreempted,
            };
            (cause, w.vcpu, w.decision)
        };
        self.clocks.advance(cause, at - since);
        if !matches!(cause, Cause::HolderRunning | Cause::LineTransfer) {
            let acquisitions = (self.acquisitions, self.acquisitions);
            let absence = Absence { cause, who, decision, since, until: at, acquisitions };
            self.remember(absence, waits.worth_a_line);
        }
    }

    #[inline(never)]
    fn remember(&mut self, absence: Absence, worth_a_line: Picos) {
        if let Some(last) = self.absences.back_mut() {
            let goes_on =
                (last.cause, last.who, last.until) == (absence.cause, absence.who, absence.since);
            if goes_on {
                last.until = absence.until;
                return;
            }
            if last.time() < worth_a_line {
                self.absences.pop_back();
            }
        }
        if self.absences.len() == REMEMBERED {
            self.forget_short();
        }
        self.absences.push_back(absence);
    }

    /// Forgets the shorter half of the absences. A waiter that is off its pCPU is next in line at each of
    /// the others' hand-overs, so thousands of short absences may follow a long one within its wait.
    fn forget_short(&mut self) {
        let mut times: Vec<Picos> = self.absences.iter().map(Absence::time).collect();
        let middle = *times.select_nth_unstable(REMEMBERED / 2).1;
        let shorter = times.iter().filter(|time| **time < middle).count();
        // Of those that are as long as the middle one, the oldest go.
        let mut equal = REMEMBERED / 2 - shorter;
        self.absences.retain(|a| match a.time().cmp(&middle) {
            Ordering::Less => false,
            Ordering::Equal if equal > 0 => {
                equal -= 1;
                false
            }
            _ => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::US;

    #[test]
    fn a_long_absence_outlives_thousands_of_short_ones() {
        let absence = |cause, who, since: u64, length: u64| Absence {
            cause,
            who,
            decision: None,
            since: US * since,
            until: US * (since + length),
            acquisitions: (0, 0),
        };
        let mut clock = LockClock::new();
        let long = absence(Cause::HolderPreempted, 3, 0, 60_000);
        clock.remember(long, Picos::ZERO);
        for i in 0..5_000 {
            let short = absence(Cause::NextPreempted, 1, 60_000 + 50 * i, 1 + i % 3);
            clock.remember(short, Picos::ZERO);
            assert!(clock.absences.len() <= REMEMBERED);
        }
        assert_eq!(clock.absences.front().map(Absence::time), Some(long.time()));
        let times = clock.absences.iter().map(|a| (a.since, a.until));
        assert!(times.is_sorted(), "they stay in order of time");
        for i in 0..5_000 {
            clock.remember(absence(Cause::NextPreempted, 1, 400_000 + 50 * i, 1), Picos::ZERO);
        }
        assert_eq!(clock.absences.front().map(Absence::time), Some(long.time()));
    }
}
