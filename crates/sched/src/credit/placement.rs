//! Where a vCPU should run, which pCPUs its wake-up tells, and which vCPU a pCPU without work
//! steals.
//!
//! With useful soft affinity, each choice has two steps: first among preferred pCPUs, then among
//! all allowed ones. Each socket counts as a NUMA node.

use super::profile::Steal;
use super::{Credit, Priority};
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::Context;
use core::ops::Range;

/// The first pCPU of `node` that is in the pool.
pub(super) fn first_of(machine: &Machine, node: u32) -> PcpuId {
    machine.pool().next_in(machine.topology().socket(node)).unwrap_or(PcpuId(0))
}

impl Credit {
    /// Counts `v` by whether it has useful soft affinity.
    pub(super) fn note_soft_affinity(&mut self, machine: &Machine, v: VcpuId) {
        let prefers = machine.affinity(v).soft().is_some();
        if core::mem::replace(&mut self.vcpus[v.index()].prefers, prefers) != prefers {
            self.soft_affinities = self.soft_affinities + u32::from(prefers) - u32::from(!prefers);
        }
    }

    /// Stealing from the node of `p`, which has joined or left the pool, begins after the node's first
    /// pCPU, unless the last vCPU was stolen from another one of its pCPUs.
    pub(super) fn begin_stealing(&mut self, machine: &Machine, p: PcpuId) {
        let (pool, topology) = (machine.pool(), machine.topology());
        let node = topology.socket_of(p);
        let bias = &mut self.steal_bias[node as usize];
        if !pool.contains(*bias) || topology.socket_of(*bias) != node {
            *bias = first_of(machine, node);
        }
    }

    /// Chooses where to place `v`: idle cores before idle threads of busy cores, and another socket
    /// only if it has more than twice as many idle threads (in the profile of 2008: more). With
    /// `commit`, the rotation among equals advances. `v` may be current; its pCPU counts as if `v`
    /// were gone.
    pub(super) fn place(&mut self, machine: &Machine, v: VcpuId, commit: bool) -> PcpuId {
        let topology = machine.topology();
        let home = machine.home(v);
        let spread = self.profile.placement_bias;
        let (idle, candidates) = (&mut self.idle_scratch, &mut self.candidates);
        let mut chosen = home;
        // The pCPU at which the last round that found a better place began.
        let mut turn_at = None;
        for mask in machine.affinity(v).steps() {
            chosen = mask.toc(home).unwrap_or(home);
            idle.copy_from(&self.idlers);
            if !spread || chosen == home && self.pcpus[home.index()].queued == 0 {
                idle.insert(chosen);
            }
            candidates.copy_from(idle);
            candidates.intersect_with(mask);
            if !candidates.contains(chosen)
                && let Some(near) = candidates.cycle(chosen)
            {
                chosen = near;
            }
            candidates.remove(chosen);
            // Each round removes at least one candidate, normally a whole core or socket.
            while let Some(x) = candidates.cycle(chosen) {
                let mates = topology.socket_of(chosen) == topology.socket_of(x);
                let group = |p| if mates { topology.siblings(p) } else { topology.socket_mates(p) };
                let (here, there) = (idle.count_range(group(chosen)), idle.count_range(group(x)));
                let factor = if mates || !spread { 1 } else { 2 };
                let better = if self.params.smt_power_savings {
                    here > there
                } else {
                    here * factor < there
                };
                if !better {
                    candidates.remove_within(idle, group(x));
                } else if spread {
                    let bias = self.pcpus[x.index()].idle_bias;
                    chosen = idle.cycle_and_within(bias, candidates, group(x)).unwrap_or(x);
                    turn_at = Some(x);
                    candidates.remove_range(topology.siblings(chosen));
                } else {
                    chosen = x;
                    candidates.remove(x);
                }
            }
            if idle.contains(chosen) {
                break;
            }
        }
        if commit && let Some(x) = turn_at {
            self.pcpus[x.index()].idle_bias = chosen;
        }
        chosen
    }

    /// Tells the pCPUs that may run `new`, which was just queued, to reschedule.
    pub(super) fn tickle(&mut self, cx: &mut Context<'_>, new: VcpuId) {
        let home = cx.home(new);
        let current = cx.current(home);
        let preempts = self.vcpus[new.index()].priority > self.current_priority(cx, home);
        if !self.profile.tickle_choice {
            // 2008: the home if `new` preempts there, and all idle pCPUs that may take it.
            if preempts {
                cx.resched(home);
            }
            if current.is_some() {
                self.tell_idlers(cx, new, false);
            }
        } else if cx.affinity(new).is_pinned() && self.idlers.contains(home)
            || current.is_none()
            || preempts && self.idlers.is_empty()
        {
            self.tell(cx, home);
        } else if self.tell_preferred_idlers(cx, new) || self.tell_idlers(cx, new, false) {
            // An idle pCPU will steal it.
        } else if preempts {
            // Other pCPUs are idle, but `new` may run on none of them. The intention is that the
            // preempted vCPU moves there. Since 4.13 the original checks the affinity of `new`
            // instead, and so never moves it.
            let kicked = current.filter(|c| {
                self.params.kick_always
                    || !self.params.as_is && cx.affinity(*c).hard().intersects(&self.idlers)
            });
            match kicked {
                Some(c) => cx.request_migration(c),
                None => self.tell(cx, home),
            }
        }
    }

