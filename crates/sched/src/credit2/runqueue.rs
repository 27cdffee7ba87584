//! Runqueues: the pCPUs that share one, the vCPUs assigned to it, and its order.
//!
//! A vCPU is assigned to the runqueue of its home all its life, blocked or not. While it waits for
//! a pCPU, it is also queued there. Sets record what each pCPU does; they agree at all times:
//!
//! | Set | Members |
//! |---|---|
//! | `idle` | pCPUs whose last pass chose the idle vCPU |
//! | `tickled` | pCPUs that were asked to enter their scheduler and have not done so yet |
//! | `free` | `idle` without `tickled` |
//! | `smt_idle` | threads of cores whose threads in this runqueue are all `free` |
//!
//! Source: schedulers specification §4.2.

use super::Credit2;
use super::load::Load;
use super::profile::Arrangement;
use crate::cpuset::CpuSet;
use crate::ids::{PcpuId, VcpuId};
use crate::list::List;
use crate::machine::Machine;
use crate::scheduler::Context;
use crate::topology::Topology;

/// A queue shared by some pCPUs, ordered by credit.
#[derive(Clone, Debug)]
pub(super) struct Runqueue {
    pub members: CpuSet,
    /// Number of `members`; 0 is a runqueue that does not exist.
    pub size: u32,
    pub idle: CpuSet,
    pub tickled: CpuSet,
    pub free: CpuSet,
    pub smt_idle: CpuSet,
    /// Waiting vCPUs: most credit first, then first come.
    pub queue: List,
    /// All vCPUs that live here, in order of arrival.
    pub assigned: List,
    /// Largest weight of `assigned`, at least 1. A vCPU of this weight burns one credit per ns.
    pub max_weight: i64,
    pub load: Load,
    /// Where the last turn went: to a member, or with `as_is` elsewhere.
    pub bias: PcpuId,
}

impl Runqueue {
    pub(super) fn new(pcpus: u32) -> Self {
        let empty = CpuSet::empty(pcpus);
        Self {
            members: empty.clone(),
            size: 0,
            idle: empty.clone(),
            tickled: empty.clone(),
            free: empty.clone(),
            smt_idle: empty,
            queue: List::EMPTY,
            assigned: List::EMPTY,
            max_weight: 1,
            load: Load::default(),
            bias: PcpuId(0),
        }
    }

    /// Records whether `p` idles and whether it was told, and updates its core.
    fn note(&mut self, topology: &Topology, p: PcpuId, idle: bool, tickled: bool) {
        self.idle.set(p, idle);
        self.tickled.set(p, tickled);
        self.free.set(p, idle && !tickled);
        self.note_core(topology, p);
    }

    /// The number of threads of its cores, with those that are in other pools.
    fn threads(&self, topology: &Topology) -> u32 {
        let is_first = |p: &PcpuId| self.members.next_in(topology.siblings(*p)) == Some(*p);
        self.members.iter().filter(is_first).count() as u32 * topology.threads_per_core
    }

    fn note_core(&mut self, topology: &Topology, p: PcpuId) {
        let threads = || topology.siblings(p).map(PcpuId).filter(|t| self.members.contains(*t));
        let free = threads().all(|t| self.free.contains(t));
        for t in topology.siblings(p).map(PcpuId) {
            self.smt_idle.set(t, free && self.members.contains(t));
        }
    }
}

impl Credit2 {
    /// The runqueue of `p`, which has one.
    pub(super) fn queue_of(&self, p: PcpuId) -> usize {
        self.queue_of[p.index()]
    }

