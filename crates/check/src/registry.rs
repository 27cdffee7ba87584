//! The checks of a lock that is chosen by name.

use overspin_locks::{RawLock, for_each_lock};

use crate::Mutation;
use crate::descheduled::Away;
use crate::model::LoomPlatform;
use crate::schedules::SchedulePlatform;
use crate::seeded::{Caught, hunt_within};
use crate::threads::StdPlatform;
use crate::{Check, Limits, Profile, World, checks};

/// Lists all checks of a lock, given its types on the platforms of the worlds that check it.
pub fn own_checks<M, S, T, A>(limits: &Limits) -> Vec<Check>
where
    M: RawLock<LoomPlatform> + 'static,
    S: RawLock<SchedulePlatform> + Send + Sync + 'static,
    S::Shared: Send + Sync,
    T: RawLock<StdPlatform> + Sync + 'static,
    T::Shared: Sync,
    A: RawLock<Away> + Send + Sync + 'static,
    A::Shared: Send + Sync,
{
    let mut checks = checks::<M, S, T>(Profile::of(&T::INFO), limits);
    // Before the threads, which tell least.
    let threads = checks.iter().position(|check| check.world == World::Threads);
    let at = threads.unwrap_or(checks.len());
    checks.splice(at..at, Check::descheduled::<A>());
    checks
}

macro_rules! by_name {
    ($($lock:ident)+) => {
        use overspin_locks::{$($lock),+};

        /// Lists all checks of the lock with this name or alias; `None` if there is no such lock.
        pub fn checks_by_name(name: &str, limits: &Limits) -> Option<Vec<Check>> {
            let name = overspin_locks::find(name)?.name;
            $({
                if <$lock<StdPlatform> as RawLock<StdPlatform>>::INFO.name == name {
                    return Some(own_checks::<
                        $lock<LoomPlatform>,
                        $lock<SchedulePlatform>,
                        $lock<StdPlatform>,
                        $lock<Away>,
                    >(limits));
                }
            })+
            None
        }

        /// Looks for `bug` in the lock with this name or alias. Returns `None` if there is no such
        /// lock, and `Some(None)` if the bug survives.
        pub fn seeded_by_name(name: &str, bug: Mutation) -> Option<Option<Caught>> {
            seeded_by_name_within(name, bug, usize::MAX)
        }

        /// As [`seeded_by_name`], with at most so many executions of each model.
        pub fn seeded_by_name_within(
            name: &str,
            bug: Mutation,
            executions: usize,
        ) -> Option<Option<Caught>> {
            let name = overspin_locks::find(name)?.name;
            $(
                if <$lock<StdPlatform> as RawLock<StdPlatform>>::INFO.name == name {
                    type Hunted<P> = $lock<P>;
                    let hunt = hunt_within::<Hunted<LoomPlatform>, Hunted<SchedulePlatform>>;
                    return Some(hunt(bug, executions));
                }
            )+
            None
        }
    };
}

for_each_lock!(by_name);
