//! Hardware threads that share a core. Two options, both off in Xen and by default.
//!
//! **`smt_charge`**: credit pays for progress. A core has a clock of the progress that each of its busy
//! threads makes: it advances by a ns per ns while one thread is busy, and by `smt_charge` thousandths of
//! that while more are. A vCPU burns the credit of the time on this clock.
//!
//! **`smt_space`**: space is given back. A vCPU that went to sleep leaves its thread idle, and the vCPU
//! that is alone on the core meanwhile is faster for it. Each ns of this passes from the account of the
//! vCPU that is alone to the account of the vCPU that left: an account is the time alone on a core that
//! its vCPU is owed, or owes. A thread that no vCPU left costs nothing. Each account stops at 100 ms either
//! way, by itself: if the debt of a vCPU were full for all that left it space, one that hardly ever runs
//! could fill it, and the others would never be owed any. An account nearer to 0 than the credit of an epoch,
//! 10 ms, decides nothing.
//!
//! Like sits beside like: a vCPU that is owed space is placed beside others that are, because they leave
//! the most, and a vCPU that owes is placed beside others that owe. This happens at wake-ups (`tickle`),
//! within a runqueue, and at ends of epochs ([`balance`](super::balance)), between runqueues of one core.
//! No pCPU idles for it beside work.

use super::Credit2;
use super::profile::CREDIT_INIT;
use crate::cpuset::CpuSet;
use crate::ids::{PcpuId, VcpuId};
use crate::machine::Machine;
use crate::scheduler::Context;
use crate::time::Nanos;
use core::cmp::Ordering;

/// Progress beside idle siblings, in thousandths.
pub(super) const ALONE: i64 = 1000;
/// Most that an account may show, either way, in ns.
pub(super) const MOST_SPACE: i64 = 10 * CREDIT_INIT;
/// The least account that decides anything, either way.
const LEAST_SPACE: i64 = CREDIT_INIT;

/// A core.
#[derive(Clone, Debug, Default)]
pub(super) struct Core {
    /// Progress of each busy thread until `at`, in thousandths of a ns. It wraps around.
    progress: i64,
    at: Nanos,
}

/// The cores of the machine. Both lists are empty if both options are off.
#[derive(Clone, Debug, Default)]
pub(super) struct Cores {
    cores: alloc::vec::Vec<Core>,
    /// The vCPU that left each idle pCPU by going to sleep, until it wakes or gets another home.
    pub left: alloc::vec::Vec<Option<VcpuId>>,
}

impl Credit2 {
    /// Makes the records of cores, if an option needs them.
    pub(super) fn start_cores(&mut self, machine: &Machine) {
        if self.params.smt_charge == ALONE && !self.params.smt_space {
            return;
        }
        let cores = machine.pcpus() / machine.topology().threads_per_core;
        self.cores.cores = alloc::vec![Core::default(); cores as usize];
        self.cores.left = alloc::vec![None; machine.pcpus() as usize];
    }

    fn has_cores(&self) -> bool {
        !self.cores.cores.is_empty()
    }

    /// The progress clock of the core of `p` now.
    fn progress_clock(&self, cx: &Context<'_>, p: PcpuId) -> i64 {
        let core = &self.cores.cores[cx.topology().core_of(p) as usize];
        let busy = cx.topology().siblings(p).filter(|t| cx.current(PcpuId(*t)).is_some()).count();
        let speed = if busy > 1 { self.params.smt_charge } else { ALONE };
        core.progress.wrapping_add((cx.now() - core.at).0.saturating_mul(speed))
    }

    /// For how much of `ran`, the time since its last charge, `v` pays. `v` is current.
    pub(super) fn charged(&mut self, cx: &Context<'_>, v: VcpuId, ran: Nanos) -> Nanos {
        if self.params.smt_charge == ALONE {
            return ran;
        }
        let clock = self.progress_clock(cx, cx.home(v));
        let mark = &mut self.vcpus[v.index()].mark;
        let paid = clock.wrapping_sub(*mark) / ALONE;
        // What is less than a ns remains for the next charge.
        *mark = mark.wrapping_add(paid * ALONE);
        Nanos(paid)
    }

