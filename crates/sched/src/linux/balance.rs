//! Placement of waking vCPUs, and pulling of queued ones.
//!
//! There are up to three nested scheduling domains: the threads of a core, the pCPUs of a socket (which
//! share a cache), the machine. One that is no larger than the one inside it is left out.

use super::Host;
use super::class::{Arrival, Class};
use crate::cpuset::CpuSet;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::Context;
use crate::time::Nanos;
use crate::topology::Topology;
use core::ops::Range;

/// How often a pCPU looks for work in its smallest domain; the interval doubles with each larger one.
const INTERVAL: Nanos = Nanos::ms(4);

/// The scheduling domains of `p`, at most three: their pCPUs, and the load, in percent of its own, above
/// which `p` considers another pCPU too busy.
fn domains(t: &Topology, p: PcpuId) -> impl Iterator<Item = (Range<u32>, i64)> {
    let core = t.siblings(p);
    let socket = t.socket_mates(p);
    let machine = 0..t.pcpus();
    [
        (core.len() > 1).then_some((core.clone(), 117)),
        (socket.len() > core.len()).then_some((socket.clone(), 117)),
        (machine.len() > socket.len()).then_some((machine, 125)),
    ]
    .into_iter()
    .flatten()
}

impl<C: Class> Host<C> {
    /// Whether a sibling of `v` is queued or runs on `p`. O(members of the domain).
    fn has_sibling(&self, machine: &Machine, v: VcpuId, p: PcpuId) -> bool {
        let domain = &self.domains[self.vcpus[v.index()].domain.index()];
        let mut others = domain.members.iter().filter(|m| **m != v);
        others.any(|m| self.vcpus[m.index()].queued && machine.home(*m) == p)
    }

    /// Fills `candidates` with the pCPUs on which `v` may be queued: its affinity. With balance
    /// scheduling the pCPUs of its siblings are left out, if any others remain.
    fn gather_candidates(&mut self, machine: &Machine, v: VcpuId) {
        let hard = machine.affinity(v).hard();
        self.candidates.copy_from(hard);
        if !self.tunables.balance {
            return;
        }
        let domain = &self.domains[self.vcpus[v.index()].domain.index()];
        for m in domain.members.iter().filter(|m| **m != v) {
            if self.vcpus[m.index()].queued {
                self.candidates.remove(machine.home(*m));
            }
        }
        if self.candidates.is_empty() {
            self.candidates.copy_from(hard);
        }
    }

    /// Finds an idle pCPU among the candidates in `range`, from `near` on; one of an idle core if
    /// possible.
    fn find_idle(&self, machine: &Machine, near: PcpuId, range: Range<u32>) -> Option<PcpuId> {
        let mates = |p| machine.topology().siblings(p);
        let whole = |p: PcpuId| self.idle.count_range(mates(p)) == mates(p).len() as u32;
        let first = self.idle.cycle_and_within(near, &self.candidates, range.clone())?;
        let mut p = first;
        while !whole(p) {
            p = self.idle.cycle_and_within(p, &self.candidates, range.clone())?;
            if p == first {
                break;
            }
        }
        Some(p)
    }

    /// Chooses the pCPU on which the waking `v` is queued: its home if that idles, else an idle pCPU
    /// that shares a cache with its home or with the pCPU that wakes it, else its home. A new vCPU goes
    /// to any idle pCPU, else to the least loaded.
    pub(super) fn select(&mut self, cx: &Context<'_>, v: VcpuId, new: bool) -> PcpuId {
        self.gather_candidates(cx, v);
        let home = cx.home(v);
        if self.candidates.contains(home) && self.idle.contains(home) {
            return home;
        }
        let topology = cx.topology();
        let near = topology.socket_mates(home);
        let waker = topology.socket_mates(cx.executing());
        let mut idle = self.find_idle(cx, home, near.clone());
        if idle.is_none() && waker != near {
            idle = self.find_idle(cx, cx.executing(), waker);
        }
        if idle.is_none() && new {
            idle = self.find_idle(cx, home, 0..cx.pcpus());
        }
        if let Some(p) = idle {
            return p;
        }
        if self.candidates.contains(home) && !new {
            return home;
        }
        let around = |p: &PcpuId| (p.0 + cx.pcpus() - home.0) % cx.pcpus();
        let load = |p: &PcpuId| self.queues[p.index()].load;
        self.candidates.iter().min_by_key(|p| (load(p), around(p))).unwrap_or(home)
    }

