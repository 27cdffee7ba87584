//! A mutex for general use: running threads keep it busy, sleeping threads take turns.
//!
//! | `word` | Meaning |
//! |---|---|
//! | `HELD` | held |
//! | `WAKING` | a sleeper has been woken and does not have the lock yet |
//! | `HEIR` | the woken thread is next: no other thread may take the lock |
//! | `DUE` | it is the woken thread's turn: others make room for it |
//! | `SLEEPER` × n | n threads sleep, are about to, or have not noticed that they are awake |
//!
//! Idle is 0. `WAKING`, `DUE` and `HEIR` are set on behalf of one thread. The thread that takes the lock in their name
//! clears them.
//!
//! **Why it is fast.** With more threads than CPUs, waking costs the time: two system calls, a context switch, and
//! a lock that stays free until the woken thread runs. So any running thread may take a free lock (barging). A
//! releaser with sleepers to care for looks for about as long as a wake-up costs it whether a thread does (as in
//! [MUTEXEE](crate::mutexee)). As long as running threads want the lock, no sleeper is woken.
//!
//! **Why no thread starves.** Two kinds of threads are left out: sleeping threads, and runnable threads without a
//! CPU. For runnable threads, a waiter gives its CPU away (`turn.rs`) when the lock has been wanted all the time for 4 us
//! or more. The waiter has no other use for the CPU, the lock stays as busy as the others keep it, and the
//! operating system's queue is the fairest there is. Where sections are shorter than the spin budget, threads
//! rarely sleep, and these turns are the only remedy.
//!
//! For sleeping threads, a release some `ROTATION_NS` after the last rotation wakes one sleeper in any case, the
//! one that has slept longest. Waking alone does not help where all CPUs are busy, because the woken thread would
//! wait for the end of another thread's slice. So it is that thread's turn: releasers yield as long as it is on its way, and
//! newcomers go to sleep at once, which also keeps the number of running threads constant. If the lock still
//! escapes that thread, it becomes the heir. So a sleeper waits for the sleepers before it in the queue, one
//! rotation each. A thread that has never slept can be overtaken for its spin budget, and then sleeps.
//!
//! A thread that is woken because no running thread wanted the lock has no turn. If it finds the lock held, it goes back: it looks as a
//! newcomer does, and sleeps behind the others. If it is woken once more, it looks until it has the lock, as the heir
//! if need be. Why no turn: with a CPU for each thread, newcomers that made room for every woken thread would all
//! sleep in the end, and each section would wait for a wake-up. With 16 threads on 16 CPUs and sections of 1 us that
//! was 0.66 of the throughput (simulated).
//!
//! One gap remains, which chance closes: a thread is counted as a sleeper only if it finds the lock held, so others that are in
//! step with it could keep it from both the lock and the sleep.
//!
//! **Why no thread has the lock most of the time.** A holder of long sections pays (`mutex/debt.rs`): it stays away as long as
//! the sleepers that it left would each have held the lock, but 20 ms at most. This holds on threads only.
//!
//! **Where sections share much**, a lock that moves from one processor to another has to wait for what the sections use. It
//! learns that (`mutex/affinity.rs`), and then prefers threads on the processor where it is. Waiters do not spin, and a
//! woken thread goes back to sleep as often as it finds the lock held, unless it was woken for a rotation. Rotations come
//! less often, so sleepers wait for longer. Only threads learn.
//!
//! **Beside processes that compute** a yield may cost a slice. Where [yields are dear](Platform::yield_is_dear),
//! releasers do not yield, a woken thread naps instead, newcomers do not make room for it, and waiters look for a
//! shorter time. A thread that has napped 22 times becomes the heir as elsewhere, and goes on napping if the lock stays
//! held. Turns stay as they are: a waiter loses nothing by them that it could use.
//!
//! **No wake-up is lost.** A thread reads `wakes`, then counts itself as a sleeper, in an exchange that fails
//! unless the lock is held, then sleeps unless `wakes` has changed. The holder finds it counted when it releases.
//! Then there are three cases. Another thread has taken the lock, and finds the sleeper too; or `WAKING` is set,
//! and a thread is awake; or the releaser sets `WAKING`, changes `wakes`, and wakes one sleeper. A thread that
//! leaves the count with `WAKING` set acts as the woken one, whatever woke it, so the bit has an owner as long as
//! it is set. A woken thread that goes back to sleep first clears the bit, and then begins anew: it looks, and is counted
//! only if the lock is held.
//!
//! **Giving up** ([`Mutex::lock_until`]). A sleeper that gives up leaves the count. If `WAKING` is set then, it acts as the
//! woken thread, with its deadline. A woken thread that gives up clears `WAKING` and `DUE`, and `HEIR` if it set that. If the lock
//! is held, its release then cares for the sleepers. If not, the thread cares for them as a releaser does. The clock is read
//! between two spin budgets, so a running thread gives up some 40 us late.
//!
//! **Order.** Taking acquires, releasing releases. `wakes` is read with acquire and changed with release: a thread
//! that reads the changed value comes after the exchange that found a sleeper counted, and so cannot be that
//! sleeper. The rest are hints.
//!
//! **Properties.** Unfair in the short run. A descheduled holder costs the others their spin budget. A descheduled
//! heir makes the others wait: they sleep until it has run. Uncontended: two read-modify-writes. `unlock` looks at
//! the lock after the release: the users of the lock must keep it in place until `unlock` has returned, as
//! references do. Beyond 2^24 - 1 sleepers it would lose count; Linux has at most 2^22 threads.
//!
//! **Source.** Our own. Its parts are barging, as in the mutexes of Linux and of the Rust standard library; handing
//! over in user space (Falsafi et al., "Unlocking Energy", 2016); keeping few threads active and rotating them
//! (Dice, "Malthusian Locks", 2017); an heir (Linux's `MUTEX_FLAG_HANDOFF`); a lock that stays where its data is (Dice,
//! Marathe and Shavit, "Lock Cohorting", 2012), here by a price that it measures.

