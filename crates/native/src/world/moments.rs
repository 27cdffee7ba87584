//! The moments of a run, from what its threads and the kernel wrote down.
//!
//! A thread notes four times of each acquisition, the kernel notes each switch. Together they are a stream like the
//! simulator's, as exact as the clocks: some 100 ns. The moment of a wake-up is not known. It is told when the
//! thread runs again, so the time from the wake-up to the dispatch counts as sleep.

use overspin_host::{Moment, Timed, VcpuState};
use overspin_scenario::{DomainOutcome, Picos, Why};

use super::picos;
use super::switches::{Switch, SwitchKind};
use super::trace::{Trace, VcpuTrace};

/// A thread that gets the CPU within this time replaces the one that lost it, nanoseconds.
const REPLACES_NS: u64 = 50_000;

/// Numbers of vCPUs and locks over all domains.
#[derive(Debug)]
pub(super) struct Numbers {
    first_vcpu: Vec<u32>,
    first_lock: Vec<u32>,
    locks: u32,
}

impl Numbers {
    pub(super) fn of(domains: &[DomainOutcome]) -> Self {
        let (mut vcpu, mut locks) = (0, 0);
        let mut numbers = Self { first_vcpu: Vec::new(), first_lock: Vec::new(), locks: 0 };
        for domain in domains {
            numbers.first_vcpu.push(vcpu);
            numbers.first_lock.push(locks);
            vcpu += domain.vcpus.len() as u32;
            locks += domain.locks.len() as u32;
        }
        Self { locks, ..numbers }
    }

    fn of_vcpu(&self, noted: &VcpuTrace) -> u32 {
        self.first_vcpu[noted.domain] + noted.vcpu
    }
}

/// The state of a lock while the moments are put in order.
#[derive(Clone, Copy, Default)]
struct Lock {
    holder: Option<u32>,
    releasing: bool,
    waiters: u32,
}

/// All moments, in order of time, up to the end of the run.
pub(super) fn moments(trace: &Trace<'_>, numbers: &Numbers) -> Vec<Timed> {
    let mut raw: Vec<(Picos, u8, Moment)> = Vec::new();
    for noted in &trace.vcpus {
        of_locks(noted, numbers.of_vcpu(noted), &mut raw);
    }
    of_switches(trace, numbers, &mut raw);
    if trace.warmup > Picos::ZERO {
        raw.push((trace.warmup, 0, Moment::Counts));
    }
    raw.retain(|(at, ..)| *at <= trace.end);
    // At equal times, in the order of the second number: releases, switches, waits, acquisitions.
    raw.sort_by_key(|(at, rank, _)| (*at, *rank));
    let first: Vec<u32> = {
        let numbered = || trace.vcpus.iter().map(|n| (numbers.of_vcpu(n), n));
        let mut first = vec![0; numbered().map(|(vcpu, _)| vcpu as usize + 1).max().unwrap_or(0)];
        numbered().for_each(|(vcpu, n)| first[vcpu as usize] = numbers.first_lock[n.domain]);
        first
    };
    let mut states = vec![Lock::default(); numbers.locks as usize];
    let mut out = Vec::with_capacity(raw.len());
    for (at, _, mut moment) in raw {
        connect(&mut moment, &first, &mut states);
        out.push(Timed { at, moment });
    }
    out
}

/// Fills in what only the order of all moments tells: holders and contention.
fn connect(moment: &mut Moment, first: &[u32], states: &mut [Lock]) {
    let of = |vcpu: u32, lock: u32| (first[vcpu as usize] + lock) as usize;
    match moment {
        Moment::LockWait { vcpu, lock, holder, releasing } => {
            if let Some(s) = states.get_mut(of(*vcpu, *lock)) {
                (*holder, *releasing) = (s.holder, s.releasing);
                s.waiters += 1;
            }
        }
        Moment::LockAcquired { vcpu, lock, contended } => {
            if let Some(s) = states.get_mut(of(*vcpu, *lock)) {
                let waited = std::mem::replace(contended, s.waiters > 0);
                s.waiters -= u32::from(waited && s.waiters > 0);
                (s.holder, s.releasing) = (Some(*vcpu), false);
            }
        }
        Moment::LockReleased { vcpu, lock, contended } => {
            if let Some(s) = states.get_mut(of(*vcpu, *lock)) {
                *contended = s.waiters > 0;
                s.releasing = s.holder == Some(*vcpu);
            }
        }
        Moment::LockFreed { vcpu, lock, contended } => {
            if let Some(s) = states.get_mut(of(*vcpu, *lock)) {
                *contended = s.waiters > 0;
                // Another vCPU may have it by now.
                if s.holder == Some(*vcpu) {
                    (s.holder, s.releasing) = (None, false);
                }
            }
        }
        _ => {}
    }
}

