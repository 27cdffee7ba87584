//! What was noted about the vCPUs of a run, each by a thread of its own, and what follows from it.

use overspin_host::{Attribution, Interest, Observer};
use overspin_scenario::{DomainOutcome, PcpuOutcome, Picos};

use super::moments::{Numbers, moments};
use super::picos;
use super::switches::{Switch, SwitchKind, has_cpu};

/// What a world must tell its observer to give waits their causes.
pub const INTEREST: Interest = Attribution::INTEREST.and(Interest::LOCKS);

/// The times of an acquisition, by one clock: that of the one who noted them, or nanoseconds since the begin of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The task asked for the lock.
    pub asked: u64,
    /// It got the lock.
    pub got: u64,
    /// It began to release the lock.
    pub released: u64,
    /// It had released the lock.
    pub freed: u64,
    /// The number of the lock in its domain.
    pub lock: u32,
    /// Whether the task had to wait.
    pub waited: bool,
}

impl Held {
    /// The same acquisition by another clock.
    #[must_use]
    pub fn by(self, clock: impl Fn(u64) -> u64) -> Self {
        let [asked, got, released, freed] =
            [self.asked, self.got, self.released, self.freed].map(clock);
        Self { asked, got, released, freed, ..self }
    }
}

/// What was noted about a vCPU.
#[derive(Clone, Debug)]
pub struct VcpuTrace {
    /// Its domain.
    pub domain: usize,
    /// Its number in the domain.
    pub vcpu: u32,
    /// Acquisitions on it, in nanoseconds since the begin of the run.
    pub held: Vec<Held>,
    /// Switches of its thread, in their order.
    pub switches: Vec<Switch>,
}

/// What was noted about all vCPUs of a run.
#[derive(Clone, Debug)]
pub struct Trace<'a> {
    /// The vCPUs.
    pub vcpus: Vec<VcpuTrace>,
    /// The begin of the run, by the clock of switches.
    pub begun_ns: u64,
    /// The end of the warm-up; 0 if there was none.
    pub warmup: Picos,
    /// The end of the run.
    pub end: Picos,
    /// The CPUs of this machine that stand for pCPUs.
    pub cpus: &'a [usize],
}

