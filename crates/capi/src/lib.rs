//! The C interface. `include/overspin.h` documents it, and a test compares the two.
//!
//! No panic leaves: functions that are `extern "C"` abort instead, and nothing that a caller can do wrong
//! and that can be noticed is a panic.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};

use overspin_locks::infos;
use overspin_native::{Kind, NamedLock, try_thread_id};

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
    lock: Box<dyn NamedLock>,
    /// Number of the thread that holds it, plus 1; 0 if it is free. Written by the holder only, so that a
    /// thread finds its own number here if, and only if, it is the holder.
    holder: AtomicUsize,
}

/// The kinds in use: the mutexes of one share its records.
static KINDS: Mutex<BTreeMap<&'static str, Kind>> = Mutex::new(BTreeMap::new());

/// Name and brief of each lock for C.
fn texts() -> &'static [[CString; 2]] {
    static TEXTS: OnceLock<Vec<[CString; 2]>> = OnceLock::new();
    // Empty if there were a zero byte in it, which no text has.
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
    // The map is whole even if somebody has panicked.
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    if !kinds.contains_key(new) {
        let Some(kind) = Kind::new(new) else { return NO_LOCK };
        kinds.insert(new, kind);
    }
    let Some(kind) = kinds.get(new) else { return NO_LOCK };
    let made = Box::new(OverspinMutex { lock: kind.new_lock(), holder: AtomicUsize::new(0) });
    // SAFETY: it may be written, as the caller promises.
    unsafe { mutex.write(Box::into_raw(made)) };
    OK
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null or from [`overspin_mutex_init`], not destroyed, and nobody else uses it from here on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_destroy(mutex: *mut OverspinMutex) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { mutex.as_ref() } {
        None => INVALID,
        Some(held) if held.holder.load(Relaxed) != 0 => BUSY,
        Some(_) => {
            // SAFETY: `overspin_mutex_init` has boxed it, and nobody else uses it.
            drop(unsafe { Box::from_raw(mutex) });
            OK
        }
    }
}

/// The mutex, and this thread's mark in `holder`.
///
/// # Safety
/// `mutex` is null, or from [`overspin_mutex_init`] and not destroyed during `'a`.
#[inline]
unsafe fn with_me<'a>(mutex: *mut OverspinMutex) -> Result<(&'a OverspinMutex, usize), c_int> {
    // SAFETY: as the caller promises.
    let mutex = unsafe { mutex.as_ref() }.ok_or(INVALID)?;
    let me = try_thread_id().ok_or(THREADS)? + 1;
    Ok((mutex, me))
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null, or from [`overspin_mutex_init`] and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_lock(mutex: *mut OverspinMutex) -> c_int {
    // SAFETY: as the caller promises.
    let (mutex, me) = match unsafe { with_me(mutex) } {
        Ok(both) => both,
        Err(error) => return error,
    };
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
    let (mutex, me) = match unsafe { with_me(mutex) } {
        Ok(both) => both,
        Err(error) => return error,
    };
    if !mutex.lock.admits() {
        return THREADS;
    }
    if !mutex.lock.try_lock() {
        return BUSY;
    }
    mutex.holder.store(me, Relaxed);
    OK
}

/// See `overspin.h`.
///
/// # Safety
/// `mutex` is null, or from [`overspin_mutex_init`] and not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn overspin_mutex_unlock(mutex: *mut OverspinMutex) -> c_int {
    // SAFETY: as the caller promises.
    match unsafe { with_me(mutex) } {
        Err(INVALID) => INVALID,
        Ok((mutex, me)) if mutex.holder.load(Relaxed) == me => {
            mutex.holder.store(0, Relaxed);
            // SAFETY: this thread is the holder.
            unsafe { mutex.lock.unlock() };
            OK
        }
        // A thread without a number holds nothing.
        Ok(_) | Err(_) => NOT_OWNER,
    }
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
        BUSY => c"somebody holds the mutex",
        DEADLOCK => c"this thread holds the mutex already",
        NOT_OWNER => c"this thread does not hold the mutex",
        THREADS => c"more threads use locks than this lock serves",
        _ => c"no error of this library",
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
