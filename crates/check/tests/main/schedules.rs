//! Random and PCT schedules for every lock of the registry, and deliberate bugs. This is `overspin
//! check` with fewer schedules.

use std::hint::black_box;

use crate::bounds::{self, hunt};
use overspin_testing::deep;

use overspin_check::{Limits, Mutation, Verdict, World, checks_by_name, seeded, special};
use overspin_locks::{Bug, for_each_lock, infos};

/// Runs each plan. The schedules may or may not find a known flaw.
fn schedules(lock: &str) {
    let limits = Limits { schedules: bounds::schedules(lock), ..Limits::default() };
    let checks = checks_by_name(lock, &limits).unwrap();
    let checks: Vec<_> =
        checks.into_iter().filter(|check| check.world == World::Schedules).collect();
    assert!(!checks.is_empty(), "each lock serves some CPUs");
    for check in checks {
        let report = check.run();
        assert_ne!(check.verdict(&report), Verdict::Fails, "{check:?}: {report:?}");
    }
}

/// Another test tries the bugs that special models find.
fn seeded_bugs(lock: &str) {
    let special: Vec<_> = special::of(lock).into_iter().flat_map(|it| it.bugs).collect();
    for bug in seeded::bugs(lock) {
        if !special.iter().any(|(known, _)| *known == bug) {
            let caught = hunt(lock, bug);
            assert!(caught.is_some(), "{bug:?} survived in {lock}");
        }
    }
}

macro_rules! tests {
    ($($lock:ident)+) => {$(
        // The module has the name of the type, because a macro cannot derive another name from it.
        #[allow(non_snake_case)]
        mod $lock {
            use overspin_check::threads::StdPlatform;
            use overspin_locks::RawLock;

            type Lock = overspin_locks::$lock<StdPlatform>;

            #[test]
            fn schedules() {
                super::schedules(Lock::INFO.name);
            }

            #[test]
            fn seeded_bugs() {
                super::seeded_bugs(Lock::INFO.name);
            }
        }
    )+};
}

for_each_lock!(tests);

/// A table line with an unknown lock would check nothing.
#[test]
fn tables_name_locks_of_the_registry() {
    let names: Vec<_> = infos().iter().map(|info| info.name).collect();
    for name in overspin_check::named_in_tables() {
        assert!(names.contains(&name), "{name}");
    }
}

/// The same seed gives the same schedules, so the same schedule finds a bug. The allocator's placement
/// has no effect, although pv-qspinlock has a hash table of locks by address.
#[test]
fn a_seed_decides_everything() {
    for (lock, bug) in [
        ("shfllock", Bug::S1ShflLockMovesTheTail),
        ("pv-qspinlock-4.5", Bug::V5PvQspinlockNestedWaitClearsLatch),
    ] {
        let runs = || hunt(lock, Mutation::Seeded(bug)).unwrap().runs;
        let first = runs();
        for bytes in if deep() { &[48, 176, 4_080][..] } else { &[176] } {
            let _in_the_way = black_box(vec![0_u8; *bytes]);
            assert_eq!(runs(), first, "{lock}, after {bytes} bytes");
        }
    }
}
