//! Random and PCT schedules for every lock of the registry, and bugs put in on purpose: what `overspin
//! check` does, with fewer schedules.

use overspin_check::{Limits, Verdict, World, checks_by_name, seeded, seeded_by_name};
use overspin_locks::{for_each_lock, infos};

/// Each of the plans, for 4, 8 and 16 CPUs. A known flaw may or may not be found.
fn schedules(lock: &str) {
    let limits = Limits { schedules: 500, ..Limits::default() };
    let checks = checks_by_name(lock, &limits).unwrap();
    let checks: Vec<_> =
        checks.into_iter().filter(|check| check.world == World::Schedules).collect();
    assert_eq!(checks.len(), 18, "three plans, three numbers of CPUs, two strategies");
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

/// The same seed, the same schedules: the bug of ShflLock is found in the same one.
#[test]
fn a_seed_decides_everything() {
    let bug = overspin_check::model::Mutation::Seeded(overspin_locks::Bug::S1ShflLockMovesTheTail);
    let runs = || seeded_by_name("shfllock", bug).unwrap().unwrap().runs;
    assert_eq!(runs(), runs());
}
