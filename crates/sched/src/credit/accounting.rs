//! Credit accounting: running burns credit, and the accounting pays it. Ticks and caps.
//!
//! One credit is 100 us of running. Divisions round towards zero, or up where the comment or
//! `div_ceil` says so; all sums fit in an i64 (65535 × 10,000 vCPUs × 10^8 credits).

use super::profile::CREDITS_PER_MS;
use super::{Credit, Priority};
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::List;
use crate::scheduler::Context;
use crate::time::Nanos;

/// Quotient rounded up; for a ≥ 0 and b > 0.
fn div_ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

impl Credit {
    /// Charges `v` for the time since it was last charged. Sampled accounting charges at ticks only.
    pub(super) fn burn(&mut self, now: Nanos, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        let ran = now - vcpu.start;
        if ran <= Nanos::ZERO || self.profile.sampled {
            return;
        }
        let due = ran.0 * CREDITS_PER_MS + vcpu.residual;
        let credits = due / Nanos::MS.0;
        vcpu.residual = due % Nanos::MS.0;
        vcpu.credit -= credits;
        // Advances by the time that the charged credits stand for. The remainder is counted twice at
        // first: in `residual` and in the next `ran`. When that charges a credit early, `start`
        // passes `now`, and the next `ran` is shorter by as much.
        vcpu.start += credits * (Nanos::MS / CREDITS_PER_MS);
    }

    /// Starts the tick of `p` at the next multiple of its period, unless it is ticking already.
    pub(super) fn start_tick(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        let pcpu = &mut self.pcpus[p.index()];
        if !core::mem::replace(&mut pcpu.ticking, true) {
            let tick = self.params.tick;
            cx.set_timer(TimerId::Tick(p), (cx.now().div_euclid(tick) + 1) * tick);
        }
    }

    /// Stops the tick of `p`, which goes idle, unless idle pCPUs tick in this profile.
    pub(super) fn stop_tick(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        let pcpu = &mut self.pcpus[p.index()];
        if !self.profile.idle_tick && core::mem::take(&mut pcpu.ticking) {
            cx.stop_timer(TimerId::Tick(p));
        }
    }

