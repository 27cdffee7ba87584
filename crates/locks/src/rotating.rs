//! A mutex for general use: threads that run keep it busy, those that sleep take turns.
//!
//! | `word` | Meaning |
//! |---|---|
//! | `HELD` | held |
//! | `WAKING` | a sleeper has been woken and has not got the lock yet |
//! | `HEIR` | the woken one is next: nobody else may take the lock |
//! | `SLEEPER` × n | n threads sleep, are about to, or have not noticed that they are awake |
//!
//! Idle is 0. `WAKING` and `HEIR` are set on behalf of one thread, and cleared by the one that takes the lock
//! in their name.
//!
//! **Why it is fast.** What costs time with more threads than CPUs is waking: two system calls, a
//! context switch, and a lock that is free but taken by nobody until the woken one runs. Whoever runs may
//! therefore take a free lock (barging), and a releaser with sleepers to care for looks for a moment
//! whether somebody does (as in [MUTEXEE](crate::mutexee)): as long as threads that run want the lock,
//! nobody is woken.
//!
//! **Why nobody starves.** Two kinds of threads are left out: those that sleep, and those that could run but
//! have no CPU. For the latter a waiter gives its CPU away when the lock has been wanted all the time for
//! `TURN_US` or more. It has nothing else to do with the CPU, the lock stays as busy as the others keep it, and
//! the operating system's queue is the fairest there is. Where sections are shorter than the spin
//! budget, hardly anybody ever sleeps, and these turns are all there is.
//!
//! For the former, at a release some `ROTATION_NS` after the last rotation, one sleeper is woken all the
//! same, the one that has slept longest. Waking alone does not help where all CPUs are busy, for
//! it would wait for the end of somebody's slice. Hence releasers yield as long as it is on its way, and
//! newcomers go to sleep at once, which also keeps the number of those who run constant. If the lock still
//! escapes it, it becomes the heir. A sleeper thus waits for those before it in the queue, each of them a
//! rotation; a thread that has never slept can be overtaken for its spin budget, and then sleeps.
//!
//! **No wake-up is lost.** A thread reads `wakes`, then counts itself as a sleeper, in an exchange that fails
//! unless the lock is held, then sleeps unless `wakes` has changed. The holder finds it counted when it
//! releases, and either somebody has taken the lock, who finds it too; or `WAKING` is set, and somebody is
//! awake; or the releaser sets `WAKING`, and changes `wakes`, and wakes one. Whoever leaves the count with
//! `WAKING` set acts as the woken one, whatever woke it, so the bit has an owner as long as it is set.
//!
//! **Order.** Taking acquires, releasing releases. `wakes` is read with acquire and changed with release: a
//! thread that reads the changed value comes after the exchange that found it counted, and so cannot be
//! the one that was counted. The rest are hints.
//!
//! **Properties.** Unfair in the short run. A descheduled holder costs the others their spin budget. A
//! descheduled heir makes the others wait: they sleep until it has run. Uncontended: two read-modify-writes. `unlock` looks at the
//! lock after the release: who shares it must keep it in place until `unlock` has returned, as
//! references do. Beyond 2^24 - 1 sleepers it would lose count; Linux has at most 2^22 threads.
//!
//! **Source.** Our own; the parts are barging, as in the mutexes of Linux and of the Rust standard library;
//! handing over in user space (Falsafi et al., "Unlocking Energy", 2016); keeping few threads active
//! and rotating them (Dice, "Malthusian Locks", 2017); an heir (Linux's `MUTEX_FLAG_HANDOFF`).

mod seldom;

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::{AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning};
use seldom::Seldom;

const HELD: u32 = 1;
const WAKING: u32 = 1 << 1;
const HEIR: u32 = 1 << 2;
const SLEEPER: u32 = 1 << 8;

/// Looks at a held lock before going to sleep. With pauses of 35 to 45 ns this is 40 us, about what going
/// to sleep and being woken costs all involved on a virtual machine: on a bare one, a third would do.
pub const DEFAULT_SPIN_BUDGET: u32 = 1000;

/// The first of these: who gets the lock within them has not waited.
const FIRST_LOOKS: u32 = 2;

/// Waits between two readings of the clock, at most; at least half as many.
const WAITS_PER_LOOK: u32 = 8;

/// At least so long from one turn to the next. A turn takes a microsecond of a thread that waits: with sections
/// of 1 us turns of 9 us and of 20 us have the same throughput.
const TURN_US: u32 = 8;

/// If [`WAITS_PER_LOOK`] waits take longer than this, the lock is not wanted all the time. Then a turn would do
/// nobody good, and whoever yields may lose its CPU to somebody who computes for milliseconds.
const SATURATED_US: u32 = 100;

/// Looks of a woken thread at a held lock before it becomes the heir: some microseconds, in which the
/// holder of a short section has released several times. A fifteenth of it costs an eighth of the throughput.
const PATIENCE: u32 = 300;

