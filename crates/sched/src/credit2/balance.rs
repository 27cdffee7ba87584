//! Which runqueue a vCPU should live on. This is chosen when the vCPU comes or must move. It is
//! corrected at the end of each epoch, between the runqueue whose epoch ended and the one whose
//! load differs most from it.
//!
//! Source: schedulers specification §4.8.

use super::Credit2;
use super::profile::Turns;
use super::runqueue::Runqueue;
use crate::cpuset::CpuSet;
use crate::ids::{PcpuId, VcpuId};
use crate::list::List;
use crate::machine::Machine;
use crate::scheduler::Context;
use crate::time::Nanos;
use core::cmp::Ordering;

/// A vCPU that could move, and its load.
pub(super) type Candidate = (VcpuId, i64);

impl Credit2 {
    /// The best pCPU for `v`: in the target of a move under way, else in the runqueue with the
    /// least forecast load, preferred runqueues first. O(runqueues × pCPUs/64).
    pub(super) fn place(&mut self, machine: &Machine, v: VcpuId) -> PcpuId {
        let affinity = machine.affinity(v);
        let hard = affinity.hard();
        if let Some(target) = self.vcpus[v.index()].target.take()
            && self.queues[target].members.intersects(hard)
        {
            return self.turn(target, target, machine.home(v), hard);
        }
        let soft = affinity.soft().filter(|_| !self.profile.early);
        let vcpu = &self.vcpus[v.index()];
        let (mut least, mut least_soft) = (None, None);
        for (i, queue) in self.queues.iter().enumerate() {
            if !queue.members.intersects(hard) {
                continue;
            }
            let own = vcpu.assigned && vcpu.queue == i;
            let load =
                if own { (queue.load.forecast - vcpu.average).max(0) } else { queue.load.forecast };
            let better = |best: Option<(i64, usize)>| best.is_none_or(|(least, _)| load < least);
            if better(least) {
                least = Some((load, i));
            }
            if soft.is_some_and(|soft| queue.members.intersects(soft)) && better(least_soft) {
                least_soft = Some((load, i));
            }
        }
        let home = machine.home(v);
        let Some((_, hard_choice)) = least else { return home };
        let (i, mask) = match (least_soft, soft) {
            (Some((_, i)), Some(soft)) => (i, soft),
            _ => (hard_choice, hard),
        };
        // The original continues from the last placement in the runqueue of the hard choice.
        let biased = if self.params.as_is { hard_choice } else { i };
        // It also notes the choice there, be it a member or not.
        self.turn(i, biased, home, mask)
    }

    /// The pCPU of runqueue `q` within `mask` whose turn it is, by the turns of runqueue `biased`. This
    /// ends its turn. There must be one.
    fn turn(&mut self, q: usize, biased: usize, home: PcpuId, mask: &CpuSet) -> PcpuId {
        let after = match self.profile.turns {
            Turns::AfterLast => self.queues[biased].bias,
            Turns::First => PcpuId(u32::MAX - 1),
            Turns::AfterHome => home,
        };
        let p = self.queues[q].members.cycle_and(after, mask).unwrap_or(home);
        self.queues[biased].bias = p;
        p
    }

    /// The pCPU of runqueue `q` for `v`, which moves there, if one is allowed.
    pub(super) fn take_turn(&mut self, machine: &Machine, q: usize, v: VcpuId) -> Option<PcpuId> {
        let hard = machine.affinity(v).hard();
        if !self.queues[q].members.intersects(hard) {
            return None;
        }
        let home = match self.profile.turns {
            Turns::AfterHome => PcpuId(u32::MAX - 1),
            _ => machine.home(v),
        };
        Some(self.turn(q, q, home, hard))
    }

    /// Moves load between runqueue `local` and the one whose load differs most, if that makes them
    /// more alike: pushes one vCPU, pulls one, or both. `next` is what the current pass has chosen.
    /// If nothing moves, may exchange vCPUs by their accounts of space. O(runqueues + product of the
    /// numbers of vCPUs of the two).
    pub(super) fn balance(&mut self, cx: &mut Context<'_>, local: usize, next: VcpuId) {
        if !self.balance_load(cx, local, next) && self.params.smt_space {
            self.exchange_by_space(cx, local, next);
        }
    }

