//! The clocks of one lock: how much of the time since somebody first waited went into which cause.
//!
//! While anybody waits, each moment belongs to one cause, by the lock's state:
//!
//! | lock | vCPU that matters | it runs | it sleeps | woken, does not run yet | wants a pCPU |
//! |---|---|---|---|---|---|
//! | held | the holder | holder running | holder running | holder preempted | holder preempted |
//! | free | who is next | line transfer | kick and wake-up | kick and wake-up | next preempted |
//!
//! A release is not done at once: it writes the lock, and may have somebody to wake. From its beginning
//! to its end the lock counts as free while the one that releases it runs, and as held while that one
//! is off its pCPU, unless somebody has taken it by then.
//!
//! The clocks advance where that state changes. A waiter's time is the difference of the clocks between
//! the ends of its wait, but for its own absences: from when it was descheduled until it runs again
//! (own preemption), and from when it was woken until it runs (kick and wake-up). All of it are sums
//! and differences of integers, so the causes of a wait add up to its length exactly.
//!
//! **Who is next** is whoever takes the lock next. No lock algorithm has to be known for that, but it
//! shows only when it has happened. What changes while a lock is free is therefore kept in a log, and
//! replayed when somebody has taken it. While that one does not wait yet, the one that waits for
//! longest counts as next: if it runs and does not take the lock, the lock is on its way to it.
//!
//! Cost: O(1) for the begin and the end of a wait and for each change of a waiter, amortised over the
//! replay; O(locks of the guest) for a change of a vCPU that holds a contended lock; nothing for a lock
//! for which nobody waits.

use crate::why::Doing;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hint::black_box;
use overspin_scenario::{Cause, Picos, Why};

/// No vCPU, no lock, no wait.
pub(super) const NONE: u32 = u32::MAX;

/// Times by cause, in the order of [`Cause::ALL`].
pub(super) type Times = [Picos; 6];

/// The clocks of a lock. The two that move while everybody runs are by themselves, apart, and the
/// others have a count of their moves: most waits need no more than a look at three numbers. (All six
/// as an array, one written and all read at once, would make the processor wait for its own store.)
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Clocks {
    /// Holder running.
    running: Picos,
    /// The others; these two stay 0 here.
    others: Times,
    /// Line transfer.
    transfer: Picos,
    /// How often one of `others` has moved.
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

    /// A copy. Not `*self`, which would read what has just been written together with what has not.
    #[inline]
    fn stamp(&self) -> Self {
        Self { running: black_box(self.running), transfer: black_box(self.transfer), ..*self }
    }

    /// The time between `then` and these.
    #[inline]
    fn since(&self, then: &Self) -> Times {
        let mut times = [Picos::ZERO; 6];
        if self.moves != then.moves {
            for (time, (now, then)) in times.iter_mut().zip(self.others.iter().zip(&then.others)) {
                *time = *now - *then;
            }
        }
        times[Cause::HolderRunning as usize] = self.running - then.running;
        times[Cause::LineTransfer as usize] = self.transfer - then.transfer;
        times
    }

    /// Goes forward by the time between `from` and `to`.
    fn skip(&mut self, from: &Self, to: &Self) {
        self.running += to.running - from.running;
        self.transfer += to.transfer - from.transfer;
        for (clock, (from, to)) in self.others.iter_mut().zip(from.others.iter().zip(&to.others)) {
            *clock += *to - *from;
        }
        // Equal counts stand for equal clocks, and these are no lock's any more.
        self.moves = u64::MAX;
    }
}

/// Why a vCPU is off its pCPU. vCPUs are numbered over the whole host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descheduled {
    pub at: Picos,
    pub pcpu: u32,
    /// Who came, `NONE` if nobody.
    pub by: u32,
    pub why: Why,
}

/// A time during which somebody was not there whose turn it was.
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
    /// The wait that an interrupt handler's wait is on top of, on the same vCPU.
    pub outer: u32,
    /// Neighbours in the lock's list, which is in order of arrival.
    prev: u32,
    next: u32,
    pub since: Picos,
    /// Its beginning is not in the log any more.
    begun: bool,
    doing: Doing,
    decision: Option<Descheduled>,
    /// The lock's clocks at its beginning, moved forward over its own absences.
    base: Clocks,
    /// Its own absences: preempted, and woken.
    own_preemption: Picos,
    own_wake: Picos,
    /// The lock's time, clocks and acquisitions when its absence began, if it is absent.
    left: (Picos, Clocks, u64),
    /// Its last absences, and when the last of those that are forgotten ended.
    pub absences: VecDeque<Absence>,
    pub forgotten_until: Picos,
    /// The vCPU that held the lock at the beginning, `NONE` if nobody did.
    pub holder: u32,
    /// Acquisitions of the lock up to its beginning.
    pub acquisitions: u64,
}

/// All waits of a run, by number.
#[derive(Debug, Default)]
pub(super) struct Waits {
    all: Vec<Wait>,
    free: Vec<u32>,
    /// Absences of others that are shorter are counted, but not kept to be listed.
    pub worth_a_line: Picos,
}

impl Waits {
    /// A number for a wait of a vCPU that runs; the rest of it is to be filled in.
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

    /// The wait is over and forgotten: its vCPU runs.
    pub(super) fn remove(&mut self, id: u32) {
        let w = self.at(id);
        (w.own_preemption, w.own_wake, w.forgotten_until) = (Picos::ZERO, Picos::ZERO, Picos::ZERO);
        w.absences.clear();
        self.free.push(id);
    }
}

