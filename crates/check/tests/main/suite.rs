//! The thread suite for every lock of the registry, and the promises of the registry. A new lock
//! needs no line here.

use std::cell::Cell;
use std::sync::atomic::AtomicU8;

use overspin_check::threads::StdPlatform;
use overspin_check::{NO_SPIN, Profile};
use overspin_locks::{
    AtomicCell, Budget, LockByte, LockInfo, LockVisitor, PvTicket2012, PvTicket2012Small, RawLock,
    Ticket, TicketSmall, Tuning, XenPv, for_each_lock, infos, with_lock,
};

/// Checks the size, the way to give up if it is promised, and that the registry knows the lock.
fn info<L: RawLock<StdPlatform>>() {
    assert_eq!(size_of::<L>(), L::INFO.size);
    assert!(infos().contains(&L::INFO));
    assert_eq!(L::INFO.abortable, L::LOCK_UNTIL.is_some());
}

macro_rules! suite {
    ($($lock:ident)+) => {
        $(
            // The module has the name of the type, because a macro cannot derive another name from
            // it.
            #[allow(non_snake_case)]
            mod $lock {
                use super::{NO_SPIN, Profile};
                use overspin_check::suite;
                use overspin_check::threads::StdPlatform;
                use overspin_locks::{RawLock, Tuning};

                type Lock = overspin_locks::$lock<StdPlatform>;

                #[test]
                fn exclusion() {
                    suite::exclusion::<Lock>(Tuning::DEFAULT);
                }

                #[test]
                fn exclusion_without_spinning() {
                    suite::exclusion::<Lock>(NO_SPIN);
                }

                #[test]
                fn exclusion_with_tries() {
                    suite::exclusion_with_tries::<Lock>(NO_SPIN);
                }

                #[test]
                fn try_lock() {
                    suite::try_lock::<Lock>();
                }

                #[test]
                fn irqsave() {
                    suite::irqsave::<Lock>();
                }

                #[test]
                fn many_locks_held() {
                    suite::many_locks_held::<Lock>();
                }

                #[test]
                fn waiters() {
                    suite::waiters::<Lock>(Tuning::DEFAULT, Profile::of(&Lock::INFO).records_waiters);
                }

                #[test]
                fn capacity() {
                    suite::capacity::<Lock>();
                }

                #[test]
                fn info() {
                    super::info::<Lock>();
                }
            }
        )+
    };
}

mod every {
    use super::*;

    for_each_lock!(suite);
}

struct InfoOf;

impl LockVisitor<StdPlatform> for InfoOf {
    type Output = LockInfo;

    fn visit<L: RawLock<StdPlatform> + 'static>(self) -> LockInfo {
        L::INFO
    }
}

#[test]
fn every_name_leads_to_its_lock() {
    for info in infos() {
        assert_eq!(with_lock::<StdPlatform, _>(info.name, InfoOf), Some(*info));
    }
    let byte = with_lock::<StdPlatform, _>("byte", InfoOf).map(|info| info.name);
    assert_eq!(byte, Some("lock-byte"));
    assert_eq!(with_lock::<StdPlatform, _>("mutes", InfoOf), None);
}

#[test]
fn names_are_unique() {
    for (index, info) in infos().iter().enumerate() {
        assert!(infos()[..index].iter().all(|other| other.name != info.name));
    }
}

#[test]
fn sizes_are_those_of_the_published_locks() {
    assert_eq!(size_of::<LockByte<StdPlatform>>(), 2);
    assert_eq!(size_of::<TicketSmall<StdPlatform>>(), 2);
    assert_eq!(size_of::<Ticket<StdPlatform>>(), 4);
    assert_eq!(size_of::<PvTicket2012Small<StdPlatform>>(), 2);
    assert_eq!(size_of::<PvTicket2012<StdPlatform>>(), 4);
    assert_eq!(size_of::<XenPv<StdPlatform>>(), 4);
}

#[test]
fn capacities_are_those_of_the_ticket_widths() {
    assert_eq!(TicketSmall::<StdPlatform>::INFO.max_cpus, 255);
    assert_eq!(Ticket::<StdPlatform>::INFO.max_cpus, 65_535);
    // The flag takes one bit.
    assert_eq!(PvTicket2012Small::<StdPlatform>::INFO.max_cpus, 127);
    assert_eq!(PvTicket2012::<StdPlatform>::INFO.max_cpus, 32_767);
}

#[test]
fn the_capacity_error_says_what_to_change() {
    let error = TicketSmall::<StdPlatform>::shared(300, Tuning::DEFAULT).unwrap_err();
    assert_eq!(error.to_string(), "300 CPUs are too many: this lock serves at most 255");
}

#[test]
fn a_budget_is_a_number_of_evaluations() {
    for (budget, evaluations) in [(0, 1), (1, 1), (5, 5)] {
        let cell = <AtomicU8 as AtomicCell>::new(1);
        let seen = Cell::new(0);
        let never = |_| {
            seen.set(seen.get() + 1);
            false
        };
        assert_eq!(cell.spin_until(never, Budget::Iterations(budget)), Err(1));
        assert_eq!(seen.take(), evaluations);
        let mut left = budget;
        assert_eq!(cell.spin_until_within(never, &mut left), Err(1));
        assert_eq!((seen.get(), left), (evaluations, 0));
    }
}

#[test]
fn a_budget_lasts_over_several_spins() {
    let cell = <AtomicU8 as AtomicCell>::new(1);
    let mut left = 10;
    let seen = Cell::new(0);
    let third_time = |_| {
        seen.set(seen.get() + 1);
        seen.get() == 3
    };
    assert_eq!(cell.spin_until_within(third_time, &mut left), Ok(1));
    assert_eq!(left, 7);
    assert_eq!(cell.spin_until_within(|_| false, &mut left), Err(1));
    assert_eq!(left, 0);
}