/// Looks of a releaser for somebody who takes over: some 400 cycles, the value of MUTEXEE.
const GRACE: u32 = 3;

/// At least so long from one rotation to the next. A compromise: it costs two system calls and two
/// switches, and those who sleep wait in proportion. With sections of 10 us, in which turns do not keep all
/// threads from sleeping, 150 us cost 2 to 4 % of the throughput more.
const ROTATION_NS: u64 = 250_000;

/// Releases with sleepers between two readings of the clock.
const RELEASES_PER_LOOK: u32 = seldom::MOST;

/// Properties of [`Rotating`].
pub const INFO: LockInfo = LockInfo {
    name: "mutex",
    brief: "Runners keep it busy, sleepers take turns.",
    source: "Overspin, of barging, MUTEXEE, culling and an heir",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::GiveWay,
    abortable: false,
    blocks: true,
    max_cpus: (1 << 24) - 1,
    size: 16,
};

/// The algorithm. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Rotating<P: Platform> {
    word: P::U32,
    /// How many have been woken, for them to sleep on.
    wakes: P::U32,
    /// Counts releases with sleepers, by whoever releases; happens: a rotation.
    rotation: Seldom<P::U32>,
    /// Counts waits, by whoever waits; happens: a turn, or that there was no need of one.
    turn: Seldom<P::U32>,
}

/// What locks of a kind share: their patience.
#[derive(Debug)]
pub struct Shared {
    spin_budget: u32,
    waits_per_look: u32,
    turn_us: u32,
    grace: u32,
    patience: u32,
    releases_per_look: u32,
    rotation_ns: u64,
}

impl Shared {
    /// With the default spin budget.
    pub const DEFAULT: Self = Self {
        spin_budget: DEFAULT_SPIN_BUDGET,
        waits_per_look: WAITS_PER_LOOK,
        turn_us: TURN_US,
        grace: GRACE,
        patience: PATIENCE,
        releases_per_look: RELEASES_PER_LOOK,
        rotation_ns: ROTATION_NS,
    };

    /// No patience at all: waiters sleep at once, and each release is told the time, for a rotation at least
    /// `rotation_ns` after the last.
    pub const fn impatient(rotation_ns: u64) -> Self {
        Self {
            spin_budget: 0,
            grace: 0,
            patience: 0,
            releases_per_look: 1,
            rotation_ns,
            ..Self::DEFAULT
        }
    }

    /// Whoever waits takes a turn after a few looks, sleeps after a few more, and does not rotate.
    pub const fn restless() -> Self {
        Self {
            spin_budget: FIRST_LOOKS + 1,
            waits_per_look: 1,
            turn_us: 0,
            ..Self::impatient(u64::MAX)
        }
    }
}

fn is_free(word: u32) -> bool {
    word & (HELD | HEIR) == 0
}

impl<P: Platform> Rotating<P> {
    /// The unlocked lock of cells that are all 0. For statics: [`RawLock::new`] is no constant.
    pub const fn of(word: P::U32, wakes: P::U32, rotation: P::U32, turn: P::U32) -> Self {
        Self { word, wakes, rotation: Seldom::of(rotation), turn: Seldom::of(turn) }
    }