mod adopt;
mod affinity;
mod debt;
mod release;
mod shared;
mod woken;

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bug::right;
use crate::coarse_clock::CoarseClock;
use crate::deadline::{NEVER, has_passed, sleep};
use crate::turn::{FIRST_LOOKS, Turns};
use crate::{AtomicCell, CapacityError, LockInfo, LockUntil, Meanwhile, Platform, RawLock, Tuning};
use affinity::{Affinity, Before};
pub use debt::Token;
pub use shared::{DEFAULT_SPIN_BUDGET, Shared};
use woken::Woken;

const HELD: u32 = 1;
const WAKING: u32 = 1 << 1;
const HEIR: u32 = 1 << 2;
const DUE: u32 = 1 << 3;
const SLEEPER: u32 = 1 << 8;

/// Where yields are dear, waiters look only this part of their spin budget. Looks take CPU time that the holder could
/// use, because the scheduler gives the threads a share in common.
const DEAR_PART: u32 = 8;

/// Properties of [`Mutex`].
pub const INFO: LockInfo = LockInfo {
    name: "mutex",
    brief: "Running threads keep it busy, sleepers take turns.",
    source: "Overspin, of barging, MUTEXEE, culling and an heir",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::GiveWay,
    abortable: true,
    blocks: true,
    max_cpus: (1 << 24) - 1,
    size: 20,
};

/// The algorithm. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Mutex<P: Platform> {
    word: P::U32,
    /// How many sleepers have been woken; sleepers sleep on it.
    wakes: P::U32,
    /// Counts releases with sleepers; every releaser updates it. The event is a rotation.
    rotation: CoarseClock<P::U32>,
    turns: Turns<P::U32>,
    /// The holder updates it, or the last one.
    affinity: Affinity<P::U32>,
}

fn is_free(word: u32) -> bool {
    word & (HELD | HEIR) == 0
}

impl<P: Platform> Mutex<P> {
    /// Makes an unlocked lock from cells that are all 0. For statics: [`RawLock::new`] is not const.
    pub const fn of(
        word: P::U32,
        wakes: P::U32,
        rotation: P::U32,
        turns: P::U32,
        affinity: P::U32,
    ) -> Self {
        Self {
            word,
            wakes,
            rotation: CoarseClock::of(rotation),
            turns: Turns::of(turns),
            affinity: Affinity::of(affinity),
        }
    }

