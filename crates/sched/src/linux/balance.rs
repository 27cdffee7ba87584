//! Balancing: which queued vCPUs move to which pCPU, and when.
//!
//! A pCPU pulls, and it pulls from one other pCPU at a time: the busiest of the busiest group ([`groups`](super::groups)).
//! It does so in its ticks, once in an interval for each of its domains, and when it is about to idle. It looks at the
//! vCPUs of that queue from the one that has run least recently on, and takes those that fit into the amount.
//!
//! *Failures* make equal vCPUs go round ([`attempts`](super::attempts) has intervals and failures). Three hogs on two
//! pCPUs: the pCPU with one should take half a hog, so the attempt fails. Each failure halves what a vCPU counts in the
//! next attempt; the second one moves a hog, and the roles of the pCPUs are exchanged. After more failures than the
//! domain's patience cache-hot vCPUs move, too.
//!
//! ```text
//!           nothing to do: twice the interval, up to 2 × the domain's
//!         ┌──────────┐            moved: the least interval
//!         │          ▼           ┌──────────┐
//!  due ───┴─────▶ attempt ───────┴──────────▶ failures = 0
//!                    │ ▲
//!                    └─┘ nothing fits: failures + 1, the least interval
//! ```
//!
//! Source: Linux kernel/sched/fair.c, sched_balance_rq and what it calls, of 6.6 and 6.18. The constants are those since
//! 5.10, also for `cfs`: a busy interval of 16 times the idle one (32 before), 17 % (25 % between sockets before), and
//! failures that halve the load (before, twice the amount was the limit). Not built: active balancing, which pushes a
//! *running* thread off its pCPU, to an idle core or because all others are pinned; the search by averages of idle time,
//! which may leave out the attempt of a pCPU that is about to idle; the mark of a group that pinned threads keep
//! uneven.

use super::Host;
use super::average::ONE;
use super::class::{Arrival, Class};
use super::groups::{Amount, Group, Level, imbalance};
use super::params::Release;
use crate::cpuset::CpuSet;
use crate::ids::{PcpuId, VcpuId};
use crate::scheduler::Context;
use crate::time::Nanos;

/// How many vCPUs of a queue an attempt looks at.
const LOOKS: i64 = 32;

/// The pCPU that balances, the domain, its number, and whether the pCPU is about to idle.
struct Attempt {
    p: PcpuId,
    level: Level,
    number: usize,
    idle: bool,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing to do, or all vCPUs of the busiest pCPU are pinned.
    Even,
    Failed,
    Moved(VcpuId),
}

impl<C: Class> Host<C> {
    /// Computes the shares of the pCPUs of `level`. A pCPU that is about to idle looks at the queues of the moment, not
    /// at averages. O(vCPUs), or O(pCPUs) if `idle`.
    fn measure(&mut self, cx: &Context<'_>, level: &Level, idle: bool) {
        for i in level.pcpus.clone() {
            let queue = &self.queues[i as usize];
            let share = &mut self.shares[i as usize];
            share.count = queue.count();
            share.idle = queue.current.is_none() && queue.tree.is_empty();
            share.pinned = false;
            (share.load, share.wanted) = (0, 0);
            if idle {
                (share.load, share.wanted) = (queue.load, share.count * ONE);
            }
        }
        if !idle {
            for (i, vcpu) in self.vcpus.iter().enumerate() {
                let home = cx.home(VcpuId(i as u32));
                if level.pcpus.contains(&home.0) {
                    let average = vcpu.average.get(cx.now());
                    let share = &mut self.shares[home.index()];
                    share.wanted += average;
                    share.load += self.entities[i].weight * average / ONE;
                }
            }
        }
    }

    /// The sums over a range of pCPUs.
    fn group(&self, pool: &CpuSet, pcpus: core::ops::Range<u32>) -> Group {
        let mut group = Group::default();
        pcpus
            .filter(|i| pool.contains(PcpuId(*i)))
            .for_each(|i| group.add(&self.shares[i as usize]));
        group
    }