    /// The soft step of [`Self::tickle`]. Returns whether any pCPU was told.
    fn tell_preferred_idlers(&mut self, cx: &mut Context<'_>, new: VcpuId) -> bool {
        cx.affinity(new).soft().is_some() && self.tell_idlers(cx, new, true)
    }

    /// Tells one idle pCPU on which `new` may (or, if `soft`, prefers to) run, or all of them if
    /// the parameters say so. Returns whether there was one.
    fn tell_idlers(&mut self, cx: &mut Context<'_>, new: VcpuId, soft: bool) -> bool {
        let last = self.pcpus[cx.executing().index()].last_tickled;
        let one = self.params.tickle_one_idle;
        let mut told = None;
        let mut from = if one { last } else { PcpuId(cx.pcpus() - 1) };
        loop {
            let affinity = cx.affinity(new);
            let mask =
                if soft { affinity.soft().unwrap_or(affinity.hard()) } else { affinity.hard() };
            let Some(p) = self.idlers.cycle_and(from, mask) else { break };
            // All are told in index order, until the search wraps around.
            if told.is_some_and(|t: PcpuId| p <= t) {
                break;
            }
            (told, from) = (Some(p), p);
            self.tell(cx, p);
            if one {
                self.pcpus[cx.executing().index()].last_tickled = p;
                break;
            }
        }
        told.is_some()
    }

    fn tell(&mut self, cx: &mut Context<'_>, p: PcpuId) {
        cx.resched(p);
        if self.profile.tickled_is_busy {
            self.idlers.remove(p);
        }
    }

    /// Steals a vCPU of a class above `than`, which `p` may run, from another queue, if there is
    /// one.
    pub(super) fn steal(
        &mut self,
        cx: &mut Context<'_>,
        p: PcpuId,
        than: Priority,
    ) -> Option<VcpuId> {
        let topology = *cx.topology();
        let (v, peer) = if self.profile.steal == Steal::Cyclic {
            let found = self.find_work(cx, p, than, false, p.0 + 1..cx.pcpus());
            found.or_else(|| self.find_work(cx, p, than, false, 0..p.0))
        } else {
            let steps =
                if self.soft_affinities > 0 { [true, false].iter() } else { [false].iter() };
            let own = topology.socket_of(p);
            steps.copied().find_map(|soft| {
                (own..topology.sockets).chain(0..own).find_map(|node| {
                    let all = topology.socket(node);
                    let from = match self.profile.steal {
                        Steal::NodeRotating => self.steal_bias[node as usize].0 + 1,
                        _ => all.start,
                    };
                    let from = from.clamp(all.start, all.end);
                    self.find_work(cx, p, than, soft, from..all.end)
                        .or_else(|| self.find_work(cx, p, than, soft, all.start..from))
                })
            })
        }?;
        self.dequeue(peer, v);
        self.steal_bias[topology.socket_of(peer) as usize] = peer;
        cx.set_home(v, p);
        Some(v)
    }

    /// The first suitable vCPU on the queues of `peers`, and its pCPU. Skips peers with an empty
    /// queue, and idle peers, which are about to choose from their queue themselves.
    fn find_work(
        &self,
        cx: &Context<'_>,
        p: PcpuId,
        than: Priority,
        soft: bool,
        peers: Range<u32>,
    ) -> Option<(VcpuId, PcpuId)> {
        let mut from = peers.start;
        while let Some(peer) = self.waiting.next_in(from..peers.end) {
            from = peer.0 + 1;
            if peer == p || cx.current(peer).is_none() {
                continue;
            }
            let found = self
                .run_links
                .iter(&self.pcpus[peer.index()].queue)
                .map(VcpuId)
                .take_while(|v| self.vcpus[v.index()].priority > than)
                .find(|v| self.may_steal(cx, *v, p, soft));
            if let Some(v) = found {
                return Some((v, peer));
            }
        }
        None
    }

    fn may_steal(&self, cx: &Context<'_>, v: VcpuId, p: PcpuId, soft: bool) -> bool {
        let vcpu = &self.vcpus[v.index()];
        let affinity = cx.affinity(v);
        let allowed = match soft {
            true => affinity.soft().is_some_and(|s| s.contains(p)),
            false => affinity.hard().contains(p),
        };
        let gives_way = vcpu.yields && self.profile.steal == Steal::NodeRotating;
        let hot = cx.now() - vcpu.last_pass < self.params.migration_delay;
        allowed && !cx.is_running(v) && !gives_way && !hot
    }
}
