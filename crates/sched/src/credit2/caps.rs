//! Caps: a domain gets a budget in each period, and its vCPUs take parts of it. A vCPU that finds
//! none left is parked until the next period.
//!
//! ```text
//!              dispatch: takes a quota             budget used up, pool empty
//!   pool ───────────────────────────▶ vCPU runs ─────────────────────────────▶ parked
//!    ▲ ▲                                 │                                        │
//!    │ └─── leaves: returns the rest ────┘      replenishment, or a return        │
//!    └── replenishment each period              of budget ──▶ queued ◀────────────┘
//! ```
//!
//! An overrun (the minimum slice can exceed the budget) is repaid from the pool before the vCPU
//! takes from it. Source: schedulers specification §4.6.

use super::Credit2;
use super::profile::MIN_TIMER;
use crate::ids::{DomainId, TimerId, VcpuId};
use crate::list::List;
use crate::scheduler::Context;
use crate::time::Nanos;

/// The budget of a capped domain.
#[derive(Clone, Debug)]
pub(super) struct Cap {
    /// Budget of a period, for all vCPUs together, in ns.
    pub total: Nanos,
    /// Budget that no vCPU has taken yet; negative after an overrun.
    pub pool: Nanos,
    /// When the pool is filled next.
    pub next: Nanos,
}

impl Credit2 {
    /// Budget of a period for a cap of `percent`.
    fn total(&self, percent: u32) -> Nanos {
        self.params.cap_period * i64::from(percent) / 100
    }

    /// Sets, changes or lifts (0) the cap of `d`, in percent of a pCPU.
    pub(super) fn set_cap(&mut self, cx: &mut Context<'_>, d: DomainId, percent: u32) {
        let total = self.total(percent);
        let domain = &mut self.domains[d.index()];
        match &mut domain.cap {
            Some(cap) if percent > 0 => cap.total = total,
            None if percent > 0 => {
                domain.cap =
                    Some(Cap { total, pool: total, next: cx.now() + self.params.cap_period });
                let at = self.capped.partition_point(|x| *x < d);
                self.capped.insert(at, d);
                for i in 0..self.domains[d.index()].vcpus.len() {
                    let v = self.domains[d.index()].vcpus[i];
                    if cx.is_current(v) {
                        // The time that it has run so far is not charged to the budget.
                        self.burn(cx, v);
                        self.tell(cx, self.vcpus[v.index()].queue, cx.home(v));
                    }
                    self.vcpus[v.index()].budget = Some(Nanos::ZERO);
                }
                self.arm(cx);
            }
            Some(_) => {
                domain.cap = None;
                self.capped.retain(|x| *x != d);
                for i in 0..self.domains[d.index()].vcpus.len() {
                    let v = self.domains[d.index()].vcpus[i];
                    self.vcpus[v.index()].budget = None;
                }
                self.unpark_all(cx, d);
                self.arm(cx);
            }
            None => {}
        }
    }

    /// Makes sure that `v` has budget if it is capped. If none is left, parks `v` and returns
    /// false.
    pub(super) fn grab(&mut self, cx: &mut Context<'_>, v: VcpuId) -> bool {
        let vcpu = &mut self.vcpus[v.index()];
        let domain = &mut self.domains[vcpu.domain.index()];
        let (Some(budget), Some(cap)) = (&mut vcpu.budget, &mut domain.cap) else { return true };
        if *budget > Nanos::ZERO {
            return true;
        }
        // Repays an overrun.
        cap.pool += *budget;
        *budget = Nanos::ZERO;
        if cap.pool > Nanos::ZERO {
            let quota = (cap.total / domain.vcpus.len() as i64).max(MIN_TIMER);
            *budget = quota.min(cap.pool);
            cap.pool -= *budget;
            return true;
        }
        vcpu.parked = true;
        self.parked_links.push_front(&mut domain.parked, v.0);
        // It is not runnable from now on.
        let _ = cx.park(v);
        if self.run_links.is_linked(v.0) {
            let q = self.vcpus[v.index()].queue;
            self.dequeue(q, v);
            self.update_load(cx, cx.now(), q, v, -1);
        }
        false
    }

    /// Returns the unused budget of `v`, which has left its pCPU, to the pool. The result is its
    /// domain, if the parked vCPUs of that domain can take some of it.
    pub(super) fn return_budget(&mut self, v: VcpuId) -> Option<DomainId> {
        let vcpu = &mut self.vcpus[v.index()];
        let d = vcpu.domain;
        let (budget, cap) = (vcpu.budget.as_mut()?, self.domains[d.index()].cap.as_mut()?);
        if *budget <= Nanos::ZERO {
            return None;
        }
        cap.pool += core::mem::take(budget);
        (cap.pool > Nanos::ZERO).then_some(d)
    }

    /// Handles the replenishment timer: fills the pools that are due, in the order of domains.
    pub(super) fn replenish(&mut self, cx: &mut Context<'_>) {
        let (now, period) = (cx.now(), self.params.cap_period);
        for i in 0..self.capped.len() {
            let d = self.capped[i];
            let Some(cap) = &mut self.domains[d.index()].cap else { continue };
            if cap.next > now {
                continue;
            }
            let missed = (now - cap.next) / period + 1;
            cap.next += missed * period;
            // A pool holds at most one period's budget, so more is of no use.
            cap.pool = cap.pool.saturating_add(cap.total.saturating_mul(missed)).min(cap.total);
            if cap.pool > Nanos::ZERO {
                self.unpark_all(cx, d);
            }
        }
        self.arm(cx);
    }

    /// Sets the timer for the earliest replenishment of any domain.
    fn arm(&self, cx: &mut Context<'_>) {
        let caps = self.capped.iter().filter_map(|d| self.domains[d.index()].cap.as_ref());
        match caps.map(|cap| cap.next).min() {
            Some(at) => cx.set_timer(TimerId::Accounting, at),
            None => cx.stop_timer(TimerId::Accounting),
        }
    }

    /// Lets the parked vCPUs of `d` run again.
    pub(super) fn unpark_all(&mut self, cx: &mut Context<'_>, d: DomainId) {
        let mut list = core::mem::replace(&mut self.domains[d.index()].parked, List::EMPTY);
        while let Some(x) = list.head() {
            self.parked_links.remove(&mut list, x);
            self.vcpus[x as usize].parked = false;
            if cx.unpark(VcpuId(x)) {
                crate::scheduler::Scheduler::wake(self, cx, VcpuId(x));
            }
        }
    }
}
