//! The generic layer: what every scheduler and both worlds need, once.
//!
//! It owns runnability and runstates, performs the scheduling pass and the migration of vCPUs, and
//! drives one [`Scheduler`]. Source: schedulers specification §1.1 to §1.6, after Xen's core
//! scheduling code. Event channels, guest timers and costs belong to the worlds.
//!
//! One pass on a pCPU, and what may come between its two calls (wake-ups of the vCPU that leaves,
//! pauses, other pCPUs' passes):
//!
//! ```text
//!  schedule(p)                            context_saved(p)
//!  ├ current(p) = next, runstates         ├ prev is not running any more
//!  └ prev still counts as running ──────▶ └ prev is placed anew if it is migrating
//! ```

use crate::affinity::Affinity;
use crate::cpuset::CpuSet;
use crate::error::SchedError;
use crate::ids::{Action, DomainId, Nanos, PcpuId, TimerId, VcpuId};
use crate::machine::{Machine, RunState, RunTimes, VcpuRecord, flags};
use crate::params::Params;
use crate::scheduler::{Context, DomainParams, Scheduler, Whose};
use crate::topology::Topology;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// What a scheduling pass decided; None is the idle vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// What the pCPU ran.
    pub prev: Option<VcpuId>,
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
/// Calls cost O(1) plus what the scheduler takes, unless stated. Times are in ns. `out` is appended
/// to, in the order in which the actions arose.
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
}

/// A [`Context`] over the fields of a hypervisor that are not its scheduler.
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

