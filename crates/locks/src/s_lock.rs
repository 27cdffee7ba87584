//! PostgreSQL's spinlock: test-and-set; a waiter that has looked in vain for some time sleeps for a millisecond or more.
//!
//! | `locked` | State |
//! |---|---|
//! | 0 | free, the idle state |
//! | 1 | held |
//!
//! A waiter looks, and tries only what it sees free. After so many vain turns it [naps](Platform::nap): for 1 ms at first. Each
//! further nap of the same acquisition is longer, by a random factor from 1 to 2. One that would exceed 1 s is 1 ms again.
//!
//! Each CPU, which is a process in PostgreSQL, learns how many turns pay before a nap. It begins with 100. A wait
//! without a nap adds 100, up to 1,000; a wait with a nap subtracts 1, down to 10. So a program that runs on one CPU, where
//! turns are of no use, soon naps at once.
//!
//! **Properties.** Unfair: the release wakes no sleeper, and a newcomer takes the lock meanwhile. A lock that was
//! held for some microseconds too long costs each waiter a millisecond. While the holder is descheduled, waiters give their CPUs away;
//! a descheduled waiter does no harm. Uncontended: one read-modify-write and a store, which is the last access to the
//! lock. The lock keeps no record of waiters: `is_contended` is always false. A kernel cannot nap with a spinlock: where
//! [`Platform::nap`] is a pause, as it is for a guest's kernel in the simulator, waiters burn.
//!
//! **Interrupts.** [`RawLock::lock_irqsave`] keeps them off while it waits, as `lock-byte` does.
//!
//! **Source.** PostgreSQL, `s_lock.c` and `s_lock.h`, written from their description. Deviations: PostgreSQL ends the program after
//! 1,000 naps, and this lock waits on. New processes of PostgreSQL begin with what earlier ones have learned. A
//! [`Tuning::spin_budget`] is a fixed number of turns.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::lottery::{Generator, after};
use crate::{
    AtomicCell, CachePadded, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning,
};

const FREE: u8 = 0;
const HELD: u8 = 1;

/// Turns before a nap: those of a new process, and the least and the most that it can learn.
pub const FIRST_TURNS: u32 = 100;
/// See [`FIRST_TURNS`].
pub const LEAST_TURNS: u32 = 10;
/// See [`FIRST_TURNS`].
pub const MOST_TURNS: u32 = 1_000;

/// What a wait without a nap adds to the turns. One with a nap subtracts 1.
const MORE_TURNS: u32 = 100;

/// The shortest nap, in nanoseconds.
pub const SHORTEST_NAP: u64 = 1_000_000;
/// The longest nap, in nanoseconds.
pub const LONGEST_NAP: u64 = 1_000_000_000;

/// Properties of [`SLock`].
pub const INFO: LockInfo = LockInfo {
    name: "s-lock",
    brief: "PostgreSQL's test-and-set spinlock, whose waiters sleep blindly after some turns.",
    source: "PostgreSQL, s_lock.c",
    fair: false,
    local_spin: false,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::Pass,
    abortable: false,
    // They sleep, but no CPU wakes them.
    blocks: false,
    // More CPUs than any machine has; each costs two cache lines.
    max_cpus: u16::MAX as u32,
    size: 1,
};

/// The lock. See the [module](self).
#[derive(Debug)]
#[repr(transparent)]
pub struct SLock<P: Platform> {
    locked: P::U8,
}

/// What all locks of a system share.
#[derive(Debug)]
pub struct Shared<P: Platform> {
    random: Generator<P>,
    /// The turns of each CPU before a nap. Only its CPU uses them.
    turns: P::Slots<CachePadded<P::U32>>,
    /// Turns that replace what CPUs learn.
    fixed: Option<u32>,
}

impl<P: Platform> Shared<P> {
    fn turns(&self) -> u32 {
        self.fixed.unwrap_or_else(|| self.turns[P::cpu_id()].load(Relaxed))
    }

    /// This CPU's wait is over, and it has `napped` or not.
    fn learn(&self, napped: bool) {
        if self.fixed.is_some() {
            return;
        }
        let turns = &self.turns[P::cpu_id()];
        let old = turns.load(Relaxed);
        let new = learned(old, napped);
        if new != old {
            turns.store(new, Relaxed);
        }
    }
}