    /// Gives `p` a runqueue: the runqueue of its core, else the smallest that has room for its
    /// core, else a new one. As in Xen, all pCPUs of the machine count in the size that evens out
    /// runqueues, and whole cores in what a runqueue holds: the rest of a core may come from another
    /// pool.
    pub(super) fn join_runqueue(&mut self, machine: &Machine, p: PcpuId) {
        let topology = machine.topology();
        let pcpus = machine.pcpus();
        let arrangement = self.params.arrangement;
        let matches = |q: &Runqueue| {
            q.size > 0
                && match (arrangement, q.members.first()) {
                    (Arrangement::Core, Some(m)) => topology.core_of(m) == topology.core_of(p),
                    (Arrangement::Socket, Some(m)) => {
                        topology.socket_of(m) == topology.socket_of(p)
                    }
                    (Arrangement::All, _) => true,
                    _ => false,
                }
        };
        let most = pcpus / (pcpus.saturating_sub(1) / self.params.max_pcpus + 1);
        let fits = |q: &Runqueue| match arrangement {
            Arrangement::All => q.size < most,
            _ => q.threads(topology) + topology.threads_per_core <= most,
        };
        let existing = || self.queues.iter().enumerate().filter(|(_, q)| matches(q));
        let of_core = existing().find(|(_, q)| q.members.count_range(topology.siblings(p)) > 0);
        let roomy = || existing().filter(|(_, q)| fits(q)).min_by_key(|(_, q)| q.size);
        let found = of_core.or_else(roomy).map(|(i, _)| i);
        let i = found.unwrap_or_else(|| {
            let unused = self.queues.iter().position(|q| q.size == 0);
            unused.unwrap_or_else(|| {
                self.queues.push(Runqueue::new(machine.pcpus()));
                self.queues.len() - 1
            })
        });
        let q = &mut self.queues[i];
        if q.size == 0 {
            q.bias = p;
        }
        q.members.insert(p);
        q.size += 1;
        q.note(topology, p, true, false);
        self.queue_of[p.index()] = i;
    }

    /// Removes `p`, which idles and is the home of no vCPU, from its runqueue.
    pub(super) fn leave_runqueue(&mut self, machine: &Machine, p: PcpuId) {
        let q = &mut self.queues[self.queue_of[p.index()]];
        q.note(machine.topology(), p, false, false);
        q.members.remove(p);
        q.size -= 1;
        q.note_core(machine.topology(), p);
        if q.bias == p {
            q.bias = q.members.first().unwrap_or(p);
        }
    }

    /// Records whether the pass of `p` chose the idle vCPU.
    pub(super) fn set_idle(&mut self, machine: &Machine, p: PcpuId, idle: bool) {
        let q = &mut self.queues[self.queue_of[p.index()]];
        let tickled = q.tickled.contains(p);
        q.note(machine.topology(), p, idle, tickled);
    }

    /// Records that `p` has entered its scheduler.
    pub(super) fn clear_tickled(&mut self, machine: &Machine, p: PcpuId) {
        let q = &mut self.queues[self.queue_of[p.index()]];
        let idle = q.idle.contains(p);
        q.note(machine.topology(), p, idle, false);
    }

    /// Asks `p`, a member of `q`, to enter its scheduler.
    pub(super) fn tell(&mut self, cx: &mut Context<'_>, q: usize, p: PcpuId) {
        let idle = self.queues[q].idle.contains(p);
        self.queues[q].note(cx.topology(), p, idle, true);
        cx.resched(p);
    }

    /// Queues `v` behind all vCPUs with as much credit or more. O(queue).
    pub(super) fn enqueue(&mut self, q: usize, v: VcpuId) {
        let credit = self.vcpus[v.index()].credit;
        let mut queue = self.queues[q].queue;
        let before = self.run_links.iter(&queue).find(|x| self.vcpus[*x as usize].credit < credit);
        self.run_links.insert_before(&mut queue, v.0, before);
        self.queues[q].queue = queue;
    }

    /// Removes `v` from the queue, where it must be. O(1).
    pub(super) fn dequeue(&mut self, q: usize, v: VcpuId) {
        self.run_links.remove(&mut self.queues[q].queue, v.0);
    }

    /// Makes `q` the runqueue of `v`, which has none. The load of `v` comes with it.
    pub(super) fn assign(&mut self, q: usize, v: VcpuId) {
        let weight = self.weight(v);
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.queue = q;
        vcpu.assigned = true;
        let queue = &mut self.queues[q];
        self.assigned_links.insert_before(&mut queue.assigned, v.0, None);
        queue.max_weight = queue.max_weight.max(weight);
        queue.load.forecast += vcpu.average;
    }

