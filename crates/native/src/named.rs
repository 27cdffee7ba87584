//! Locks of a kind that is chosen by name at run time.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

use overspin_locks::RawLock;

use crate::raw::{NativeLock, capacity, new_system};
use crate::{Threads, served_id};

/// A lock that stores the token of its acquisition, so that all kinds have one type.
pub trait NamedLock: fmt::Debug + Send + Sync {
    /// Whether the calling thread has a number and the lock has records for it. Once true in a thread, it
    /// stays true until the last destructors of the thread.
    fn admits(&self) -> bool;

    /// Acquires; waits as long as necessary.
    ///
    /// # Panics
    /// If the lock does not admit this thread. The lock is then untouched.
    fn lock(&self);

    /// Acquires if the lock is free now.
    ///
    /// # Panics
    /// As [`NamedLock::lock`].
    fn try_lock(&self) -> bool;

    /// Releases.
    ///
    /// # Safety
    /// This thread must hold the lock.
    unsafe fn unlock(&self);
}

/// A kind of lock, with records for all threads that it can serve. Locks made from one `Kind` share the
/// records.
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
    /// Creates the kind with this name or alias in the registry; `None` if there is none.
    pub fn new(name: &str) -> Option<Self> {
        kind(Self::name_of(name)?)
    }

    /// Resolves an alias to its name, and a name to itself; `None` if there is no such lock.
    pub fn name_of(name: &str) -> Option<&'static str> {
        overspin_locks::find(name).map(|info| info.name)
    }

    /// The locks admit threads with numbers below this.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The name, never an alias.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Creates a free lock of this kind.
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

fn kind_of<L: NativeLock + Send + Sync + 'static>() -> Kind
where
    L::Shared: Send + Sync,
{
    let shared = Arc::new(new_system::<L>());
    let make = move || -> Box<dyn NamedLock> {
        Box::new(Named::<L> {
            lock: L::new(),
            token: UnsafeCell::new(None),
            shared: Arc::clone(&shared),
        })
    };
    Kind { name: L::INFO.name, capacity: capacity::<Threads, L>(), make: Box::new(make) }
}

struct Named<L: RawLock<Threads>>
where
    L::Shared: Send + Sync,
{
    lock: L,
    /// The holder's token. Only the holder touches it.
    token: UnsafeCell<Option<L::Token>>,
    shared: Arc<L::Shared>,
}

// SAFETY: lock and records are `Sync`. The same thread writes the token after it acquires the lock and takes
// it before it releases the lock; see `NamedLock::unlock`.
unsafe impl<L: RawLock<Threads> + Sync> Sync for Named<L> where L::Shared: Send + Sync {}
// SAFETY: lock and records are `Send`. An owner of the value that finds a token in it can only drop the
// token, and tokens have no destructors: they are numbers.
unsafe impl<L: RawLock<Threads> + Send> Send for Named<L> where L::Shared: Send + Sync {}

impl<L: RawLock<Threads>> fmt::Debug for Named<L>
where
    L::Shared: Send + Sync,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("lock", &self.lock).finish_non_exhaustive()
    }
}

impl<L: RawLock<Threads> + Send + Sync> NamedLock for Named<L>
where
    L::Shared: Send + Sync,
{
    #[inline]
    fn admits(&self) -> bool {
        served_id(const { capacity::<Threads, L>() }).is_some()
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