    #[inline]
    fn take(&self, found: u32, new: u32) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(found, new, Acquire, Relaxed).is_ok()
    }

    /// `take` that may fail for no reason, for loops.
    fn take_weakly(&self, found: u32, new: u32) -> bool {
        // Acquire: as in `take`.
        self.word.compare_exchange_weak(found, new, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared) {
        loop {
            // Relaxed: a hint. Somebody is on its way to a CPU: make room.
            let hurried = self.word.load(Relaxed) & WAKING != 0;
            let budget = if hurried { 0 } else { shared.spin_budget };
            let mut left = budget.min(FIRST_LOOKS);
            let rest = budget - left;
            if self.spin(&mut left) {
                return;
            }
            if rest > 0 {
                if self.is_time_for_a_turn(shared) {
                    P::yield_now();
                }
                left = rest;
                if self.spin(&mut left) {
                    return;
                }
            }
            // Acquire, and before the count: see "Order".
            let wakes = self.wakes.load(Acquire);
            // Relaxed: the exchange checks it.
            let found = self.word.load(Relaxed);
            // Of a free lock nobody is left to care for sleepers.
            if right!(is_free(found), P, O2RotatingSleepsOnAFreeLock, false) {
                continue;
            }
            // Acquire and release: who finds the sleeper comes after its look at `wakes`.
            let counted = found.wrapping_add(SLEEPER);
            if self.word.compare_exchange_weak(found, counted, AcqRel, Relaxed).is_err() {
                continue;
            }
            let wakes = right!(wakes, P, O1RotatingReadsWakesLate, self.wakes.load(Acquire));
            if P::can_block() {
                P::wait(&self.wakes, wakes);
            }
            let found = self.word.fetch_sub(SLEEPER, Relaxed);
            // Only who takes the lock as the woken one clears `WAKING`.
            if right!(found & WAKING != 0, P, O4RotatingForgetsItWasWoken, false) {
                return self.lock_woken(shared);
            }
        }
    }

    /// Takes the lock if it is free within a budget.
    fn spin(&self, left: &mut u32) -> bool {
        while let Ok(found) = self.word.spin_until_within(is_free, left) {
            if self.take_weakly(found, found | HELD) {
                return true;
            }
        }
        false
    }

    fn is_time_for_a_turn(&self, shared: &Shared) -> bool {
        let Some(reading) = self.turn.look(shared.waits_per_look, P::now) else { return false };
        if reading.since < shared.turn_us {
            return false;
        }
        self.turn.happens(&reading);
        reading.since <= SATURATED_US
    }

    /// The woken thread takes the lock.
    fn lock_woken(&self, shared: &Shared) {
        let mut heir = 0;
        loop {
            let mut left = shared.patience;
            while let Ok(found) = self.word.spin_until_within(|word| word & HELD == 0, &mut left) {
                if heir == 0 && found & HEIR != 0 {
                    // Another one has left the count while `WAKING` was set, and was faster.
                    break;
                }
                // The mark of the heir goes with it: nobody else clears it.
                let heir = right!(heir, P, O5RotatingHeirStays, 0);
                if self.take_weakly(found, (found | HELD) & !(WAKING | heir)) {
                    return;
                }
            }
            if heir == 0 {
                // Relaxed: only tells others to keep away. If there is an heir already, wait for it.
                let found = self.word.fetch_or(HEIR, Relaxed);
                heir = HEIR & !found;
            }
            // Whoever holds it may be waiting for this CPU.
            P::yield_now();
        }
    }

    /// Cares for the sleepers after a release that found `word`.
    #[cold]
    fn after_release(&self, shared: &Shared, word: u32) {
        if word & (WAKING | HEIR) != 0 {
            // It may be waiting for this CPU.
            P::yield_now();
            return;
        }
        let rotate = self.is_time_to_rotate(shared);
        if !rotate {
            let somebody_cares = |word| word < SLEEPER || word & (HELD | HEIR | WAKING) != 0;
            if self.word.spin_until(somebody_cares, Budget::Iterations(shared.grace)).is_ok() {
                return;
            }
        }
        let mut found = self.word.load(Relaxed);
        loop {
            // Who holds it by now cares for the sleepers, but does not know that it is time.
            let others_care = HEIR | WAKING | if rotate { 0 } else { HELD };
            if found < SLEEPER || found & others_care != 0 {
                return;
            }
            // Relaxed: `wakes` has the order.
            match self.word.compare_exchange_weak(found, found | WAKING, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        // Whoever is about to sleep on the old value must find it changed.
        let wake = || P::wake_one(ptr::from_ref(&self.wakes));
        right!((), P, O6RotatingWakesBeforeItCounts, wake());
        // Release: see "Order".
        self.wakes.fetch_add(1, Release);
        right!(wake(), P, O6RotatingWakesBeforeItCounts, ());
        P::yield_now();
    }

    fn is_time_to_rotate(&self, shared: &Shared) -> bool {
        let Some(reading) = self.rotation.look(shared.releases_per_look, P::now) else {
            return false;
        };
        let rotate = u64::from(reading.since) * 1000 >= shared.rotation_ns;
        if rotate {
            self.rotation.happens(&reading);
        }
        rotate
    }
}

impl<P: Platform> RawLock<P> for Rotating<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared;
    type Token = ();

    /// With a spin budget of 0 it has no patience at all, and rotates at every release.
    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(match tuning.spin_budget {
            None => Shared::DEFAULT,
            Some(0) => Shared::impatient(0),
            Some(spin_budget) => Shared { spin_budget, ..Shared::DEFAULT },
        })
    }

    fn new() -> Self {
        let zero = || P::U32::new(0);
        Self::of(zero(), zero(), zero(), zero())
    }

    #[inline]
    fn lock(&self, shared: &Shared) {
        if !self.take(0, HELD) {
            self.lock_slow(shared);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared) -> Option<()> {
        // Relaxed: the exchange checks it.
        let found = self.word.load(Relaxed);
        (is_free(found) && self.take(found, found | HELD)).then_some(())
    }

    #[inline]
    fn unlock(&self, shared: &Shared, (): ()) {
        let seen = right!(None, P, O3RotatingLooksBeforeItReleases, Some(self.word.load(Relaxed)));
        // Release: what the holder did happens before the next acquisition. One step with the look for
        // sleepers: one that comes between the two would find the lock held, and sleep unseen.
        let found = self.word.fetch_sub(HELD, Release);
        let found = seen.unwrap_or(found);
        if found != HELD {
            self.after_release(shared, found);
        }
    }

    fn is_locked(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) & HELD != 0
    }

    fn is_contended(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) & !HELD != 0
    }
}
