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
//! **Why nobody starves.** At a release some `ROTATION_NS` after the last one, one sleeper is woken all the
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
//! descheduled heir makes the others wait. Uncontended: two read-modify-writes. `unlock` looks at the
//! lock after the release: who shares it must keep it in place until `unlock` has returned, as
//! references do. Beyond 2^24 - 1 sleepers it would lose count; Linux has at most 2^22 threads.
//!
//! **Source.** Our own; the parts are barging, as in the mutexes of Linux and of the Rust standard library;
//! handing over in user space (Falsafi et al., "Unlocking Energy", 2016); keeping few threads active
//! and rotating them (Dice, "Malthusian Locks", 2017); an heir (Linux's `MUTEX_FLAG_HANDOFF`).

use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::{AtomicCell, Budget, Bug, CapacityError, LockInfo, Platform, RawLock, Tuning};

const HELD: u32 = 1;
const WAKING: u32 = 1 << 1;
const HEIR: u32 = 1 << 2;
const SLEEPER: u32 = 1 << 8;

/// Looks at a held lock before going to sleep. With pauses of 35 to 45 ns this is 40 us, about what going
/// to sleep and being woken costs all involved on a virtual machine: on a bare one, a third would do.
pub const DEFAULT_SPIN_BUDGET: u32 = 1000;

/// Looks of a woken thread at a held lock before it becomes the heir: about a microsecond, in which the
/// holder of a short section has released several times.
const PATIENCE: u32 = 20;

/// Looks of a releaser for somebody who takes over: some 400 cycles, the value of MUTEXEE.
const GRACE: u32 = 3;

/// At least so long from one rotation to the next. A compromise: on two CPUs, with 16 threads and more and
/// sections of a microsecond, 50 us cost 8 % of the throughput and this costs 2 %; the longest waits
/// grow in proportion.
const ROTATION_NS: u64 = 150_000;

/// Releases between two readings of the clock, which take a tenth of a short section each.
const RELEASES_PER_LOOK: u32 = 16;

/// Properties of [`Rotating`].
pub const INFO: LockInfo = LockInfo {
    name: "mutex",
    brief: "Runners keep it busy, sleepers take turns.",
    source: "Overspin, of barging, MUTEXEE, culling and an heir",
    fair: false,
    local_spin: false,
    lhp_safe: true,
    lwp_safe: true,
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
    /// Releases with sleepers, and time of the last rotation in microseconds, wrapping. Written by whoever
    /// releases, without the lock: a lost update makes a rotation early or late.
    releases: P::U32,
    rotated: P::U32,
}

/// What locks of a kind share: their patience.
#[derive(Debug)]
pub struct Shared {
    spin_budget: u32,
    grace: u32,
    patience: u32,
    releases_per_look: u32,
    rotation_ns: u64,
}

impl Shared {
    /// With the default spin budget.
    pub const DEFAULT: Self = Self {
        spin_budget: DEFAULT_SPIN_BUDGET,
        grace: GRACE,
        patience: PATIENCE,
        releases_per_look: RELEASES_PER_LOOK,
        rotation_ns: ROTATION_NS,
    };

    /// No patience at all: waiters sleep at once, and each release is told the time, for a rotation at least
    /// `rotation_ns` after the last.
    pub const fn impatient(rotation_ns: u64) -> Self {
        Self { spin_budget: 0, grace: 0, patience: 0, releases_per_look: 1, rotation_ns }
    }
}

fn is_free(word: u32) -> bool {
    word & (HELD | HEIR) == 0
}

impl<P: Platform> Rotating<P> {
    /// The unlocked lock of cells that are all 0. For statics: [`RawLock::new`] is no constant.
    pub const fn of(word: P::U32, wakes: P::U32, releases: P::U32, rotated: P::U32) -> Self {
        Self { word, wakes, releases, rotated }
    }

    #[inline]
    fn take(&self, found: u32, new: u32) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(found, new, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared) {
        loop {
            // Relaxed: a hint. Somebody is on its way to a CPU: make room.
            let hurried = self.word.load(Relaxed) & WAKING != 0;
            let mut left = if hurried { 0 } else { shared.spin_budget };
            while let Ok(found) = self.word.spin_until_within(is_free, &mut left) {
                if self.take(found, found | HELD) {
                    return;
                }
            }
            // Acquire, and before the count: see "Order".
            let mut wakes = self.wakes.load(Acquire);
            // Relaxed: the exchange checks it.
            let found = self.word.load(Relaxed);
            // Of a free lock nobody is left to care for sleepers.
            if is_free(found) && !P::seeded(Bug::O2RotatingSleepsOnAFreeLock) {
                continue;
            }
            // Acquire and release: who finds the sleeper comes after its look at `wakes`.
            let counted = found.wrapping_add(SLEEPER);
            if self.word.compare_exchange(found, counted, AcqRel, Relaxed).is_err() {
                continue;
            }
            if P::seeded(Bug::O1RotatingReadsWakesLate) {
                wakes = self.wakes.load(Acquire);
            }
            if P::can_block() {
                P::wait(&self.wakes, wakes);
            }
            let found = self.word.fetch_sub(SLEEPER, Relaxed);
            // Only who takes the lock as the woken one clears `WAKING`.
            if found & WAKING != 0 && !P::seeded(Bug::O4RotatingForgetsItWasWoken) {
                return self.lock_woken(shared);
            }
        }
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
                let heir = if P::seeded(Bug::O5RotatingHeirStays) { 0 } else { heir };
                if self.take(found, (found | HELD) & !(WAKING | heir)) {
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
            match self.word.compare_exchange(found, found | WAKING, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => found = now,
            }
        }
        // Whoever is about to sleep on the old value must find it changed.
        let too_early = P::seeded(Bug::O6RotatingWakesBeforeItCounts);
        if too_early {
            P::wake_one(ptr::from_ref(&self.wakes));
        }
        // Release: see "Order".
        self.wakes.fetch_add(1, Release);
        if !too_early {
            P::wake_one(ptr::from_ref(&self.wakes));
        }
        P::yield_now();
    }

    fn is_time_to_rotate(&self, shared: &Shared) -> bool {
        // Relaxed, all: hints.
        let releases = self.releases.load(Relaxed).wrapping_add(1);
        self.releases.store(releases, Relaxed);
        if !releases.is_multiple_of(shared.releases_per_look) {
            return false;
        }
        // Truncation is the point: it wraps after an hour, which can delay one rotation by as much as
        // one period.
        let now = (P::now() / 1000) as u32;
        let since = now.wrapping_sub(self.rotated.load(Relaxed));
        let rotate = u64::from(since) * 1000 >= shared.rotation_ns;
        if rotate {
            self.rotated.store(now, Relaxed);
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
        let seen = P::seeded(Bug::O3RotatingLooksBeforeItReleases).then(|| self.word.load(Relaxed));
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
