//! The moments of a run, in order of time, although several CPUs tell them.
//!
//! The host tells its own moments under its lock, in order. Guests write theirs to rings, which are emptied at each
//! exit; so moments of a guest arrive late, by at most as long as a vCPU stays in its guest. A moment is passed on
//! once no earlier one can arrive.

use overspin_guest_abi::{Traced, kind};
use overspin_host::{Interest, LockEvent, Moment, SleepEvent, Timed};
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
    /// The task that each vCPU ran when it last traced something.
    current: Vec<Option<u32>>,
}

/// The domain of a vCPU that has traced something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracer {
    pub domain: u32,
    /// The first vCPU of the domain.
    pub first: u32,
    pub vcpus: u32,
    pub locks: u32,
    pub tasks: u32,
}

impl Tracing {
    pub(crate) fn new(interest: Interest) -> Self {
        Self { interest, waiting: Vec::new(), dropped: 0, current: Vec::new() }
    }

    pub(crate) fn tell(&mut self, at: Picos, moment: Moment) {
        if moment.concerns().meets(self.interest) {
            self.waiting.push(Timed { at, moment });
        }
    }

    /// Takes what vCPU `v` has traced. It may have written anything; locks, vCPUs and tasks that its domain does not have
    /// are left out.
    pub(crate) fn take<'a>(
        &mut self,
        traced: impl Iterator<Item = &'a Traced>,
        v: u32,
        of: Tracer,
        now: Picos,
    ) {
        if self.current.len() <= v as usize {
            self.current.resize(v as usize + 1, None);
        }
        for moment in traced {
            let what = moment.what.load(Ordering::Relaxed);
            let at = NS.saturating_mul(moment.at.load(Ordering::Relaxed)).min(now);
            let lock = (what >> 8) as u32 & 0xff_ffff;
            let number = ((what >> 32) as u32).checked_sub(1);
            let moment = match what as u8 {
                of_tasks if of_tasks & kind::USER != 0 || of_tasks >= kind::TASK => {
                    self.of_task(of_tasks, v, of, (lock, number))
                }
                of_locks => of.at_lock(of_locks, v, (lock, number)),
            };
            let Some(moment) = moment else { continue };
            if self.waiting.len() < MOST {
                self.tell(at, moment);
            } else {
                self.dropped += 1;
            }
        }
    }

    /// A moment of a task.
    fn of_task(
        &mut self,
        what: u8,
        v: u32,
        of: Tracer,
        (lock, number): (u32, Option<u32>),
    ) -> Option<Moment> {
        let known = |task: &u32| *task < of.tasks;
        // No scenario has more domains; see `Moment::TaskLock`.
        let domain = of.domain as u16;
        let sleep = |what| {
            let task = number.filter(known)?;
            Some(Moment::TaskSleep { domain, task, what })
        };
        match what {
            kind::TASK => {
                let task = number.filter(known);
                self.current[v as usize] = task;
                Some(Moment::Task { vcpu: v, task })
            }
            kind::SLEEPS => sleep(SleepEvent::Begins),
            kind::WAKES => sleep(SleepEvent::Wakes),
            kind::RETURNS => sleep(SleepEvent::Returns),
            _ => {
                let task = self.current[v as usize].filter(|_| lock < of.locks)?;
                let holder = number.filter(known).filter(|holder| *holder != task);
                let what = match what ^ kind::USER {
                    kind::WAIT => LockEvent::Waits { holder, releasing: false },
                    kind::ACQUIRED => LockEvent::Acquired { contended: false },
                    kind::ACQUIRED_CONTENDED => LockEvent::Acquired { contended: true },
                    kind::RELEASED => LockEvent::Released { contended: true },
                    kind::FREED => LockEvent::Freed { contended: true },
                    _ => return None,
                };
                Some(Moment::TaskLock { domain, task, lock, what })
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

impl Tracer {
    /// A moment of vCPU `v` at a lock.
    fn at_lock(self, what: u8, v: u32, (lock, holder): (u32, Option<u32>)) -> Option<Moment> {
        if lock >= self.locks || holder.is_some_and(|holder| holder >= self.vcpus) {
            return None;
        }
        let holder = holder.map(|holder| self.first + holder).filter(|holder| *holder != v);
        Some(match what {
            kind::WAIT => Moment::LockWait { vcpu: v, lock, holder, releasing: false },
            kind::ACQUIRED => Moment::LockAcquired { vcpu: v, lock, contended: false },
            kind::ACQUIRED_CONTENDED => Moment::LockAcquired { vcpu: v, lock, contended: true },
            kind::RELEASED => Moment::LockReleased { vcpu: v, lock, contended: true },
            kind::FREED => Moment::LockFreed { vcpu: v, lock, contended: true },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const OF: Tracer = Tracer { domain: 1, first: 4, vcpus: 2, locks: 1, tasks: 3 };

    /// What becomes of moments, each a kind, a lock and a number, that vCPU 5 traced.
    fn told(traced: &[(u8, u32, u32)]) -> Vec<Moment> {
        let mut tracing = Tracing::new(Interest::ALL);
        let ring: Vec<Traced> = traced
            .iter()
            .map(|(kind, lock, number)| {
                let moment = Traced { at: AtomicU64::new(0), what: AtomicU64::new(0) };
                moment.write(1, *kind, *lock, *number);
                moment
            })
            .collect();
        tracing.take(ring.iter(), 5, OF, Picos::us(1));
        tracing.ready(Picos::MAX).into_iter().map(|timed| timed.moment).collect()
    }

    /// Task 2 of vCPU 5 waits for a lock that task 0 holds. The number of a task or vCPU in a ring is one higher.
    #[test]
    fn a_task_at_a_lock_is_the_one_that_its_vcpu_runs() {
        let waits = kind::WAIT | kind::USER;
        let runs = Moment::Task { vcpu: 5, task: Some(2) };
        let what = LockEvent::Waits { holder: Some(0), releasing: false };
        let task_waits = Moment::TaskLock { domain: 1, task: 2, lock: 0, what };
        assert_eq!(told(&[(kind::TASK, 0, 3), (waits, 0, 1)]), [runs, task_waits]);
        let vcpu_waits = Moment::LockWait { vcpu: 5, lock: 0, holder: Some(4), releasing: false };
        assert_eq!(told(&[(kind::TASK, 0, 3), (kind::WAIT, 0, 1)]), [runs, vcpu_waits]);
        let sleeps = Moment::TaskSleep { domain: 1, task: 0, what: SleepEvent::Begins };
        assert_eq!(told(&[(kind::SLEEPS, 0, 1)]), [sleeps]);
    }

    #[test]
    fn what_its_domain_does_not_have_is_left_out() {
        let (idles, user) = (Moment::Task { vcpu: 5, task: None }, kind::USER);
        assert_eq!(told(&[(kind::TASK, 0, 4)]), [idles], "there is no task 3");
        assert_eq!(told(&[(kind::TASK, 0, 0), (kind::FREED | user, 0, 0)]), [idles]);
        assert_eq!(told(&[(kind::WAKES, 0, 0), (kind::WAKES, 0, 4)]), []);
        assert_eq!(told(&[(kind::WAIT, 0, 3), (kind::WAIT, 1, 0), (0, 0, 0), (user, 0, 0)]), []);
        let runs = Moment::Task { vcpu: 5, task: Some(0) };
        let nonsense =
            [(kind::TASK, 0, 1), (kind::WAIT | user, 1, 0), (user | 77, 0, 1), (99, 0, 1)];
        assert_eq!(told(&nonsense), [runs]);
    }
}
