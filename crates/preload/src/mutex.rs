//! What glibc's mutex looks like inside.
//!
//! The layout is part of glibc's binary interface: static initialisers are compiled into programs. The fields
//! are described in its public header `bits/struct_mutex.h`. Only 64-bit machines are served, which have them
//! all in the same order. [`layout_is_as_expected`] tries it out at start.

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

/// Kinds that the kernel or other processes have a say in: robust, inheriting or protecting priority,
/// shared between processes. A destroyed mutex has them all.
const OTHERS: c_int = 16 | 32 | 64 | 128;
const TYPE: c_int = 3;

#[repr(C)]
pub(crate) struct Mutex {
    /// 0 free, 1 held, 2 held and somebody may sleep.
    word: AtomicI32,
    /// Depth of a recursive mutex.
    count: AtomicU32,
    /// Kernel's number of the thread that holds it.
    owner: AtomicI32,
    users: AtomicU32,
    /// Type, and flags for what else it is.
    kind: AtomicI32,
    _spins: AtomicU32,
    /// The links of a robust mutex; zero in all others. The first is ours.
    shadow: AtomicPtr<Shadow>,
    _link: AtomicPtr<()>,
}

const _: () = assert!(size_of::<Mutex>() == size_of::<pthread_mutex_t>());

impl Mutex {
    /// Whether this library has to do with it.
    #[inline]
    pub(crate) fn is_ours(&self) -> bool {
        self.kind.load(Relaxed) & OTHERS == 0
    }

    /// Whether the C library lets another thread than the holder unlock it, whatever POSIX says.
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

    /// Whether the thread `tid`, which has locked it, owns it no more: it is free, or another thread owns it. False
    /// if it is held and has no owner: a new owner may not have noted itself yet, and elided locks note none.
    pub(crate) fn is_not_held_by(&self, tid: i32) -> bool {
        let owner = self.owner.load(Relaxed);
        owner != tid && (owner != 0 || self.word.load(Relaxed) == 0)
    }

    /// Whether a thread may sleep until it is released. For its holder.
    #[inline]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.word.load(Relaxed) == 2
    }

    /// What stands where the shadow is kept; it may be another mutex's if this one is a copy.
    #[inline]
    pub(crate) fn shadow(&self) -> &AtomicPtr<Shadow> {
        &self.shadow
    }
}

/// Whether the C library's mutex is the one that this file describes, as far as can be seen.
pub(crate) fn layout_is_as_expected() -> bool {
    let mut mutex = MaybeUninit::<pthread_mutex_t>::uninit();
    let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
    let raw = mutex.as_mut_ptr();
    // SAFETY: both are initialised before they are used, and destroyed by nobody else; `Mutex` is all
    // atomics of the same size, alignment is the same, and any bytes are valid.
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
