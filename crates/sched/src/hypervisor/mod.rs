//! The generic layer, which all schedulers and both worlds share.
//!
//! It owns runnability and runstates, performs the scheduling pass and the migration of vCPUs, and
//! drives one [`Scheduler`]. Source: schedulers specification §1.1 to §1.6, after Xen's core
//! scheduling code. Event channels, guest timers and costs belong to the worlds.
//!
//! One pass on a pCPU consists of two calls. Wake-ups of the vCPU that leaves, pauses and other
//! pCPUs' passes may come between them:
//!
//! ```text
//!  schedule(p)                            context_saved(p)
//!  ├ current(p) = next, runstates         ├ prev is not running any more
//!  └ prev still counts as running ──────▶ └ prev is placed anew if it is migrating
//! ```
//!
//! Files: this one has the passes; `guest` (operations of and on vCPUs), `admin` (domains, vCPUs
//! and their parameters), `pcpus` (pCPUs that come and go), `changes` (a record of what an
//! administrator changed).

use crate::cpuset::CpuSet;
use crate::ids::{Action, DomainId, PcpuId, TimerId, VcpuId};
use crate::machine::{Machine, RunState, RunTimes, flags};
use crate::scheduler::{Context, Opaque, Scheduler, Throttling};
use crate::time::Nanos;
use crate::topology::Topology;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use changes::Recorder;

/// A [`Context`] over the fields of a hypervisor except its scheduler.
macro_rules! cx {
    ($self:ident, $now:expr, $executing:expr, $out:ident) => {
        &mut Context {
            now: $now,
            executing: $executing,
            machine: &mut $self.machine,
            actions: $out,
        }
    };
}

mod admin;
mod changes;
mod guest;
mod pcpus;

pub use changes::Change;

/// What a scheduling pass decided; None is the idle vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// What the pCPU ran.
    pub prev: Option<VcpuId>,
    /// The new runstate of `prev`; meaningless if there is nothing to switch.
    pub prev_state: RunState,
    /// What it runs now. If equal to `prev`, there is nothing to switch.
    pub next: Option<VcpuId>,
}

#[derive(Clone, Debug)]
struct DomainRecord {
    vcpus: Vec<VcpuId>,
}

/// The generic layer and its scheduler. See the [crate documentation](crate) for what the world
/// that drives it must do.
///
/// Calls cost O(1) plus the cost of the scheduler, unless stated otherwise. Times are in ns. Calls
/// append actions to `out`, in the order in which they arise.
///
/// # Panics
/// Methods that return no `Result` panic on ids that this object did not hand out.
#[derive(Debug)]
pub struct Hypervisor {
    machine: Machine,
    scheduler: Box<dyn Scheduler>,
    domains: Vec<DomainRecord>,
    /// On each pCPU, the vCPU whose registers are not saved yet.
    leaving: Vec<Option<VcpuId>>,
    slice_armed: Vec<bool>,
    executing: PcpuId,
    /// The latest time seen.
    clock: Nanos,
    changes: Recorder,
}

impl Hypervisor {
    /// A hypervisor without domains, on all pCPUs of the machine.
    ///
    /// # Panics
    /// If [`Topology::check`] refuses the topology.
    pub fn new(topology: Topology, scheduler: Box<dyn Scheduler>) -> Self {
        Self::on(topology, CpuSet::all(topology.pcpus()), scheduler)
    }

    /// A hypervisor without domains, on some pCPUs of a machine: one pool of several. `pool` must
    /// have room for all pCPUs.
    ///
    /// # Panics
    /// If [`Topology::check`] refuses the topology.
    pub fn on(topology: Topology, pool: CpuSet, scheduler: Box<dyn Scheduler>) -> Self {
        if let Err(error) = topology.check() {
            panic!("{error}");
        }
        let pcpus = topology.pcpus() as usize;
        Self {
            executing: pool.first().unwrap_or(PcpuId(0)),
            machine: Machine::new(topology, pool),
            scheduler,
            domains: Vec::new(),
            leaving: vec![None; pcpus],
            slice_armed: vec![false; pcpus],
            clock: Nanos::MIN,
            changes: Recorder::default(),
        }
    }

    /// Arms the first timers. Must be the first call after [`Self::new`].
    pub fn start(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.clock = now;
        self.scheduler.start(cx!(self, now, self.executing, out));
    }

    /// The machine and its vCPUs, to read.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The scheduler, to read.
    pub fn scheduler(&self) -> &dyn Scheduler {
        &*self.scheduler
    }

    /// States which pCPU executes the calls that follow, where the call does not show it (a
    /// wake-up, for instance). It matters only to heuristics with state per pCPU. Initially, it is
    /// the first pCPU of the pool.
    pub fn set_executing(&mut self, p: PcpuId) {
        self.executing = p;
    }

