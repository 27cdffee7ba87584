//! The debooster: a vCPU that yields to a sibling on its own pCPU is set back, so that the sibling is preferred for longer
//! than one pick (Wanpeng Li, "Semantics-aware vCPU scheduling", version 2 of December 2025; not merged).
//!
//! A directed yield makes the target the buddy of its queue, and the next pick uses that hint up. Then the yielder, which has
//! often had less run time, takes the pCPU back. The debooster adds a *penalty* to the yielder's virtual runtime:
//!
//! ```text
//! gap      how far the target's virtual runtime is ahead of the yielder's, 0 if it is not
//! penalty  one request and 110 % of the gap
//!          after a yield in the other direction within 600 us: the gap, or one request if that is more
//!          at least one request, at most 1 to 6 requests: the fewer vCPUs are queued, the more
//! ```
//!
//! The yielder's deadline becomes the end of a whole request from there. Its lag is not touched: it is computed when the vCPU
//! leaves the queue. The ordinary yield follows. So under a kernel in which a yield forfeits the rest of a request, a yielder that
//! the penalty leaves eligible forfeits that request too. The penalty must come first: a forfeit would close the gap.
//!
//! A queue penalises at most once in 6 ms. A try counts, even if its target turns out to be on another queue, where nothing is
//! done: the patch takes its time stamp before that check.
//!
//! **Groups.** The patch looks for the lowest common ancestor of both in the tree of control groups, and sets back the yielder's
//! ancestor there. This model has one level: with `group_shares` it divides weights and keeps one queue for each pCPU. So the
//! common ancestor is always that queue, and all its vCPUs are counted.
//!
//! **Two parts of the patch never act.** It has a least penalty for the case without a gap, in parts of a request; but every
//! penalty is at least one request, so that is left out. And it remembers the last pair for each queue, which penalises only once
//! in 6 ms: no pair is reversed within 600 us. That is kept as described, with its test.
//!
//! Invariant: some vCPU stays eligible. A penalty only raises one virtual runtime, and so their average V; the vCPU with the least
//! is never after V. Written from the description and the constants of that series (lkml 20251219035334.39790-5-kernellwp@gmail.com).

use crate::ids::VcpuId;
use crate::time::Nanos;

/// A queue penalises no sooner than this after the last try.
const INTERVAL: Nanos = Nanos::ms(6);
/// A yield in the other direction within this time is answered with a smaller penalty.
const REVERSE: Nanos = Nanos::us(600);

/// What the debooster remembers of a queue.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The last try that was not too soon.
    tried: Option<Nanos>,
    /// The last yield that was penalised: the yielder, the target, and when.
    pair: Option<(VcpuId, VcpuId, Nanos)>,
}

impl Memory {
    /// Whether a yield at `now` may be penalised; if so, the next [`INTERVAL`] begins.
    pub fn may_try(&mut self, now: Nanos) -> bool {
        if self.tried.is_some_and(|tried| now - tried <= INTERVAL) {
            return false;
        }
        self.tried = Some(now);
        true
    }

    /// The penalty of `from`, which yields to `to` at `now`, in virtual time. `request` is the length of a request of
    /// `from`; `ahead` is the target's virtual runtime less that of `from`; `queued` counts the vCPUs of the queue.
    pub fn penalty(
        &mut self,
        (from, to, now): (VcpuId, VcpuId, Nanos),
        (request, ahead, queued): (i64, i64, i64),
    ) -> i64 {
        let gap = ahead.max(0);
        let mut penalty = request + gap + gap / 10;
        let reverse = |(before, target, at): (VcpuId, VcpuId, Nanos)| {
            (before, target) == (to, from) && now - at <= REVERSE
        };
        if self.pair.is_some_and(reverse) {
            penalty = penalty.min(gap.max(request));
        }
        self.pair = Some((from, to, now));
        penalty.clamp(request, most(request, queued))
    }
}

/// The largest penalty where this many vCPUs are queued, the running one included.
fn most(request: i64, queued: i64) -> i64 {
    let halves = match queued {
        ..=2 => 12,
        3 => 8,
        4..=6 => 5,
        7..=8 => 4,
        9..=12 => 3,
        _ => 2,
    };
    request * halves / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: VcpuId = VcpuId(0);
    const B: VcpuId = VcpuId(1);
    const REQUEST: i64 = 2_800_000;

    fn first(ahead: i64, queued: i64) -> i64 {
        Memory::default().penalty((A, B, Nanos::ZERO), (REQUEST, ahead, queued))
    }

    /// Requests of 2.8 ms: without a gap one request; with a gap of 2 ms, 2.8 + 2.2; never more than the cap.
    #[test]
    fn a_penalty_is_a_request_and_the_gap() {
        assert_eq!(first(0, 2), 2_800_000);
        assert_eq!(first(-9_000_000, 2), 2_800_000, "the yielder is ahead: no gap");
        assert_eq!(first(2_000_000, 2), 5_000_000);
        assert_eq!(first(100_000_000, 2), 6 * REQUEST);
        assert_eq!(first(2_000_000, 20), REQUEST, "in a long queue one request is the most");
    }

    #[test]
    fn the_cap_falls_with_the_length_of_the_queue() {
        let caps = [2, 3, 4, 6, 7, 8, 9, 12, 13, 100].map(|queued| most(1000, queued));
        assert_eq!(caps, [6000, 4000, 2500, 2500, 2000, 2000, 1500, 1500, 1000, 1000]);
    }

    /// A yields to B, and B back to A after 600 us with a gap of 4 ms: 4 instead of 2.8 + 4.4. After 601 us the whole.
    #[test]
    fn a_reverse_pair_is_scaled_down() {
        for (after, expected) in [(600, 4_000_000), (601, 7_200_000)] {
            let mut memory = Memory::default();
            memory.penalty((A, B, Nanos::ZERO), (REQUEST, 0, 2));
            let back = (B, A, Nanos::us(after));
            assert_eq!(memory.penalty(back, (REQUEST, 4_000_000, 2)), expected, "{after} us");
        }
        let mut memory = Memory::default();
        memory.penalty((A, B, Nanos::ZERO), (REQUEST, 0, 2));
        let again = (A, B, Nanos::us(100));
        assert_eq!(memory.penalty(again, (REQUEST, 4_000_000, 2)), 7_200_000, "not reversed");
    }

    #[test]
    fn a_queue_tries_once_in_six_milliseconds() {
        let mut memory = Memory::default();
        let tries = [0, 1, 6, 7, 12, 13, 14].map(|at| memory.may_try(Nanos::ms(at)));
        assert_eq!(tries, [true, false, false, true, false, false, true]);
    }

    proptest! {
        #[test]
        fn a_penalty_is_within_one_request_and_the_cap(
            yields in prop::collection::vec((any::<bool>(), 0..2_000_i64, -50_000_000..50_000_000_i64, 1..40_i64), 1..20)
        ) {
            let (mut memory, mut now) = (Memory::default(), Nanos::ZERO);
            for (back, after, ahead, queued) in yields {
                now += Nanos::us(after);
                let (from, to) = if back { (B, A) } else { (A, B) };
                let penalty = memory.penalty((from, to, now), (REQUEST, ahead, queued));
                prop_assert!((REQUEST..=most(REQUEST, queued)).contains(&penalty));
            }
        }
    }
}
