//! The locks of this process, each beside its shadow in one slot of memory. All have the kind that the environment names.
//!
//! A `Box<dyn NamedLock>` would take 40 bytes more for each lock: two pointers to it, its records, its capacity, and the
//! rounding. Here what all locks share exists once.
//!
//! | What | Where |
//! |---|---|
//! | a lock and the token of its holder | the slot, behind the shadow ([`Slot`]) |
//! | what the locks share: records for each thread | [`RECORDS`] |
//! | the operations | [`KIND`] |
//!
//! **Fork.** The child replaces the records, then all locks: the old ones know threads that do not exist.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overspin_locks::RawLock;
use overspin_native::{MAX_THREADS, TUNING};

use crate::shadow::Shadow;
use crate::watched::WatchedThreads;

/// A shadow with its lock.
#[repr(C)]
struct Slot<L: RawLock<WatchedThreads>> {
    shadow: Shadow,
    lock: L,
    /// The holder writes it after its acquisition, and takes it before its release.
    token: UnsafeCell<MaybeUninit<L::Token>>,
}

/// An operation on the lock beside a shadow.
pub(crate) type Operation<R = ()> = unsafe fn(&Shadow) -> R;

/// A kind of lock.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The locks serve threads with numbers below this.
    pub(crate) capacity: usize,
    /// Bytes of a shadow with a lock of this kind, and their alignment.
    pub(crate) size: usize,
    pub(crate) align: usize,
    new_records: fn() -> *mut (),
    drop_records: unsafe fn(*mut ()),
    /// Puts a free lock beside the shadow.
    pub(crate) put: Operation,
    pub(crate) lock: Operation,
    pub(crate) try_lock: Operation<bool>,
    pub(crate) unlock: Operation,
}

static KIND: AtomicPtr<Kind> = AtomicPtr::new(ptr::null_mut());
static RECORDS: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// The kind of `L`.
struct Of<L>(PhantomData<L>);

impl<L: RawLock<WatchedThreads> + 'static> Of<L> {
    const KIND: Kind = {
        assert!(!needs_drop::<L>() && !needs_drop::<L::Token>());
        let max = L::INFO.max_cpus as usize;
        Kind {
            name: L::INFO.name,
            capacity: if max < MAX_THREADS { max } else { MAX_THREADS },
            size: size_of::<Slot<L>>(),
            align: align_of::<Slot<L>>(),
            new_records: Self::new_records,
            drop_records: Self::drop_records,
            put: Self::put,
            lock: Self::lock,
            try_lock: Self::try_lock,
            unlock: Self::unlock,
        }
    };

    fn new_records() -> *mut () {
        let records = L::shared(Self::KIND.capacity, TUNING);
        Box::into_raw(Box::new(records.expect("no more than the lock's own limit"))).cast()
    }

    unsafe fn drop_records(records: *mut ()) {
        // SAFETY: the caller promises that they are from `new_records`.
        drop(unsafe { Box::from_raw(records.cast::<L::Shared>()) });
    }

    #[inline]
    fn records<'a>() -> &'a L::Shared {
        // SAFETY: `start` has put records of this kind there, because a shadow exists. They are replaced
        // only after a fork, when this is the only thread of its process.
        unsafe { &*RECORDS.load(Relaxed).cast::<L::Shared>() }
    }

    #[inline]
    fn slot(shadow: &Shadow) -> *mut Slot<L> {
        // The provenance is that of the slot's memory, which `slots.rs` has exposed.
        ptr::with_exposed_provenance_mut(ptr::from_ref(shadow).addr())
    }

    unsafe fn put(shadow: &Shadow) {
        // SAFETY: the shadow is in a slot of this kind, and nothing else uses its lock, as the caller promises. Neither
        // locks nor tokens need a drop.
        unsafe { (&raw mut (*Self::slot(shadow)).lock).write(L::new()) };
    }

    unsafe fn lock(shadow: &Shadow) {
        // SAFETY: the shadow is in a slot of this kind, with a lock.
        let slot = unsafe { &*Self::slot(shadow) };
        let token = slot.lock.lock(Self::records());
        // SAFETY: this thread holds the lock.
        unsafe { (*slot.token.get()).write(token) };
    }

    unsafe fn try_lock(shadow: &Shadow) -> bool {
        // SAFETY: as in `lock`.
        let slot = unsafe { &*Self::slot(shadow) };
        let Some(token) = slot.lock.try_lock(Self::records()) else { return false };
        // SAFETY: this thread holds the lock.
        unsafe { (*slot.token.get()).write(token) };
        true
    }

    unsafe fn unlock(shadow: &Shadow) {
        // SAFETY: as in `lock`.
        let slot = unsafe { &*Self::slot(shadow) };
        // SAFETY: the caller holds the lock, so there is a token, which nobody else reads.
        let token = unsafe { (*slot.token.get()).assume_init_read() };
        slot.lock.unlock(Self::records(), token);
    }
}

