//! What is possible of what a world tells.
//!
//! The simulator tells what it does. A world that measures tells what others wrote down: a guest writes what it likes, even
//! an honest one tells no release for which it sees no waiter yet, and the clocks of two CPUs differ. [`run`](crate::run)
//! puts a [`Sensible`] between such a world and all observers.

use crate::moment::{Interest, LockEvent, Moment, Observer, Timed};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use overspin_scenario::Picos;

/// Passes on what makes sense to an observer, which can rely on this:
///
/// - no moment is earlier than the one before it;
/// - a vCPU waits for one lock at a time, and acquires no other lock that is contended meanwhile;
/// - only a vCPU that has a lock begins to release it, once, and only then has released it. It has a lock that it has
///   acquired, or that others wait for because of it.
///
/// The same holds for tasks and the locks that they take in user mode.
///
/// Two vCPUs may have one lock for a moment: where the second tells that it has it before the first tells the release.
#[derive(Debug)]
pub(crate) struct Sensible<O> {
    observer: O,
    last: Picos,
    /// For which lock each vCPU or task waits.
    waits: BTreeMap<Who, u32>,
    /// The locks that each vCPU or task has, and whether it has begun to release them.
    has: BTreeMap<(Who, u32), bool>,
    /// What is passed on; empty between two calls.
    passed: Vec<Timed>,
}

/// One that takes locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Vcpu(u32),
    /// By its domain and its number there.
    Task(u16, u32),
}

impl<O: Observer> Sensible<O> {
    pub(crate) fn new(observer: O) -> Self {
        let (waits, has) = (BTreeMap::new(), BTreeMap::new());
        Self { observer, last: Picos::ZERO, waits, has, passed: Vec::new() }
    }

    fn makes_sense(&mut self, moment: &Moment) -> bool {
        let (who, lock, what) = match *moment {
            Moment::LockWait { vcpu, lock, holder, releasing } => {
                (Who::Vcpu(vcpu), lock, LockEvent::Waits { holder, releasing })
            }
            Moment::LockAcquired { vcpu, lock, contended } => {
                (Who::Vcpu(vcpu), lock, LockEvent::Acquired { contended })
            }
            Moment::LockReleased { vcpu, lock, contended } => {
                (Who::Vcpu(vcpu), lock, LockEvent::Released { contended })
            }
            Moment::LockFreed { vcpu, lock, contended } => {
                (Who::Vcpu(vcpu), lock, LockEvent::Freed { contended })
            }
            Moment::TaskLock { domain, task, lock, what } => (Who::Task(domain, task), lock, what),
            _ => return true,
        };
        self.may(who, lock, what)
    }

    /// Whether this can happen at this lock. If so, it has happened.
    fn may(&mut self, who: Who, lock: u32, what: LockEvent) -> bool {
        match what {
            LockEvent::Waits { holder, releasing } => {
                if self.waits.contains_key(&who) {
                    return false;
                }
                self.waits.insert(who, lock);
                if let Some(holder) = holder {
                    let holder = match who {
                        Who::Vcpu(_) => Who::Vcpu(holder),
                        Who::Task(domain, _) => Who::Task(domain, holder),
                    };
                    self.has.insert((holder, lock), releasing);
                }
            }
            LockEvent::Acquired { contended } => {
                if contended && let Some(awaited) = self.waits.get(&who) {
                    if *awaited != lock {
                        return false;
                    }
                    self.waits.remove(&who);
                }
                self.has.insert((who, lock), false);
            }
            LockEvent::Released { .. } => match self.has.get_mut(&(who, lock)) {
                Some(releasing @ false) => *releasing = true,
                _ => return false,
            },
            LockEvent::Freed { .. } => {
                if self.has.get(&(who, lock)) != Some(&true) {
                    return false;
                }
                self.has.remove(&(who, lock));
            }
        }
        true
    }
}

impl<O: Observer> Observer for Sensible<O> {
    fn interest(&self) -> Interest {
        self.observer.interest()
    }

