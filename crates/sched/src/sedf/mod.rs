//! sedf: simple earliest deadline first. Each vCPU is guaranteed a *slice* of each *period*; the
//! remaining time is *extra time*, shared by weight. It was Xen's default scheduler from July 2005 to
//! June 2006.
//!
//! One set of queues per pCPU, and no balancing:
//!
//! | Queue | vCPUs | Order |
//! |---|---|---|
//! | run queue | period begun, slice not used up | deadline |
//! | wait queue | period begins later | begin of the period |
//! | penalty queue | lost part of the slice by blocking for a short time | period divided by lost time |
//! | utilisation queue | all with extra time | score: turns by weight |
//!
//! A runnable vCPU, running or not, is on one of the first two, and may be on the others as well. A
//! pass takes the head of the run queue, which may use up its slice, but runs no longer than until
//! the next period of a waiting vCPU begins. If the run queue is empty, the head of the penalty
//! queue, else of the utilisation queue, runs for a quantum of 500 us, if that fits before the next
//! period begins.
//!
//! A vCPU that blocks and wakes within its period loses the rest of its slice of that period; the
//! penalty queue compensates it with extra time.
//!
//! Invariants: one pCPU with Σ slice/period ≤ 1 meets every deadline of always-runnable vCPUs, and
//! without extra time they run for exactly a slice in each period (plus the lateness of timers, which
//! is carried over; on an overbooked pCPU, a late turn counts for the period in which it was due).
//! The scheduler gives extra time only while no vCPU asks for guaranteed time. Work-conserving only
//! through extra time, with gaps below 500 us. Domain weights and caps have no effect (`weight` and
//! `extraweight` do).
//!
//! Source: schedulers specification §8, after Xen's sched_sedf.c of May 2005. Deviations: no domain
//! is special (the original gives domain 0 a slice of 15 ms in 20 ms and no extra time); a vCPU with
//! an empty slice whose periods were all missed is moved to a future period at once, not by one
//! period in each pass. The latency hint has no effect in that version and is left out.
//!
//! Files: `mod` (events and passes), [`share`] (slices, periods and weights), [`queues`], [`turns`]
//! (charging at the end of a turn), [`params`], [`invariants`] (what must always hold).

mod invariants;
mod params;
mod queues;
mod share;
mod turns;

pub(crate) use params::INFO;

use crate::error::SchedError;
use crate::homes::Homes;
use crate::ids::{DomainId, PcpuId, TimerId, VcpuId};
use crate::list::{Links, List};
use crate::machine::Machine;
use crate::params::Params;
use crate::scheduler::{Context, Decision, Detail, DomainParams, Scheduler, Whose};
use crate::time::Nanos;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use queues::{Pcpu, Vcpu};
use share::Share;

/// How long a vCPU runs in extra time at a stretch.
const QUANTUM: Nanos = Nanos::us(500);
/// How long a pCPU without any vCPU idles at a stretch.
const IDLE: Nanos = Nanos::SEC;
/// The queues of extra time.
const PENALTY: usize = 0;
const UTILISATION: usize = 1;

/// The sedf scheduler. Made by name with [`make`](crate::make).
///
/// Costs: passes, wake-ups and sleeps are O(vCPUs of the pCPU), a new vCPU O(pCPUs). Setting a
/// weight, and adding or removing a vCPU while one is set, is O(vCPUs).
#[derive(Debug)]
pub struct Sedf {
    default: Share,
    domains: Vec<Share>,
    vcpus: Vec<Vcpu>,
    pcpus: Vec<Pcpu>,
    /// Links of the run and wait queues, and of each extra queue.
    links: Links,
    extra_links: [Links; 2],
    homes: Homes,
}

impl Sedf {
    fn new(default: Share) -> Self {
        Self {
            default,
            domains: Vec::new(),
            vcpus: Vec::new(),
            pcpus: Vec::new(),
            links: Links::default(),
            extra_links: [Links::default(), Links::default()],
            homes: Homes::new(0),
        }
    }
}

