//! The state that the generic layer owns and a scheduler reads: runnability, runstates, and the
//! place of each vCPU. Source: schedulers specification §1.2 and §1.3, after Xen's core scheduling
//! code.

use crate::affinity::{Affinity, AffinityMask};
use crate::cpuset::CpuSet;
use crate::ids::{DomainId, PcpuId, VcpuId};
use crate::time::Nanos;
use crate::topology::Topology;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// What a vCPU is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It is on a pCPU.
    Running,
    /// It wants a pCPU and has none. A guest sees this time as steal.
    Runnable,
    /// It waits for an event, at its own request.
    Blocked,
    /// Anything else: paused, never started, migrating, parked.
    Offline,
}

/// Time spent in each [`RunState`]; the sum is the time since creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// ns on a pCPU.
    pub running: Nanos,
    /// ns waiting for a pCPU.
    pub runnable: Nanos,
    /// ns blocked.
    pub blocked: Nanos,
    /// ns offline.
    pub offline: Nanos,
}

impl RunTimes {
    /// The sum of the four, in ns.
    pub fn total(&self) -> Nanos {
        self.running + self.runnable + self.blocked + self.offline
    }

    fn of(&mut self, state: RunState) -> &mut Nanos {
        match state {
            RunState::Running => &mut self.running,
            RunState::Runnable => &mut self.runnable,
            RunState::Blocked => &mut self.blocked,
            RunState::Offline => &mut self.offline,
        }
    }
}

/// The reasons why a vCPU is not runnable. A vCPU is runnable when no flag is set and neither it
/// nor its domain is paused.
///
/// | Flag | Set by | Cleared by |
/// |---|---|---|
/// | `BLOCKED` | the vCPU itself (block, poll) | unblock |
/// | `DOWN` | creation, taking offline, removal | up |
/// | `MIGRATING` | a scheduler or a change of affinity | the end of the migration |
/// | `PARKED` | a scheduler (cap or budget used up) | that scheduler |
pub(crate) mod flags {
    pub(crate) const BLOCKED: u8 = 1;
    pub(crate) const DOWN: u8 = 2;
    pub(crate) const MIGRATING: u8 = 4;
    pub(crate) const PARKED: u8 = 8;
}

#[derive(Clone, Debug)]
pub(crate) struct VcpuRecord {
    pub domain: DomainId,
    pub flags: u8,
    pub pauses: u32,
    pub home: PcpuId,
    /// Whether it is on a pCPU, or its registers are not saved yet.
    pub running: bool,
    /// The pCPU that it is on, or was on last.
    pub on: PcpuId,
    /// Whether its cap keeps it off the queues although it stays runnable.
    pub throttled: bool,
    /// When it was dispatched; once it has left its pCPU, when it left.
    pub entry: Nanos,
    pub state: RunState,
    pub state_entry: Nanos,
    pub times: RunTimes,
    pub created: Nanos,
    pub removed: bool,
    /// The affinity as requested.
    pub wanted: Affinity,
    /// The affinity restricted to the pool.
    pub affinity: AffinityMask,
}

/// The machine and its vCPUs, as a scheduler sees them. All reads are O(1).
///
/// # Panics
/// Methods panic on ids that the hypervisor layer did not hand out.
#[derive(Clone, Debug)]
pub struct Machine {
    topology: Topology,
    pool: Arc<CpuSet>,
    pub(crate) vcpus: Vec<VcpuRecord>,
    /// What each pCPU runs; None is its idle vCPU.
    pub(crate) current: Vec<Option<VcpuId>>,
    /// Pause count of each domain.
    pub(crate) domain_pauses: Vec<u32>,
}

impl Machine {
    pub(crate) fn new(topology: Topology, pool: CpuSet) -> Self {
        let current = vec![None; topology.pcpus() as usize];
        let pool = Arc::new(pool);
        Self { topology, pool, vcpus: Vec::new(), current, domain_pauses: Vec::new() }
    }

