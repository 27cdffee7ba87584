//! Time fairness: a holder of long sections stays away from the lock while other threads use it.
//!
//! Without this, a lock that is fair by acquisition is unfair by time. One thread with sections of 1 ms among fifteen
//! with sections of 0.1 us would take its turn each time it comes up, and would have nearly all of the lock's time.
//!
//! **The rule.** A holder of `long_ns` or more that leaves n sleepers behind owes n times the time that it has held the
//! lock, but [`MOST_NS`] at most. So each of n + 1 threads gets an equal part of the lock's time, unless the limit ends
//! the debt early. A thread pays at its next `lock`: it naps. It stops when the debt is paid, or when it finds that
//! no thread uses the lock. A nap is as long as the section was, but [`NAP_NS`] at most. If the last user leaves during
//! it, the lock is idle for no longer than it was held.
//!
//! **What is not charged.** The first long section in a row: a holder that was descheduled has held the lock as long,
//! and is not to blame. A thread that finds the lock free and without sleepers takes it before it looks at its debt.
//! What it owes then adds up. Such an acquisition has no time stamp, because a stamp would cost as much as the rest of
//! it. Most acquisitions that have waited for less than a quarter of the spin budget have no stamp either. A section
//! without a stamp counts as long as the last one, or as the time since then if that is less.
//!
//! **State.** The time stamp travels in the token, and the debt in the thread's [`Note`]. There is one note for each
//! thread, so a thread that alternates between two locks with long sections is charged for neither. The lock itself
//! has no more state than without debts, and a paying thread only looks at it: no waiter depends on it.
//! A lock at the address of one that is gone inherits its notes, which can cost a thread a debt.

use core::num::NonZero;
use core::ptr;

use super::affinity::Before;
use super::{HEIR, HELD, Mutex, Shared, WAKING};
use crate::bug::right;
use crate::{AtomicCell, Budget, Note, Platform};

/// A section of this length is long: two switches and a nap are short beside it.
pub(super) const LONG_NS: u64 = 100_000;

/// The longest debt: what 20 threads with sections of 1 ms wait for each other anyway.
pub(super) const MOST_NS: u64 = 20_000_000;

/// The longest nap.
const NAP_NS: u64 = 500_000;

/// Looks for a user of the lock before it counts as unused: some 12 us, many times the time that a short section and
/// the work outside take.
const LOOKS: u32 = 300;

/// Of so many acquisitions after a short wait one gets a time stamp.
const ONE_IN: u32 = 8;

/// When a section began, if that was noted, and where the one before it ran.
///
/// | Bits | Meaning |
/// |---|---|
/// | 0 and 1 | where, as the number of a `Before`; 3: neither was noted |
/// | 2 to 31 | time of [`Platform::now`], in 64 ns, wrapping after 68 s |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the lock stays held until `unlock` gets it"]
pub struct Token {
    /// Never 0, so that an `Option` of a token is one word.
    bits: NonZero<u32>,
}

impl Token {
    pub(super) const UNTIMED: Self = Self { bits: NonZero::new(3).expect("it is not 0") };

    /// The token of a section that begins now.
    pub(super) fn timed<P: Platform>(shared: &Shared, before: Before) -> Self {
        if shared.long_ns == u64::MAX {
            return Self::UNTIMED;
        }
        Self::of(P::now(), before)
    }

    fn of(now: u64, before: Before) -> Self {
        // Truncation is intended: the time wraps.
        let bits = ((now / UNIT_NS) as u32) << 2 | before as u32;
        NonZero::new(bits).map_or(Self::UNTIMED, |bits| Self { bits })
    }

    fn before(self) -> Before {
        match self.bits.get() & 3 {
            HERE => Before::Here,
            ELSEWHERE => Before::Elsewhere,
            _ => Before::Unknown,
        }
    }

    /// The time from then to `now`, in nanoseconds. The token is not untimed.
    fn age(self, now: u64) -> u64 {
        let units = ((now / UNIT_NS) as u32).wrapping_sub(self.bits.get() >> 2) & u32::MAX >> 2;
        u64::from(units) * UNIT_NS
    }
}

/// The unit of times in tokens.
const UNIT_NS: u64 = 64;
const HERE: u32 = Before::Here as u32;
const ELSEWHERE: u32 = Before::Elsewhere as u32;

/// Whether to note the time of an acquisition with so many looks left of a spin budget. After a short wait it is noted for
/// one in [`ONE_IN`] only: the lock is held meanwhile, and a quarter of a short section is much.
pub(super) fn is_timed(shared: &Shared, left: u32) -> bool {
    let waited = left < shared.spin_budget - shared.spin_budget / 4;
    // The number of looks left is as good as random.
    waited || left.is_multiple_of(ONE_IN)
}