    /// Handles the tick of `p`. Ends the boost of the running vCPU, charges it, and activates it or
    /// reconsiders its place; then repairs the queue.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        let current = cx.current(p);
        if let Some(v) = current {
            let vcpu = &mut self.vcpus[v.index()];
            if vcpu.priority == Priority::Boost {
                vcpu.priority = Priority::Under;
            }
            if self.profile.sampled {
                vcpu.credit -= self.params.credits_per_tick;
            } else {
                self.burn(cx.now(), v);
            }
            if !self.vcpus[v.index()].active {
                self.activate(v);
            } else if self.place(cx, v, false) != p {
                cx.request_migration(v);
            }
        }
        let pcpu = &mut self.pcpus[p.index()];
        pcpu.ticks = (pcpu.ticks + 1) % self.params.ticks_per_tslice;
        if self.profile.sampled && Some(p) == cx.pool().first() && pcpu.ticks == 0 {
            self.account(cx);
        }
        self.sort(p);
        self.pcpus[p.index()].ticking = current.is_some() || self.profile.idle_tick;
        if self.pcpus[p.index()].ticking {
            cx.set_timer(TimerId::Tick(p), cx.now() + self.params.tick);
        }
    }

    /// The weight with which `d` counts now: its weight once for each active vCPU or, under sampled
    /// accounting, once if any vCPU is active.
    pub(super) fn active_weight(&self, d: DomainId) -> i64 {
        let domain = &self.domains[d.index()];
        let shares =
            if self.profile.sampled { domain.active_vcpus.min(1) } else { domain.active_vcpus };
        domain.weight * shares
    }

    /// Makes `v` active: it earns credit from now on.
    fn activate(&mut self, v: VcpuId) {
        let d = self.vcpus[v.index()].domain;
        self.weight -= self.active_weight(d);
        self.vcpus[v.index()].active = true;
        let domain = &mut self.domains[d.index()];
        if domain.active.is_empty() {
            self.domain_links.push_front(&mut self.active_domains, d.0);
        }
        self.active_links.push_front(&mut domain.active, v.0);
        domain.active_vcpus += 1;
        self.weight += self.active_weight(d);
    }

    /// Makes `v` inactive: it earns no more credit.
    pub(super) fn deactivate(&mut self, v: VcpuId) {
        let d = self.vcpus[v.index()].domain;
        self.weight -= self.active_weight(d);
        self.vcpus[v.index()].active = false;
        let domain = &mut self.domains[d.index()];
        self.active_links.remove(&mut domain.active, v.0);
        domain.active_vcpus -= 1;
        if domain.active.is_empty() {
            self.domain_links.remove(&mut self.active_domains, d.0);
        }
        self.weight += self.active_weight(d);
    }

    /// Hands out the credits of a period by weight, then sets the class of each vCPU by its credit.
    /// Credits that a domain cannot use go to the domains later in the list. If a domain leaves
    /// some after an earlier domain got less than it could use, it moves to the front for the next
    /// time. The accounting never preempts. O(active vCPUs).
    pub(super) fn account(&mut self, cx: &mut Context<'_>) {
        // Deactivations below change the sum; the shares refer to the sum before them.
        let weight = self.weight;
        if weight == 0 {
            self.balance = 0;
            return;
        }
        let debt = (-self.balance).max(0);
        let period = self.params.credits_per_tslice;
        let mut total = period * i64::from(cx.pool().len()) + debt;
        let mut left = weight;
        let mut balance = 0;
        let mut others_want_more = false;
        let mut at = self.active_domains.head();
        while let Some(d) = at {
            at = self.domain_links.next(d);
            let share = self.active_weight(DomainId(d));
            let domain = &self.domains[d as usize];
            let (n, cap) = (domain.active_vcpus, domain.cap);
            left -= share;
            let mut peak = n * period + div_ceil(debt * share, weight);
            let mut floor = None;
            if cap > 0 {
                let allowed = div_ceil(cap * period, 100);
                peak = peak.min(allowed);
                floor = Some(-div_ceil(allowed, n));
            }
            let mut fair = div_ceil(total * share, weight);
            if fair < peak {
                others_want_more = true;
            } else {
                if left != 0 {
                    total += div_ceil((fair - peak) * weight, left);
                }
                if others_want_more {
                    self.domain_links.remove(&mut self.active_domains, d);
                    self.domain_links.push_front(&mut self.active_domains, d);
                }
                fair = peak;
            }
            balance += self.pay(cx, self.domains[d as usize].active, div_ceil(fair, n), floor);
        }
        self.balance = balance;
        self.epoch += 1;
    }

    /// Pays `each` credits to each active vCPU of `list`, and parks those below `floor`. Returns
    /// the sum of their credits.
    fn pay(&mut self, cx: &mut Context<'_>, list: List, each: i64, floor: Option<i64>) -> i64 {
        let period = self.params.credits_per_tslice;
        let mut sum = 0;
        let mut at = list.head();
        while let Some(x) = at {
            at = self.active_links.next(x);
            let v = VcpuId(x);
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.credit += each;
            if vcpu.credit < 0 {
                vcpu.priority = Priority::Over;
                let park = floor.is_some_and(|floor| vcpu.credit < floor) && !vcpu.parked;
                vcpu.parked |= park;
                vcpu.credit = vcpu.credit.max(-period);
                if park && cx.park(v) {
                    crate::scheduler::Scheduler::sleep(self, cx, v);
                }
            } else {
                vcpu.priority = Priority::Under;
                if vcpu.parked {
                    self.unpark(cx, v);
                }
                let vcpu = &mut self.vcpus[v.index()];
                if vcpu.credit > period {
                    vcpu.credit = if self.profile.sampled { 0 } else { vcpu.credit / 2 };
                    self.deactivate(v);
                }
            }
            sum += self.vcpus[v.index()].credit;
        }
        sum
    }

    /// Lets a parked vCPU run again.
    fn unpark(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        // While `parked` is set, the wake-up does not boost.
        if self.profile.boost_unparked {
            self.vcpus[v.index()].parked = false;
        }
        if cx.unpark(v) {
            crate::scheduler::Scheduler::wake(self, cx, v);
        }
        self.vcpus[v.index()].parked = false;
    }
}
