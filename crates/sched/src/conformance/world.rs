//! The world of the suite: pending timers, passes and switches, and a record of the calls.

use super::watched::Watched;
use super::{Report, Suite};
use crate::hypervisor::Hypervisor;
use crate::ids::{Action, DomainId, PcpuId, TimerId, VcpuId};
use crate::scheduler::{DomainParams, Scheduler};
use crate::time::Nanos;
use crate::topology::Topology;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Number of calls that a failure shows.
const SHOWN: usize = 20;
/// More passes at one instant than a correct scheduler asks for.
const TOO_MANY: u32 = 10_000;

/// A stream of numbers from a seed: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; `n` must not be 0.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: impl IntoIterator<Item = T>) -> Option<T> {
        let all: Vec<T> = all.into_iter().collect();
        (!all.is_empty()).then(|| all[self.below(all.len() as u32) as usize])
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) h: Hypervisor,
    pub(super) random: Random,
    pub(super) now: Nanos,
    pub(super) timers: BTreeMap<TimerId, Nanos>,
    pub(super) resched: BTreeSet<PcpuId>,
    pub(super) switching: BTreeSet<PcpuId>,
    /// vCPUs that were not removed.
    pub(super) vcpus: Vec<VcpuId>,
    pub(super) domains: Vec<DomainId>,
    /// pCPUs that were taken out of the pool.
    pub(super) out: BTreeSet<PcpuId>,
    pub(super) calls: VecDeque<String>,
    pub(super) report: Report,
}

impl World {
    /// A world with some vCPUs, in three domains.
    pub(super) fn new(suite: &Suite, scheduler: Box<dyn Scheduler>) -> Self {
        let mut world = Self::empty(suite.topology, suite.seed, scheduler);
        for weight in [256, 512, 100] {
            let d = world.h.create_domain(DomainParams { weight, cap: 0 });
            world.domains.extend(d);
        }
        (0..6).for_each(|_| world.new_vcpu());
        world
    }

    /// A world without domains.
    pub(super) fn empty(topology: Topology, seed: u64, scheduler: Box<dyn Scheduler>) -> Self {
        let mut world = Self {
            h: Hypervisor::new(topology, Box::new(Watched::new(scheduler))),
            random: Random::new(seed),
            now: Nanos::ZERO,
            timers: BTreeMap::new(),
            resched: BTreeSet::new(),
            switching: BTreeSet::new(),
            vcpus: Vec::new(),
            domains: Vec::new(),
            out: BTreeSet::new(),
            calls: VecDeque::new(),
            report: Report { calls: 0, switches: 0, digest: 0 },
        };
        world.call("start", |h, now, out| h.start(now, out));
        world
    }

    pub(super) fn report(&self) -> Report {
        self.report
    }

    pub(super) fn last_calls(&self) -> Vec<String> {
        self.calls.iter().cloned().collect()
    }

    pub(super) fn digest(&mut self, what: &str) {
        // FNV-1a.
        for byte in what.bytes() {
            self.report.digest =
                (self.report.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn call<R>(
        &mut self,
        name: &str,
        call: impl FnOnce(&mut Hypervisor, Nanos, &mut Vec<Action>) -> R,
    ) -> R {
        let mut actions = Vec::new();
        let result = call(&mut self.h, self.now, &mut actions);
        let line = format!("{} ns: {name} -> {actions:?}", self.now.0);
        self.digest(&line);
        if self.calls.len() == SHOWN {
            self.calls.pop_front();
        }
        self.calls.push_back(line);
        self.report.calls += 1;
        for action in actions {
            match action {
                Action::Resched(p) => {
                    self.resched.insert(p);
                }
                Action::SetTimer { timer, at } => {
                    self.timers.insert(timer, at);
                }
                Action::StopTimer { timer } => {
                    self.timers.remove(&timer);
                }
                Action::Throttle { .. } => {}
            }
        }
        result
    }

    pub(super) fn give(&mut self, p: PcpuId) {
        let given = self.call(&format!("give {p:?}"), |h, now, out| h.give_pcpu(now, p, out));
        debug_assert_eq!(given, Ok(()), "it has left");
        self.out.remove(&p);
    }

    pub(super) fn pass(&mut self, p: PcpuId) {
        self.resched.remove(&p);
        if self.h.has_left(p) {
            return;
        }
        let switch = self.call(&format!("pass of {p:?}"), |h, now, out| h.schedule(now, p, out));
        self.digest(&format!("{switch:?}"));
        if switch.prev != switch.next {
            self.report.switches += 1;
            self.switching.insert(p);
        }
    }

    pub(super) fn saved(&mut self, p: PcpuId) {
        self.switching.remove(&p);
        self.call(&format!("saved on {p:?}"), |h, now, out| h.context_saved(now, p, out));
    }

    /// Delivers the timers that are due, in the order of their ids.
    pub(super) fn deliver(&mut self) {
        let due = |timers: &BTreeMap<TimerId, Nanos>, now| {
            timers.iter().find(|(_, at)| **at <= now).map(|(timer, _)| *timer)
        };
        while let Some(timer) = due(&self.timers, self.now) {
            self.timers.remove(&timer);
            self.call(&format!("timer {timer:?}"), |h, now, out| h.timer(now, timer, out));
        }
    }

    /// Lets time pass up to `to`, with all timers, passes and switches on the way.
    pub(super) fn advance(&mut self, to: Nanos) -> Result<(), String> {
        loop {
            let next = self.timers.values().copied().min().unwrap_or(to);
            self.now = next.clamp(self.now, to);
            self.deliver();
            self.settle()?;
            if self.now == to && self.timers.values().all(|at| *at > to) {
                return Ok(());
            }
        }
    }

    /// Makes all passes and finishes all switches that are due.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        for _ in 0..TOO_MANY {
            if let Some(p) = self.switching.first().copied() {
                self.saved(p);
            } else if let Some(p) = self.resched.first().copied() {
                self.pass(p);
            } else {
                return self.h.is_valid();
            }
        }
        Err(format!("{TOO_MANY} passes at one instant, and no end"))
    }
}