/// Something that happened while the lock was free.
#[derive(Clone, Copy, Debug)]
enum Logged {
    Begins {
        at: Picos,
        wait: u32,
    },
    Changes {
        at: Picos,
        wait: u32,
        doing: Doing,
        decision: Option<Descheduled>,
    },
    /// Of the one that is releasing it.
    HolderChanges {
        at: Picos,
        doing: Doing,
        decision: Option<Descheduled>,
    },
    Released {
        at: Picos,
    },
}

/// Absences that a lock remembers for the chains of those who wait, and each of them of its own.
const REMEMBERED: usize = 256;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct LockClock {
    /// Who waits, in order of arrival.
    first: u32,
    last: u32,
    /// Up to when the clocks have advanced.
    now: Picos,
    clocks: Clocks,
    /// vCPU that holds it or is releasing it, `NONE` if it is free; what that does.
    holder: u32,
    releasing: bool,
    holder_doing: Doing,
    holder_decision: Option<Descheduled>,
    log: Vec<Logged>,
    /// Acquisitions while somebody waited.
    pub acquisitions: u64,
    pub absences: VecDeque<Absence>,
    /// Time of all waits that are over.
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
            sum: [Picos::ZERO; 6],
        }
    }

    #[inline]
    pub(super) fn somebody_waits(&self) -> bool {
        self.first != NONE
    }

    /// Who holds the lock or is releasing it (`NONE`: nobody). Before the first
    /// [`begin`](Self::begin), while nobody waits.
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

    /// Whether it is held, and nobody is releasing it.
    #[inline]
    fn is_held(&self) -> bool {
        self.holder != NONE && !self.releasing
    }

    /// `vcpu`, which runs, waits for lock `lock` from now on, on top of its wait `outer`.
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

    /// The holder begins to release it; somebody waits.
    #[inline]
    pub(super) fn release(&mut self, waits: &Waits, at: Picos) {
        self.advance(waits, at, NONE);
        self.releasing = true;
    }

    /// The release is complete, and nobody has taken the lock yet; somebody waits.
    #[inline]
    pub(super) fn released(&mut self, waits: &Waits, at: Picos) {
        if !self.releasing {
            // The first waiter came while it was being released, and that did not show.
            self.advance(waits, at, NONE);
            self.holder = NONE;
        } else if self.log.is_empty() {
            // Who released it ran all the time.
            self.holder = NONE;
        } else {
            self.log.push(Logged::Released { at });
        }
    }

    /// `vcpu` has the lock, for which somebody waits, with its wait number `id` or (`NONE`) without
    /// having waited.
    #[inline]
    pub(super) fn acquire(&mut self, waits: &mut Waits, at: Picos, vcpu: u32, id: u32) {
        self.settle(waits, at, id);
        self.held_by(vcpu, false, Doing::Runs, None);
    }

    /// Brings the clocks of a free lock to `at`, when it is known whose wait (`NONE`: nobody's) comes
    /// to an end then.
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
                Logged::Changes { at, wait, doing, decision } => {
                    self.advance(waits, at, next);
                    self.apply(waits, at, wait, doing, decision);
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

    /// The wait `id` is over, just after [`acquire`](Self::acquire). Returns what it was spent on.
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

    /// The wait `id` is cut short by the end of the run. Returns what it was spent on so far.
    pub(super) fn cut(&mut self, waits: &mut Waits, at: Picos, id: u32) -> Times {
        self.settle(waits, at, NONE);
        self.apply(waits, at, id, Doing::Runs, None);
        self.end(waits, id)
    }

    /// Nobody waits any more.
    pub(super) fn forget(&mut self) {
        self.absences.clear();
    }

    /// What the one that holds or releases the lock does has changed; somebody waits.
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

    /// What a waiter does has changed.
    pub(super) fn waiter_changes(
        &mut self,
        waits: &mut Waits,
        at: Picos,
        wait: u32,
        doing: Doing,
        decision: Option<Descheduled>,
    ) {
        if !self.is_held() {
            self.log.push(Logged::Changes { at, wait, doing, decision });
        } else {
            self.advance(waits, at, NONE);
            self.apply(waits, at, wait, doing, decision);
        }
    }

    /// A waiter's change, with the clocks at its time.
    fn apply(
        &self,
        waits: &mut Waits,
        at: Picos,
        wait: u32,
        doing: Doing,
        decision: Option<Descheduled>,
    ) {
        let w = waits.at(wait);
        let absent = match w.doing {
            Doing::Wants => Some((Cause::OwnPreemption, &mut w.own_preemption)),
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

    /// Advances the clocks to `at`. `next` is the wait that takes the lock next, if that is known.
    #[inline]
    fn advance(&mut self, waits: &Waits, at: Picos, next: u32) {
        let since = core::mem::replace(&mut self.now, at);
        if at == since {
            return;
        }
        let away = matches!(self.holder_doing, Doing::Wakes | Doing::Wants);
        let (cause, who, decision) = if self.is_held() || (self.holder != NONE && away) {
            let cause = if away { Cause::HolderPreempted } else { Cause::HolderRunning };
            (cause, self.holder, self.holder_decision)
        } else {
            let id = if next != NONE && waits.get(next).begun { next } else { self.first };
            let w = waits.get(id);
            if !w.begun {
                // Nobody waited then: whoever waits now is in the log still.
                return;
            }
            let cause = match w.doing {
                Doing::Runs => Cause::LineTransfer,
                Doing::Sleeps | Doing::Wakes => Cause::KickWake,
                Doing::Wants => Cause::NextPreempted,
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
            self.absences.pop_front();
        }
        self.absences.push_back(absence);
    }
}