impl Trace<'_> {
    /// Tells the observer what happened, completes the domains' outcomes, and returns those of the pCPUs. `domains` have all
    /// their vCPUs and locks.
    pub fn tell(
        &self,
        observer: &mut dyn Observer,
        domains: &mut [DomainOutcome],
    ) -> Vec<PcpuOutcome> {
        observer.observe(&moments(self, &Numbers::of(domains)));
        for noted in &self.vcpus {
            self.preempted_holders(noted, &mut domains[noted.domain]);
        }
        self.of_pcpus()
    }

    /// How many of the times that vCPUs noted are ones at which they had no CPU, and how many there are. If the clocks agree, it is
    /// none.
    #[must_use]
    pub fn impossible(&self) -> (u64, u64) {
        let (mut impossible, mut all) = (0, 0);
        for noted in &self.vcpus {
            for h in &noted.held {
                for at in [h.asked, h.got, h.released, h.freed] {
                    let had_cpu = has_cpu(&noted.switches, self.begun_ns + at);
                    impossible += u64::from(had_cpu == Some(false));
                    all += 1;
                }
            }
        }
        (impossible, all)
    }

    /// The time in the run of a switch.
    pub(super) fn of_ns(&self, ns: u64) -> Picos {
        picos(ns.saturating_sub(self.begun_ns))
    }

    /// Counts the holds on a vCPU during which it lost its CPU.
    fn preempted_holders(&self, noted: &VcpuTrace, domain: &mut DomainOutcome) {
        for h in &noted.held {
            let (from, until) = (picos(h.got), picos(h.released));
            if until < self.warmup {
                continue;
            }
            let at = |s: &Switch| self.of_ns(s.at_ns);
            let i = noted.switches.partition_point(|s| at(s) < from);
            let lost = noted.switches[i..].iter().take_while(|s| at(s) < until);
            if lost.into_iter().any(|s| s.what != SwitchKind::In)
                && let Some(lock) = domain.locks.get_mut(h.lock as usize)
            {
                lock.holder_preempted += 1;
            }
        }
    }

    /// The time that vCPUs had on each CPU after the warm-up.
    fn of_pcpus(&self) -> Vec<PcpuOutcome> {
        let (began, elapsed) = (self.begun_ns + self.warmup.0 / 1_000, self.end - self.warmup);
        let mut all = vec![PcpuOutcome::default(); self.cpus.len()];
        let end = began + elapsed.0 / 1_000;
        for noted in &self.vcpus {
            let mut since = None;
            let stop = Switch { at_ns: end, cpu: u32::MAX, what: SwitchKind::Slept };
            for s in noted.switches.iter().filter(|s| s.at_ns < end).chain([&stop]) {
                if let Some((at, cpu)) = since.take()
                    && let Some(i) = self.cpus.iter().position(|c| *c as u32 == cpu)
                {
                    all[i].busy += picos(s.at_ns.saturating_sub(at));
                }
                if s.what == SwitchKind::In {
                    since = Some((s.at_ns.max(began), s.cpu));
                    let counts = s.at_ns >= began;
                    if let Some(i) = self.cpus.iter().position(|c| counts && *c as u32 == s.cpu) {
                        all[i].switches += 1;
                    }
                }
            }
        }
        for p in &mut all {
            p.busy = p.busy.min(elapsed);
            p.idle = elapsed - p.busy;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{LockOutcome, MS, US, VcpuOutcome};

    /// vCPU 0 loses its CPU to vCPU 1 while it holds the lock, from 20 to 60 us; vCPU 1 waits for it from 25 us on.
    fn trace(cpus: &[usize]) -> Trace<'_> {
        let us = |n: u64| n * 1_000;
        let begun_ns = us(1_000);
        let switch = |at, what| Switch { at_ns: begun_ns + us(at), cpu: 7, what };
        let held = |asked, got, released, waited| Held {
            asked: us(asked),
            got: us(got),
            released: us(released),
            freed: us(released),
            lock: 0,
            waited,
        };
        let first = VcpuTrace {
            domain: 0,
            vcpu: 0,
            held: vec![held(10, 10, 70, false)],
            switches: vec![
                switch(0, SwitchKind::In),
                switch(20, SwitchKind::Preempted),
                switch(60, SwitchKind::In),
                switch(80, SwitchKind::Preempted),
            ],
        };
        let second = VcpuTrace {
            domain: 0,
            vcpu: 1,
            held: vec![held(25, 85, 90, true)],
            switches: vec![
                switch(20, SwitchKind::In),
                switch(60, SwitchKind::Preempted),
                switch(80, SwitchKind::In),
            ],
        };
        Trace { vcpus: vec![first, second], begun_ns, warmup: Picos::ZERO, end: MS, cpus }
    }

    #[test]
    fn a_holder_without_a_cpu_is_counted_and_told() {
        let mut domains = [DomainOutcome {
            vcpus: vec![VcpuOutcome::default(); 2],
            locks: vec![LockOutcome::default()],
            ..DomainOutcome::default()
        }];
        let trace = trace(&[7]);
        let mut all: Vec<overspin_host::Timed> = Vec::new();
        let pcpus = trace.tell(&mut all, &mut domains);
        assert_eq!(domains[0].locks[0].holder_preempted, 1);
        assert_eq!(pcpus.len(), 1);
        // The last one never left.
        assert_eq!((pcpus[0].busy, pcpus[0].switches), (MS, 4));
        let wait = all.iter().find_map(|t| match t.moment {
            overspin_host::Moment::LockWait { vcpu, holder, .. } => Some((t.at, vcpu, holder)),
            _ => None,
        });
        assert_eq!(wait, Some((US * 25, 1, Some(0))));
    }

    #[test]
    fn times_without_a_cpu_tell_that_clocks_differ() {
        let mut trace = trace(&[7]);
        assert_eq!(trace.impossible(), (0, 8));
        trace.vcpus[1].held[0] = trace.vcpus[1].held[0].by(|at| at - 15_000);
        // What it did before its first switch is not known; the other three times are after it lost its CPU.
        assert_eq!(trace.impossible(), (3, 8));
    }
}