    /// Removes `v`, which is not queued, from its runqueue. O(vCPUs of the runqueue).
    pub(super) fn deassign(&mut self, v: VcpuId) {
        let vcpu = &mut self.vcpus[v.index()];
        vcpu.assigned = false;
        let (q, average) = (vcpu.queue, vcpu.average);
        let queue = &mut self.queues[q];
        self.assigned_links.remove(&mut queue.assigned, v.0);
        queue.load.forecast = (queue.load.forecast - average).max(0);
        self.update_max_weight(q);
    }

    /// Recomputes the largest weight of a runqueue. O(its vCPUs).
    pub(super) fn update_max_weight(&mut self, q: usize) {
        let assigned = self.assigned_links.iter(&self.queues[q].assigned);
        let most = assigned.map(|x| self.weight(VcpuId(x))).max();
        self.queues[q].max_weight = most.unwrap_or(1);
    }

    pub(super) fn weight(&self, v: VcpuId) -> i64 {
        self.domains[self.vcpus[v.index()].domain.index()].weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit2::profile::TODAY_PROFILE;
    use crate::{Hypervisor, ParamValue, Params, Scheduler};
    use alloc::boxed::Box;
    use alloc::vec;
    use alloc::vec::Vec;

    const FLAT: Topology = Topology { sockets: 1, cores_per_socket: 6, threads_per_core: 1 };
    const THREADS: Topology = Topology { sockets: 2, cores_per_socket: 3, threads_per_core: 2 };

    /// The members of the runqueues of a pool, in order.
    fn queues(
        topology: Topology,
        pool: impl IntoIterator<Item = u32>,
        arrangement: &str,
        most: i64,
    ) -> Vec<Vec<u32>> {
        let over = Params::default()
            .with("runqueue", ParamValue::Word(arrangement.into()))
            .with("max_pcpus_per_runqueue", ParamValue::Number(most));
        let new = || Credit2::new(&TODAY_PROFILE, &over).unwrap();
        let mut members = CpuSet::empty(topology.pcpus());
        pool.into_iter().for_each(|p| members.insert(PcpuId(p)));
        let layer = Hypervisor::on(topology, members, Box::new(new()));
        let (mut machine, mut actions) = (layer.machine().clone(), Vec::new());
        let mut credit2 = new();
        credit2.start(&mut Context {
            now: crate::Nanos::ZERO,
            executing: PcpuId(0),
            machine: &mut machine,
            actions: &mut actions,
        });
        credit2.queues.iter().map(|q| q.members.iter().map(|p| p.0).collect()).collect()
    }

    #[test]
    fn arrangements_follow_the_topology() {
        let all = |arrangement| queues(THREADS, 0..12, arrangement, 16);
        assert_eq!(all("cpu").len(), 12);
        assert_eq!(all("core"), [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]);
        let sockets = [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]];
        assert_eq!((all("socket"), all("node")), (sockets.map(Vec::from).into(), all("socket")));
        assert_eq!(all("all").len(), 1);
    }

    /// With at most 4 of 6 pCPUs in a runqueue there are two at least, so Xen evens them out: 3 in each. A pool of 4 of
    /// these pCPUs has runqueues of 3 and 1, because Xen counts the pCPUs of the machine.
    #[test]
    fn the_pcpus_of_the_machine_are_spread_evenly() {
        assert_eq!(queues(FLAT, 0..6, "socket", 4), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(queues(FLAT, 0..4, "socket", 4), [vec![0, 1, 2], vec![3]]);
    }

    /// At most 4 of 12 pCPUs in a runqueue: three of 4, so a core of two threads joins one with two. At most 5: 12 / 3 is 4
    /// again. At most 3: four of 3, into which a second core fits in no case except `all`, where a single thread may join
    /// (and its sibling follows, over the limit).
    #[test]
    fn cores_stay_together() {
        let in_two = |most| queues(THREADS, 0..6, "socket", most);
        assert_eq!(in_two(4), [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(in_two(5), in_two(4));
        assert_eq!(in_two(3), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(queues(THREADS, 0..6, "all", 3), [vec![0, 1, 2, 3], vec![4, 5]]);
    }

    /// The threads of a core that are in another pool keep their places: runqueues of at most 4 have room for one thread of
    /// each of two cores.
    #[test]
    fn threads_in_other_pools_keep_their_places() {
        assert_eq!(queues(THREADS, [0, 2, 4], "socket", 4), [vec![0, 2], vec![4]]);
    }
}
