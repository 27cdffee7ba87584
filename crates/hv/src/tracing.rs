//! The moments of a run, in order of time, although several CPUs tell them.
//!
//! The host tells its own moments under its lock, in order. Guests write theirs to rings, which are emptied at each
//! exit; so moments of a guest arrive late, by at most as long as a vCPU stays in its guest. A moment is passed on
//! once no earlier one can arrive.

use overspin_guest_abi::{Traced, kind};
use overspin_host::{Interest, Moment, Timed};
use overspin_scenario::{NS, Picos};
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
    /// `vcpus` vCPUs may have written anything; locks and vCPUs that do not exist are left out.
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
