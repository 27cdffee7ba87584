//! The C interface. `include/overspin.h` documents it, and a test compares the two.
//!
//! No panic leaves the library: functions that are `extern "C"` abort instead. A caller's mistake that can be
//! noticed is an error, not a panic.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use overspin_locks::infos;
use overspin_native::{Kind, NamedLock, thread_serial};

const OK: c_int = 0;
const INVALID: c_int = 1;
const NO_LOCK: c_int = 2;
const BUSY: c_int = 3;
const DEADLOCK: c_int = 4;
const NOT_OWNER: c_int = 5;
const THREADS: c_int = 6;

/// `overspin_mutex_t`.
#[derive(Debug)]
pub struct OverspinMutex {
    name: &'static str,
    lock: Box<dyn NamedLock>,
    /// [`thread_serial`] of the holder; 0 if it is free. Only the holder writes it. So a thread finds its own
    /// number here if, and only if, it is the holder.
    holder: AtomicU64,
}

/// A kind in use, whose records its mutexes share, and its destroyed mutexes.
///
/// A destroyed mutex is kept for the next one of the kind, and its memory is never freed. A thread may still be in
/// `unlock` when the next holder has acquired, released and destroyed the mutex: after the release, some locks look
/// at themselves to see whether a sleeper needs waking. Such a look finds a lock of the same kind, and does it no
/// harm.
#[derive(Debug)]
struct InUse {
    kind: Kind,
    /// Number of mutexes, including those in `destroyed`, which has room for all of them.
    made: usize,
    destroyed: Vec<&'static OverspinMutex>,
}

static KINDS: Mutex<BTreeMap<&'static str, InUse>> = Mutex::new(BTreeMap::new());

/// Locks the map. The map is whole even after a panic.
fn kinds() -> MutexGuard<'static, BTreeMap<&'static str, InUse>> {
    KINDS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InUse {
    /// Takes a free mutex.
    fn take(&mut self) -> &'static OverspinMutex {
        self.destroyed.pop().unwrap_or_else(|| {
            self.made += 1;
            // `destroyed` is empty. With this room `destroy` needs no memory.
            self.destroyed.reserve(self.made);
            let (name, lock) = (self.kind.name(), self.kind.new_lock());
            Box::leak(Box::new(OverspinMutex { name, lock, holder: AtomicU64::new(0) }))
        })
    }
}

/// Name and brief of each lock, as C strings.
fn texts() -> &'static [[CString; 2]] {
    static TEXTS: OnceLock<Vec<[CString; 2]>> = OnceLock::new();
    // Empty if the text had a zero byte in it, which no text has.
    let text = |text: &str| CString::new(text).unwrap_or_default();
    TEXTS.get_or_init(|| infos().iter().map(|info| [text(info.name), text(info.brief)]).collect())
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null or may be written; `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_init(
    mutex: *mut *mut OverspinMutex,
    name: *const c_char,
) -> c_int {
    if mutex.is_null() || name.is_null() {
        return INVALID;
    }
    // SAFETY: a C string, as the caller promises.
    let name = unsafe { CStr::from_ptr(name) };
    let Some(new) = name.to_str().ok().and_then(Kind::name_of) else { return NO_LOCK };
    let mut kinds = kinds();
    if !kinds.contains_key(new) {
        let Some(kind) = Kind::new(new) else { return NO_LOCK };
        kinds.insert(new, InUse { kind, made: 0, destroyed: Vec::new() });
    }
    let Some(kind) = kinds.get_mut(new) else { return NO_LOCK };
    let made = ptr::from_ref(kind.take()).cast_mut();
    // SAFETY: it may be written, as the caller promises.
    unsafe { mutex.write(made) };
    OK
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null, or from [`overspin_mutex_init`] and not destroyed, and no thread uses it from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_destroy(mutex: *mut OverspinMutex) -> c_int {
    // SAFETY: null, or a mutex, and mutexes are never freed.
    let Some(mutex) = (unsafe { mutex.as_ref::<'static>() }) else { return INVALID };
    if mutex.holder.load(Relaxed) != 0 {
        return BUSY;
    }
    // A holder clears `holder` before it releases the lock. Until it has released, the next user of the memory
    // would find the mutex held. A thread that the lock does not serve cannot tell.
    if mutex.lock.admits() {
        if !mutex.lock.try_lock() {
            return BUSY;
        }
        // SAFETY: this thread has just acquired it.
        unsafe { mutex.lock.unlock() };
    }
    if let Some(kind) = kinds().get_mut(mutex.name) {
        kind.destroyed.push(mutex);
    }
    OK
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null, or from [`overspin_mutex_init`] and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_lock(mutex: *mut OverspinMutex) -> c_int {
    // SAFETY: as the caller promises.
    let Some(mutex) = (unsafe { mutex.as_ref() }) else { return INVALID };
    let me = thread_serial();
    if mutex.holder.load(Relaxed) == me {
        return DEADLOCK;
    }
    if !mutex.lock.admits() {
        return THREADS;
    }
    mutex.lock.lock();
    mutex.holder.store(me, Relaxed);
    OK
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null, or from [`overspin_mutex_init`] and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_trylock(mutex: *mut OverspinMutex) -> c_int {
    // SAFETY: as the caller promises.
    let Some(mutex) = (unsafe { mutex.as_ref() }) else { return INVALID };
    if !mutex.lock.admits() {
        return THREADS;
    }
    if !mutex.lock.try_lock() {
        return BUSY;
    }
    mutex.holder.store(thread_serial(), Relaxed);
    OK
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null, or from [`overspin_mutex_init`] and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_unlock(mutex: *mut OverspinMutex) -> c_int {
    // SAFETY: as the caller promises.
    let Some(mutex) = (unsafe { mutex.as_ref() }) else { return INVALID };
    if mutex.holder.load(Relaxed) != thread_serial() {
        return NOT_OWNER;
    }
    mutex.holder.store(0, Relaxed);
    // From its release on the mutex may be destroyed: see `InUse`.
    // SAFETY: this thread is the holder.
    unsafe { mutex.lock.unlock() };
    OK
}

/// See `overspin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn overspin_lock_count() -> usize {
    texts().len()
}

/// See `overspin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn overspin_lock_name(index: usize) -> *const c_char {
    texts().get(index).map_or(ptr::null(), |[name, _]| name.as_ptr())
}

/// See `overspin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn overspin_lock_brief(index: usize) -> *const c_char {
    texts().get(index).map_or(ptr::null(), |[_, brief]| brief.as_ptr())
}

/// See `overspin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn overspin_strerror(error: c_int) -> *const c_char {
    let text = match error {
        OK => c"no error",
        INVALID => c"a null pointer",
        NO_LOCK => c"there is no lock of that name",
        BUSY => c"the mutex is held",
        DEADLOCK => c"this thread holds the mutex already",
        NOT_OWNER => c"this thread does not hold the mutex",
        THREADS => c"more threads use locks than this lock serves",
        _ => c"not an error of this library",
    };
    text.as_ptr()
}

/// See `overspin.h`.
#[unsafe(no_mangle)]
pub extern "C" fn overspin_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no zero byte"),
        };
    VERSION.as_ptr()
}