    /// Accounts for what the threads of the core of `p` have done until now. Called before one of them
    /// changes what it runs, or a vCPU stops leaving it idle.
    fn settle_core(&mut self, cx: &Context<'_>, p: PcpuId) {
        let progress = self.progress_clock(cx, p);
        let core = &mut self.cores.cores[cx.topology().core_of(p) as usize];
        let passed = cx.now() - core.at;
        (core.progress, core.at) = (progress, cx.now());
        let mut running = cx.topology().siblings(p).filter_map(|t| cx.current(PcpuId(t)));
        let (Some(alone), None) = (running.next(), running.next()) else { return };
        if !self.params.smt_space {
            return;
        }
        let leavers =
            || cx.topology().siblings(p).filter(|t| self.cores.left[*t as usize].is_some());
        let share = passed.0 / leavers().count().max(1) as i64;
        for t in cx.topology().siblings(p) {
            let Some(left) = self.cores.left[t as usize] else { continue };
            let account = &mut self.vcpus[alone.index()].space;
            *account = account.saturating_sub(share).max(-MOST_SPACE);
            let account = &mut self.vcpus[left.index()].space;
            *account = account.saturating_add(share).min(MOST_SPACE);
        }
    }

    /// A pass of `p` has chosen `next`.
    pub(super) fn core_runs(&mut self, cx: &Context<'_>, p: PcpuId, next: Option<VcpuId>) {
        if !self.has_cores() {
            return;
        }
        self.settle_core(cx, p);
        let left = &mut self.cores.left[p.index()];
        match (cx.current(p), next) {
            (_, Some(_)) => *left = None,
            (Some(v), None) => *left = (!cx.is_runnable(v) && !cx.is_migrating(v)).then_some(v),
            (None, None) => {}
        }
        if let Some(v) = next {
            self.vcpus[v.index()].mark =
                self.cores.cores[cx.topology().core_of(p) as usize].progress;
        }
    }

    /// `v` wakes, or is about to get another home: it no longer leaves its thread idle.
    pub(super) fn stops_leaving(&mut self, cx: &Context<'_>, v: VcpuId) {
        let home = cx.home(v);
        if self.has_cores() && self.cores.left[home.index()] == Some(v) {
            self.settle_core(cx, home);
            self.cores.left[home.index()] = None;
        }
    }

    /// Whether `v` is owed space (greater), owes some (less), or neither.
    pub(super) fn side(&self, v: VcpuId) -> Ordering {
        match self.vcpus[v.index()].space {
            LEAST_SPACE.. => Ordering::Greater,
            space if space <= -LEAST_SPACE => Ordering::Less,
            _ => Ordering::Equal,
        }
    }

    /// The first free pCPU of runqueue `q` in `mask` whose siblings run only vCPUs of the side of `v`, its
    /// home first. None if `v` is on neither side, and with the option off.
    pub(super) fn beside_like(
        &self,
        cx: &Context<'_>,
        q: usize,
        v: VcpuId,
        mask: &CpuSet,
    ) -> Option<PcpuId> {
        let side = self.side(v);
        if side == Ordering::Equal {
            return None;
        }
        let like = |p: &PcpuId| {
            let mut beside = cx.topology().siblings(*p).filter_map(|t| cx.current(PcpuId(t)));
            beside.all(|other| self.side(other) == side)
        };
        let free = &self.queues[q].free;
        let first = free.toc_and(cx.home(v), mask)?;
        let after = |p: &PcpuId| free.cycle_and(*p, mask).filter(|next| *next != first);
        core::iter::successors(Some(first), after).find(like)
    }