    /// The pCPU to pull from, and how much.
    fn find_busiest(&self, cx: &Context<'_>, attempt: &Attempt) -> Option<(PcpuId, Amount)> {
        let level = &attempt.level;
        let mine = level.group_of(attempt.p);
        let local = self.group(cx.pool(), mine.clone());
        let (mut all, mut busiest) = (local, None::<(u32, Group)>);
        // The next group after its own comes first, so that equal pCPUs do not all pull from the same one.
        let (behind, before) = (mine.end..level.pcpus.end, level.pcpus.start..mine.start);
        let step = level.group as usize;
        for first in behind.step_by(step).chain(before.step_by(step)) {
            let group = self.group(cx.pool(), first..first + level.group);
            all.join(&group);
            let is_busier = |b: &(u32, Group)| group.is_busier_than(&b.1, level.percent);
            if group.count > 0 && busiest.as_ref().is_none_or(is_busier) {
                busiest = Some((first, group));
            }
        }
        let (first, group) = busiest?;
        let groups = [&local, &group, &all];
        let amount = imbalance(level, self.tunables.release, attempt.idle, groups);
        if amount.is_done() {
            return None;
        }
        let mut found = None;
        for i in first..first + level.group {
            let share = &self.shares[i as usize];
            let busy = match amount {
                Amount::Load(most) if share.count > 1 || share.load <= most => share.load,
                Amount::Used(_) if share.count > 1 => share.used(),
                Amount::Vcpus(_) => share.count,
                _ => 0,
            };
            if share.count > 0
                && !share.pinned
                && found.is_none_or(|(_, most)| busy > most)
                && busy > 0
            {
                found = Some((PcpuId(i), busy));
            }
        }
        found.map(|(p, _)| (p, amount))
    }

    /// Whether `v` may move from its home to `p`, apart from its affinity and its cache: no quota is used up on either
    /// pCPU, and, since 6.18, `v` is eligible or an attempt has failed.
    fn may_leave(&self, cx: &Context<'_>, v: VcpuId, p: PcpuId, failed: u32) -> bool {
        let home = cx.home(v);
        if self.tunables.throttles_on_return() && self.is_used_up(v, [home, p]) {
            return false;
        }
        let queue = &self.queues[home.index()];
        self.tunables.release < Release::V6_18
            || failed > 0
            || self.queues[p.index()].count() == 0
            || self.class.is_eligible(queue, &self.entities[v.index()])
    }

    /// Whether `v` may be queued on `p`: its affinity, and balance scheduling.
    fn may_enter(&self, cx: &Context<'_>, v: VcpuId, p: PcpuId) -> bool {
        cx.affinity(v).hard().contains(p) && (!self.tunables.balance || !self.has_sibling(cx, v, p))
    }

    /// Whether `v` ran on its pCPU so recently that its data are still in the cache there.
    fn is_hot(&self, cx: &Context<'_>, v: VcpuId) -> bool {
        cx.now() - self.vcpus[v.index()].last_ran < self.tunables.migration_cost
    }

    /// What a vCPU counts in an attempt after `failed` ones, in the unit of `amount`.
    fn cost(&self, now: Nanos, v: VcpuId, amount: Amount, failed: u32) -> i64 {
        let average = self.vcpus[v.index()].average.get(now);
        let failed = failed.min(i64::BITS - 1);
        match amount {
            Amount::Load(_) => (self.entities[v.index()].weight * average / ONE).max(1) >> failed,
            Amount::Used(_) if self.tunables.release < Release::V6_18 => average,
            Amount::Used(_) => average >> failed,
            Amount::Vcpus(_) => 1,
        }
    }

    /// Moves vCPUs from `from` until `amount` is reached. O(LOOKS × vCPUs of the queue).
    fn move_from(
        &mut self,
        cx: &mut Context<'_>,
        attempt: &Attempt,
        from: PcpuId,
        mut amount: Amount,
    ) -> Outcome {
        let Attempt { p, ref level, number, idle } = *attempt;
        let failed = self.attempts[p.index()][number].failed;
        let hot_move = level.is_core || failed > level.patience;
        let (mut moved, mut all_pinned) = (None, true);
        for _ in 0..self.queues[from.index()].count().min(LOOKS) {
            let queue = &self.queues[from.index()];
            let recency = |v: &VcpuId| self.entities[v.index()].recency;
            let all = queue.tree.iter().map(|(_, v)| *v).chain(queue.current);
            let Some(v) = all.min_by_key(recency) else { break };
            // What is passed over goes to the other end of the order.
            self.entities[v.index()].recency = self.queues[from.index()].next_recency();
            if !self.may_leave(cx, v, p, failed) || !self.may_enter(cx, v, p) {
                continue;
            }
            all_pinned = false;
            if cx.is_running(v) || !hot_move && self.is_hot(cx, v) {
                continue;
            }
            let cost = self.cost(cx.now(), v, amount, failed);
            let whole = self.cost(cx.now(), v, amount, 0);
            match &mut amount {
                Amount::Load(n) | Amount::Used(n) if cost > *n => continue,
                Amount::Load(n) | Amount::Used(n) | Amount::Vcpus(n) => *n -= whole,
            }
            if self.pull(cx, p, v) {
                moved = Some(v);
                if idle {
                    break;
                }
                self.check_preemption(cx, v);
            }
            if amount.is_done() {
                break;
            }
        }
        match moved {
            Some(v) => Outcome::Moved(v),
            None if all_pinned => Outcome::Even,
            None => Outcome::Failed,
        }
    }