    /// Returns whether a vCPU moves.
    fn balance_load(&mut self, cx: &mut Context<'_>, local: usize, next: VcpuId) -> bool {
        let Some((other, crowded)) = self.partner(cx.now(), local) else { return false };
        let delta = self.queues[local].load.forecast - self.queues[other].load.forecast;
        let (mut pushes, mut pulls) =
            (core::mem::take(&mut self.pushes), core::mem::take(&mut self.pulls));
        self.collect(cx, local, other, next, true, &mut pushes);
        self.collect(cx, other, local, next, !pushes.is_empty(), &mut pulls);
        let exchanges = crowded || !self.params.smt_space;
        let (push, pull) = best_move(delta, &pushes, &pulls, exchanges);
        (self.pushes, self.pulls) = (pushes, pulls);
        if let Some(v) = push {
            self.move_to(cx, v, other, next);
        }
        if let Some(v) = pull {
            self.move_to(cx, v, local, next);
        }
        push.or(pull).is_some()
    }

    /// Exchanges a vCPU that owes space, beside one that is owed some, for one that is owed space beside one
    /// that owes, in another runqueue: then like is beside like in both. Runqueues are single cores, and
    /// keep a pCPU for each of their vCPUs: where all threads are busy, there is no space to share. Load
    /// balancing must not undo it at once.
    fn exchange_by_space(&mut self, cx: &mut Context<'_>, local: usize, next: VcpuId) {
        let Some((Some(debtor), Some(_))) = self.sides(cx, local, next) else { return };
        for other in (0..self.queues.len()).filter(|q| *q != local) {
            let Some((Some(_), Some(creditor))) = self.sides(cx, other, next) else { continue };
            let average = |this: &mut Self, v: VcpuId| {
                this.update_vcpu_load(cx.now(), v, i64::from(cx.is_runnable(v)));
                this.vcpus[v.index()].average
            };
            let moved = average(self, debtor) - average(self, creditor);
            let room = |q: &Runqueue| self.room(q.size);
            let (here, there) = (&self.queues[local], &self.queues[other]);
            let (less, more) = (here.load.forecast - moved, there.load.forecast + moved);
            let lasts = (more - less).abs() < self.params.under;
            let fits = lasts && less <= room(here) && more <= room(there);
            let allowed = here.members.intersects(cx.affinity(creditor).hard())
                && there.members.intersects(cx.affinity(debtor).hard());
            if fits && allowed {
                self.move_to(cx, debtor, other, next);
                self.move_to(cx, creditor, local, next);
                return;
            }
        }
    }

    /// The load up to which a runqueue of `size` pCPUs is not crowded, with `smt_space`: averages of vCPUs that
    /// always run may add up to a little more than their number.
    fn room(&self, size: u32) -> i64 {
        (i64::from(size) << self.params.window.precision) + self.params.over
    }

    /// Of runqueue `q`, if it is a single core: the vCPU that owes most space and the one that is owed
    /// most, if there are such vCPUs. Those that are about to move do not count.
    fn sides(
        &self,
        cx: &Context<'_>,
        q: usize,
        next: VcpuId,
    ) -> Option<(Option<VcpuId>, Option<VcpuId>)> {
        let queue = &self.queues[q];
        let core = cx.topology().siblings(queue.members.first()?);
        if queue.members.count_range(core) < queue.size {
            return None;
        }
        let on = |side: Ordering, v: VcpuId| {
            let moving = self.vcpus[v.index()].target.is_some() || cx.is_migrating(v);
            let stays = v == next && self.params.keep_chosen;
            self.side(v) == side && !moving && !stays
        };
        let all = || self.assigned_links.iter(&queue.assigned).map(VcpuId);
        let space = |v: &VcpuId| self.vcpus[v.index()].space;
        let owes = all().filter(|v| on(Ordering::Less, *v)).min_by_key(space);
        let owed = all().filter(|v| on(Ordering::Greater, *v)).max_by_key(space);
        Some((owes, owed))
    }

