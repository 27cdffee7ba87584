//! The state of the hypervisor, behind one lock: pCPUs, vCPUs, domains, and the scheduler.
//!
//! Nothing here needs KVM. A thread of a pCPU takes the lock when its vCPU exits or when it is woken, tells what
//! happened, asks what to do next, and releases the lock. Files: this one has the state; `passes` the scheduling
//! passes, `timers` what is due when, `hypercalls` what guests ask, `lifecycle` how vCPUs and domains come and go.

use crate::clock::Clock;
use crate::image::Image;
use crate::ticks::Ticks;
use crate::tracing::Tracing;
use overspin_guest_abi::NEVER;
use overspin_host::admin::Administrator;
use overspin_host::block::Place;
use overspin_host::notification::Notified;
use overspin_host::{Doing, Moment, picos};
use overspin_scenario::{Picos, Scenario, Why, WorkerReport};
use overspin_sched::{Action, Hypervisor, Nanos, PcpuId, Pools, RunState, TimerId, VcpuId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of a domain's console that are kept; what follows is dropped.
pub(crate) const CONSOLE: usize = 4096;
/// Reports of a task that are kept.
pub(crate) const REPORTS: usize = 10_000;

/// A pCPU.
#[derive(Debug, Default)]
pub(crate) struct Pcpu {
    /// The vCPU that it runs.
    pub current: Option<u32>,
    /// Its scheduling pass is due.
    pub resched: bool,
    /// A pass that waits for the end of a window before a preemption.
    pub postponed: Option<Nanos>,
    pub tick: Option<Nanos>,
    pub slice: Option<Nanos>,
    /// The slice of its vCPU has ended since the last pass.
    pub slice_over: bool,
    /// The time at which its thread looks again by itself.
    pub looks_at: Option<Nanos>,
    /// Time inside guests.
    pub inside: Nanos,
    /// Time in which it was given to a vCPU.
    pub occupied: Nanos,
    pub occupied_since: Option<Nanos>,
    pub switches: u64,
    /// Time of scheduling passes, and their number: for `bench hv`.
    pub passing: Nanos,
    pub passes: u64,
}

/// A vCPU.
#[derive(Debug)]
pub(crate) struct Vcpu {
    /// A random number for its first home in the scheduler, if nature decides it.
    pub first_home: Option<u64>,
    pub domain: u32,
    /// Its number in the domain.
    pub index: u32,
    /// Where it is, as far as it matters to a kick or an event.
    pub place: Place,
    pub doing: Doing,
    /// Its one-shot timer.
    pub timer: Option<Nanos>,
    /// Its ticks, which come only while it runs.
    pub ticks: Option<Ticks>,
    /// Ticks that it got.
    pub ticked: u64,
    /// When it comes up.
    pub boots: Option<Nanos>,
    /// When it may come up at the earliest.
    pub boot_plan: Nanos,
    /// The pCPU that it was on last, which looks after its timers.
    pub home: u32,
    /// Why and when it last yielded.
    pub yielded: Option<(Nanos, Why)>,
    /// It gives way by itself in the coming pass.
    pub by_itself: bool,
    pub notified: Notified,
    pub dispatches: u64,
    pub migrations: u64,
    /// When it last entered its guest: everything that it traced until then has been taken.
    pub entered: Nanos,
}

impl Vcpu {
    /// vCPU `index` of `domain`, which is down. The first one of a domain comes up by itself at `boot_plan`.
    pub(crate) fn new(domain: u32, index: u32, home: u32, boot_plan: Nanos) -> Self {
        Self {
            first_home: None,
            domain,
            index,
            place: Place::Guest,
            // A vCPU that comes up wants to run.
            doing: Doing::Wants,
            timer: None,
            ticks: None,
            ticked: 0,
            boots: (index == 0).then_some(boot_plan),
            boot_plan,
            home,
            yielded: None,
            by_itself: false,
            notified: Notified::default(),
            dispatches: 0,
            migrations: 0,
            entered: Nanos::ZERO,
        }
    }
}

/// A domain.
#[derive(Debug)]
pub(crate) struct Domain {
    pub image: Arc<Image>,
    /// Its first vCPU, by the numbers of the host.
    pub first: u32,
    pub vcpus: u32,
    /// Its work has an end.
    pub finite: bool,
    pub started: Nanos,
    pub finished: Option<Nanos>,
    /// Why the host stopped it.
    pub fault: Option<String>,
    pub console: String,
    /// By task.
    pub reports: Vec<Vec<WorkerReport>>,
}

/// The hypervisor.
#[derive(Debug)]
pub(crate) struct Core {
    pub scenario: Arc<Scenario>,
    pub clock: Clock,
    /// Iterations of `burn` in 2^20 ns of CPU time.
    pub rate: u64,
    pub pools: Pools,
    pub administrator: Administrator,
    /// Events of the scenario that are not carried out yet.
    pub events: VecDeque<usize>,
    pub pcpus: Vec<Pcpu>,
    pub vcpus: Vec<Vcpu>,
    pub domains: Vec<Domain>,
    pub accounting: Option<Nanos>,
    pub actions: Vec<Action>,
    /// pCPUs whose bells the caller has to ring once it has released the lock.
    pub to_ring: Vec<u32>,
    pub tracing: Tracing,
    /// Domains whose end the run waits for.
    pub unfinished: u32,
    /// The run is over.
    pub ended: bool,
}

impl Core {
    /// Time begins now, by this clock; guests learn it too.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
        for domain in &self.domains {
            domain.image.info().tsc_base.store(clock.base, Ordering::Relaxed);
            domain.image.info().tsc_scale.store(clock.scale, Ordering::Relaxed);
        }
    }

    /// Tells the observer.
    pub(crate) fn tell(&mut self, now: Nanos, moment: Moment) {
        self.tracing.tell(picos(now), moment);
    }

    /// Makes pCPU `p` look again, if it is not the caller.
    pub(crate) fn ring(&mut self, from: Option<u32>, p: u32) {
        if from != Some(p) && !self.to_ring.contains(&p) {
            self.to_ring.push(p);
        }
    }

    /// Calls the hypervisor layer, and carries out its actions. `from` is the pCPU that asks.
    pub(crate) fn hypervisor<R>(
        &mut self,
        from: Option<u32>,
        call: impl FnOnce(&mut Pools, &mut Vec<Action>) -> R,
    ) -> R {
        if let Some(p) = from {
            self.pools.set_executing(PcpuId(p));
        }
        let mut actions = std::mem::take(&mut self.actions);
        let result = call(&mut self.pools, &mut actions);
        for action in actions.drain(..) {
            self.act(from, action);
        }
        self.actions = actions;
        result
    }

    /// Calls the hypervisor layer of the pool of vCPU `v`, with the id that `v` has there.
    pub(crate) fn on_vcpu<R>(
        &mut self,
        from: Option<u32>,
        v: u32,
        call: impl FnOnce(&mut Hypervisor, VcpuId, &mut Vec<Action>) -> R,
    ) -> R {
        self.hypervisor(from, |pools, out| pools.on_vcpu(VcpuId(v), out, call))
    }

    /// Reads from the hypervisor layer of the pool of vCPU `v`.
    pub(crate) fn look_at<R>(&self, v: u32, look: impl FnOnce(&Hypervisor, VcpuId) -> R) -> R {
        let (pool, local) = self.pools.local(VcpuId(v));
        look(self.pools.hypervisor(pool).expect("no pool is ever destroyed"), local)
    }

    fn act(&mut self, from: Option<u32>, action: Action) {
        match action {
            Action::Resched(p) => {
                self.pcpus[p.0 as usize].resched = true;
                self.ring(from, p.0);
            }
            Action::SetTimer { timer, at } => self.set_timer(from, timer, Some(at)),
            Action::StopTimer { timer } => self.set_timer(from, timer, None),
            Action::Throttle { vcpu, on } => {
                let now = self.clock.now();
                self.tell(now, Moment::Throttle { vcpu: vcpu.0, on });
            }
        }
    }

    fn set_timer(&mut self, from: Option<u32>, timer: TimerId, at: Option<Nanos>) {
        let p = match timer {
            TimerId::Tick(p) => {
                self.pcpus[p.0 as usize].tick = at;
                p.0
            }
            TimerId::Slice(p) => {
                self.pcpus[p.0 as usize].slice = at;
                p.0
            }
            TimerId::Accounting => {
                self.accounting = at;
                0
            }
        };
        self.looked_after(from, p, at);
    }

    /// pCPU `p` has to do something at `at`: if it would not look by then, it is told.
    pub(crate) fn looked_after(&mut self, from: Option<u32>, p: u32, at: Option<Nanos>) {
        let looks = self.pcpus[p as usize].looks_at;
        if at.is_some_and(|at| looks.is_none_or(|looks| at < looks)) {
            self.ring(from, p);
        }
    }

    /// The vCPU's page, in which the host writes what the guest may know.
    pub(crate) fn page(&self, v: u32) -> &overspin_guest_abi::VcpuPage {
        let vcpu = &self.vcpus[v as usize];
        self.domains[vcpu.domain as usize].image.page(vcpu.index)
    }

    /// Writes the runstate of `v` into its page: what it was up to `now`, and what it is.
    pub(crate) fn show(&self, now: Nanos, v: u32) {
        let (state, times) = self.look_at(v, |h, v| (h.runstate(v), h.run_times(v, now)));
        let page = self.page(v);
        let (number, preempted) = match state {
            RunState::Running => (0, 0),
            RunState::Runnable => (1, 1),
            RunState::Blocked => (2, 0),
            RunState::Offline => (3, 0),
        };
        let all = [times.running, times.runnable, times.blocked, times.offline];
        for (to, time) in page.times.iter().zip(all) {
            to.store(time.0.unsigned_abs(), Ordering::Relaxed);
        }
        page.state_since.store(now.0.unsigned_abs(), Ordering::Relaxed);
        page.state.store(number, Ordering::Relaxed);
        page.preempted.store(preempted, Ordering::Relaxed);
        page.dispatches.store(self.vcpus[v as usize].dispatches, Ordering::Relaxed);
        let slice = self.vcpus[v as usize].home as usize;
        let end = match state {
            RunState::Running => self.pcpus[slice].slice.map_or(NEVER, |end| end.0.unsigned_abs()),
            _ => NEVER,
        };
        page.slice_end.store(end, Ordering::Relaxed);
    }

    /// The time, in picoseconds.
    pub(crate) fn now(&self) -> Picos {
        picos(self.clock.now())
    }
}
