//! Putting vCPUs on the queues and taking them off; charging, weights, ticks.

use super::Host;
use super::average::Average;
use super::bandwidth::Quota;
use super::class::{Arrival, Class};
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;
use alloc::vec::Vec;

#[derive(Clone, Debug)]
pub(super) struct Vcpu {
    pub domain: DomainId,
    /// Its number in the domain.
    pub number: u32,
    /// In the tree of its home, or current there.
    pub queued: bool,
    /// Runnable, and kept off the queues by its domain's quota.
    pub throttled: bool,
    /// Where it was throttled last.
    pub stopped_on: PcpuId,
    /// Its own weight in place of its domain's, by the scale of entities.
    pub weight: Option<i64>,
    /// It has never woken.
    pub new: bool,
    /// When it last left a pCPU.
    pub last_ran: Nanos,
    /// How much it has wanted to run of late.
    pub average: Average,
}

#[derive(Debug)]
pub(super) struct Domain {
    pub weight: i64,
    pub members: Vec<VcpuId>,
    /// Members that it has or had.
    pub created: u32,
    /// Its first vCPUs, this many, have its quota.
    pub capped: u32,
    /// Runnable members.
    pub runnable: i64,
    pub quota: Option<Quota>,
}

impl<C: Class> Host<C> {
    /// Charges the running vCPU of `p`. Returns whether it must give way.
    pub(super) fn charge(&mut self, now: Nanos, p: PcpuId) -> bool {
        let queue = &mut self.queues[p.index()];
        let time = now - queue.charged;
        let Some(v) = queue.current.filter(|_| time > Nanos::ZERO) else { return false };
        queue.charged = now;
        let gives_way = self.class.charge(queue, &mut self.entities, time);
        let in_quota = self.quota_of(v).is_none_or(|quota| quota.charge(p, time));
        gives_way || !in_quota
    }

    /// Charges the running vCPU of `p`, and asks `p` to pass if that vCPU must give way.
    pub(super) fn update(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        if self.charge(cx.now(), p) {
            cx.resched(p);
        }
    }

    /// Puts `v` on the queue of its home, or aside if its domain has no quota left there. Returns
    /// whether it is on the queue.
    pub(super) fn enqueue(&mut self, cx: &mut Context<'_>, v: VcpuId, arrival: Arrival) -> bool {
        let p = cx.home(v);
        self.update(cx, p);
        if self.is_out(v, p) {
            self.set_throttled(cx, v, true);
            return false;
        }
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.queued = true;
        vcpu.average.set(cx.now(), true);
        let queue = &mut self.queues[p.index()];
        self.class.join(queue, &mut self.entities, v, arrival);
        self.waiting.insert(p);
        true
    }

    /// Takes `v`, queued or current, off the queue of its home, which is charged.
    pub(super) fn dequeue(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let p = cx.home(v);
        let queue = &mut self.queues[p.index()];
        self.class.leave(queue, &mut self.entities, v);
        self.waiting.set(p, !queue.tree.is_empty());
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.queued = false;
        vcpu.average.set(cx.now(), false);
        self.give_back(cx, v, p);
    }

    /// To be called after `v` was queued: asks its home to pass if it idles or if `v` preempts.
    pub(super) fn check_preemption(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let p = cx.home(v);
        let queue = &mut self.queues[p.index()];
        let passes = match queue.current {
            None => true,
            Some(current) => self.class.preempts(queue, &self.entities, current, v),
        };
        if passes {
            self.idle.remove(p);
            cx.resched(p);
        }
    }

    /// Counts `by` more runnable members of `d`, and divides its weight anew if `group_shares` is
    /// on.
    pub(super) fn runnable_changed(&mut self, cx: &mut Context<'_>, d: DomainId, by: i64) {
        self.domains[d.index()].runnable += by;
        if self.tunables.group_shares {
            self.reweigh(cx, d);
        }
    }

    /// Updates the weights of all members of `d`. O(members).
    pub(super) fn reweigh(&mut self, cx: &mut Context<'_>, d: DomainId) {
        let domain = &self.domains[d.index()];
        let by = if self.tunables.group_shares { domain.runnable.max(1) } else { 1 };
        let of_domain = domain.weight;
        for i in 0..self.domains[d.index()].members.len() {
            let v = self.domains[d.index()].members[i];
            let weight = self.vcpus[v.index()].weight.unwrap_or(of_domain);
            let weight = (weight / by).max(1);
            let old = self.entities[v.index()].weight;
            if old == weight {
                continue;
            }
            if !self.vcpus[v.index()].queued {
                // It is owed the same run time, which is less virtual time at a greater weight.
                let entity = &mut self.entities[v.index()];
                (entity.lag, entity.weight) = (entity.lag * old / weight, weight);
                continue;
            }
            let p = cx.home(v);
            self.update(cx, p);
            let queue = &mut self.queues[p.index()];
            let linked = self.entities[v.index()].key.is_some();
            queue.unlink(&mut self.entities[v.index()], v);
            self.class.reweigh(queue, &mut self.entities, v, weight);
            queue.load += weight - old;
            if linked {
                let entity = &mut self.entities[v.index()];
                queue.link(entity, v, self.class.key(entity));
            }
        }
    }

    /// Changes the home of `v`, which is on no queue; its virtual times go with it.
    pub(super) fn move_home(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        let base = |p: PcpuId| self.class.base(&self.queues[p.index()]);
        self.entities[v.index()].vruntime += base(p) - base(cx.home(v));
        cx.set_home(v, p);
    }

    /// Starts or stops the tick of `p`. Ticks come at multiples of their period.
    pub(super) fn set_tick(&mut self, cx: &mut Context<'_>, p: PcpuId, on: bool) {
        if self.ticking.contains(p) != on {
            self.ticking.set(p, on);
            let tick = self.tunables.tick;
            match on {
                true => cx.set_timer(TimerId::Tick(p), (cx.now().div_euclid(tick) + 1) * tick),
                false => cx.stop_timer(TimerId::Tick(p)),
            }
        }
    }

    /// Returns the vCPU that ran on `p` if it may go on; otherwise takes it off the queue.
    pub(super) fn put_current(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Option<VcpuId> {
        let v = self.queues[p.index()].current?;
        self.vcpus[v.index()].last_ran = cx.now();
        let d = self.vcpus[v.index()].domain;
        if !cx.is_runnable(v) {
            self.dequeue(cx, v);
            self.runnable_changed(cx, d, -1);
            return None;
        }
        if self.is_out(v, p) {
            self.throttle(cx, d, p);
            return None;
        }
        Some(v)
    }
}
