//! The choice of the pCPU that is told to look at the queue when a vCPU becomes runnable.
//!
//! Source: schedulers specification §4.5, and §2 for the order before Xen 4.8.

use super::Credit2;
use super::profile::{CREDIT_INIT, TICKLE_TOLERANCE};
use crate::ids::{PcpuId, VcpuId};
use crate::scheduler::Context;

impl Credit2 {
    /// Tells one pCPU about `v`, which was just queued, if one should take it. If the ratelimit
    /// protects what every suitable pCPU runs, it tells none, and `v` waits for the end of a slice.
    pub(super) fn tickle(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let q = self.vcpus[v.index()].queue;
        if self.profile.early {
            if let Some(p) = self.whom_to_tell_early(cx, q, v) {
                self.tell(cx, q, p);
            }
        } else if let Some(p) = self.whom_to_tell(cx, q, v) {
            self.tell(cx, q, p);
            self.vcpus[v.index()].tickled_by = Some(p);
        }
    }

    /// An idle core, else an idle thread (with `smt_space` rather one beside like), preferred pCPUs
    /// first; else the pCPU where `v` has the best score.
    fn whom_to_tell(&mut self, cx: &Context<'_>, q: usize, v: VcpuId) -> Option<PcpuId> {
        let home = cx.home(v);
        let affinity = cx.affinity(v);
        let queue = &self.queues[q];
        if affinity.is_pinned() && affinity.hard().contains(home) && queue.free.contains(home) {
            return Some(home);
        }
        let first = if self.params.smt_power_savings {
            // Idle threads of cores that are not idle as a whole. The original counts those that were
            // told already, and whose core therefore is not free any more.
            self.scratch.copy_from(if self.params.as_is { &queue.idle } else { &queue.free });
            self.scratch.remove_within(&queue.smt_idle, 0..cx.pcpus());
            &self.scratch
        } else {
            &queue.smt_idle
        };
        for mask in affinity.steps() {
            let idle = first
                .toc_and(home, mask)
                .or_else(|| self.beside_like(cx, q, v, mask))
                .or_else(|| queue.free.toc_and(home, mask));
            if idle.is_some() {
                return idle;
            }
        }
        let preferred = affinity.soft().unwrap_or(affinity.hard());
        let score = self.score(cx, q, v, home);
        if score > 0 && preferred.contains(home) {
            return Some(home);
        }
        let mut best = (score.max(0), (score > 0).then_some(home));
        let mut at = self.queues[q].members.cycle_and(PcpuId(u32::MAX - 1), affinity.hard());
        while let Some(p) = at {
            if p != home {
                let score = self.score(cx, q, v, p);
                if score > best.0 {
                    best = (score, Some(p));
                }
            }
            at = self.queues[q].members.cycle_and(p, affinity.hard()).filter(|next| *next > p);
        }
        best.1
    }

    /// How much better `v` is for `p` than the current vCPU; not positive if `v` should not run
    /// there.
    fn score(&mut self, cx: &Context<'_>, q: usize, v: VcpuId, p: PcpuId) -> i64 {
        if self.queues[q].tickled.contains(p) || !cx.affinity(v).hard().contains(p) {
            return -1;
        }
        let Some(current) = cx.current(p) else { return -1 };
        let limit = self.params.ratelimit;
        let ran = cx.now() - cx.entry(current);
        if limit > TICKLE_TOLERANCE && ran <= limit - TICKLE_TOLERANCE {
            return -1;
        }
        self.burn(cx, current);
        let resist = if p == cx.home(v) { 0 } else { self.params.migrate_resist };
        let score = self.vcpus[v.index()].credit - self.vcpus[current.index()].credit - resist;
        if score <= 0 {
            return score;
        }
        let prefers = |x: VcpuId| cx.affinity(x).soft().is_none_or(|soft| soft.contains(p));
        let bonus = i64::from(prefers(v)) + i64::from(!prefers(current));
        score + bonus * CREDIT_INIT
    }

    /// Before 4.8: the home if its current vCPU has less credit, whether told already or not; else
    /// an idle pCPU; else the pCPU whose current vCPU has least credit, if `v` has enough more to
    /// overcome `migrate_resist`.
    fn whom_to_tell_early(&mut self, cx: &Context<'_>, q: usize, v: VcpuId) -> Option<PcpuId> {
        let (home, hard, credit) =
            (cx.home(v), cx.affinity(v).hard(), self.vcpus[v.index()].credit);
        let of_current = |this: &mut Self, p: PcpuId| {
            cx.current(p).map_or(this.params.idle_credit, |current| {
                this.burn(cx, current);
                this.vcpus[current.index()].credit
            })
        };
        if hard.contains(home) && of_current(self, home) < credit {
            return Some(home);
        }
        if let Some(idle) = self.queues[q].free.cycle_and(home, hard) {
            return Some(idle);
        }
        let mut lowest: Option<(i64, PcpuId)> = None;
        for p in (0..cx.pcpus()).map(PcpuId) {
            let queue = &self.queues[q];
            let busy = queue.members.contains(p) && !queue.idle.contains(p);
            if p == home || !busy || queue.tickled.contains(p) || !hard.contains(p) {
                continue;
            }
            let other = of_current(self, p);
            if lowest.is_none_or(|(least, _)| other < least) {
                lowest = Some((other, p));
            }
        }
        let resist = self.params.migrate_resist;
        lowest.filter(|(least, _)| least.saturating_add(resist) <= credit).map(|(_, p)| p)
    }
}
