//! The inside of glibc's mutex.
//!
//! The layout is part of glibc's binary interface: static initialisers are compiled into programs. Its public
//! header `bits/struct_mutex.h` describes the fields. Only 64-bit machines are supported; they all have the same
//! order of fields, and some leave room behind them: the type has 40 bytes on x86-64, and 48 on AArch64.
//! [`layout_is_as_expected`] checks the fields at start.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32};

use libc::pthread_mutex_t;

use crate::real;
use crate::shadow::Shadow;

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
compile_error!("overspin-preload knows the mutexes of 64-bit glibc only");

/// Kinds in which the kernel or other processes are involved: robust, inheriting or protecting priority, shared
/// between processes. A destroyed mutex has all these flags.
const OTHERS: c_int = 16 | 32 | 64 | 128;
const TYPE: c_int = 3;

/// The fields, with which every `pthread_mutex_t` begins.
#[repr(C)]
pub(crate) struct Mutex {
    /// 0 free, 1 held, 2 held and a thread may sleep.
    word: AtomicI32,
    /// Depth of a recursive mutex.
    count: AtomicU32,
    /// The kernel's number of the thread that holds it.
    owner: AtomicI32,
    users: AtomicU32,
    /// Type, and flags for other properties.
    kind: AtomicI32,
    _spins: AtomicU32,
    /// The links of a robust mutex; zero in all others. This library uses the first one.
    shadow: AtomicPtr<Shadow>,
    _link: AtomicPtr<()>,
}

const _: () = {
    assert!(size_of::<Mutex>() == 40);
    assert!(size_of::<Mutex>() <= size_of::<pthread_mutex_t>());
    assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());
};

impl Mutex {
    /// Whether this library handles it.
    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.kind.load(Relaxed) & OTHERS == 0
    }

    /// Whether the C library lets a thread other than the holder unlock it, whatever POSIX says.
    pub(crate) fn anyone_may_unlock(&self) -> bool {
        let kind = self.kind.load(Relaxed) & TYPE;
        kind != libc::PTHREAD_MUTEX_RECURSIVE && kind != libc::PTHREAD_MUTEX_ERRORCHECK
    }

    /// Whether the holder has locked it more than once.
    #[inline]
    pub(crate) fn is_nested(&self) -> bool {
        self.kind.load(Relaxed) & TYPE == libc::PTHREAD_MUTEX_RECURSIVE
            && self.count.load(Relaxed) > 1
    }

    /// Whether the thread `tid` holds it.
    #[inline]
    pub(crate) fn is_held_by(&self, tid: i32) -> bool {
        self.owner.load(Relaxed) == tid
    }

    /// Whether the thread `tid`, which has locked it, no longer owns it: it is free, or another thread owns it.
    /// False if it is held without an owner: a new owner may not have recorded itself yet, and elided locks record
    /// none.
    pub(crate) fn is_not_held_by(&self, tid: i32) -> bool {
        let owner = self.owner.load(Relaxed);
        owner != tid && (owner != 0 || self.is_free())
    }

    /// Hint: no thread holds it.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.word.load(Relaxed) == 0
    }

    /// Whether a thread may sleep until it is released. For its holder.
    #[inline]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.word.load(Relaxed) == 2
    }

    /// The field that keeps the shadow. If this mutex is a copy, the shadow may be another mutex's.
    #[inline]
    pub(crate) fn shadow(&self) -> &AtomicPtr<Shadow> {
        &self.shadow
    }
}

/// Whether the C library's mutex has the layout that this file describes, as far as can be seen.
pub(crate) fn layout_is_as_expected() -> bool {
    let mut mutex = MaybeUninit::<pthread_mutex_t>::uninit();
    let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
    let raw = mutex.as_mut_ptr();
    // SAFETY: both are initialised before they are used, and no other code destroys them. `Mutex` is all atomics, is
    // no larger and aligned no further, and any bytes are valid.
    unsafe {
        libc::pthread_mutexattr_init(attributes.as_mut_ptr());
        libc::pthread_mutexattr_settype(attributes.as_mut_ptr(), libc::PTHREAD_MUTEX_RECURSIVE);
        libc::pthread_mutex_init(raw, attributes.as_ptr());
        libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
        let seen = &*raw.cast::<Mutex>();
        let fresh = seen.is_ours() && !seen.anyone_may_unlock() && !seen.has_sleepers();
        let empty = ptr::eq(seen.shadow.load(Relaxed), ptr::null());
        real::lock(raw);
        let once = seen.is_held_by(libc::gettid()) && !seen.is_nested();
        real::lock(raw);
        let twice = seen.is_nested();
        let still_empty = ptr::eq(seen.shadow.load(Relaxed), ptr::null());
        real::unlock(raw);
        real::unlock(raw);
        let released = seen.is_held_by(0) && seen.users.load(Relaxed) == 0;
        real::destroy(raw);
        fresh && empty && once && twice && still_empty && released && !seen.is_ours()
    }
}
