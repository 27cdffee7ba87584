//! What is possible of what a world tells.
//!
//! The simulator tells what it does. A world that measures tells what others wrote down: a guest writes what it likes, even
//! an honest one tells no release for which it sees no waiter yet, and the clocks of two CPUs differ. [`run`](crate::run)
//! puts a [`Sensible`] between such a world and all observers.

use crate::moment::{Interest, Moment, Observer, Timed};
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
/// Two vCPUs may have one lock for a moment: where the second tells that it has it before the first tells the release.
#[derive(Debug)]
pub(crate) struct Sensible<O> {
    observer: O,
    last: Picos,
    /// For which lock each vCPU waits.
    waits: BTreeMap<u32, u32>,
    /// The locks that each vCPU has, and whether it has begun to release them.
    has: BTreeMap<(u32, u32), bool>,
    /// What is passed on; empty between two calls.
    passed: Vec<Timed>,
}

impl<O: Observer> Sensible<O> {
    pub(crate) fn new(observer: O) -> Self {
        let (waits, has) = (BTreeMap::new(), BTreeMap::new());
        Self { observer, last: Picos::ZERO, waits, has, passed: Vec::new() }
    }

    fn makes_sense(&mut self, moment: &Moment) -> bool {
        match *moment {
            Moment::LockWait { vcpu, lock, holder, releasing } => {
                if self.waits.contains_key(&vcpu) {
                    return false;
                }
                self.waits.insert(vcpu, lock);
                if let Some(holder) = holder {
                    self.has.insert((holder, lock), releasing);
                }
            }
            Moment::LockAcquired { vcpu, lock, contended } => {
                if contended && let Some(awaited) = self.waits.get(&vcpu) {
                    if *awaited != lock {
                        return false;
                    }
                    self.waits.remove(&vcpu);
                }
                self.has.insert((vcpu, lock), false);
            }
            Moment::LockReleased { vcpu, lock, .. } => match self.has.get_mut(&(vcpu, lock)) {
                Some(releasing @ false) => *releasing = true,
                _ => return false,
            },
            Moment::LockFreed { vcpu, lock, .. } => {
                if self.has.get(&(vcpu, lock)) != Some(&true) {
                    return false;
                }
                self.has.remove(&(vcpu, lock));
            }
            _ => {}
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

    #[test]
    fn time_does_not_go_back() {
        let mut filter = Sensible::new(Vec::new());
        let at = |us| Timed { at: us * US, moment: Moment::Yield { vcpu: 0 } };
        filter.observe(&[at(3), at(2)]);
        filter.observe(&[at(1), at(4)]);
        assert_eq!(filter.observer, [at(3), at(3), at(3), at(4)]);
    }
}
