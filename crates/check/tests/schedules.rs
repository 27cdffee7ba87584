//! Random and PCT schedules for every lock of the registry, and bugs put in on purpose: what `overspin
//! check` does, with fewer schedules.

use std::hint::black_box;

use overspin_check::model::Mutation;
use overspin_check::{Limits, Verdict, World, checks_by_name, seeded, seeded_by_name};
use overspin_locks::{Bug, for_each_lock, infos};

/// Each of the plans, for 4, 8 and 16 CPUs. A known flaw may or may not be found.
fn schedules(lock: &str) {
    let limits = Limits { schedules: 500, ..Limits::default() };
    let checks = checks_by_name(lock, &limits).unwrap();
    let checks: Vec<_> =
        checks.into_iter().filter(|check| check.world == World::Schedules).collect();
    assert!(!checks.is_empty(), "a lock for 4 CPUs at least");
    for check in checks {
        let report = check.run();
        assert_ne!(check.verdict(&report), Verdict::Fails, "{check:?}: {report:?}");
    }
}

fn seeded_bugs(lock: &str) {
    for bug in seeded::bugs(lock) {
        let caught = seeded_by_name(lock, bug).unwrap();
        assert!(caught.is_some(), "{bug:?} survived in {lock}");
    }
}

macro_rules! tests {
    ($($lock:ident)+) => {$(
        // The module has the name of the type: a macro cannot make another of it.
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

/// A line of a table that names no lock would check nothing.
#[test]
fn tables_name_locks_of_the_registry() {
    let names: Vec<_> = infos().iter().map(|info| info.name).collect();
    for name in overspin_check::named_in_tables() {
        assert!(names.contains(&name), "{name}");
    }
}

/// The same seed, the same schedules: a bug is found in the same one. Not even where the allocator puts
/// things decides, though pv-qspinlock has a hash table of locks by address.
#[test]
fn a_seed_decides_everything() {
    for (lock, bug) in [
        ("shfllock", Bug::S1ShflLockMovesTheTail),
        ("pv-qspinlock", Bug::V5PvQspinlockNestedWaitClearsLatch),
    ] {
        let runs = || seeded_by_name(lock, Mutation::Seeded(bug)).unwrap().unwrap().runs;
        let first = runs();
        for bytes in [48, 176, 4_080] {
            let _in_the_way = black_box(vec![0_u8; bytes]);
            assert_eq!(runs(), first, "{lock}, after {bytes} bytes");
        }
    }
}
