//! The moments of a run, in order of time, although several CPUs tell them.
//!
//! The host tells its own moments under its lock, in order. Guests write theirs to rings, which are emptied at each
//! exit; so moments of a guest arrive late, by at most as long as a vCPU stays in its guest. A moment is passed on
//! once no earlier one can arrive.

use overspin_guest_abi::{Traced, kind};
use overspin_host::{Interest, Moment, Observer, Timed};
use overspin_scenario::{NS, Picos};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Moments that are kept at most; beyond that, moments of guests are dropped and counted.
const MOST: usize = 8_000_000;

/// Moments on their way to the observer.
#[derive(Debug)]
pub(crate) struct Tracing {
    pub interest: Interest,
    waiting: Vec<Timed>,
    /// Moments of guests that were dropped.
    pub dropped: u64,
}

impl Tracing {
    pub(crate) fn new(interest: Interest) -> Self {
        Self { interest, waiting: Vec::new(), dropped: 0 }
    }

    pub(crate) fn tell(&mut self, at: Picos, moment: Moment) {
        if moment.concerns().meets(self.interest) {
            self.waiting.push(Timed { at, moment });
        }
    }

    /// Takes what vCPU `v`, of the domain whose vCPUs begin with `first`, has traced. A domain with `locks` locks and
    /// `vcpus` vCPUs may have written anything; what makes no sense is left out.
    pub(crate) fn take<'a>(
        &mut self,
        traced: impl Iterator<Item = &'a Traced>,
        v: u32,
        first: u32,
        (locks, vcpus): (u32, u32),
        now: Picos,
    ) {
        for moment in traced {
            let what = moment.what.load(Ordering::Relaxed);
            let at = NS.saturating_mul(moment.at.load(Ordering::Relaxed)).min(now);
            let lock = (what >> 8) as u32 & 0xff_ffff;
            let holder = ((what >> 32) as u32).checked_sub(1);
            if lock >= locks || holder.is_some_and(|holder| holder >= vcpus) {
                continue;
            }
            let holder = holder.map(|holder| first + holder).filter(|holder| *holder != v);
            let moment = match what as u8 {
                kind::WAIT => Moment::LockWait { vcpu: v, lock, holder, releasing: false },
                kind::ACQUIRED => Moment::LockAcquired { vcpu: v, lock, contended: false },
                kind::ACQUIRED_CONTENDED => Moment::LockAcquired { vcpu: v, lock, contended: true },
                kind::RELEASED => Moment::LockReleased { vcpu: v, lock, contended: true },
                kind::FREED => Moment::LockFreed { vcpu: v, lock, contended: true },
                _ => continue,
            };
            if self.waiting.len() < MOST {
                self.tell(at, moment);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// The moments up to `until`, in order.
    pub(crate) fn ready(&mut self, until: Picos) -> Vec<Timed> {
        // Stable: the moments of one instant keep the order in which they were told.
        self.waiting.sort_by_key(|moment| moment.at);
        let count = self.waiting.partition_point(|moment| moment.at <= until);
        let rest = self.waiting.split_off(count);
        std::mem::replace(&mut self.waiting, rest)
    }
}

/// Passes moments on: none earlier than one before it, and of locks only what makes sense.
///
/// Guests tell whatever they like, and even an honest one leaves gaps: it does not trace a release for which it sees
/// no waiter yet. Observers rely on this, for each lock:
///
/// - a vCPU waits for one lock at a time, and stops to wait when it has the lock;
/// - only the vCPU that has it begins to release it, once, and only then has released it.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    last: Picos,
    locks: HashMap<(u32, u32), Lock>,
    /// For which lock each vCPU waits.
    waits: HashMap<u32, u32>,
}

/// The state of a lock, as far as it was told.
#[derive(Debug, Default)]
struct Lock {
    waiters: u32,
    holder: Option<u32>,
    releasing: bool,
}

impl Pass {
    /// Passes `moments` on; `domain_of` is the domain of a vCPU.
    pub(crate) fn on(
        &mut self,
        mut moments: Vec<Timed>,
        domain_of: &dyn Fn(u32) -> u32,
        observer: &mut dyn Observer,
    ) {
        moments.retain(|moment| self.makes_sense(&moment.moment, domain_of));
        for moment in &mut moments {
            moment.at = moment.at.max(self.last);
            self.last = moment.at;
        }
        if !moments.is_empty() {
            observer.observe(&moments);
        }
    }

    fn makes_sense(&mut self, moment: &Moment, domain_of: &dyn Fn(u32) -> u32) -> bool {
        fn state(locks: &mut HashMap<(u32, u32), Lock>, of: (u32, u32)) -> &mut Lock {
            locks.entry(of).or_default()
        }
        match *moment {
            Moment::LockWait { vcpu, lock, holder, .. } => {
                if self.waits.contains_key(&vcpu) {
                    return false;
                }
                self.waits.insert(vcpu, lock);
                let state = state(&mut self.locks, (domain_of(vcpu), lock));
                if state.waiters == 0 {
                    (state.holder, state.releasing) = (holder, false);
                }
                state.waiters += 1;
            }
            Moment::LockAcquired { vcpu, lock, contended: true } => {
                let waited = match self.waits.get(&vcpu) {
                    Some(other) if *other != lock => return false,
                    waits => waits.is_some(),
                };
                let state = state(&mut self.locks, (domain_of(vcpu), lock));
                (state.holder, state.releasing) = (Some(vcpu), false);
                if waited {
                    state.waiters -= 1;
                    self.waits.remove(&vcpu);
                }
            }
            Moment::LockReleased { vcpu, lock, .. } => {
                let state = state(&mut self.locks, (domain_of(vcpu), lock));
                if state.holder != Some(vcpu) || state.releasing {
                    return false;
                }
                state.releasing = true;
            }
            Moment::LockFreed { vcpu, lock, .. } => {
                let state = state(&mut self.locks, (domain_of(vcpu), lock));
                if state.holder != Some(vcpu) || !state.releasing {
                    return false;
                }
                (state.holder, state.releasing) = (None, false);
            }
            _ => {}
        }
        true
    }
}