impl Kind {
    /// The kind of the lock `L`.
    ///
    /// # Safety
    /// `L` keeps the promises of [`NativeLock`](overspin_native::NativeLock).
    pub(crate) const unsafe fn of<L: RawLock<WatchedThreads> + Send + Sync + 'static>()
    -> &'static Self
    where
        L::Shared: Send + Sync,
    {
        &Of::<L>::KIND
    }

    /// This kind with other operations.
    pub(crate) fn with(
        &self,
        lock: Operation,
        try_lock: Operation<bool>,
        unlock: Operation,
    ) -> Self {
        Self { lock, try_lock, unlock, ..*self }
    }
}

/// Makes `kind` the kind of all locks. Called once.
pub(crate) fn start(kind: &'static Kind) {
    RECORDS.store((kind.new_records)(), Relaxed);
    // Release: a thread that sees the kind also sees the records.
    KIND.store(ptr::from_ref(kind).cast_mut(), Release);
}

/// The kind of all locks; `None` if this library is not active.
#[inline]
pub(crate) fn kind() -> Option<&'static Kind> {
    // Acquire: pairs with `start`. SAFETY: null, or a kind, which is never freed.
    unsafe { KIND.load(Acquire).as_ref() }
}

/// Replaces the records in the child of a fork. All locks must be put anew.
pub(crate) fn renew_records() {
    let Some(kind) = kind() else { return };
    let old = RECORDS.swap((kind.new_records)(), Relaxed);
    // SAFETY: they are from `new_records` of this kind, and the only thread is in no lock.
    unsafe { (kind.drop_records)(old) };
}

impl Shadow {
    #[inline]
    fn kind(&self) -> &'static Kind {
        // SAFETY: there is a shadow, so there is a kind, and this thread has seen either after the other.
        unsafe { &*KIND.load(Relaxed) }
    }

    /// Puts a free lock beside the shadow.
    ///
    /// # Safety
    /// The shadow is in a slot, and no thread uses its lock.
    pub(crate) unsafe fn put_lock(&self) {
        // SAFETY: as the caller promises.
        unsafe { (self.kind().put)(self) }
    }

    /// Acquires the lock.
    ///
    /// # Safety
    /// This thread is in its seat, with a number below the kind's capacity.
    #[inline]
    pub(crate) unsafe fn lock(&self) {
        // SAFETY: as the caller promises.
        unsafe { (self.kind().lock)(self) }
    }

    /// Acquires the lock if it is free now.
    ///
    /// # Safety
    /// As [`Shadow::lock`].
    #[inline]
    pub(crate) unsafe fn try_lock(&self) -> bool {
        // SAFETY: as the caller promises.
        unsafe { (self.kind().try_lock)(self) }
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// As [`Shadow::lock`], and this thread holds the lock.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        // SAFETY: as the caller promises.
        unsafe { (self.kind().unlock)(self) }
    }
}