    /// The first vCPU in the queue of `from` that may move to the pCPU that `place` chooses: it has left
    /// its pCPU, is not cache-hot, is no heavier than `most`, and is not about to be throttled.
    fn movable(
        &self,
        cx: &Context<'_>,
        from: PcpuId,
        place: impl Fn(&CpuSet) -> Option<PcpuId>,
        most: i64,
    ) -> Option<(VcpuId, PcpuId)> {
        let queue = &self.queues[from.index()];
        queue.tree.iter().find_map(|(_, v)| {
            let cold = cx.now() - self.vcpus[v.index()].last_ran >= self.tunables.migration_cost;
            if cx.is_running(*v) || !cold || self.entities[v.index()].weight > most {
                return None;
            }
            let p = place(cx.affinity(*v).hard())?;
            if self.tunables.throttles_on_return && self.is_used_up(*v, [from, p]) {
                return None;
            }
            let separate = !self.tunables.balance || !self.has_sibling(cx, *v, p);
            separate.then_some((*v, p))
        })
    }

    /// The vCPU to pull to `p`, from the most loaded pCPU of `range` that has more than `load` and a
    /// vCPU that may move. The move must not make `p` the more loaded one.
    fn find_work(
        &self,
        cx: &Context<'_>,
        p: PcpuId,
        range: Range<u32>,
        load: i64,
    ) -> Option<VcpuId> {
        let own = self.queues[p.index()].load;
        let here = |hard: &CpuSet| hard.contains(p).then_some(p);
        let mut found = None;
        let mut busiest = load;
        let mut from = range.start;
        while let Some(peer) = self.waiting.next_in(from..range.end) {
            from = peer.0 + 1;
            let theirs = self.queues[peer.index()].load;
            if peer == p || theirs <= busiest {
                continue;
            }
            let most = if own == 0 { i64::MAX } else { theirs - own - 1 };
            if let Some((v, _)) = self.movable(cx, peer, here, most) {
                (found, busiest) = (Some(v), theirs);
            }
        }
        found
    }

    /// Moves `v`, which is queued elsewhere, to the queue of `p`. Returns whether it is queued there;
    /// the quota of its domain may be used up on `p`.
    fn pull(&mut self, cx: &mut Context<'_>, p: PcpuId, v: VcpuId) -> bool {
        self.update(cx, cx.home(v));
        self.dequeue(cx, v);
        self.move_home(cx, v, p);
        self.enqueue(cx, v, Arrival::Moved)
    }

    /// For a `p` with nothing to run: pulls a vCPU from the nearest of its domains that has one waiting.
    pub(super) fn pull_for_idle(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Option<VcpuId> {
        if self.waiting.is_empty() {
            return None;
        }
        let topology = *cx.topology();
        let v = domains(&topology, p).find_map(|(range, _)| self.find_work(cx, p, range, 0))?;
        self.pull(cx, p, v).then_some(v)
    }

    /// Balances in a tick of `p`: pulls from a pCPU that is much busier, and moves vCPUs that wait here
    /// to idle pCPUs. (If it only told an idle pCPU to look, that pCPU might find only vCPUs that just
    /// ran here and are cache-hot, each time.)
    pub(super) fn balance(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        let topology = *cx.topology();
        for (level, (range, percent)) in domains(&topology, p).enumerate() {
            let due = &mut self.balance_at[p.index()][level];
            if cx.now() < *due {
                continue;
            }
            *due = cx.now() + INTERVAL * (1 << level);
            let own = self.queues[p.index()].load;
            if let Some(v) = self.find_work(cx, p, range, own * percent / 100)
                && self.pull(cx, p, v)
            {
                self.check_preemption(cx, v);
            }
        }
        while !self.idle.is_empty()
            && let Some((v, idle)) =
                self.movable(cx, p, |hard| self.idle.cycle_and(p, hard), i64::MAX)
            && self.pull(cx, idle, v)
        {
            // This asks the idle pCPU to pass and takes it out of `idle`, so the loop ends.
            self.check_preemption(cx, v);
        }
    }
}
