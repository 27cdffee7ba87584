//! The moments of a run, from what its threads and the kernel wrote down.
//!
//! A thread notes four times of each acquisition, the kernel notes each switch. Together they are a stream like the
//! simulator's, as exact as the clocks: some 100 ns. The moment of a wake-up is not known. It is told when the
//! thread runs again, so the time from the wake-up to the dispatch counts as sleep.

use overspin_host::{Moment, Timed, VcpuState};
use overspin_scenario::{Picos, Why};

use super::picos;
use super::switches::{Switch, SwitchKind};
use crate::bench::Clock;

/// A thread that gets the CPU within this time replaces the one that lost it, nanoseconds.
const REPLACES_NS: u64 = 50_000;

/// The times of an acquisition, in ticks of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// The task asked for the lock, got it, began to release it, and had released it.
    pub asked: u64,
    pub got: u64,
    pub released: u64,
    pub freed: u64,
    pub lock: u32,
    /// Whether it had to wait.
    pub waited: bool,
}

/// What was noted about a vCPU.
#[derive(Debug)]
pub(super) struct VcpuTrace<'a> {
    /// Its number over all domains.
    pub vcpu: u32,
    /// The number of the first lock of its domain over all domains.
    pub first_lock: u32,
    pub held: &'a [Held],
    pub switches: &'a [Switch],
}

/// The beginning of a run by both clocks, and its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub clock: Clock,
    pub ticks: u64,
    /// By the clock of `Threads::now`.
    pub ns: u64,
    pub end: Picos,
    /// The end of the warm-up; 0 if there was none.
    pub warmup: Picos,
}

impl Frame {
    pub(super) fn of_ticks(&self, ticks: u64) -> Picos {
        picos(self.clock.ns(self.ticks, ticks))
    }

    pub(super) fn of_ns(&self, ns: u64) -> Picos {
        picos(ns.saturating_sub(self.ns))
    }
}

/// The state of a lock while the moments are put in order.
#[derive(Clone, Copy, Default)]
struct Lock {
    holder: Option<u32>,
    releasing: bool,
    waiters: u32,
}

/// All moments, in order of time, up to the end of the run. `cpus` are the CPUs of this machine that stand for
/// pCPUs; `locks` is the number of locks of all domains.
pub(super) fn moments(
    all: &[VcpuTrace<'_>],
    frame: &Frame,
    cpus: &[usize],
    locks: usize,
) -> Vec<Timed> {
    let mut raw: Vec<(Picos, u8, Moment)> = Vec::new();
    for noted in all {
        of_locks(noted, frame, &mut raw);
    }
    of_switches(all, frame, cpus, &mut raw);
    if frame.warmup > Picos::ZERO {
        raw.push((frame.warmup, 0, Moment::Counts));
    }
    raw.retain(|(at, ..)| *at <= frame.end);
    // At equal times, in the order of the second number: releases, switches, waits, acquisitions.
    raw.sort_by_key(|(at, rank, _)| (*at, *rank));
    let first: Vec<u32> = {
        let mut first = vec![0; all.iter().map(|n| n.vcpu as usize + 1).max().unwrap_or(0)];
        all.iter().for_each(|n| first[n.vcpu as usize] = n.first_lock);
        first
    };
    let mut states = vec![Lock::default(); locks];
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

fn of_locks(noted: &VcpuTrace<'_>, frame: &Frame, raw: &mut Vec<(Picos, u8, Moment)>) {
    let vcpu = noted.vcpu;
    for h in noted.held {
        let lock = h.lock;
        let at = |ticks| frame.of_ticks(ticks);
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
fn of_switches(
    all: &[VcpuTrace<'_>],
    frame: &Frame,
    cpus: &[usize],
    raw: &mut Vec<(Picos, u8, Moment)>,
) {
    let mut of_cpu: Vec<Vec<(u32, Switch)>> = vec![Vec::new(); cpus.len()];
    for noted in all {
        for s in noted.switches {
            if let Some(pcpu) = cpus.iter().position(|cpu| *cpu == s.cpu as usize) {
                of_cpu[pcpu].push((noted.vcpu, *s));
            }
        }
    }
    for (pcpu, mut switches) in (0_u32..).zip(of_cpu) {
        switches.sort_by_key(|(_, s)| s.at_ns);
        let mut i = 0;
        while let Some((vcpu, s)) = switches.get(i).copied() {
            i += 1;
            let at = frame.of_ns(s.at_ns);
            let mut push = |at, moment| raw.push((at, 2, moment));
            let comes = |push: &mut dyn FnMut(Picos, Moment), vcpu: u32, at: Picos, begins: u64| {
                let slept = slept_before(all, vcpu, begins);
                push(at, Moment::Runs { vcpu, pcpu });
                if slept {
                    push(at, Moment::Returns { vcpu });
                }
            };
            let wakes = |push: &mut dyn FnMut(Picos, Moment), vcpu: u32, at: Picos, begins: u64| {
                if slept_before(all, vcpu, begins) {
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
                comes(&mut push, next, frame.of_ns(n.at_ns), n.at_ns);
            }
        }
    }
}

/// Whether the vCPU slept before it got a CPU at this time.
fn slept_before(all: &[VcpuTrace<'_>], vcpu: u32, at_ns: u64) -> bool {
    let Some(noted) = all.iter().find(|n| n.vcpu == vcpu) else { return false };
    let i = noted.switches.partition_point(|s| s.at_ns < at_ns);
    i > 0 && noted.switches[i - 1].what == SwitchKind::Slept
}