    /// The scheduling pass of `p`. If `prev` and `next` differ, the world switches and then calls
    /// [`Self::context_saved`].
    pub fn schedule(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) -> Switch {
        // Completes the last switch if the world forgot its second half.
        self.context_saved(now, p, out);
        let prev = self.machine.current(p);
        let decision = self.scheduler.schedule(cx!(self, now, p, out), p);
        let timer = TimerId::Slice(p);
        let was_armed =
            core::mem::replace(&mut self.slice_armed[p.index()], decision.slice.is_some());
        match decision.slice {
            Some(slice) => out.push(Action::SetTimer { timer, at: now.saturating_add(slice) }),
            None if was_armed => out.push(Action::StopTimer { timer }),
            None => {}
        }
        let next = decision.next;
        let mut prev_state = RunState::Running;
        if prev != next {
            if let Some(v) = prev {
                prev_state = self.machine.waiting_state(v);
                self.machine.set_state(now, v, prev_state);
                self.leaving[p.index()] = prev;
            }
            if let Some(v) = next {
                debug_assert!(!self.machine.is_running(v), "{v:?} is on another pCPU");
                self.machine.set_state(now, v, RunState::Running);
                let r = self.machine.vcpu_mut(v);
                (r.running, r.on, r.entry) = (true, p, now);
            }
            self.machine.current[p.index()] = next;
        }
        Switch { prev, prev_state, next }
    }

    /// The registers of the vCPU that left `p` in its last switch are saved. No effect if none did.
    pub fn context_saved(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        let Some(v) = self.leaving[p.index()].take() else { return };
        let r = self.machine.vcpu_mut(v);
        (r.running, r.entry) = (false, now);
        self.scheduler.context_saved(cx!(self, now, p, out), v);
        if self.machine.is_migrating(v) {
            self.finish_migration(now, p, v, out);
        }
        self.finish_take(now, p, out);
    }

    /// A timer has expired.
    pub fn timer(&mut self, now: Nanos, timer: TimerId, out: &mut Vec<Action>) {
        self.tell(now);
        let executing = match timer {
            TimerId::Slice(p) => {
                self.slice_armed[p.index()] = false;
                out.push(Action::Resched(p));
                return;
            }
            TimerId::Tick(p) => p,
            TimerId::Accounting => PcpuId(0),
        };
        self.scheduler.timer(cx!(self, now, executing, out), timer);
    }

    /// What `p` runs; None is its idle vCPU.
    pub fn current(&self, p: PcpuId) -> Option<VcpuId> {
        self.machine.current(p)
    }

    /// Whether `v` is on a pCPU, or its registers are not saved yet.
    pub fn is_running(&self, v: VcpuId) -> bool {
        self.machine.is_running(v)
    }

    /// Whether `v` can run: no flag and no pause prevents it.
    pub fn is_runnable(&self, v: VcpuId) -> bool {
        self.machine.is_runnable(v)
    }

    /// The records of `v` in this layer and in the scheduler: see [`Scheduler::record_of`]. O(1).
    pub fn records_of(&self, v: VcpuId) -> impl Iterator<Item = &dyn Opaque> {
        let own: &dyn Opaque = self.machine.vcpu(v);
        [Some(own), self.scheduler.record_of(v)].into_iter().flatten()
    }

    /// The runstate of `v`.
    pub fn runstate(&self, v: VcpuId) -> RunState {
        self.machine.runstate(v)
    }

    /// Time `v` spent in each runstate up to `now`; the sum is the time since its creation.
    pub fn run_times(&self, v: VcpuId, now: Nanos) -> RunTimes {
        self.machine.run_times(v, now)
    }

    /// How often and how long a cap kept the vCPUs of `d` from running: see [`Scheduler::throttling`].
    pub fn throttling(&self, d: DomainId, now: Nanos) -> Option<Throttling> {
        self.scheduler.throttling(d, now)
    }

    /// Checks invariants I1 to I3 of the layer and those of the scheduler, at the time of the last
    /// call. O(vCPUs + pCPUs): for tests.
    ///
    /// # Errors
    /// A description of what is broken.
    pub fn is_valid(&self) -> Result<(), String> {
        self.machine.is_valid(&self.leaving, self.clock)?;
        self.scheduler.is_valid(&self.machine)
    }

    /// Records the time of a call.
    fn tell(&mut self, now: Nanos) {
        debug_assert!(now >= self.clock, "time runs forward: {} after {}", now.0, self.clock.0);
        self.clock = now;
    }

    /// Wakes `v` if it is runnable, even if it is current, because it may not have left yet.
    fn wake(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        if self.machine.wake_state(now, v) {
            self.scheduler.wake(cx!(self, now, self.executing, out), v);
        }
    }

    /// Puts `v` to sleep if it is not runnable.
    fn sleep(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        if self.machine.sleep_state(now, v) {
            self.scheduler.sleep(cx!(self, now, self.executing, out), v);
        }
    }

    /// Handles a blocked flag set on a vCPU that is on no pCPU. A guest cannot do this, but it is
    /// safe.
    fn sleep_blocked(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.machine.set_state(now, v, RunState::Blocked);
        self.scheduler.sleep(cx!(self, now, self.executing, out), v);
    }

    /// The second half of a migration (§1.6): `v` has left its pCPU.
    fn finish_migration(&mut self, now: Nanos, by: PcpuId, v: VcpuId, out: &mut Vec<Action>) {
        let p = self.scheduler.pick(cx!(self, now, by, out), v);
        self.machine.vcpu_mut(v).flags &= !flags::MIGRATING;
        self.scheduler.migrate(cx!(self, now, by, out), v, p);
        if self.machine.wake_state(now, v) {
            self.scheduler.wake(cx!(self, now, by, out), v);
        }
    }
}
