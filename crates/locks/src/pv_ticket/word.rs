//! The word of the paravirtual ticket locks, in two sizes.

use core::fmt::Debug;

use super::flag_in_tail;
use crate::LockInfo;

/// A word that holds `head` (low) and `tail` (high), with tickets that move by 2. Bit 0 of each half is
/// not part of the ticket; one of the two bits is the flag.
///
/// It is not a [`TicketWord`](crate::ticket::TicketWord): with these tickets everything but its two
/// halves would have another meaning.
pub trait FlaggedWord: Copy + Eq + Debug {
    /// A half, or a ticket: a half whose bit 0 is 0.
    type Half: Copy + Eq + Debug + Default + Into<u32> + Into<u64> + 'static;
    /// Properties of the lock of 2012 with this word.
    const INFO_2012: LockInfo;
    /// Maximum number of outstanding tickets before a held lock looks free: one less than there are
    /// tickets.
    const MAX_CPUS: u32;
    /// What to add to draw a ticket. The carry falls off the word.
    const DRAW: Self;
    /// The flag, if it is in `tail`.
    const TAIL_FLAG: Self;

    /// The word of a free lock where `first` is the next ticket.
    ///
    /// # Panics
    /// If `first` is odd.
    fn idle(first: Self::Half) -> Self;
    /// The low half, with its bit 0.
    fn head(self) -> Self::Half;
    /// The high half, with its bit 0.
    fn tail(self) -> Self::Half;
    /// This word with another low half.
    fn with_head(self, head: Self::Half) -> Self;
    /// Whether the flag in `tail` is set.
    fn has_tail_flag(self) -> bool;
    /// This word without the flag in `tail`.
    fn without_tail_flag(self) -> Self;
    /// This word with one more ticket drawn, and the flag unchanged.
    fn drawn(self) -> Self;
    /// Tickets drawn and not yet served to the end: holder and waiters.
    fn outstanding(self) -> u32;
    /// The ticket in a half.
    fn ticket(half: Self::Half) -> Self::Half;
    /// Whether `ticket` is served.
    fn serves(self, ticket: Self::Half) -> bool {
        Self::ticket(self.head()) == ticket
    }
    /// The ticket after a ticket.
    fn after(ticket: Self::Half) -> Self::Half;
    /// What to add to serve the ticket after `mine`: 2, or, where that would carry into `tail`, the
    /// difference that takes the ticket to 0 and leaves `tail` alone. A flag in `head` is preserved.
    fn serve_next(mine: Self::Half) -> Self;
}

macro_rules! flagged_word {
    ($word:ty, $half:ty, $info_2012:expr) => {
        impl FlaggedWord for $word {
            type Half = $half;
            const INFO_2012: LockInfo = $info_2012;
            const MAX_CPUS: u32 = (1 << (<$half>::BITS - 1)) - 1;
            const DRAW: Self = 2 << <$half>::BITS;
            const TAIL_FLAG: Self = 1 << <$half>::BITS;

            fn idle(first: $half) -> Self {
                assert!(Self::ticket(first) == first, "tickets are even");
                Self::from(first) << <$half>::BITS | Self::from(first)
            }

            #[inline]
            fn head(self) -> $half {
                // Truncation is intended.
                self as $half
            }

            #[inline]
            fn tail(self) -> $half {
                (self >> <$half>::BITS) as $half
            }

            #[inline]
            fn with_head(self, head: $half) -> Self {
                self & !Self::from(<$half>::MAX) | Self::from(head)
            }

            #[inline]
            fn has_tail_flag(self) -> bool {
                self & Self::TAIL_FLAG != 0
            }

            #[inline]
            fn without_tail_flag(self) -> Self {
                self & !Self::TAIL_FLAG
            }

            #[inline]
            fn drawn(self) -> Self {
                self.wrapping_add(Self::DRAW)
            }

            #[inline]
            fn outstanding(self) -> u32 {
                let apart = Self::ticket(self.tail()).wrapping_sub(Self::ticket(self.head()));
                u32::from(apart) / 2
            }

            #[inline]
            fn ticket(half: $half) -> $half {
                half & !1
            }

            #[inline]
            fn after(ticket: $half) -> $half {
                ticket.wrapping_add(2)
            }

            #[inline]
            fn serve_next(mine: $half) -> Self {
                // The new head less the old one, modulo the word: 2, or -(2^bits - 2) at the wrap.
                Self::from(Self::after(mine)).wrapping_sub(Self::from(mine))
            }
        }
    };
}

flagged_word!(u16, u8, flag_in_tail::SMALL_INFO);
flagged_word!(u32, u16, flag_in_tail::INFO);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serving_the_last_ticket_leaves_a_flag_in_head_and_tail_alone() {
        // head 0xfffe with the flag, tail 0x0002.
        let word = 0x0002_ffff_u32;
        let mine = u32::ticket(word.head());
        assert_eq!(word.wrapping_add(u32::serve_next(mine)), 0x0002_0001);
        assert_eq!(word.outstanding(), 2);
    }

    #[test]
    fn a_small_ticket_wraps_and_leaves_the_tail_and_its_flag_alone() {
        // Ticket 254 is served; 0 and 2 are drawn, and a waiter sleeps: tail 4 with the flag.
        let word = 0x05fe_u16;
        assert_eq!((word.head(), word.outstanding(), word.has_tail_flag()), (254, 3, true));
        // A plain addition would carry into the tail: one ticket more that no CPU drew, and no flag.
        assert_eq!(word.wrapping_add(2), 0x0600);
        let served = word.wrapping_add(u16::serve_next(254));
        assert_eq!(served, 0x0500);
        assert_eq!((u16::after(254), served.head(), served.outstanding()), (0, 0, 2));
        // Drawn: the tail goes from 254 to 0, keeps its flag, and the carry falls off the word.
        assert_eq!(0xfffc_u16.drawn(), 0x01fc);
        assert_eq!(0x01fc_u16.outstanding(), 2);
    }

    #[test]
    fn with_one_cpu_more_a_held_lock_would_look_free() {
        let drawn_by = |cpus| (0..cpus).fold(u16::idle(0), |word, _| word.drawn());
        assert_eq!((u16::MAX_CPUS, drawn_by(127).outstanding()), (127, 127));
        assert_eq!(drawn_by(128).outstanding(), 0);
        let drawn_by = |cpus| (0..cpus).fold(u32::idle(0), |word, _| word.drawn());
        assert_eq!((u32::MAX_CPUS, drawn_by(32_767).outstanding()), (32_767, 32_767));
        assert_eq!(drawn_by(32_768).outstanding(), 0);
    }
}
