//! The chain of a wait: which vCPUs were absent when it was their turn, by which decision, and for
//! how long.

use super::clock::{Absence, LockClock, Wait};
use alloc::vec::Vec;
use overspin_scenario::Picos;

/// Number of absences in a chain, which keeps the longest.
const LISTED: usize = 12;

/// The shortest absence that a wait of this length lists: a 64th of the wait.
pub(super) fn worth_a_line(wait: Picos) -> Picos {
    wait / 64
}

/// The absences during a wait that ends at `until`, in order of time, and whether each is one of the
/// longest. The waiter's own absences take precedence over those of others, as they do in its
/// causes.
pub(super) fn absences(wait: &Wait, clock: &LockClock, until: Picos) -> Vec<(Absence, bool)> {
    let mut pieces: Vec<Absence> = Vec::new();
    let mut push = |piece: Absence| match pieces.last_mut() {
        _ if piece.since >= piece.until => {}
        // The next piece continues the last one, for instance when a sleeper was woken.
        Some(last)
            if (last.cause, last.who, last.until) == (piece.cause, piece.who, piece.since) =>
        {
            last.until = piece.until;
            last.acquisitions.1 = piece.acquisitions.1;
        }
        _ => pieces.push(piece),
    };
    let mut from = wait.since.max(wait.forgotten_until);
    let mut others = clock.absences.iter().peekable();
    let mut before = |from: Picos, to: Picos, push: &mut dyn FnMut(Absence)| {
        while let Some(a) = others.peek() {
            push(Absence { since: a.since.max(from), until: a.until.min(to), ..**a });
            if a.until > to {
                break;
            }
            others.next();
        }
    };
    for own in &wait.absences {
        before(from, own.since, &mut push);
        push(*own);
        from = own.until;
    }
    before(from, until, &mut push);
    // The sort is stable: among equally long absences, the earlier ones are listed.
    pieces.sort_by_key(|p| core::cmp::Reverse(p.time()));
    let mut pieces: Vec<_> = (0..).zip(pieces).map(|(i, p)| (p, i < LISTED)).collect();
    pieces.sort_by_key(|(p, _)| p.since);
    pieces
}