impl Scheduler for Sedf {
    fn name(&self) -> &'static str {
        "sedf"
    }

    fn start(&mut self, cx: &mut Context<'_>) {
        let pcpu = Pcpu {
            run: List::EMPTY,
            wait: List::EMPTY,
            extra: [List::EMPTY; 2],
            slice_end: Nanos::ZERO,
        };
        self.pcpus = vec![pcpu; cx.pcpus() as usize];
        self.homes = Homes::new(cx.pcpus());
    }

    fn create_domain(&mut self, _d: DomainId, _params: DomainParams) {
        self.domains.push(self.default);
    }

    fn set_domain(&mut self, _cx: &mut Context<'_>, _d: DomainId, _params: DomainParams) {}

    fn configure(
        &mut self,
        cx: &mut Context<'_>,
        whose: Whose,
        params: &Params,
    ) -> Result<(), SchedError> {
        let new = cx.belonging_to(whose).map(|v| (v, self.vcpus[v.index()].share.with(params)));
        // All, before the first changes: one may refuse.
        let new: Vec<_> =
            new.map(|(v, share)| Ok((v, share?))).collect::<Result<_, SchedError>>()?;
        if let Whose::Domain(d) = whose {
            self.domains[d.index()] = self.domains[d.index()].with(params)?;
        }
        for (v, share) in new {
            self.set_share(cx, v, share);
        }
        Ok(())
    }

    fn insert(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = self.homes.least_populated(cx, v);
        cx.set_home(v, home);
        self.homes.add(home);
        self.links.grow();
        self.extra_links.iter_mut().for_each(Links::grow);
        self.vcpus.push(Vcpu {
            share: self.domains[cx.domain_of(v).index()],
            deadline: Nanos::ZERO,
            used: Nanos::ZERO,
            started: Nanos::ZERO,
            has_blocked: false,
            lost: Nanos::ZERO,
            score: [0; 2],
            extra: None,
            waits: false,
        });
        self.share_by_weight(cx);
        if cx.is_runnable(v) {
            self.wake(cx, v);
        }
    }

    fn remove(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        self.homes.remove(cx.home(v));
        self.vcpus[v.index()].share = Share::best_effort();
        self.share_by_weight(cx);
    }

    fn wake(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        if self.links.is_linked(v.0) {
            return;
        }
        let (now, home) = (cx.now(), cx.home(v));
        let vcpu = &mut self.vcpus[v.index()];
        let share = vcpu.share;
        if vcpu.deadline == Nanos::ZERO {
            vcpu.deadline = now + share.slice;
        }
        let mut compensated = true;
        if now < vcpu.begin() {
            // It blocked in extra time; its next guaranteed time is still ahead.
        } else if now < vcpu.deadline {
            // A short block: no more guaranteed time in this period.
            vcpu.deadline += share.period;
            if vcpu.has_blocked {
                vcpu.lost = (share.slice - vcpu.used).max(Nanos::ZERO);
                if vcpu.lost > Nanos::ZERO {
                    vcpu.score[PENALTY] = (share.period.0 << 10) / vcpu.lost.0;
                }
            }
            vcpu.used = Nanos::ZERO;
        } else {
            // A long block: a new period begins now. Time lost before it is not compensated by this wake-up.
            vcpu.deadline = now + share.period;
            vcpu.used = Nanos::ZERO;
            compensated = false;
        }
        let vcpu = &self.vcpus[v.index()];
        let (begin, lost, score) = (vcpu.begin(), vcpu.lost, vcpu.score[PENALTY]);
        if compensated && lost > Nanos::ZERO {
            self.enqueue_extra(home, PENALTY, v, 0);
        }
        if share.extratime {
            self.enqueue_extra(home, UTILISATION, v, 0);
        }
        self.enqueue(now, home, v);
        let preempts = begin < self.pcpus[home.index()].slice_end
            || cx.current(home).is_none_or(|current| {
                let current = &self.vcpus[current.index()];
                match current.extra {
                    None => false,
                    Some(PENALTY) => lost > Nanos::ZERO && score < current.score[PENALTY],
                    Some(_) => lost > Nanos::ZERO,
                }
            });
        if preempts {
            cx.resched(home);
        }
    }

    fn sleep(&mut self, cx: &mut Context<'_>, v: VcpuId) {
        let home = cx.home(v);
        if cx.is_current(v) {
            cx.resched(home);
        } else {
            self.dequeue_all(home, v);
        }
    }

    fn yield_now(&mut self, _cx: &mut Context<'_>, _v: VcpuId) {}

    fn pick(&mut self, cx: &mut Context<'_>, v: VcpuId) -> PcpuId {
        self.homes.stay(cx, v)
    }

    fn migrate(&mut self, cx: &mut Context<'_>, v: VcpuId, p: PcpuId) {
        self.homes.remove(cx.home(v));
        self.homes.add(p);
        cx.set_home(v, p);
        self.share_by_weight(cx);
    }

    fn schedule(&mut self, cx: &mut Context<'_>, p: PcpuId) -> Decision {
        let now = cx.now();
        if let Some(v) = cx.current(p) {
            self.vcpus[v.index()].has_blocked |= !cx.is_runnable(v);
            match self.vcpus[v.index()].extra {
                Some(q) => self.end_extra(cx, p, v, q),
                None => self.end_guaranteed(cx, p, v),
            }
        }
        self.update_queues(now, p);
        let pcpu = &self.pcpus[p.index()];
        let begin = pcpu.wait.head().map(|x| self.vcpus[x as usize].begin());
        let quantum_fits = begin.is_some_and(|begin| begin - now >= QUANTUM);
        let extra = |q: usize| Some((pcpu.extra[q].head()?, Some(q)));
        let (next, extra, time) = if let Some(x) = pcpu.run.head() {
            let vcpu = &self.vcpus[x as usize];
            let end = now + vcpu.share.slice - vcpu.used;
            (Some(x), None, begin.map_or(end, |begin| end.min(begin)) - now)
        } else if let Some((x, q)) =
            extra(PENALTY).or_else(|| extra(UTILISATION)).filter(|_| quantum_fits)
        {
            (Some(x), q, QUANTUM)
        } else {
            (None, None, begin.map_or(IDLE, |begin| begin - now))
        };
        self.pcpus[p.index()].slice_end = now + time;
        let next = next.map(VcpuId);
        if let Some(v) = next {
            let vcpu = &mut self.vcpus[v.index()];
            vcpu.extra = extra;
            vcpu.started = now;
        }
        Decision { next, slice: Some(time) }
    }

    fn timer(&mut self, _cx: &mut Context<'_>, _timer: TimerId) {}

    fn detail(&self, v: VcpuId) -> Option<Detail> {
        let vcpu = self.vcpus.get(v.index())?;
        let class = match vcpu.extra {
            Some(PENALTY) => "penalty",
            Some(_) => "extra",
            None => "guaranteed",
        };
        let left = vcpu.share.slice - vcpu.used;
        Some(Detail { class, credit: left.0, active: left > Nanos::ZERO })
    }

    fn is_valid(&self, machine: &Machine) -> Result<(), String> {
        self.check(machine)
    }
}
