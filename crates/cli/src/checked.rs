//! What a lock needs so that `overspin check` can run it: to work on the platforms of the models, the random schedules and
//! the threads. A build without that command asks for nothing.

use overspin_locks::LockFamily;

#[cfg(feature = "check")]
mod with_check {
    use super::LockFamily;
    use overspin_check::descheduled::Away;
    use overspin_check::model::LoomPlatform;
    use overspin_check::schedules::SchedulePlatform;
    use overspin_check::threads::StdPlatform;
    use overspin_check::{Check, Limits, checks_by_name, own_checks};
    use overspin_locks::{LockInfo, RawLock};

    /// A lock that `overspin check` can run. Each [`LockFamily`] whose locks are `Send` and `Sync` is one.
    pub trait Checkable: LockFamily {
        /// Lists all its checks.
        #[doc(hidden)]
        fn checks(limits: &Limits) -> Vec<Check>;
    }

    impl<F: LockFamily> Checkable for F
    where
        F::On<SchedulePlatform>: Send + Sync,
        <F::On<SchedulePlatform> as RawLock<SchedulePlatform>>::Shared: Send + Sync,
        F::On<Away>: Send + Sync,
        <F::On<Away> as RawLock<Away>>::Shared: Send + Sync,
        F::On<StdPlatform>: Sync,
        <F::On<StdPlatform> as RawLock<StdPlatform>>::Shared: Sync,
    {
        fn checks(limits: &Limits) -> Vec<Check> {
            own_checks::<
                F::On<LoomPlatform>,
                F::On<SchedulePlatform>,
                F::On<StdPlatform>,
                F::On<Away>,
            >(limits)
        }
    }

    /// Lists all checks of a lock.
    type Lister = fn(&Limits) -> Vec<Check>;

    /// How to check the locks of a catalog.
    #[derive(Debug, Default)]
    pub(crate) struct Checked(Vec<(LockInfo, Lister)>);

    impl Checked {
        /// Adds your lock; it replaces one of the same name.
        pub(crate) fn add<F: Checkable>(&mut self, info: LockInfo) {
            self.0.retain(|(own, _)| own.name != info.name);
            self.0.push((info, F::checks));
        }

        /// The lock's own name, for a name or an alias.
        pub(crate) fn lock(&self, name: &str) -> Option<&'static str> {
            let own = self.0.iter().find(|(own, _)| own.name == name).map(|(own, _)| own.name);
            own.or_else(|| overspin_locks::find(name).map(|lock| lock.name))
        }

        /// All checks of a lock.
        pub(crate) fn checks(&self, name: &str, limits: &Limits) -> Option<Vec<Check>> {
            match self.0.iter().find(|(own, _)| own.name == name) {
                Some((_, checks)) => Some(checks(limits)),
                None => checks_by_name(name, limits),
            }
        }

        /// Whether a lock is one of yours: no bugs were inserted into it on purpose.
        pub(crate) fn is_own(&self, name: &str) -> bool {
            self.0.iter().any(|(own, _)| own.name == name)
        }
    }
}

#[cfg(not(feature = "check"))]
mod without_check {
    use super::LockFamily;
    use overspin_locks::LockInfo;

    /// A lock that `overspin check` could run. In this build, which is without the feature `check`, each [`LockFamily`] is
    /// one.
    pub trait Checkable: LockFamily {}

    impl<F: LockFamily> Checkable for F {}

    /// How to check the locks of a catalog: nothing, in this build.
    #[derive(Debug, Default)]
    pub(crate) struct Checked;

    impl Checked {
        /// Does nothing.
        #[expect(clippy::unused_self, reason = "with the feature `check` it adds the lock")]
        pub(crate) fn add<F: Checkable>(&mut self, _: LockInfo) {}
    }
}

#[cfg(feature = "check")]
pub use with_check::Checkable;
#[cfg(feature = "check")]
pub(crate) use with_check::Checked;
#[cfg(not(feature = "check"))]
pub use without_check::Checkable;
#[cfg(not(feature = "check"))]
pub(crate) use without_check::Checked;