    /// Makes one attempt; if all vCPUs of the busiest pCPU are pinned, again without that pCPU.
    fn attempt(&mut self, cx: &mut Context<'_>, attempt: &Attempt) -> Outcome {
        let (all, p) = (&attempt.level.pcpus, attempt.p.0);
        let waits = |range| self.waiting.next_in(range).is_some();
        if !waits(all.start..p) && !waits(p + 1..all.end) {
            return Outcome::Even;
        }
        self.measure(cx, &attempt.level, attempt.idle);
        while let Some((from, amount)) = self.find_busiest(cx, attempt) {
            match self.move_from(cx, attempt, from, amount) {
                Outcome::Even => self.shares[from.index()].pinned = true,
                result => return result,
            }
        }
        Outcome::Even
    }

    /// Moves `v`, which is queued elsewhere, to the queue of `p`. Returns whether it is queued there;
    /// the quota of its domain may be used up on `p`.
    fn pull(&mut self, cx: &mut Context<'_>, p: PcpuId, v: VcpuId) -> bool {
        self.update(cx, cx.home(v));
        self.dequeue(cx, v);
        self.move_home(cx, v, p);
        self.enqueue(cx, v, Arrival::Moved)
    }

    /// For a `p` with nothing to run: pulls a vCPU from the nearest of its domains that has one to give.
    pub(super) fn pull_for_idle(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Option<VcpuId> {
        if self.waiting.is_empty() {
            return None;
        }
        let topology = *cx.topology();
        for (number, level) in Level::of(&topology, p).enumerate() {
            let attempt = Attempt { p, level, number, idle: true };
            match self.attempt(cx, &attempt) {
                Outcome::Moved(v) => {
                    self.attempts[p.index()][number].tried(&attempt.level, true);
                    return Some(v);
                }
                Outcome::Even => self.attempts[p.index()][number].failed = 0,
                // Failures of pCPUs about to idle do not count: there may be very many.
                Outcome::Failed => {}
            }
        }
        None
    }

    /// Whether `p` balances for its group: it is the first idle pCPU of the group, or the first if none idles.
    fn acts_for_group(&self, cx: &Context<'_>, level: &Level, p: PcpuId) -> bool {
        let mut group = level.group_of(p).map(PcpuId).filter(|q| cx.pool().contains(*q));
        let idle = group.clone().find(|q| self.idle.contains(*q));
        idle.or_else(|| group.next()) == Some(p)
    }

    /// Balances in a tick of `p`: pulls from a pCPU that is busier, and moves vCPUs that wait here to idle pCPUs. (If it
    /// only told an idle pCPU to look, that pCPU might find only vCPUs that just ran here and are cache-hot, each time.)
    pub(super) fn balance(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        let (topology, tick) = (*cx.topology(), self.tunables.tick);
        let now = cx.now().div_euclid(tick);
        for (number, level) in Level::of(&topology, p).enumerate() {
            let attempts = &mut self.attempts[p.index()][number];
            if now < attempts.last + attempts.busy_interval(&level, tick, topology.pcpus()) {
                continue;
            }
            attempts.last = now;
            let acts = self.acts_for_group(cx, &level, p);
            let attempt = Attempt { p, level, number, idle: false };
            let result = if acts { self.attempt(cx, &attempt) } else { Outcome::Even };
            let attempts = &mut self.attempts[p.index()][number];
            match result {
                Outcome::Even => attempts.even(&attempt.level),
                result => attempts.tried(&attempt.level, result != Outcome::Failed),
            }
            if !acts {
                break;
            }
        }
        while !self.idle.is_empty()
            && let Some((v, idle)) = self.find_for_idle(cx, p)
            && self.pull(cx, idle, v)
        {
            // This asks the idle pCPU to pass and takes it out of `idle`, so the loop ends.
            self.check_preemption(cx, v);
        }
    }

    /// The vCPU in the queue of `from` that has run least recently and may move to an idle pCPU, and that pCPU.
    fn find_for_idle(&self, cx: &Context<'_>, from: PcpuId) -> Option<(VcpuId, PcpuId)> {
        let waiting = self.queues[from.index()].tree.iter().map(|(_, v)| *v);
        let movable = waiting.filter_map(|v| {
            let idle = self.idle.cycle_and(from, cx.affinity(v).hard())?;
            let may = !cx.is_running(v) && !self.is_hot(cx, v) && self.may_enter(cx, v, idle);
            (may && self.may_leave(cx, v, idle, 0)).then_some((v, idle))
        });
        movable.min_by_key(|(v, _)| self.entities[v.index()].recency)
    }
}
