//! Counters: how many vCPUs spin, and how many want a pCPU and have none.
//!
//! Moments say which vCPU runs and which waits. A vCPU that waits for a lock on a pCPU spins, except for the
//! instructions before it goes to sleep and for interrupts that it takes meanwhile.

use super::tracks::Counter;
use overspin_host::VcpuState;

/// The counts of one domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    queued: i64,
    spinning: i64,
}

/// The parts of a vCPU's state that are counted.
#[derive(Clone, Copy, Debug)]
struct Vcpu {
    domain: usize,
    state: VcpuState,
    /// Locks for which it waits: an interrupt may wait for one while the task below it waits for another.
    waits: u32,
}

impl Vcpu {
    fn counts(&self) -> Counts {
        Counts {
            queued: i64::from(self.state == VcpuState::Runnable),
            spinning: i64::from(self.state == VcpuState::Running && self.waits > 0),
        }
    }
}

/// All counters, and the values that the trace has already.
#[derive(Debug)]
pub(super) struct Counters {
    vcpus: Vec<Vcpu>,
    now: Vec<Counts>,
    written: Vec<Counts>,
    changed: bool,
}

impl Counters {
    /// Counters at 0, for vCPUs of these domains.
    pub(super) fn new(domain_of_vcpu: impl Iterator<Item = usize>, domains: usize) -> Self {
        let vcpu = |domain| Vcpu { domain, state: VcpuState::Offline, waits: 0 };
        Self {
            vcpus: domain_of_vcpu.map(vcpu).collect(),
            now: vec![Counts::default(); domains],
            written: vec![Counts::default(); domains],
            changed: false,
        }
    }

    /// Every counter.
    pub(super) fn all(&self) -> impl Iterator<Item = Counter> + use<> {
        let of = |domain| [Counter::QueuedOf(domain), Counter::SpinningOf(domain)];
        std::iter::once(Counter::Queued).chain((0..self.now.len()).flat_map(of))
    }

    /// A vCPU changes its state.
    pub(super) fn state(&mut self, vcpu: usize, state: VcpuState) {
        self.change(vcpu, |v| v.state = state);
    }

    /// A vCPU begins to wait for a lock.
    pub(super) fn waits(&mut self, vcpu: usize) {
        self.change(vcpu, |v| v.waits += 1);
    }

    /// A vCPU has got a lock for which it waited.
    pub(super) fn got(&mut self, vcpu: usize) {
        self.change(vcpu, |v| v.waits = v.waits.saturating_sub(1));
    }

    fn change(&mut self, vcpu: usize, to: impl FnOnce(&mut Vcpu)) {
        let v = &mut self.vcpus[vcpu];
        let before = v.counts();
        to(v);
        let after = v.counts();
        let now = &mut self.now[v.domain];
        now.queued += after.queued - before.queued;
        now.spinning += after.spinning - before.spinning;
        self.changed |= before != after;
    }

    /// The counters whose values differ from those taken before, with their new values. A vCPU that takes
    /// another's place changes a count twice in one instant; only the sum is taken.
    pub(super) fn take(&mut self) -> Vec<(Counter, i64)> {
        if !std::mem::take(&mut self.changed) {
            return Vec::new();
        }
        let mut changes = Vec::new();
        let sum = |all: &[Counts]| all.iter().map(|c| c.queued).sum::<i64>();
        if sum(&self.now) != sum(&self.written) {
            changes.push((Counter::Queued, sum(&self.now)));
        }
        for (domain, (now, written)) in self.now.iter().zip(&mut self.written).enumerate() {
            if now.queued != written.queued {
                changes.push((Counter::QueuedOf(domain), now.queued));
            }
            if now.spinning != written.spinning {
                changes.push((Counter::SpinningOf(domain), now.spinning));
            }
            *written = *now;
        }
        changes
    }
}