/// The turns after a wait of a CPU that had so many.
const fn learned(turns: u32, napped: bool) -> u32 {
    match napped {
        true if turns > LEAST_TURNS => turns - 1,
        false if turns + MORE_TURNS < MOST_TURNS => turns + MORE_TURNS,
        true => LEAST_TURNS,
        false => MOST_TURNS,
    }
}

/// The nap after one of `nap` nanoseconds; `draw` stands for a fraction of 2^32.
const fn longer(nap: u64, draw: u32) -> u64 {
    // At most 10^9 times 2^32: it fits.
    let longer = nap + ((nap * draw as u64) >> 32);
    if longer > LONGEST_NAP { SHORTEST_NAP } else { longer }
}

impl<P: Platform> SLock<P> {
    #[inline]
    fn acquire_at_once(&self) -> bool {
        // Acquire: pairs with the release in `unlock`; a failed try learns nothing that needs an order. PostgreSQL swaps,
        // which writes in vain, too; processors take the line for either.
        self.locked.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self, shared: &Shared<P>) {
        let turns = shared.turns();
        let (mut left, mut nap) = (turns, 0);
        // One draw for each wait, and the others from it: a waiter writes nothing while nothing happens.
        let mut draw = 0;
        loop {
            let free = self.locked.spin_until_within(|locked| locked == FREE, &mut left);
            if free.is_ok() && self.acquire_at_once() {
                break;
            }
            if left == 0 {
                draw = if draw == 0 { shared.random.draw() } else { after(draw) };
                nap = if nap == 0 { SHORTEST_NAP } else { longer(nap, draw) };
                P::nap(nap);
                left = turns;
            }
        }
        shared.learn(nap > 0);
    }
}

impl<P: Platform> RawLock<P> for SLock<P> {
    const INFO: LockInfo = INFO;
    type Shared = Shared<P>;
    type Token = ();

    fn shared(cpus: usize, tuning: Tuning) -> Result<Shared<P>, CapacityError> {
        INFO.check_capacity(cpus)?;
        Ok(Shared {
            random: Generator::new(cpus),
            turns: P::slots(cpus, |_| CachePadded::new(P::U32::new(FIRST_TURNS))),
            fixed: tuning.spin_budget,
        })
    }

    fn new() -> Self {
        Self { locked: P::U8::new(FREE) }
    }

    #[inline(always)]
    fn lock(&self, shared: &Shared<P>) {
        if !self.acquire_at_once() {
            self.lock_slow(shared);
        }
    }

    #[inline]
    fn try_lock(&self, _shared: &Shared<P>) -> Option<()> {
        self.acquire_at_once().then_some(())
    }

    #[inline(always)]
    fn unlock(&self, _shared: &Shared<P>, (): ()) {
        // Release: what the holder did happens before the next acquisition.
        self.locked.store(FREE, Release);
    }

    fn is_locked(&self, _shared: &Shared<P>) -> bool {
        self.locked.load(Relaxed) != FREE
    }

    fn is_contended(&self, _shared: &Shared<P>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_grow_up_to_twofold_and_begin_anew_beyond_a_second() {
        assert_eq!(longer(SHORTEST_NAP, 0), SHORTEST_NAP);
        // Half of 2^32 stands for a half.
        assert_eq!(longer(SHORTEST_NAP, 1 << 31), SHORTEST_NAP * 3 / 2);
        assert!((2 * SHORTEST_NAP - 1..2 * SHORTEST_NAP).contains(&longer(SHORTEST_NAP, u32::MAX)));
        assert_eq!(longer(LONGEST_NAP, 0), LONGEST_NAP);
        assert_eq!(longer(LONGEST_NAP, 1 << 31), SHORTEST_NAP);
    }

    #[test]
    fn waits_without_naps_add_turns_and_those_with_naps_subtract_them() {
        assert_eq!(learned(FIRST_TURNS, false), 200);
        assert_eq!(learned(950, false), MOST_TURNS);
        assert_eq!(learned(MOST_TURNS, false), MOST_TURNS);
        assert_eq!(learned(MOST_TURNS, true), 999);
        assert_eq!(learned(LEAST_TURNS, true), LEAST_TURNS);
    }
}
