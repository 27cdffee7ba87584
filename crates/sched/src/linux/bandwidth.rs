//! Bandwidth control: a quota of run time for a domain in each period.
//!
//! ```text
//!  period timer ── quota ──▶ pool ── slices of 5 ms ──▶ local pools, one per pCPU ── run time
//!                              ▲                               │
//!                              └── `bandwidth_return` ─────────┘ when all sleep there
//! ```
//!
//! When the pool and the local pool are empty, the domain's vCPUs on that pCPU are *throttled* until the next
//! refill. Ticks and passes detect that, so a domain may overrun by a tick on each pCPU; the overrun is a debt of
//! the local pool. A refill leaves the local pools as they are.
//!
//! So pCPUs do not stop together: one whose slice ends when the pool is empty stops, while others have a rest of theirs.
//! With `bandwidth_return` a pCPU without runnable vCPUs of the domain keeps 1 ms and gives the rest back; 5 ms later
//! throttled pCPUs get what the pool has then, if that is more than a slice and the refill is not near. Kernels do
//! that since 3.2 (`return_cfs_rq_runtime`, `do_sched_cfs_slack_timer`). It is off by default, since runs
//! of before have no such timer.
//!
//! `capped_vcpus` divides a domain's vCPUs: the first ones are threads in a control group with the quota, the others
//! threads beside the group that share memory and locks with it.
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
use crate::scheduler::{Context, Throttling};
use crate::time::Nanos;
use alloc::vec;
use alloc::vec::Vec;

/// What a pCPU keeps of a slice when it gives the rest back (`min_cfs_rq_runtime`).
const KEPT: Nanos = Nanos::MS;
/// From a return to the time when throttled pCPUs get it (`cfs_bandwidth_slack_period`).
const SLACK: Nanos = Nanos::ms(5);
/// Nothing is handed out so shortly before a refill (`min_bandwidth_expiration`).
const NEAR: Nanos = Nanos::ms(2);

/// The quota of a domain, and the rest of it. Times are in ns.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    each_period: Nanos,
    pool: Nanos,
    slice: Nanos,
    local: Vec<Nanos>,
    /// How many of its vCPUs are throttled on each pCPU, and since when some are.
    stopped: Vec<(u32, Nanos)>,
    told: Throttling,
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

    /// Gets a slice for `p` if it has nothing left. Returns whether it may run.
    pub(super) fn admit(&mut self, p: PcpuId) -> bool {
        let local = &mut self.local[p.index()];
        if *local <= Nanos::ZERO {
            let grant = (self.slice - *local).min(self.pool);
            self.pool -= grant;
            *local += grant;
        }
        *local > Nanos::ZERO
    }

    /// Whether some of its vCPUs are throttled.
    fn stops(&self) -> bool {
        self.stopped.iter().any(|(n, _)| *n > 0)
    }

    /// Counts one more throttled vCPU on `p`, or one less.
    fn stop(&mut self, now: Nanos, p: PcpuId, on: bool) {
        let (n, since) = &mut self.stopped[p.index()];
        match on {
            true if *n == 0 => (*n, *since) = (1, now),
            true => *n += 1,
            false => {
                *n -= 1;
                self.told.time += if *n == 0 { now - *since } else { Nanos::ZERO };
            }
        }
    }

    /// A new period.
    fn refill(&mut self) {
        let throttled = self.stops();
        self.told.periods += u64::from(throttled || self.pool < self.each_period);
        self.told.throttled += u64::from(throttled);
        self.pool = self.each_period;
    }

    /// Checks it against the numbers of throttled vCPUs on each pCPU.
    pub(super) fn is_valid(&self, throttled: &[u32]) -> bool {
        let within = self.local.iter().all(|local| *local <= self.slice);
        let counts = self.stopped.iter().map(|(n, _)| n).eq(throttled);
        self.pool >= Nanos::ZERO && within && counts
    }
}

impl<C: Class> Host<C> {
    /// Sets the cap of `d`, in percent of a pCPU; 0 is none. A new cap takes effect at the next refill. No vCPU of `d` is
    /// throttled.
    pub(super) fn set_quota(&mut self, d: DomainId, cap: u32) {
        let each_period = self.tunables.bandwidth_period * i64::from(cap) / 100;
        let quota = &mut self.domains[d.index()].quota;
        match quota {
            _ if cap == 0 => *quota = None,
            Some(quota) => quota.each_period = each_period,
            None => {
                *quota = Some(Quota {
                    each_period,
                    pool: each_period,
                    slice: self.tunables.bandwidth_slice,
                    local: vec![Nanos::ZERO; self.queues.len()],
                    stopped: vec![(0, Nanos::ZERO); self.queues.len()],
                    told: Throttling::default(),
                });
            }
        }
        if cap == 0 {
            self.quotas.remove(&d)
        } else {
            self.quotas.insert(d)
        };
    }

    /// The cap of `d` is for this many of its vCPUs, the first ones.
    pub(super) fn set_capped(&mut self, cx: &mut Context<'_>, d: DomainId, capped: u32) {
        let members = self.domains[d.index()].members.iter().copied();
        let stopped: Vec<_> = members.filter(|v| self.vcpus[v.index()].throttled).collect();
        for v in &stopped {
            self.set_throttled(cx, *v, false);
        }
        self.domains[d.index()].capped = capped;
        for v in stopped {
            if self.enqueue(cx, v, Arrival::Woken) {
                self.check_preemption(cx, v);
            }
        }
    }