fn of_locks(noted: &VcpuTrace, vcpu: u32, raw: &mut Vec<(Picos, u8, Moment)>) {
    let at = picos;
    for h in &noted.held {
        let lock = h.lock;
        if h.waited {
            let wait = Moment::LockWait { vcpu, lock, holder: None, releasing: false };
            raw.push((at(h.asked), 3, wait));
        }
        raw.push((at(h.got), 4, Moment::LockAcquired { vcpu, lock, contended: h.waited }));
        let released = Moment::LockReleased { vcpu, lock, contended: false };
        raw.push((at(h.released), 0, released));
        raw.push((at(h.freed), 1, Moment::LockFreed { vcpu, lock, contended: false }));
    }
}

/// The switches of all vCPUs. One that loses a CPU and one that gets it at once are one switch.
fn of_switches(trace: &Trace<'_>, numbers: &Numbers, raw: &mut Vec<(Picos, u8, Moment)>) {
    let before = |vcpu: u32, at_ns: u64| {
        let noted = trace.vcpus.iter().find(|n| numbers.of_vcpu(n) == vcpu)?;
        let i = noted.switches.partition_point(|s| s.at_ns < at_ns).checked_sub(1)?;
        Some(noted.switches[i].what)
    };
    let mut of_cpu: Vec<Vec<(u32, Switch)>> = vec![Vec::new(); trace.cpus.len()];
    for noted in &trace.vcpus {
        for s in &noted.switches {
            if let Some(pcpu) = trace.cpus.iter().position(|cpu| *cpu == s.cpu as usize) {
                of_cpu[pcpu].push((numbers.of_vcpu(noted), *s));
            }
        }
    }
    for (pcpu, mut switches) in (0_u32..).zip(of_cpu) {
        switches.sort_by_key(|(_, s)| s.at_ns);
        let mut i = 0;
        while let Some((vcpu, s)) = switches.get(i).copied() {
            i += 1;
            let at = trace.of_ns(s.at_ns);
            let mut push = |at, moment| raw.push((at, 2, moment));
            let comes = |push: &mut dyn FnMut(Picos, Moment), vcpu: u32, at: Picos, begins: u64| {
                let slept = before(vcpu, begins) == Some(SwitchKind::Slept);
                push(at, Moment::Runs { vcpu, pcpu });
                if slept {
                    push(at, Moment::Returns { vcpu });
                }
            };
            let wakes = |push: &mut dyn FnMut(Picos, Moment), vcpu: u32, at: Picos, begins: u64| {
                if before(vcpu, begins) == Some(SwitchKind::Slept) {
                    push(at, Moment::Wake { vcpu, pcpu: None, runnable: true });
                }
            };
            if s.what == SwitchKind::In {
                wakes(&mut push, vcpu, at, s.at_ns);
                let (prev, prev_state) = (None, VcpuState::Runnable);
                push(at, Moment::Switch { pcpu, prev, prev_state, why: None, next: Some(vcpu) });
                comes(&mut push, vcpu, at, s.at_ns);
                continue;
            }
            let next = switches.get(i).copied().filter(|(_, n)| {
                n.what == SwitchKind::In && n.at_ns.saturating_sub(s.at_ns) <= REPLACES_NS
            });
            let (prev_state, why) = match s.what {
                SwitchKind::Slept => {
                    push(at, Moment::Sleeps { vcpu });
                    (VcpuState::Blocked, None)
                }
                _ => (VcpuState::Runnable, Some(Why::Scheduler)),
            };
            if let Some((next, n)) = next {
                wakes(&mut push, next, at, n.at_ns);
            }
            let by = next.map(|(vcpu, _)| vcpu);
            push(at, Moment::Switch { pcpu, prev: Some(vcpu), prev_state, why, next: by });
            if let Some((next, n)) = next {
                i += 1;
                comes(&mut push, next, trace.of_ns(n.at_ns), n.at_ns);
            }
        }
    }
}
