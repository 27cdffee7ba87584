//! Counts during a run, and a frame at the end of each interval.

use super::{Domain, Frame, Lock, Pcpu, Spent, Vcpu};
use overspin_host::{Interest, Moment, Observer, Timed, VcpuState};
use overspin_runs::catalog;
use overspin_scenario::{Picos, Scenario};

/// A vCPU, as far as it is known now.
#[derive(Clone, Debug)]
struct Doing {
    domain: usize,
    state: VcpuState,
    pcpu: Option<u32>,
    /// The locks that it waits for, with the beginnings: an interrupt may wait while the task below it waits.
    waits: Vec<(u32, Picos)>,
    /// Up to when `spent` counts.
    counted: Picos,
    spent: Spent,
}

impl Doing {
    /// Counts the time until `at`.
    fn count(&mut self, at: Picos) {
        let passed = at.saturating_sub(self.counted);
        self.counted = at.max(self.counted);
        match self.state {
            VcpuState::Running => {
                self.spent.running += passed;
                if !self.waits.is_empty() {
                    self.spent.spinning += passed;
                }
            }
            VcpuState::Runnable => self.spent.runnable += passed,
            VcpuState::Blocked => self.spent.blocked += passed,
            VcpuState::Offline => self.spent.offline += passed,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct OnPcpu {
    vcpu: Option<u32>,
    counted: Picos,
    busy: Picos,
    switches: u64,
}

impl OnPcpu {
    fn count(&mut self, at: Picos) {
        if self.vcpu.is_some() {
            self.busy += at.saturating_sub(self.counted);
        }
        self.counted = at.max(self.counted);
    }
}

/// Counts of a lock.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    acquisitions: u64,
    waits: u64,
    waited: Picos,
    longest: Picos,
    holder: Option<u32>,
    waiters: u32,
}

/// An observer that makes a frame for each interval of simulated time, and gives it to a function.
pub struct Meter<F> {
    tell: F,
    /// Gives the length of the next interval; the user may change it during the run.
    interval: Box<dyn Fn() -> Picos + Send>,
    begun: Picos,
    due: Picos,
    names: Vec<String>,
    domains: Vec<(String, u32, usize)>,
    lock_names: Vec<String>,
    vcpus: Vec<Doing>,
    pcpus: Vec<OnPcpu>,
    locks: Vec<Counts>,
}

impl<F> std::fmt::Debug for Meter<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter")
            .field("begun", &self.begun)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

impl<F: FnMut(Frame)> Meter<F> {
    /// A meter for a run of `scenario`. It asks `interval` for the length of an interval when one begins; 0
    /// counts as 1 ps.
    pub fn new(
        scenario: &Scenario,
        interval: impl Fn() -> Picos + Send + 'static,
        tell: F,
    ) -> Self {
        let all = overspin_workload::with_noise(scenario);
        let (mut names, mut vcpus, mut lock_names) = (Vec::new(), Vec::new(), Vec::new());
        let mut domains = Vec::new();
        for (index, domain) in all.domains.iter().enumerate() {
            names.extend((0..domain.vcpus).map(|v| format!("{}/v{v}", domain.name)));
            vcpus.extend((0..domain.vcpus).map(|_| Doing {
                domain: index,
                state: VcpuState::Offline,
                pcpu: None,
                waits: Vec::new(),
                counted: Picos::ZERO,
                spent: Spent::default(),
            }));
            domains.push((domain.name.clone(), domain.vcpus, lock_names.len()));
            let own = catalog::names().all_locks_of(domain);
            lock_names.extend(own.into_iter().map(|lock| format!("{}/{lock}", domain.name)));
        }
        let due = interval().max(Picos(1));
        Self {
            tell,
            interval: Box::new(interval),
            begun: Picos::ZERO,
            due,
            names,
            domains,
            locks: vec![Counts::default(); lock_names.len()],
            lock_names,
            vcpus,
            pcpus: vec![OnPcpu::default(); scenario.host.pcpus() as usize],
        }
    }

    /// Ends the last interval at the end of the run, if it has begun.
    pub fn finish(mut self, end: Picos) {
        self.frames_until(end);
        if end > self.begun {
            self.frame(end);
        }
    }

    /// Makes the frames that are due at `at`.
    fn frames_until(&mut self, at: Picos) {
        while at >= self.due {
            self.frame(self.due);
        }
    }

    fn frame(&mut self, until: Picos) {
        self.vcpus.iter_mut().for_each(|v| v.count(until));
        self.pcpus.iter_mut().for_each(|p| p.count(until));
        let name = |v: u32| self.names.get(v as usize).cloned();
        let domain = |(index, (domain, vcpus, first)): (usize, &(String, u32, usize))| {
            let last = self.domains.get(index + 1).map_or(self.locks.len(), |(.., next)| *next);
            let locks = &self.locks[*first..last];
            let mut spent = Spent::default();
            self.vcpus.iter().filter(|v| v.domain == index).for_each(|v| spent.add(&v.spent));
            Domain {
                name: domain.clone(),
                vcpus: *vcpus,
                spent,
                acquisitions: locks.iter().map(|l| l.acquisitions).sum(),
                waits: locks.iter().map(|l| l.waits).sum(),
                waited: locks.iter().map(|l| l.waited).sum(),
            }
        };
        let vcpu = |(name, v): (&String, &Doing)| Vcpu {
            name: name.clone(),
            state: v.state,
            pcpu: v.pcpu,
            spent: v.spent,
            waits_for: v
                .waits
                .last()
                .and_then(|(lock, _)| self.lock_names.get(*lock as usize))
                .cloned(),
        };
        let lock = |(lock, c): (&String, &Counts)| Lock {
            name: lock.clone(),
            acquisitions: c.acquisitions,
            waits: c.waits,
            waited: c.waited,
            longest: c.longest,
            holder: c.holder.and_then(name),
            waiters: c.waiters,
        };
        let pcpu =
            |p: &OnPcpu| Pcpu { vcpu: p.vcpu.and_then(name), busy: p.busy, switches: p.switches };
        let frame = Frame {
            from: self.begun,
            until,
            pcpus: self.pcpus.iter().map(pcpu).collect(),
            domains: self.domains.iter().enumerate().map(domain).collect(),
            vcpus: self.names.iter().zip(&self.vcpus).map(vcpu).collect(),
            locks: self
                .lock_names
                .iter()
                .zip(&self.locks)
                .filter(|(_, c)| c.acquisitions > 0 || c.waiters > 0)
                .map(lock)
                .collect(),
        };
        (self.tell)(frame);
        self.vcpus.iter_mut().for_each(|v| v.spent = Spent::default());
        for pcpu in &mut self.pcpus {
            (pcpu.busy, pcpu.switches) = (Picos::ZERO, 0);
        }
        for lock in &mut self.locks {
            let Counts { holder, waiters, .. } = *lock;
            *lock = Counts { holder, waiters, ..Counts::default() };
        }
        self.begun = until;
        self.due = until + (self.interval)().max(Picos(1));
    }

    /// Counts the vCPU's time so far, then changes it.
    fn change(&mut self, at: Picos, vcpu: u32, to: impl FnOnce(&mut Doing)) {
        if let Some(v) = self.vcpus.get_mut(vcpu as usize) {
            v.count(at);
            to(v);
        }
    }

    /// The number of a lock over all domains.
    fn lock(&self, vcpu: u32, lock: u32) -> Option<usize> {
        let (.., first) = self.domains.get(self.vcpus.get(vcpu as usize)?.domain)?;
        Some(first + lock as usize).filter(|lock| *lock < self.locks.len())
    }

    fn moment(&mut self, at: Picos, moment: &Moment) {
        self.frames_until(at);
        match *moment {
            Moment::Switch { pcpu, prev, prev_state, next, .. } => {
                if let Some(p) = self.pcpus.get_mut(pcpu as usize) {
                    p.count(at);
                    p.vcpu = next;
                    p.switches += u64::from(next.is_some());
                }
                if let Some(prev) = prev {
                    self.change(at, prev, |v| v.state = prev_state);
                }
                if let Some(next) = next {
                    self.change(at, next, |v| {
                        v.state = VcpuState::Running;
                        v.pcpu = Some(pcpu);
                    });
                }
            }
            Moment::Wake { vcpu, runnable: true, .. } => self.change(at, vcpu, |v| {
                // A vCPU that has not left its pCPU yet keeps it.
                if v.state != VcpuState::Running {
                    v.state = VcpuState::Runnable;
                }
            }),
            Moment::LockWait { vcpu, lock, .. } => {
                let Some(number) = self.lock(vcpu, lock) else { return };
                self.change(at, vcpu, |v| v.waits.push((number as u32, at)));
                self.locks[number].waiters += 1;
            }
            Moment::LockAcquired { vcpu, lock, .. } => {
                let Some(number) = self.lock(vcpu, lock) else { return };
                let mut since = None;
                self.change(at, vcpu, |v| {
                    let open = v.waits.iter().rposition(|(l, _)| *l as usize == number);
                    since = open.map(|open| v.waits.remove(open).1);
                });
                let counts = &mut self.locks[number];
                counts.acquisitions += 1;
                counts.holder = Some(vcpu);
                if let Some(since) = since {
                    let waited = at.saturating_sub(since);
                    counts.waiters = counts.waiters.saturating_sub(1);
                    counts.waits += 1;
                    counts.waited += waited;
                    counts.longest = counts.longest.max(waited);
                }
            }
            Moment::LockReleased { vcpu, lock, .. } => {
                if let Some(number) = self.lock(vcpu, lock) {
                    self.locks[number].holder = None;
                }
            }
            _ => {}
        }
    }
}

impl<F: FnMut(Frame)> Observer for Meter<F> {
    fn interest(&self) -> Interest {
        Interest::SCHEDULING.and(Interest::LOCKS)
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            self.moment(*at, moment);
        }
    }
}