    fn observe(&mut self, moments: &[Timed]) {
        for Timed { at, moment } in moments {
            if self.makes_sense(moment) {
                self.last = self.last.max(*at);
                self.passed.push(Timed { at: self.last, moment: *moment });
            }
        }
        if !self.passed.is_empty() {
            self.observer.observe(&self.passed);
            self.passed.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::US;

    const fn waits(vcpu: u32, lock: u32, holder: Option<u32>) -> Moment {
        Moment::LockWait { vcpu, lock, holder, releasing: false }
    }

    const fn acquires(vcpu: u32, lock: u32, contended: bool) -> Moment {
        Moment::LockAcquired { vcpu, lock, contended }
    }

    const fn releases(vcpu: u32, lock: u32) -> Moment {
        Moment::LockReleased { vcpu, lock, contended: true }
    }

    const fn freed(vcpu: u32, lock: u32) -> Moment {
        Moment::LockFreed { vcpu, lock, contended: true }
    }

    /// What is passed on, a batch for each moment.
    fn passed(moments: &[Moment]) -> Vec<Moment> {
        let mut filter = Sensible::new(Vec::new());
        for moment in moments {
            filter.observe(&[Timed { at: US, moment: *moment }]);
        }
        filter.observer.into_iter().map(|timed| timed.moment).collect()
    }

    #[test]
    fn what_is_possible_is_passed_on() {
        let all = [
            acquires(0, 0, false),
            waits(1, 0, Some(0)),
            releases(0, 0),
            // It has it before the release is over, and acquires another lock within the section.
            acquires(1, 0, true),
            acquires(1, 1, false),
            freed(0, 0),
            releases(1, 0),
            freed(1, 0),
            Moment::Yield { vcpu: 0 },
        ];
        assert_eq!(passed(&all), all);
    }

    #[test]
    fn a_guest_need_not_tell_acquisitions_that_nobody_waits_for() {
        let all = [waits(1, 0, Some(0)), releases(0, 0), freed(0, 0), acquires(1, 0, true)];
        assert_eq!(passed(&all), all);
    }

    #[test]
    fn a_release_that_is_told_late_ends_its_section() {
        let all = [acquires(0, 0, false), acquires(1, 0, true), releases(0, 0), freed(0, 0)];
        assert_eq!(passed(&all), all);
    }

    #[test]
    fn nobody_releases_what_it_does_not_have_or_waits_twice() {
        let impossible: [(&[Moment], Moment); 7] = [
            (&[], releases(0, 0)),
            (&[], freed(0, 0)),
            (&[acquires(0, 0, true)], freed(0, 0)),
            (&[acquires(0, 0, true)], releases(0, 1)),
            (&[acquires(0, 0, true), releases(0, 0)], releases(0, 0)),
            (&[waits(0, 0, None)], waits(0, 1, None)),
            (&[waits(0, 0, None)], acquires(0, 1, true)),
        ];
        for (before, moment) in impossible {
            assert_eq!(passed(&[before, &[moment]].concat()), before, "{moment:?}");
        }
    }

    /// A task is not the vCPU of its number, nor the task of another domain.
    #[test]
    fn tasks_are_held_to_the_same() {
        let at = |domain, task, what| Moment::TaskLock { domain, task, lock: 0, what };
        let released = LockEvent::Released { contended: true };
        let waits = LockEvent::Waits { holder: Some(1), releasing: false };
        let all = [acquires(0, 0, true), at(0, 2, waits), at(0, 1, released)];
        assert_eq!(passed(&all), all);
        assert_eq!(passed(&[acquires(1, 0, true), at(0, 1, released)]), [acquires(1, 0, true)]);
        assert_eq!(passed(&[at(0, 2, waits), at(1, 1, released)]), [at(0, 2, waits)]);
        assert_eq!(passed(&[at(0, 2, waits), at(0, 2, waits)]), [at(0, 2, waits)]);
    }

    #[test]
    fn time_does_not_go_back() {
        let mut filter = Sensible::new(Vec::new());
        let at = |us| Timed { at: us * US, moment: Moment::Yield { vcpu: 0 } };
        filter.observe(&[at(3), at(2)]);
        filter.observe(&[at(1), at(4)]);
        assert_eq!(filter.observer, [at(3), at(3), at(3), at(4)]);
    }
}