impl Hypervisor {
    /// A hypervisor without domains.
    ///
    /// # Panics
    /// If [`Topology::check`] refuses the topology.
    pub fn new(topology: Topology, scheduler: Box<dyn Scheduler>) -> Self {
        if let Err(error) = topology.check() {
            panic!("{error}");
        }
        let pcpus = topology.pcpus() as usize;
        Self {
            machine: Machine::new(topology),
            scheduler,
            domains: Vec::new(),
            leaving: vec![None; pcpus],
            slice_armed: vec![false; pcpus],
            executing: PcpuId(0),
            clock: Nanos::MIN,
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

    /// States which pCPU executes the calls that follow, where that is not clear from the call (a
    /// wake-up, for instance). It only matters to heuristics that are kept per pCPU. Initially 0.
    pub fn set_executing(&mut self, p: PcpuId) {
        self.executing = p;
    }

    /// Creates a domain without vCPUs.
    ///
    /// # Errors
    /// [`SchedError::Param`] if a parameter is outside its range; the cap is checked against the
    /// number of vCPUs by [`Self::set_domain`] only, when that number is known.
    pub fn create_domain(&mut self, params: DomainParams) -> Result<DomainId, SchedError> {
        params.check(None)?;
        let d = DomainId(self.domains.len() as u32);
        self.domains.push(DomainRecord { vcpus: Vec::new() });
        self.machine.domain_pauses.push(0);
        self.scheduler.create_domain(d, params);
        Ok(d)
    }

    /// Creates a vCPU. It is down: [`Self::up`] starts it.
    ///
    /// Its home is, before the scheduler improves it, pCPU 0 for the first vCPU of a domain, and
    /// for the others the pCPU after the home of the one before.
    ///
    /// # Errors
    /// [`SchedError::UnknownDomain`], or what is wrong with the affinity.
    pub fn create_vcpu(
        &mut self,
        now: Nanos,
        domain: DomainId,
        affinity: Affinity,
        out: &mut Vec<Action>,
    ) -> Result<VcpuId, SchedError> {
        let affinity = affinity.resolve(self.machine.pcpus())?;
        let siblings = self.domains.get_mut(domain.index());
        let siblings = &mut siblings.ok_or(SchedError::UnknownDomain(domain))?.vcpus;
        let home = match siblings.last() {
            Some(last) => CpuSet::all(self.machine.pcpus())
                .cycle(self.machine.home(*last))
                .unwrap_or(PcpuId(0)),
            None => PcpuId(0),
        };
        let v = VcpuId(self.machine.vcpu_count());
        siblings.push(v);
        self.machine.vcpus.push(VcpuRecord {
            domain,
            flags: flags::DOWN,
            pauses: 0,
            home,
            running: false,
            on: home,
            entry: now,
            state: RunState::Offline,
            state_entry: now,
            times: RunTimes::default(),
            created: now,
            removed: false,
            affinity,
        });
        self.tell(now);
        self.scheduler.insert(cx!(self, now, self.executing, out), v);
        Ok(v)
    }

    /// Takes a vCPU out for good. Its id is not used again.
    ///
    /// # Errors
    /// [`SchedError::UnknownVcpu`]; [`SchedError::VcpuRuns`] if it is on a pCPU: take it
    /// [`down`](Self::down) and let its pCPU schedule first.
    pub fn remove_vcpu(
        &mut self,
        now: Nanos,
        v: VcpuId,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        match self.machine.vcpus.get(v.index()) {
            None => return Err(SchedError::UnknownVcpu(v)),
            Some(r) if r.removed => return Err(SchedError::UnknownVcpu(v)),
            Some(r) if r.running => return Err(SchedError::VcpuRuns(v)),
            Some(_) => {}
        }
        self.down(now, v, out);
        self.scheduler.remove(cx!(self, now, self.executing, out), v);
        let r = self.machine.vcpu_mut(v);
        r.removed = true;
        self.domains[r.domain.index()].vcpus.retain(|x| *x != v);
        Ok(())
    }

    /// Starts a vCPU that is down. No effect on a removed one.
    pub fn up(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        if !self.machine.vcpu(v).removed {
            self.machine.vcpu_mut(v).flags &= !flags::DOWN;
            self.wake(now, v, out);
        }
    }

    /// Takes a vCPU offline.
    pub fn down(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.machine.vcpu_mut(v).flags |= flags::DOWN;
        self.sleep(now, v, out);
    }

    /// `v`, which runs, waits for an event. The world must have found none pending.
    pub fn block(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        self.machine.vcpu_mut(v).flags |= flags::BLOCKED;
        if self.machine.runstate(v) == RunState::Running {
            out.push(Action::Resched(self.machine.vcpu(v).on));
        } else {
            self.sleep_blocked(now, v, out);
        }
    }

    /// An event came for `v`: it waits no more. Returns false, and does nothing, if it did not wait.
    pub fn unblock(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) -> bool {
        let r = self.machine.vcpu_mut(v);
        if r.flags & flags::BLOCKED == 0 {
            return false;
        }
        r.flags &= !flags::BLOCKED;
        self.wake(now, v, out);
        true
    }

    /// Keeps `v` from running until a matching [`Self::unpause`]. Pauses nest.
    pub fn pause(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.machine.vcpu_mut(v).pauses += 1;
        self.sleep(now, v, out);
    }

    /// Ends one [`Self::pause`]. No effect without one.
    pub fn unpause(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        let r = self.machine.vcpu_mut(v);
        if r.pauses > 0 {
            r.pauses -= 1;
            self.wake(now, v, out);
        }
    }

    /// Keeps all vCPUs of `d` from running until a matching [`Self::unpause_domain`]. O(its vCPUs).
    pub fn pause_domain(&mut self, now: Nanos, d: DomainId, out: &mut Vec<Action>) {
        self.machine.domain_pauses[d.index()] += 1;
        for i in 0..self.domains[d.index()].vcpus.len() {
            let v = self.domains[d.index()].vcpus[i];
            self.sleep(now, v, out);
        }
    }

    /// Ends one [`Self::pause_domain`]. No effect without one. O(its vCPUs).
    pub fn unpause_domain(&mut self, now: Nanos, d: DomainId, out: &mut Vec<Action>) {
        let pauses = &mut self.machine.domain_pauses[d.index()];
        if *pauses == 0 {
            return;
        }
        *pauses -= 1;
        for i in 0..self.domains[d.index()].vcpus.len() {
            let v = self.domains[d.index()].vcpus[i];
            self.wake(now, v, out);
        }
    }

    /// `v`, which runs, gives way and stays runnable. No effect if it does not run.
    pub fn yield_now(&mut self, now: Nanos, v: VcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        if self.machine.runstate(v) != RunState::Running {
            return;
        }
        let p = self.machine.vcpu(v).on;
        self.scheduler.yield_now(cx!(self, now, p, out), v);
        out.push(Action::Resched(p));
    }

    /// `v`, which runs, gives way in favour of `to`, which waits (a directed yield, as a host does
    /// for a vCPU that spins). Returns false, and does nothing, if one of them is in another state,
    /// or if the scheduler does not do that; [`Self::yield_now`] is what is left then.
    pub fn yield_to(&mut self, now: Nanos, v: VcpuId, to: VcpuId, out: &mut Vec<Action>) -> bool {
        self.tell(now);
        let states = (self.machine.runstate(v), self.machine.runstate(to));
        if states != (RunState::Running, RunState::Runnable) {
            return false;
        }
        let p = self.machine.vcpu(v).on;
        let yields = self.scheduler.yield_to(cx!(self, now, p, out), v, to);
        if yields {
            out.push(Action::Resched(p));
        }
        yields
    }

    /// Changes where `v` may and would rather run, and places it anew.
    ///
    /// # Errors
    /// [`SchedError::UnknownVcpu`], or what is wrong with the affinity.
    pub fn set_affinity(
        &mut self,
        now: Nanos,
        v: VcpuId,
        affinity: Affinity,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        let affinity = affinity.resolve(self.machine.pcpus())?;
        match self.machine.vcpus.get_mut(v.index()) {
            Some(r) if !r.removed => r.affinity = affinity,
            _ => return Err(SchedError::UnknownVcpu(v)),
        }
        self.scheduler.affinity_changed(cx!(self, now, self.executing, out), v);
        self.machine.vcpu_mut(v).flags |= flags::MIGRATING;
        self.sleep(now, v, out);
        if !self.machine.is_running(v) {
            self.finish_migration(now, self.executing, v, out);
        }
        Ok(())
    }

    /// Changes the parameters of a domain.
    ///
    /// # Errors
    /// [`SchedError::UnknownDomain`]; [`SchedError::Param`] if a parameter is outside its range.
    pub fn set_domain(
        &mut self,
        now: Nanos,
        d: DomainId,
        params: DomainParams,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        let record = self.domains.get(d.index()).ok_or(SchedError::UnknownDomain(d))?;
        let vcpus = record.vcpus.len() as u32;
        params.check((vcpus > 0).then_some(vcpus))?;
        self.tell(now);
        self.scheduler.set_domain(cx!(self, now, self.executing, out), d, params);
        Ok(())
    }

    /// Sets parameters that only this scheduler has, for a domain or for one vCPU.
    ///
    /// # Errors
    /// [`SchedError::UnknownDomain`], [`SchedError::UnknownVcpu`]; [`SchedError::UnknownParam`] or
    /// [`SchedError::IllegalParam`] for a parameter that the scheduler does not have or allow.
    pub fn configure(
        &mut self,
        now: Nanos,
        whose: Whose,
        params: &Params,
        out: &mut Vec<Action>,
    ) -> Result<(), SchedError> {
        match whose {
            Whose::Domain(d) if self.domains.get(d.index()).is_none() => {
                return Err(SchedError::UnknownDomain(d));
            }
            Whose::Vcpu(v) if v.0 >= self.machine.vcpu_count() => {
                return Err(SchedError::UnknownVcpu(v));
            }
            _ => {}
        }
        let name = self.scheduler.name();
        // A scheduler from outside this crate checks its own.
        if let Ok(info) = crate::registry::find(name) {
            params.check(name, info.domain_params)?;
        }
        self.tell(now);
        self.scheduler.configure(cx!(self, now, self.executing, out), whose, params)
    }

    /// The scheduling pass of `p`. If `prev` and `next` differ, the world switches and then calls
    /// [`Self::context_saved`].
    pub fn schedule(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) -> Switch {
        // A world that forgot the second half of the last switch gets it now.
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
        if prev != next {
            if let Some(v) = prev {
                let state = self.machine.waiting_state(v);
                self.machine.set_state(now, v, state);
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
        Switch { prev, next }
    }

    /// The registers of what left `p` in its last switch are saved. No effect if nothing did.
    pub fn context_saved(&mut self, now: Nanos, p: PcpuId, out: &mut Vec<Action>) {
        self.tell(now);
        let Some(v) = self.leaving[p.index()].take() else { return };
        let r = self.machine.vcpu_mut(v);
        (r.running, r.entry) = (false, now);
        self.scheduler.context_saved(cx!(self, now, p, out), v);
        if self.machine.is_migrating(v) {
            self.finish_migration(now, p, v, out);
        }
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

    /// Whether nothing keeps `v` from running.
    pub fn is_runnable(&self, v: VcpuId) -> bool {
        self.machine.is_runnable(v)
    }

    /// The runstate of `v`.
    pub fn runstate(&self, v: VcpuId) -> RunState {
        self.machine.runstate(v)
    }

    /// Time `v` spent in each runstate up to `now`; the sum is the time since its creation.
    pub fn run_times(&self, v: VcpuId, now: Nanos) -> RunTimes {
        self.machine.run_times(v, now)
    }

    /// Checks invariants I1 to I3 of the layer and those of the scheduler, at the time of the last
    /// call. O(vCPUs + pCPUs): for tests.
    ///
    /// # Errors
    /// What is broken, in words.
    pub fn is_valid(&self) -> Result<(), String> {
        self.machine.is_valid(&self.leaving, self.clock)?;
        self.scheduler.is_valid(&self.machine)
    }

    /// Notes the time of a call.
    fn tell(&mut self, now: Nanos) {
        debug_assert!(now >= self.clock, "time runs forward: {now} after {}", self.clock);
        self.clock = now;
    }

    /// Wakes `v` if it is runnable; also if it is current, for it may not have left yet.
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

    /// The blocked flag was set on a vCPU that is on no pCPU: not what a guest can do, but safe.
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
