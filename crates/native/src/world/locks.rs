//! The locks of a domain: one kind, by name, on the platform of this world.

use std::fmt;
use std::sync::Arc;

use overspin_locks::{CachePadded, LockInfo, Platform, RawLock, Tuning};

use super::platform::RunThreads;
use crate::raw::capacity;
use crate::served_id;

/// A task's way to the locks of its domain. It keeps the tokens of the task's acquisitions, so that no lock is
/// trusted with memory.
pub(super) trait Hand {
    /// Takes lock `i`, which the task must not hold.
    fn lock(&mut self, i: usize);
    /// Releases lock `i`, if the task holds it.
    fn unlock(&mut self, i: usize);
}

/// The locks of a domain.
pub(super) trait Bank: Send + Sync {
    /// The way of the calling thread to them; `None` if the kind of lock does not serve so many threads.
    fn hand(self: Arc<Self>) -> Option<Box<dyn Hand>>;
}

// One text for all kinds: a derived one would be compiled once for each.
impl fmt::Debug for dyn Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hand")
    }
}

impl fmt::Debug for dyn Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bank")
    }
}

struct Locks<L: RawLock<RunThreads>>
where
    L::Shared: Send + Sync,
{
    shared: L::Shared,
    locks: Box<[CachePadded<L>]>,
}

struct Tokens<L: RawLock<RunThreads>>
where
    L::Shared: Send + Sync,
{
    bank: Arc<Locks<L>>,
    tokens: Box<[Option<L::Token>]>,
}

impl<L> Bank for Locks<L>
where
    L: RawLock<RunThreads> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    fn hand(self: Arc<Self>) -> Option<Box<dyn Hand>> {
        served_id(capacity::<RunThreads, L>())?;
        let tokens = RunThreads::slots(self.locks.len(), |_| None);
        Some(Box::new(Tokens { bank: self, tokens }))
    }
}

impl<L: RawLock<RunThreads>> Hand for Tokens<L>
where
    L::Shared: Send + Sync,
{
    #[inline]
    fn lock(&mut self, i: usize) {
        self.tokens[i] = Some(self.bank.locks[i].lock(&self.bank.shared));
    }

    #[inline]
    fn unlock(&mut self, i: usize) {
        if let Some(token) = self.tokens[i].take() {
            self.bank.locks[i].unlock(&self.bank.shared, token);
        }
    }
}

/// A kind of lock that domains can name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub info: LockInfo,
    make: fn(usize, Tuning) -> Arc<dyn Bank>,
}

impl Known {
    /// The lock `L`.
    pub(super) fn of<L>() -> Self
    where
        L: RawLock<RunThreads> + Send + Sync + 'static,
        L::Shared: Send + Sync,
    {
        let make = |count, tuning| -> Arc<dyn Bank> {
            let shared = L::shared(capacity::<RunThreads, L>(), tuning)
                .expect("no more CPUs than the lock's own limit");
            let locks = RunThreads::slots(count, |_| CachePadded::new(L::new()));
            Arc::new(Locks { shared, locks })
        };
        Self { info: L::INFO, make }
    }

    /// As many locks as `count`, with these settings of their domain. Otherwise they are as published: the simulator's are,
    /// with which this world is compared. So the mutex neither charges for long sections nor learns what a move costs.
    pub(super) fn bank(
        &self,
        count: usize,
        spin_budget: Option<u32>,
        nopvspin: bool,
    ) -> Arc<dyn Bank> {
        (self.make)(count, Tuning { spin_budget, nopvspin, ..Tuning::DEFAULT })
    }
}

macro_rules! every_lock {
    ($($lock:ident)+) => {
        /// Every lock of the registry.
        static REGISTERED: std::sync::LazyLock<Vec<Known>> = std::sync::LazyLock::new(|| {
            vec![$(Known::of::<overspin_locks::$lock<RunThreads>>()),+]
        });
    };
}
overspin_locks::for_each_lock!(every_lock);

/// The lock of the registry with this name or alias.
pub(super) fn registered(name: &str) -> Option<Known> {
    let name = overspin_locks::find(name)?.name;
    REGISTERED.iter().find(|known| known.info.name == name).copied()
}
