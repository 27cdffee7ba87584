//! Credit: how it burns, when an epoch ends, and how long credit lasts.
//!
//! One credit is one ns of the heaviest vCPU of the runqueue; a lighter one burns max_weight /
//! weight times as fast. No vCPU earns by waiting. When the best vCPU of a runqueue has no credit
//! left, all its vCPUs are paid at once, whatever they did, and the order in the queue stays.
//! Source: schedulers specification §4.3 and §4.4 (slice).

use super::Credit2;
use super::profile::{CARRYOVER, CREDIT_INIT, CREDIT_MIN, MIN_TIMER};
use crate::ids::VcpuId;
use crate::scheduler::Context;
use crate::time::Nanos;

impl Credit2 {
    /// Charges `v`, which is current, for the time since its last charge, in credit and in budget.
    pub(super) fn burn(&mut self, cx: &Context<'_>, v: VcpuId) {
        let now = cx.now();
        let ran = now - self.vcpus[v.index()].start;
        if ran <= Nanos::ZERO {
            return;
        }
        let charged = self.charged(cx, v, ran);
        let heaviest = self.queues[self.vcpus[v.index()].queue].max_weight;
        let vcpu = &mut self.vcpus[v.index()];
        let weight = self.domains[vcpu.domain.index()].weight;
        // Saturates after centuries of credit.
        let due = charged.0.saturating_mul(heaviest).saturating_add(vcpu.residual);
        vcpu.credit = vcpu.credit.saturating_sub(due / weight).max(self.params.clamp);
        vcpu.residual = due % weight;
        if let Some(budget) = &mut vcpu.budget {
            *budget -= ran;
        }
        vcpu.start = now;
    }

    /// Ends the epoch of runqueue `q` if `next`, which its pCPU runs next, and the head of the
    /// queue (not in early versions) have no credit left. Returns whether it ended. O(vCPUs of the
    /// runqueue).
    pub(super) fn end_epoch(&mut self, cx: &mut Context<'_>, q: usize, next: VcpuId) -> bool {
        let credit = self.vcpus[next.index()].credit;
        let head = self.queues[q].queue.head().map(|x| self.vcpus[x as usize].credit);
        let top = if self.profile.early { credit } else { head.map_or(credit, |h| h.max(credit)) };
        if top > 0 {
            return false;
        }
        let pay = if !self.profile.early {
            if credit == CREDIT_MIN { 2 * CREDIT_INIT } else { CREDIT_INIT }
        } else if credit < -CREDIT_INIT {
            (1 + -(credit.max(-i64::MAX)) / CREDIT_INIT).saturating_mul(CREDIT_INIT)
        } else {
            CREDIT_INIT
        };
        let mut at = self.queues[q].assigned.head();
        while let Some(x) = at {
            at = self.assigned_links.next(x);
            let v = VcpuId(x);
            if !self.profile.early && cx.is_current(v) {
                self.burn(cx, v);
                if self.vcpus[v.index()].budget.is_some_and(|b| b <= Nanos::ZERO) {
                    self.tell(cx, q, cx.home(v));
                }
            }
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.credit = vcpu.credit.saturating_add(pay).min(CREDIT_INIT + CARRYOVER);
            vcpu.start = cx.now();
        }
        true
    }

    /// How long `next` may run: until its credit has fallen to the credit of the best waiting vCPU,
    /// or of `inflight`, which leaves the pCPU in this pass and is on no queue yet. `ran` is how
    /// long `next` has been on the pCPU already, if it continues.
    pub(super) fn slice(
        &self,
        q: usize,
        next: VcpuId,
        ran: Option<Nanos>,
        inflight: Option<VcpuId>,
    ) -> Nanos {
        let vcpu = &self.vcpus[next.index()];
        let limit = self.params.ratelimit;
        let protected =
            if limit > Nanos::ZERO { limit - ran.unwrap_or(Nanos::ZERO) } else { limit };
        let least = MIN_TIMER.max(protected);
        let head = self.queues[q].queue.head().map_or(0, |x| self.vcpus[x as usize].credit);
        let leaving = match inflight {
            Some(v) if !self.profile.early => self.vcpus[v.index()].credit,
            _ => 0,
        };
        let credit = vcpu.credit - head.max(leaving).max(0);
        let weight = self.domains[vcpu.domain.index()].weight;
        let lasts = credit.max(0).saturating_mul(weight) / self.queues[q].max_weight;
        let lasts = Nanos(lasts).min(vcpu.budget.unwrap_or(Nanos::MAX));
        lasts.min(self.params.max_timer).max(least)
    }
}