/// The note of a thread that has released the lock at the address `lock`. `last` is its note from before.
fn after(
    last: Note,
    lock: usize,
    token: Token,
    released: u64,
    sleepers: u32,
    shared: &Shared,
) -> Note {
    let again = last.lock == lock;
    let held = match token {
        Token::UNTIMED => last.held.min(released.saturating_sub(last.released)),
        _ => token.age(released),
    };
    if held < shared.long_ns {
        return if again { Note::default() } else { last };
    }
    let owed = if again {
        let unpaid = (last.released + last.owed).saturating_sub(released);
        let price = u64::from(shared.price) * u64::from(sleepers);
        held.saturating_mul(price).saturating_add(unpaid).min(MOST_NS)
    } else {
        0
    };
    Note { lock, released, held, owed }
}

impl<P: Platform> Mutex<P> {
    fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Notes what the thread owes for a section that it has ended, when `sleepers` slept.
    pub(super) fn charge(&self, shared: &Shared, token: Token, sleepers: u32) {
        if shared.long_ns == u64::MAX {
            return;
        }
        let (lock, last) = (self.address(), P::recall());
        // Of most sections nothing is known, and then the clock is not read.
        if token != Token::UNTIMED || last.lock == lock {
            let released = P::now();
            if token != Token::UNTIMED && shared.learns() {
                self.affinity.end(token.before(), token.age(released));
            }
            P::remember(after(last, lock, token, released, sleepers, shared));
        }
    }

    /// Notes how long a section was after which nobody slept, and nobody is owed.
    #[cold]
    pub(super) fn measure(&self, shared: &Shared, token: Token) {
        if shared.learns() {
            self.affinity.end(token.before(), token.age(P::now()));
        }
    }

    /// Stays away while there is a debt and other threads use the lock, until the deadline at the latest.
    pub(super) fn pay(&self, shared: &Shared, deadline_ns: u64) {
        if shared.long_ns == u64::MAX {
            return;
        }
        let note = P::recall();
        if note.lock != self.address() {
            return;
        }
        let used = |word| word & (HELD | WAKING | HEIR) != 0;
        // The users may all have left: then no one is to be waited for.
        let looks = Budget::Iterations(LOOKS);
        let looks = right!(looks, P, O8MutexPaysWithoutUsers, Budget::Forever);
        loop {
            let left = (note.released + note.owed).min(deadline_ns).saturating_sub(P::now());
            if left == 0 || self.word.spin_until(used, looks).is_err() {
                return;
            }
            P::nap(left.min(note.held).min(NAP_NS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: usize = 4096;
    const MS: u64 = 1_000_000;

    fn section(last: Note, since: u64, released: u64, sleepers: u32) -> Note {
        let token = Token::of(since, Before::Unknown);
        after(last, LOCK, token, released, sleepers, &Shared::ON_THREADS)
    }

    #[test]
    fn the_second_long_section_in_a_row_costs_its_length_for_each_sleeper() {
        let first = section(Note::default(), MS, 2 * MS, 3);
        assert_eq!(first, Note { lock: LOCK, released: 2 * MS, held: MS, owed: 0 });
        let second = section(first, 10 * MS, 11 * MS, 3);
        assert_eq!(second, Note { lock: LOCK, released: 11 * MS, held: MS, owed: 3 * MS });
    }

    #[test]
    fn a_debt_has_a_limit() {
        let first = section(Note::default(), MS, 2 * MS, 0);
        assert_eq!(section(first, 3 * MS, 5 * MS, 15).owed, MOST_NS);
        assert_eq!(section(first, 2, u64::MAX / 2, u32::MAX).owed, MOST_NS);
    }

    #[test]
    fn what_is_not_paid_adds_up() {
        let owes = Note { lock: LOCK, released: 10 * MS, held: MS, owed: 3 * MS };
        // Released 2 ms later: 1 ms is left.
        assert_eq!(section(owes, 11 * MS, 12 * MS, 2).owed, 2 * MS + MS);
        assert_eq!(section(owes, 15 * MS, 16 * MS, 2).owed, 2 * MS);
    }

    #[test]
    fn a_short_section_ends_the_row() {
        let owes = Note { lock: LOCK, released: 10 * MS, held: MS, owed: 3 * MS };
        assert_eq!(section(owes, 11 * MS, 11 * MS + LONG_NS - 1, 2), Note::default());
        let elsewhere = Note { lock: LOCK + 1, ..owes };
        assert_eq!(section(elsewhere, 11 * MS, 11 * MS + 1, 2), elsewhere);
    }

    #[test]
    fn a_section_without_a_time_stamp_is_as_long_as_the_last_or_the_time_since() {
        let last = Note { lock: LOCK, released: 10 * MS, held: 2 * MS, owed: 0 };
        let untimed =
            |released| after(last, LOCK, Token::UNTIMED, released, 1, &Shared::ON_THREADS);
        assert_eq!(untimed(20 * MS).held, 2 * MS);
        assert_eq!(untimed(11 * MS).held, MS);
        assert_eq!(untimed(10 * MS + LONG_NS - 1), Note::default());
    }
}