    /// Whether the cap of its domain is for `v`.
    pub(super) fn has_cap(&self, v: VcpuId) -> bool {
        let vcpu = &self.vcpus[v.index()];
        vcpu.number < self.domains[vcpu.domain.index()].capped
    }

    /// The quota that `v` runs on.
    pub(super) fn quota_of(&mut self, v: VcpuId) -> Option<&mut Quota> {
        let vcpu = &self.vcpus[v.index()];
        let domain = &mut self.domains[vcpu.domain.index()];
        domain.quota.as_mut().filter(|_| vcpu.number < domain.capped)
    }

    /// Whether `v` has no quota left on `p`, after a try to get some. Kernels that throttle on return do not ask here.
    pub(super) fn is_out(&mut self, v: VcpuId, p: PcpuId) -> bool {
        !self.tunables.throttles_on_return()
            && self.quota_of(v).is_some_and(|quota| !quota.admit(p))
    }

    /// Says whether `v` is throttled, if that is new.
    pub(super) fn set_throttled(&mut self, cx: &mut Context<'_>, v: VcpuId, on: bool) {
        if self.vcpus[v.index()].throttled == on {
            return;
        }
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.throttled = on;
        if on {
            vcpu.stopped_on = cx.home(v);
        }
        let p = vcpu.stopped_on;
        cx.set_throttled(v, on);
        if let Some(quota) = self.quota_of(v) {
            quota.stop(cx.now(), p, on);
        }
    }

    /// Sets the refill timer, unless it is set already or no domain has a quota.
    pub(super) fn arm_refill(&mut self, cx: &mut Context<'_>) {
        if !self.quotas.is_empty() && !core::mem::replace(&mut self.refills, true) {
            self.refill_at = cx.now() + self.tunables.bandwidth_period;
            cx.set_timer(TimerId::Accounting, self.refill_at);
        }
    }

    /// Takes all vCPUs under the quota of `d` off the queue of `p`. O(members).
    pub(super) fn throttle(&mut self, cx: &mut Context<'_>, d: DomainId, p: PcpuId) {
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            if self.vcpus[v.index()].queued && cx.home(v) == p && self.has_cap(v) {
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
            if self.quota_of(v).is_none_or(|quota| quota.admit(p)) {
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
        self.has_cap(v)
            && quota.as_ref().is_some_and(|q| places.into_iter().any(|p| q.is_used_up(p)))
    }

    /// Throttles `v`, which is queued or current.
    pub(super) fn put_aside(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.dequeue(cx, v);
        self.set_throttled(cx, v, true);
    }

    /// Queues the throttled vCPUs of `d` where it has quota again. O(members).
    pub(super) fn unthrottle(&mut self, cx: &mut Context<'_>, d: DomainId) {
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            if !self.vcpus[v.index()].throttled {
                continue;
            }
            self.set_throttled(cx, v, false);
            // A vCPU that has not left its pCPU yet may go on there.
            let on_return = self.tunables.throttles_on_return();
            let arrival = if on_return { Arrival::Woken } else { Arrival::Moved };
            if self.enqueue(cx, v, arrival) {
                self.check_preemption(cx, v);
            }
        }
    }

    /// `v` has left the queue of `p`. If it was the last one there, its domain gets back what `p` has of its quota.
    pub(super) fn give_back(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        let d = self.vcpus[v.index()].domain;
        if !self.tunables.bandwidth_return || !self.has_cap(v) {
            return;
        }
        let domain = &self.domains[d.index()];
        let queued = |m: &&VcpuId| self.vcpus[m.index()].queued && cx.home(**m) == p;
        if domain.members.iter().filter(queued).any(|m| self.has_cap(*m)) {
            return;
        }
        let Some(quota) = &mut self.domains[d.index()].quota else { return };
        let rest = quota.local[p.index()] - KEPT;
        if rest <= Nanos::ZERO {
            return;
        }
        quota.pool += rest;
        quota.local[p.index()] = KEPT;
        let at = cx.now() + SLACK;
        if quota.pool > quota.slice
            && quota.stops()
            && self.slack_at.is_none()
            && at + NEAR <= self.refill_at
        {
            self.slack_at = Some(at);
            cx.set_timer(TimerId::Accounting, at);
        }
    }

    /// Handles the timer: hands out what was given back, or begins a period. O(members of domains with a quota).
    pub(super) fn quota_timer(&mut self, cx: &mut Context<'_>) {
        let returned = self.slack_at.take().is_some() && cx.now() < self.refill_at;
        if returned {
            cx.set_timer(TimerId::Accounting, self.refill_at);
        } else {
            self.refills = false;
            self.arm_refill(cx);
        }
        let near = self.refill_at - cx.now() < NEAR;
        let mut next = self.quotas.first().copied();
        while let Some(d) = next {
            let quota = self.domains[d.index()].quota.as_mut();
            let some = quota.is_some_and(|quota| {
                if !returned {
                    quota.refill();
                }
                !returned || !near && quota.pool > quota.slice
            });
            if some {
                self.unthrottle(cx, d);
            }
            next = self.quotas.range(DomainId(d.0 + 1)..).next().copied();
        }
    }

    /// What the kernel's `cpu.stat` says of the quota of `d`.
    pub(super) fn told(&self, d: DomainId, now: Nanos) -> Option<Throttling> {
        let quota = self.domains[d.index()].quota.as_ref()?;
        let open = quota.stopped.iter().filter(|(n, _)| *n > 0);
        let time = open.map(|(_, since)| now - *since).sum::<Nanos>() + quota.told.time;
        Some(Throttling { time, ..quota.told })
    }
}
