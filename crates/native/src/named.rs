//! Locks of a kind that is chosen by name at run time.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

use overspin_locks::{Platform, RawLock};

use crate::raw::{NativeLock, capacity, records};
use crate::{Threads, served_id};

/// A lock that keeps the token of its acquisition, so that all kinds have one type.
pub trait NamedLock: fmt::Debug + Send + Sync {
    /// Whether the calling thread has a number, and the lock records for it. Once true in a thread, it stays
    /// so until the last destructors of the thread.
    fn admits(&self) -> bool;

    /// Acquires, waiting as long as it takes.
    ///
    /// # Panics
    /// If the lock does not admit this thread, before it has touched the lock.
    fn lock(&self);

    /// Acquires if that is possible at once.
    ///
    /// # Panics
    /// As [`NamedLock::lock`].
    fn try_lock(&self) -> bool;

    /// Releases.
    ///
    /// # Safety
    /// This thread holds the lock.
    unsafe fn unlock(&self);
}

/// A kind of lock, with records for all threads that it can serve. Locks made of one value share them.
pub struct Kind {
    name: &'static str,
    capacity: usize,
    make: Box<dyn Fn() -> Box<dyn NamedLock> + Send + Sync>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Kind {
    /// The lock of the registry of that name or alias; `None` if there is none.
    pub fn new(name: &str) -> Option<Self> {
        kind(Self::name_of(name)?)
    }

    /// The name that the alias `name` stands for, or `name` itself; `None` if there is no such lock.
    pub fn name_of(name: &str) -> Option<&'static str> {
        overspin_locks::find(name).map(|info| info.name)
    }

    /// Locks of the type `L` on a platform other than [`Threads`].
    ///
    /// # Safety
    /// `L` does what [`NativeLock`] promises, and the platform's `cpu_id` is [`thread_id`](crate::thread_id).
    pub unsafe fn of<P: Platform, L: RawLock<P> + Send + Sync + 'static>() -> Self
    where
        L::Shared: Send + Sync,
    {
        let capacity = capacity::<P, L>();
        let shared = Arc::new(records::<P, L>());
        let make = move || -> Box<dyn NamedLock> {
            let token = UnsafeCell::new(None);
            Box::new(Named::<P, L> { lock: L::new(), token, shared: Arc::clone(&shared), capacity })
        };
        Self { name: L::INFO.name, capacity, make: Box::new(make) }
    }

    /// The locks admit threads with numbers below this.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The name, never an alias.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A lock of this kind, free.
    pub fn new_lock(&self) -> Box<dyn NamedLock> {
        (self.make)()
    }
}

macro_rules! every_lock {
    ($($lock:ident)+) => {
        fn kind(name: &str) -> Option<Kind> {
            $(if name == <overspin_locks::$lock<Threads> as RawLock<Threads>>::INFO.name {
                return Some(kind_of::<overspin_locks::$lock<Threads>>());
            })+
            None
        }
    };
}
overspin_locks::for_each_lock!(every_lock);

fn kind_of<L: NativeLock>() -> Kind
where
    L::Shared: Send + Sync,
{
    // SAFETY: it is a `NativeLock`, on the platform whose `cpu_id` that is.
    unsafe { Kind::of::<Threads, L>() }
}

struct Named<P: Platform, L: RawLock<P>>
where
    L::Shared: Send + Sync,
{
    lock: L,
    /// Of the holder, and only the holder's to touch.
    token: UnsafeCell<Option<L::Token>>,
    shared: Arc<L::Shared>,
    capacity: usize,
}

// SAFETY: lock and records are `Sync`. The token is written after the lock is acquired and taken before
// it is released, by the same thread, see `NamedLock::unlock`.
unsafe impl<P: Platform, L: RawLock<P> + Sync> Sync for Named<P, L> where L::Shared: Send + Sync {}
// SAFETY: lock and records are `Send`. Who owns the value and finds a token in it can only drop it, and
// tokens have no destructors: they are numbers.
unsafe impl<P: Platform, L: RawLock<P> + Send> Send for Named<P, L> where L::Shared: Send + Sync {}

impl<P: Platform, L: RawLock<P>> fmt::Debug for Named<P, L>
where
    L::Shared: Send + Sync,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("lock", &self.lock).finish_non_exhaustive()
    }
}

impl<P: Platform, L: RawLock<P> + Send + Sync> NamedLock for Named<P, L>
where
    L::Shared: Send + Sync,
{
    #[inline]
    fn admits(&self) -> bool {
        served_id(self.capacity).is_some()
    }

    fn lock(&self) {
        assert!(self.admits(), "{} has no records for this thread", L::INFO.name);
        let token = self.lock.lock(&self.shared);
        // SAFETY: this thread holds the lock.
        unsafe { *self.token.get() = Some(token) };
    }

    fn try_lock(&self) -> bool {
        assert!(self.admits(), "{} has no records for this thread", L::INFO.name);
        let Some(token) = self.lock.try_lock(&self.shared) else { return false };
        // SAFETY: this thread holds the lock.
        unsafe { *self.token.get() = Some(token) };
        true
    }

    unsafe fn unlock(&self) {
        // SAFETY: this thread holds the lock, as the caller promises.
        let token = unsafe { (*self.token.get()).take() };
        if let Some(token) = token {
            self.lock.unlock(&self.shared, token);
        }
    }
}