    /// The runqueue whose load differs most from that of `local`, if the difference is worth a move, and
    /// whether one of the two is crowded. With `smt_space`, a runqueue with a pCPU for each runnable vCPU is
    /// not: it gains nothing by an exchange but space, and the accounts decide about that.
    fn partner(&mut self, now: Nanos, local: usize) -> Option<(usize, bool)> {
        let window = self.params.window;
        self.queues[local].load.update(window, now, 0);
        let here = self.queues[local].load.forecast;
        let mut other: Option<(i64, usize)> = None;
        let mut last = local;
        for i in 0..self.queues.len() {
            if self.queues[i].size == 0 {
                continue;
            }
            last = i;
            if i == local {
                continue;
            }
            self.queues[i].load.update(window, now, 0);
            let delta = (here - self.queues[i].load.forecast).abs();
            if delta > other.map_or(0, |(most, _)| most) {
                other = Some((delta, i));
            }
        }
        let (delta, other) = other?;
        // Here the original takes the last runqueue of the list for the other one. It may be `local`.
        let counts = &self.queues[if self.params.as_is { last } else { other }];
        let size = self.queues[local].size.max(counts.size);
        let full = i64::from(size) << window.precision;
        let most = here.max(counts.load.forecast);
        let crowded = if self.params.smt_space { most > self.room(size) } else { most >= full };
        let threshold = if crowded { self.params.over } else { self.params.under };
        (delta >= threshold).then_some((other, crowded))
    }

    /// Fills `into` with the vCPUs of `from` that may move to `to`. If `refresh`, updates the loads of
    /// all vCPUs of `from` first.
    fn collect(
        &mut self,
        cx: &Context<'_>,
        from: usize,
        to: usize,
        next: VcpuId,
        refresh: bool,
        into: &mut alloc::vec::Vec<Candidate>,
    ) {
        into.clear();
        let list: List = self.queues[from].assigned;
        let mut at = list.head();
        while let Some(x) = at {
            at = self.assigned_links.next(x);
            let v = VcpuId(x);
            if refresh {
                self.update_vcpu_load(cx.now(), v, i64::from(cx.is_runnable(v)));
            }
            let moving = self.vcpus[v.index()].target.is_some() || cx.is_migrating(v);
            let stays = v == next && self.params.keep_chosen;
            if !stays && !moving && self.queues[to].members.intersects(cx.affinity(v).hard()) {
                into.push((v, self.vcpus[v.index()].average));
            }
        }
    }

    /// Moves `v` to runqueue `to`: at once, or once it has left its pCPU. `next`, which the pass has
    /// chosen, counts as running.
    fn move_to(&mut self, cx: &mut Context<'_>, v: VcpuId, to: usize, next: VcpuId) {
        let q = self.vcpus[v.index()].queue;
        if cx.is_running(v) || v == next {
            self.vcpus[v.index()].target = Some(to);
            cx.mark_migrating(v);
            if !self.profile.early {
                self.tell(cx, q, cx.home(v));
            }
            return;
        }
        let Some(p) = self.take_turn(cx, to, v) else { return };
        let queued = self.run_links.is_linked(v.0);
        if queued {
            self.dequeue(q, v);
            self.queues[q].load.update(self.params.window, cx.now(), -1);
        }
        self.stops_leaving(cx, v);
        self.deassign(v);
        cx.set_home(v, p);
        self.assign(to, v);
        if queued {
            self.queues[to].load.update(self.params.window, cx.now(), 1);
            self.enqueue(to, v);
            self.tickle(cx, v);
        }
    }
}