    pub(crate) fn vcpu(&self, v: VcpuId) -> &VcpuRecord {
        &self.vcpus[v.index()]
    }

    pub(crate) fn vcpu_mut(&mut self, v: VcpuId) -> &mut VcpuRecord {
        &mut self.vcpus[v.index()]
    }

    /// The shape of the machine.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The pCPUs that this scheduler may use: all, unless the machine is divided into pools. Hard
    /// affinities lie within this set.
    pub fn pool(&self) -> &CpuSet {
        &self.pool
    }

    pub(crate) fn shared_pool(&self) -> &Arc<CpuSet> {
        &self.pool
    }

    pub(crate) fn set_in_pool(&mut self, p: PcpuId, member: bool) {
        Arc::make_mut(&mut self.pool).set(p, member);
    }

    /// Number of pCPUs of the machine; indices are below it.
    pub fn pcpus(&self) -> u32 {
        self.current.len() as u32
    }

    /// Number of vCPUs ever created; ids are below it.
    pub fn vcpu_count(&self) -> u32 {
        self.vcpus.len() as u32
    }

    /// What `p` runs; None is its idle vCPU.
    pub fn current(&self, p: PcpuId) -> Option<VcpuId> {
        self.current[p.index()]
    }

    /// Whether the home of `v` runs `v`.
    pub fn is_current(&self, v: VcpuId) -> bool {
        self.current(self.home(v)) == Some(v)
    }

    /// Whether `v` is on a pCPU. After a switch away from `v`, this stays true until its registers
    /// are saved.
    pub fn is_running(&self, v: VcpuId) -> bool {
        self.vcpu(v).running
    }

    /// Whether `v` can run: no flag and no pause prevents it.
    pub fn is_runnable(&self, v: VcpuId) -> bool {
        let r = self.vcpu(v);
        r.flags == 0 && r.pauses == 0 && self.domain_pauses[r.domain.index()] == 0
    }

    /// Whether `v` is migrating: the scheduler is about to place it again.
    pub fn is_migrating(&self, v: VcpuId) -> bool {
        self.vcpu(v).flags & flags::MIGRATING != 0
    }

    /// Whether a scheduler keeps `v` from running until it has credit or budget again.
    pub fn is_parked(&self, v: VcpuId) -> bool {
        self.vcpu(v).flags & flags::PARKED != 0
    }

    /// Whether a cap keeps `v` from running: it is parked, or throttled by a scheduler under which it stays runnable.
    pub fn is_capped(&self, v: VcpuId) -> bool {
        self.is_parked(v) || self.vcpu(v).throttled
    }

    /// The pCPU whose queue holds `v`, or on which it ran last.
    pub fn home(&self, v: VcpuId) -> PcpuId {
        self.vcpu(v).home
    }

    /// When `v` was dispatched, in ns. A scheduling pass that lets `v` continue does not reset
    /// this. Once `v` has left its pCPU, this is when it left.
    pub fn entry(&self, v: VcpuId) -> Nanos {
        self.vcpu(v).entry
    }

    /// The domain that owns `v`.
    pub fn domain_of(&self, v: VcpuId) -> DomainId {
        self.vcpu(v).domain
    }

    /// Where `v` may run and where it prefers to run.
    pub fn affinity(&self, v: VcpuId) -> &AffinityMask {
        &self.vcpu(v).affinity
    }

    /// The runstate of `v`.
    pub fn runstate(&self, v: VcpuId) -> RunState {
        self.vcpu(v).state
    }

    /// Time `v` spent in each runstate up to `now`.
    pub fn run_times(&self, v: VcpuId, now: Nanos) -> RunTimes {
        let r = self.vcpu(v);
        let mut times = r.times;
        *times.of(r.state) += (now - r.state_entry).max(Nanos::ZERO);
        times
    }

