//! Bandwidth control: a quota of run time for a domain in each period.
//!
//! ```text
//!  period timer ── quota ──▶ pool ── chunks of 5 ms ──▶ local pools, one per pCPU ── run time
//! ```
//!
//! When the pool and the local pool are empty, the domain's vCPUs on that pCPU are *throttled* until the next
//! refill. Ticks and passes detect that, so a domain may overrun by a tick on each pCPU; the overrun is a debt of
//! the local pool. A refill leaves the local pools as they are.
//!
//! *On return* (Linux 6.18, commit e1fad12dcb66): a pass does not take the domain's vCPUs off the queue, so that no
//! thread is stopped while it holds locks of the host's kernel. The pass picks as usual. The picked thread stops
//! itself, by work that it does before it returns to user mode or, if it is a vCPU, to its guest. Until then it
//! competes: it counts in the load and in the average virtual runtime, and its wake-up may preempt. It does not
//! move to another pCPU if the quota is used up here or there. It leaves as a sleeper does, and returns like a
//! waking vCPU. A state machine has no kernel mode, so here a pass puts aside the vCPU that it picks and picks
//! again. This leaves out the switch to a vCPU that is stopped at once, and kernel time of the host that it may
//! still have had to run.

use super::Host;
use super::class::{Arrival, Class};
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::vec;
use alloc::vec::Vec;

/// The run time that a local pool takes from the pool at once.
const CHUNK: Nanos = Nanos::ms(5);

/// The quota of a domain, and the rest of it. Times are in ns.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    each_period: Nanos,
    pool: Nanos,
    local: Vec<Nanos>,
}

impl Quota {
    /// Charges run time on `p`. Returns whether the domain may run on there.
    pub(super) fn charge(&mut self, p: PcpuId, time: Nanos) -> bool {
        self.local[p.index()] -= time;
        self.admit(p)
    }

    /// Whether no quota is left for `p`.
    pub(super) fn is_used_up(&self, p: PcpuId) -> bool {
        self.local[p.index()] <= Nanos::ZERO && self.pool == Nanos::ZERO
    }

    /// Gets a chunk for `p` if it has nothing left. Returns whether it may run.
    pub(super) fn admit(&mut self, p: PcpuId) -> bool {
        let local = &mut self.local[p.index()];
        if *local <= Nanos::ZERO {
            let grant = (CHUNK - *local).min(self.pool);
            self.pool -= grant;
            *local += grant;
        }
        *local > Nanos::ZERO
    }
}

impl<C: Class> Host<C> {
    /// Sets the cap of `d`, in percent of a pCPU; 0 is none. A new cap takes effect at the next refill.
    pub(super) fn set_quota(&mut self, d: DomainId, cap: u32) {
        let each_period = self.tunables.bandwidth_period * i64::from(cap) / 100;
        let quota = &mut self.domains[d.index()].quota;
        match quota {
            _ if cap == 0 => *quota = None,
            Some(quota) => quota.each_period = each_period,
            None => {
                let local = vec![Nanos::ZERO; self.queues.len()];
                *quota = Some(Quota { each_period, pool: each_period, local });
            }
        }
        if cap == 0 {
            self.quotas.remove(&d)
        } else {
            self.quotas.insert(d)
        };
    }

    /// Sets the refill timer, unless it is set already or no domain has a quota.
    pub(super) fn arm_refill(&mut self, cx: &mut Context<'_>) {
        if !self.quotas.is_empty() && !core::mem::replace(&mut self.refills, true) {
            cx.set_timer(TimerId::Accounting, cx.now() + self.tunables.bandwidth_period);
        }
    }

    /// Takes all vCPUs of `d` off the queue of `p`. O(members).
    pub(super) fn throttle(&mut self, cx: &Context<'_>, d: DomainId, p: PcpuId) {
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            if self.vcpus[v.index()].queued && cx.home(v) == p {
                self.put_aside(cx, v);
            }
        }
    }

    /// Returns the vCPU picked for `p` if it has quota; otherwise stops it, picks another, and checks again. Out of
    /// line, so that other profiles do not pay for it in each pass.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_guest(
        &mut self,
        cx: &mut Context<'_>,
        p: PcpuId,
        mut picked: Option<VcpuId>,
    ) -> Option<VcpuId> {
        while let Some(v) = picked {
            let quota = &mut self.domains[self.vcpus[v.index()].domain.index()].quota;
            if quota.as_mut().is_none_or(|quota| quota.admit(p)) {
                break;
            }
            self.put_aside(cx, v);
            picked = self.class.pick(&self.queues[p.index()], &self.entities, None);
            picked = picked.or_else(|| self.pull_for_idle(cx, p));
        }
        picked
    }

    /// Whether the domain of `v` has no quota left on one of `places`.
    pub(super) fn is_used_up(&self, v: VcpuId, places: [PcpuId; 2]) -> bool {
        let quota = &self.domains[self.vcpus[v.index()].domain.index()].quota;
        quota.as_ref().is_some_and(|q| places.into_iter().any(|p| q.is_used_up(p)))
    }

    /// Throttles `v`, which is queued or current.
    pub(super) fn put_aside(&mut self, cx: &Context<'_>, v: VcpuId) {
        self.dequeue(cx, v);
        self.vcpus[v.index()].throttled = true;
    }

    /// Queues the throttled vCPUs of `d` where it has quota again. O(members).
    pub(super) fn unthrottle(&mut self, cx: &mut Context<'_>, d: DomainId) {
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            if !core::mem::take(&mut self.vcpus[v.index()].throttled) {
                continue;
            }
            // A vCPU that has not left its pCPU yet may go on there.
            let on_return = self.tunables.throttles_on_return();
            let arrival = if on_return { Arrival::Woken } else { Arrival::Moved };
            if self.enqueue(cx, v, arrival) {
                self.check_preemption(cx, v);
            }
        }
    }

    /// Handles the period timer. O(members of domains with a quota).
    pub(super) fn refill(&mut self, cx: &mut Context<'_>) {
        self.refills = false;
        self.arm_refill(cx);
        let mut next = self.quotas.first().copied();
        while let Some(d) = next {
            if let Some(quota) = &mut self.domains[d.index()].quota {
                quota.pool = quota.each_period;
            }
            self.unthrottle(cx, d);
            next = self.quotas.range(DomainId(d.0 + 1)..).next().copied();
        }
    }
}