/// The vCPU to push and the vCPU to pull that leave the least difference of loads, if that is less
/// than now; only one of them without `exchanges`. `delta` is the load of the pusher minus the load of the
/// other. Among equals, the first found wins.
fn best_move(
    delta: i64,
    pushes: &[Candidate],
    pulls: &[Candidate],
    exchanges: bool,
) -> (Option<VcpuId>, Option<VcpuId>) {
    let mut best = (delta.abs(), None, None);
    let mut consider = |push: Option<&Candidate>, pull: Option<&Candidate>| {
        let moved = push.map_or(0, |c| c.1) - pull.map_or(0, |c| c.1);
        // One side gains the load that the other loses.
        let after = (delta - 2 * moved).abs();
        if after < best.0 {
            best = (after, push.map(|c| c.0), pull.map(|c| c.0));
        }
    };
    for push in pushes {
        if exchanges {
            pulls.iter().for_each(|pull| consider(Some(push), Some(pull)));
        }
        consider(Some(push), None);
    }
    pulls.iter().for_each(|pull| consider(None, Some(pull)));
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit2::bench::Bench;
    use crate::credit2::profile::TODAY_PROFILE;
    use crate::{Affinity, Topology};
    use alloc::vec::Vec;

    fn vcpus(loads: &[i64]) -> Vec<Candidate> {
        loads.iter().enumerate().map(|(i, load)| (VcpuId(i as u32), *load)).collect()
    }

    /// Example D6.
    #[test]
    fn d6_a_move_must_make_loads_more_alike() {
        let one = 1 << 18;
        assert_eq!(best_move(2 * one, &vcpus(&[one; 3]), &[], true), (Some(VcpuId(0)), None));
        assert_eq!(best_move(one, &vcpus(&[one; 2]), &vcpus(&[one]), true), (None, None));
    }

    /// Three runqueues of one pCPU with loads of 1.5, 1.2 and 0.8. From the second one the third differs
    /// most, by 0.4, and load is above one pCPU: as meant that is enough, as a difference of 0.125 is.
    /// From the third one the first differs most, by 0.7. As meant this is enough too. As is, the third
    /// runqueue, which is the last of the list, counts instead of the first: 0.8 is less than one
    /// pCPU, where a difference of 1 is needed.
    #[test]
    fn as_is_the_last_runqueue_counts_for_the_other_one() {
        let partner = |as_is: bool, local| {
            let over = crate::Params::default().with("as_is", crate::ParamValue::Flag(as_is));
            let mut credit2 = Credit2::new(&TODAY_PROFILE, &over).unwrap();
            let one = 1 << 18;
            for (p, load) in [15, 12, 8].into_iter().enumerate() {
                let mut queue = crate::credit2::Runqueue::new(3);
                (queue.size, queue.bias) = (1, PcpuId(p as u32));
                queue.load.forecast = load * one / 10;
                credit2.queues.push(queue);
            }
            credit2.partner(Nanos::ZERO, local).map(|(other, _)| other)
        };
        assert_eq!((partner(false, 1), partner(true, 1)), (Some(2), Some(2)));
        assert_eq!((partner(false, 2), partner(true, 2)), (Some(0), None));
    }

    /// Two runqueues of one pCPU. Runqueue 0 has much load, and vCPU 0, which may or may not leave it;
    /// runqueue 1 has vCPU 1, which is down. Half a window after creation the average of vCPU 1 has
    /// fallen from a half to a quarter. As in Xen, that is worked out only if some vCPU may be pushed.
    #[test]
    fn loads_on_the_other_side_are_refreshed_if_a_vcpu_may_be_pushed() {
        let average = |affinity: Affinity| {
            let topology = Topology { sockets: 2, ..Topology::flat(1) };
            let mut bench = Bench::new(&TODAY_PROFILE, topology, &[affinity, Affinity::any()]);
            let credit2 = &mut bench.credit2;
            assert_eq!((credit2.vcpus[0].queue, credit2.vcpus[1].queue), (0, 1));
            (credit2.queues[0].load.count, credit2.queues[0].load.forecast) = (10, 10 << 18);
            bench.at(Nanos(1 << 29), |credit2, cx| credit2.balance(cx, 0, VcpuId(2)));
            bench.credit2.vcpus[1].average
        };
        assert_eq!(average(Affinity::hard([0])), 1 << 17);
        assert_eq!(average(Affinity::any()), 1 << 16);
    }

    /// As in Xen, the pCPU that is told when the pass moves the vCPU that it has chosen is that vCPU's
    /// home. If this is not the passing pCPU, the vCPU runs until its slice ends.
    #[test]
    fn the_home_of_a_chosen_vcpu_is_told() {
        let topology = Topology { sockets: 2, cores_per_socket: 2, threads_per_core: 1 };
        let mut bench = Bench::new(&TODAY_PROFILE, topology, &[Affinity::any()]);
        let v = VcpuId(0);
        assert_eq!(bench.machine.home(v), PcpuId(1));
        let credit2 = &mut bench.credit2;
        (credit2.queues[0].load.count, credit2.queues[0].load.forecast) = (10, 10 << 18);
        let told = bench.at(Nanos::MS, |credit2, cx| {
            cx.actions.clear();
            credit2.balance(cx, 0, v);
            cx.actions.clone()
        });
        assert_eq!(told, [crate::Action::Resched(PcpuId(1))]);
        assert!(bench.machine.is_migrating(v) && bench.credit2.vcpus[0].target == Some(1));
    }

    #[test]
    fn a_swap_is_found_where_no_single_move_helps() {
        // 6 and 4 against 3 and 5: pushing 6 for 5 leaves 9 against 9.
        assert_eq!(
            best_move(2, &vcpus(&[6, 4]), &vcpus(&[3, 5]), true),
            (Some(VcpuId(0)), Some(VcpuId(1)))
        );
        assert_eq!(best_move(-6, &[], &vcpus(&[2, 3]), true), (None, Some(VcpuId(1))));
    }
}
