//! A small deterministic world without costs: switches and interrupts take no time.
//!
//! The order at each instant: timers by their ids, then the actions of the test, then the requested
//! scheduling passes by pCPU index, until there are none.

use overspin_sched::*;
use std::collections::{BTreeMap, BTreeSet};

/// A time in ms, with up to three digits of fraction.
pub fn ms(t: f64) -> Nanos {
    (t * 1e3).round() as i64 * Nanos::US
}

/// What the layer has asked for.
#[derive(Debug, Default)]
pub struct Asked {
    timers: BTreeMap<TimerId, Nanos>,
    pub resched: BTreeSet<PcpuId>,
}

impl Asked {
    pub fn note(&mut self, action: Action) {
        match action {
            Action::Resched(p) => _ = self.resched.insert(p),
            Action::SetTimer { timer, at } => _ = self.timers.insert(timer, at),
            Action::StopTimer { timer } => _ = self.timers.remove(&timer),
            Action::Throttle { .. } => {}
        }
    }

    /// The earliest time of a timer.
    pub fn next(&self) -> Option<Nanos> {
        self.timers.values().copied().min()
    }

    /// Takes the first timer, by its id, that is due.
    pub fn due(&mut self, now: Nanos) -> Option<TimerId> {
        let timer = self.timers.iter().find(|(_, at)| **at <= now).map(|(timer, _)| *timer)?;
        self.timers.remove(&timer);
        Some(timer)
    }
}

#[derive(Debug)]
pub struct Driver {
    pub h: Hypervisor,
    pub now: Nanos,
    asked: Asked,
    actions: Vec<Action>,
    /// The vCPUs that each pCPU ran: (from, to, vCPU), with adjacent pieces of one vCPU joined.
    pub trace: Vec<Vec<(Nanos, Nanos, u32)>>,
    since: Vec<Nanos>,
}

impl Driver {
    pub fn new(name: &str, params: &Params, topology: Topology) -> Self {
        let pcpus = topology.pcpus() as usize;
        let mut driver = Self {
            h: Hypervisor::new(topology, make(name, params).unwrap()),
            now: Nanos::ZERO,
            asked: Asked::default(),
            actions: Vec::new(),
            trace: vec![Vec::new(); pcpus],
            since: vec![Nanos::ZERO; pcpus],
        };
        driver.call(|h, now, out| h.start(now, out));
        driver
    }

    pub fn flat(name: &str, pcpus: u32) -> Self {
        Self::new(name, &Params::default(), Topology::flat(pcpus))
    }

    /// Calls the layer at the current time and takes its actions.
    pub fn call<R>(
        &mut self,
        call: impl FnOnce(&mut Hypervisor, Nanos, &mut Vec<Action>) -> R,
    ) -> R {
        let result = call(&mut self.h, self.now, &mut self.actions);
        self.actions.drain(..).for_each(|action| self.asked.note(action));
        result
    }

    /// Creates a domain with vCPUs that may run anywhere and are down.
    pub fn domain(&mut self, weight: u32, cap: u32, vcpus: u32) -> Vec<VcpuId> {
        self.domain_on(weight, cap, (0..vcpus).map(|_| Affinity::any()))
    }

    pub fn domain_on(
        &mut self,
        weight: u32,
        cap: u32,
        affinities: impl IntoIterator<Item = Affinity>,
    ) -> Vec<VcpuId> {
        let d = self.h.create_domain(DomainParams { weight, cap }).unwrap();
        affinities
            .into_iter()
            .map(|a| self.call(|h, now, out| h.create_vcpu(now, d, a, out)).unwrap())
            .collect()
    }

    pub fn up(&mut self, v: VcpuId) {
        self.call(|h, now, out| h.up(now, v, out));
    }

    /// `v` comes up, and blocks at once.
    pub fn up_and_blocked(&mut self, v: VcpuId) {
        self.up(v);
        self.settle();
        self.block(v);
        self.settle();
    }

    pub fn block(&mut self, v: VcpuId) {
        self.call(|h, now, out| h.block(now, v, out));
    }

    pub fn unblock(&mut self, v: VcpuId) -> bool {
        self.call(|h, now, out| h.unblock(now, v, out))
    }

    pub fn yield_now(&mut self, v: VcpuId) {
        self.call(|h, now, out| h.yield_now(now, v, out));
    }

    pub fn running(&self, v: VcpuId) -> Nanos {
        self.h.run_times(v, self.now).running
    }

    pub fn credit(&self, v: VcpuId) -> i64 {
        self.h.scheduler().detail(v).unwrap().credit
    }

    pub fn class(&self, v: VcpuId) -> &'static str {
        self.h.scheduler().detail(v).unwrap().class
    }

    /// Makes the scheduling passes requested at the current time.
    pub fn settle(&mut self) {
        while let Some(p) = self.asked.resched.pop_first() {
            let switch = self.call(|h, now, out| h.schedule(now, p, out));
            if switch.prev != switch.next {
                self.record(p, switch.prev);
                self.call(|h, now, out| h.context_saved(now, p, out));
            }
        }
        self.h.is_valid().unwrap();
    }

    fn record(&mut self, p: PcpuId, ran: Option<VcpuId>) {
        let i = p.0 as usize;
        let from = std::mem::replace(&mut self.since[i], self.now);
        let Some(v) = ran.filter(|_| self.now > from) else { return };
        match self.trace[i].last_mut() {
            Some(last) if last.2 == v.0 && last.1 == from => last.1 = self.now,
            _ => self.trace[i].push((from, self.now, v.0)),
        }
    }

    /// Runs until `t`. The timers due at `t` are delivered, but no pass is made yet: the test acts
    /// first.
    pub fn run_to(&mut self, t: Nanos) {
        loop {
            let next = self.asked.next().filter(|at| *at <= t);
            if next.is_none_or(|at| at > self.now) {
                self.settle();
            }
            // Passes may have set or stopped timers.
            let next = self.asked.next().filter(|at| *at <= t);
            let Some(at) = next else { break };
            self.now = self.now.max(at);
            let timer = self.asked.due(self.now).unwrap();
            self.call(|h, now, out| h.timer(now, timer, out));
            if self.now == t && self.asked.next().is_none_or(|at| at > t) {
                return;
            }
        }
        self.now = t;
    }

    /// The vCPUs that `p` ran up to now, in ms: (from, to, vCPU).
    pub fn ran(&mut self, p: u32) -> Vec<(f64, f64, u32)> {
        self.settle();
        self.record(PcpuId(p), self.h.current(PcpuId(p)));
        let ms = |t: Nanos| t.0 as f64 / 1e6;
        self.trace[p as usize].iter().map(|(a, b, v)| (ms(*a), ms(*b), *v)).collect()
    }
}