    /// Changes the runstate. If `now` is not after the last change, the time of that change stays,
    /// so that the counters always sum to the elapsed time.
    pub(crate) fn set_state(&mut self, now: Nanos, v: VcpuId, state: RunState) {
        let r = self.vcpu_mut(v);
        if r.state == state {
            return;
        }
        if now > r.state_entry {
            *r.times.of(r.state) += now - r.state_entry;
            r.state_entry = now;
        }
        r.state = state;
    }

    /// The runstate of a vCPU that is on no pCPU. Blocked has precedence over offline.
    pub(crate) fn waiting_state(&self, v: VcpuId) -> RunState {
        if self.is_runnable(v) {
            RunState::Runnable
        } else if self.vcpu(v).flags & flags::BLOCKED != 0 {
            RunState::Blocked
        } else {
            RunState::Offline
        }
    }

    /// Updates the runstate for a wake-up. Returns whether `v` is runnable.
    pub(crate) fn wake_state(&mut self, now: Nanos, v: VcpuId) -> bool {
        let (runnable, state) = (self.is_runnable(v), self.runstate(v));
        if runnable {
            if matches!(state, RunState::Blocked | RunState::Offline) {
                self.set_state(now, v, RunState::Runnable);
            }
        } else if state == RunState::Blocked && self.vcpu(v).flags & flags::BLOCKED == 0 {
            self.set_state(now, v, RunState::Offline);
        }
        runnable
    }

    /// Updates the runstate for a sleep. Returns whether `v` is not runnable.
    pub(crate) fn sleep_state(&mut self, now: Nanos, v: VcpuId) -> bool {
        let asleep = !self.is_runnable(v);
        if asleep && self.runstate(v) == RunState::Runnable {
            self.set_state(now, v, RunState::Offline);
        }
        asleep
    }

    /// Checks I1 (each vCPU on at most one pCPU), I2 (runstates sum to elapsed time), I3 (no vCPU
    /// runs outside its hard affinity, unless it is about to leave), and that runstates agree with
    /// the flags. `now` must not be before the last call. O(vCPUs + pCPUs).
    pub(crate) fn is_valid(&self, leaving: &[Option<VcpuId>], now: Nanos) -> Result<(), String> {
        let mut places = vec![0u32; self.vcpus.len()];
        for (p, (current, leaving)) in self.current.iter().zip(leaving).enumerate() {
            for v in current.iter().chain(leaving) {
                places[v.index()] += 1;
                if self.vcpu(*v).on.index() != p {
                    return Err(format!("I1: {v:?} is on pCPU {p} and believes otherwise"));
                }
            }
            let Some(v) = *current else { continue };
            if self.home(v).index() != p {
                return Err(format!(
                    "I1: {v:?} runs on pCPU {p} but its home is {:?}",
                    self.home(v)
                ));
            }
            if !self.affinity(v).hard().contains(PcpuId(p as u32)) && !self.is_migrating(v) {
                return Err(format!("I3: {v:?} runs on pCPU {p}, outside its hard affinity"));
            }
        }
        for (i, r) in self.vcpus.iter().enumerate() {
            let v = VcpuId(i as u32);
            if places[i] != u32::from(r.running) {
                return Err(format!(
                    "I1: {v:?} is on {} pCPUs, running = {}",
                    places[i], r.running
                ));
            }
            let current = self.current[r.on.index()] == Some(v);
            if (r.state == RunState::Running) != current {
                return Err(format!("{v:?} is {:?}, but current = {current}", r.state));
            }
            if r.state != RunState::Running && r.state != self.waiting_state(v) {
                return Err(format!("{v:?} is {:?}, flags {:#x}", r.state, r.flags));
            }
            let total = self.run_times(v, now).total();
            if total != now - r.created {
                return Err(format!(
                    "I2: {v:?} has runstates of {} ns in {}",
                    total.0,
                    (now - r.created).0
                ));
            }
        }
        Ok(())
    }
}