    #[inline]
    fn take(&self, found: u32, new: u32) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.word.compare_exchange(found, new, Acquire, Relaxed).is_ok()
    }

    /// `take` that may fail spuriously, for loops.
    fn take_weakly(&self, found: u32, new: u32) -> bool {
        // Acquire: as in `take`.
        self.word.compare_exchange_weak(found, new, Acquire, Relaxed).is_ok()
    }

    /// See [`RawLock::LOCK_UNTIL`].
    pub fn lock_until(&self, shared: &Shared, deadline_ns: u64) -> Option<Token> {
        self.try_lock(shared).or_else(|| self.lock_slow(shared, deadline_ns))
    }

    /// `None` only after the deadline, which may be [`NEVER`].
    #[cold]
    fn lock_slow(&self, shared: &Shared, deadline_ns: u64) -> Option<Token> {
        self.pay(shared, deadline_ns);
        let mut went_back = false;
        loop {
            // Relaxed: a hint. A woken thread is on its way to a CPU: make room. Where it must wait for the slice of a
            // process that computes, room does not help it.
            let hurried = self.word.load(Relaxed) & DUE != 0 && !P::yield_is_dear();
            let patient = !hurried && !self.seldom_moves(shared);
            let budget = if patient { shared.spin_budget } else { 0 };
            let mut left = budget.min(FIRST_LOOKS);
            let rest = budget - left;
            if let Some(found) = self.spin(&mut left) {
                return Some(self.begin(shared, found, hurried));
            }
            if rest > 0 {
                self.turns.wait::<P>(shared.pace);
                left = if P::yield_is_dear() { rest / DEAR_PART } else { rest };
                if let Some(found) = self.spin(&mut left) {
                    return Some(self.begin_after_looks(shared, found, left));
                }
            }
            if has_passed::<P>(deadline_ns) {
                return None;
            }
            // Acquire, and before the count: see "Order".
            let wakes = self.wakes.load(Acquire);
            // Relaxed: the exchange checks it.
            let found = self.word.load(Relaxed);
            // A free lock has no holder that cares for sleepers.
            if right!(is_free(found), P, O2MutexSleepsOnAFreeLock, false) {
                continue;
            }
            // Acquire and release: a thread that finds the sleeper comes after the sleeper's look at `wakes`.
            let counted = found.wrapping_add(SLEEPER);
            if self.word.compare_exchange_weak(found, counted, AcqRel, Relaxed).is_err() {
                continue;
            }
            let wakes = right!(wakes, P, O1MutexReadsWakesLate, self.wakes.load(Acquire));
            sleep::<P>(&self.wakes, wakes, deadline_ns);
            match self.leave_the_count(shared, deadline_ns, went_back) {
                Woken::Took(found) => return Some(self.begin(shared, found, true)),
                Woken::GaveUp => return None,
                Woken::WentBack => went_back = true,
                Woken::BeginsAnew => {}
            }
        }
    }

    /// Takes the lock if it is free within a budget; returns the word from before.
    fn spin(&self, left: &mut u32) -> Option<u32> {
        while let Ok(found) = self.word.spin_until_within(is_free, left) {
            if self.take_weakly(found, found | HELD) {
                return Some(found);
            }
        }
        None
    }

    /// The token of a section that begins. The word was `found`. `timed` asks for the time, beside a wait that makes it
    /// cheap.
    fn begin(&self, shared: &Shared, found: u32, timed: bool) -> Token {
        let before = if found >= SLEEPER && shared.learns() {
            self.affinity.begin(P::processor())
        } else {
            Before::Unknown
        };
        let timed = match before {
            Before::Unknown => timed,
            Before::Here => timed || self.rotation.is_one_in_eight(),
            Before::Elsewhere => true,
        };
        if timed { Token::timed::<P>(shared, before) } else { Token::UNTIMED }
    }

    /// The token of a section that begins after so many looks that `left` are left of the spin budget.
    fn begin_after_looks(&self, shared: &Shared, found: u32, left: u32) -> Token {
        let timed = debt::is_timed(shared, left);
        if timed && found < SLEEPER {
            // The holder ran while this thread did.
            return Token::timed::<P>(shared, Before::Elsewhere);
        }
        self.begin(shared, found, timed)
    }
}

impl<P: Platform> RawLock<P> for Mutex<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared;
    type Token = Token;
    const LOCK_UNTIL: Option<LockUntil<P, Self>> = Some(Self::lock_until);

    /// With a spin budget of 0 it has no patience at all, and rotates at every release.
    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared, CapacityError> {
        INFO.check_capacity(cpus)?;
        let usual = if tuning.yields > 0 { Shared::ON_THREADS } else { Shared::DEFAULT };
        Ok(match tuning.spin_budget {
            None => usual,
            Some(0) => Shared::impatient(0),
            Some(spin_budget) => Shared { spin_budget, ..usual },
        })
    }

    fn new() -> Self {
        let zero = || P::U32::new(0);
        Self::of(zero(), zero(), zero(), zero(), zero())
    }

    #[inline]
    fn lock(&self, shared: &Shared) -> Token {
        if self.take(0, HELD) {
            return Token::UNTIMED;
        }
        loop {
            if let Some(token) = self.lock_slow(shared, NEVER) {
                return token;
            }
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared) -> Option<Token> {
        // Relaxed: the exchange checks it.
        let found = self.word.load(Relaxed);
        (is_free(found) && self.take(found, found | HELD)).then_some(Token::UNTIMED)
    }

    #[inline]
    fn unlock(&self, shared: &Shared, token: Token) {
        let seen = right!(None, P, O3MutexLooksBeforeItReleases, Some(self.word.load(Relaxed)));
        // Release: what the holder did happens before the next acquisition. The release and the look for sleepers
        // are one step: a sleeper that came between the two would find the lock held, and sleep unseen.
        let found = self.word.fetch_sub(HELD, Release);
        let found = seen.unwrap_or(found);
        if found != HELD {
            self.after_release(shared, found, token);
        } else if token != Token::UNTIMED {
            self.measure(shared, token);
        }
    }

    fn is_locked(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) & HELD != 0
    }

    fn is_contended(&self, _shared: &Shared) -> bool {
        self.word.load(Relaxed) & !HELD != 0
    }
}