    /// What must always hold of accounts.
    pub(super) fn check_cores(&self, machine: &Machine) -> Result<(), alloc::string::String> {
        let most = self.vcpus.iter().map(|v| v.space.abs()).max().unwrap_or(0);
        if most > MOST_SPACE || (most > 0 && !self.params.smt_space) {
            return Err(alloc::format!("an account of space is {most} ns"));
        }
        for (p, left) in self.cores.left.iter().enumerate() {
            let (p, Some(v)) = (PcpuId(p as u32), *left) else { continue };
            let sleeps = machine.current(p).is_none() && !self.run_links.is_linked(v.0);
            if !sleeps || machine.home(v) != p {
                return Err(alloc::format!("{v:?} has not left {p:?} idle"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit2::bench::Bench;
    use crate::credit2::profile::TODAY_PROFILE;
    use crate::machine::flags;
    use crate::scheduler::Scheduler;
    use crate::{Affinity, ParamValue, Params, Topology};

    /// One core of two threads, each with a vCPU that may run nowhere else.
    struct Pair(Bench);

    impl Pair {
        fn new() -> Self {
            let topology = Topology { sockets: 1, cores_per_socket: 1, threads_per_core: 2 };
            let over = Params::default().with("smt_space", ParamValue::Flag(true));
            let affinities = [Affinity::hard([0]), Affinity::hard([1])];
            Self(Bench::with(&TODAY_PROFILE, &over, topology, &affinities))
        }

        /// vCPU `v` wakes at `ms`, or goes to sleep, and its pCPU makes a pass.
        fn at(&mut self, ms: i64, v: u32, wakes: bool) {
            let (v, p, bench) = (VcpuId(v), PcpuId(v), &mut self.0);
            let now = Nanos::ms(ms);
            bench.machine.vcpu_mut(v).flags = if wakes { 0 } else { flags::BLOCKED };
            if wakes {
                bench.at(now, |credit2, cx| credit2.wake(cx, v));
            }
            let next = bench.at(now, |credit2, cx| credit2.schedule(cx, p)).next;
            assert_eq!(next, wakes.then_some(v));
            (bench.machine.current[p.index()], bench.machine.vcpu_mut(v).running) = (next, wakes);
            if !wakes {
                bench.at(now, |credit2, cx| credit2.context_saved(cx, v));
            }
            bench.credit2.check_cores(&bench.machine).unwrap();
        }

        fn accounts(&self) -> [i64; 2] {
            [0, 1].map(|v| self.0.credit2.vcpus[v].space / Nanos::MS.0)
        }
    }

    /// vCPU 0 sleeps from 3 to 7 ms while vCPU 1 runs, and vCPU 1 from 8 to 9 ms while vCPU 0 runs. Nothing
    /// passes while both run, nor before vCPU 1 has run at all: it has left nothing. Then vCPU 0 sleeps from
    /// 10 to 310 ms, and both accounts are full.
    #[test]
    fn time_alone_passes_from_the_one_that_has_it_to_the_one_that_left_it() {
        let mut pair = Pair::new();
        pair.at(0, 0, true);
        pair.at(2, 1, true);
        assert_eq!(pair.accounts(), [0, 0]);
        pair.at(3, 0, false);
        pair.at(7, 0, true);
        assert_eq!(pair.accounts(), [4, -4]);
        pair.at(8, 1, false);
        pair.at(9, 1, true);
        assert_eq!(pair.accounts(), [3, -3]);
        pair.at(10, 0, false);
        pair.at(310, 0, true);
        assert_eq!(pair.accounts(), [100, -100]);
        assert_eq!(pair.0.credit2.side(VcpuId(0)), Ordering::Greater);
    }

    /// A third vCPU, whose account is full, does not keep vCPU 0 from being owed what it leaves to a full debtor.
    #[test]
    fn a_full_debt_does_not_end_what_others_are_owed() {
        let mut pair = Pair::new();
        pair.at(0, 1, true);
        pair.0.credit2.vcpus[1].space = -MOST_SPACE;
        pair.at(1, 0, true);
        pair.at(2, 0, false);
        pair.at(32, 0, true);
        assert_eq!(pair.accounts(), [30, -100]);
    }

    /// From 10 ms on an account puts its vCPU on a side.
    #[test]
    fn small_accounts_decide_nothing() {
        let mut pair = Pair::new();
        let mut side = |space: i64| {
            pair.0.credit2.vcpus[0].space = space;
            pair.0.credit2.side(VcpuId(0))
        };
        assert_eq!(side(LEAST_SPACE - 1), Ordering::Equal);
        assert_eq!(side(1 - LEAST_SPACE), Ordering::Equal);
        assert_eq!(side(LEAST_SPACE), Ordering::Greater);
        assert_eq!(side(-LEAST_SPACE), Ordering::Less);
    }
}
