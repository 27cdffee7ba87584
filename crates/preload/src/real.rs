//! The functions of the C library that this library replaces.

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use libc::{
    c_char, clockid_t, pid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, sem_t, timespec,
};

/// A function, looked up at its first use, which may come before this library's constructor has run.
struct Next {
    name: &'static CStr,
    /// The version, for names that also have an older meaning, which a plain look-up could find.
    version: Option<&'static CStr>,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Self { name, version, found: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    fn get(&self) -> *mut c_void {
        let found = self.found.load(Relaxed);
        if found.is_null() { self.look_up() } else { found }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        let name = self.name.as_ptr();
        let mut found = ptr::null_mut();
        if let Some(version) = self.version {
            // SAFETY: both are C strings.
            found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name, version.as_ptr()) };
        }
        if found.is_null() {
            // SAFETY: it is a C string.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
        }
        if found.is_null() {
            crate::system::say(format_args!(
                "the C library has no {}",
                self.name.to_string_lossy()
            ));
            // SAFETY: it has no preconditions.
            unsafe { libc::abort() };
        }
        // Relaxed: every look-up finds the same function.
        self.found.store(found, Relaxed);
        found
    }
}

/// Whether the C library has this function: newer ones have more.
pub(crate) fn has(name: &CStr) -> bool {
    // SAFETY: it is a C string.
    !unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.is_null()
}

/// The address of `dlopen`.
pub(crate) fn dlopen() -> *mut c_void {
    static NEXT: Next = Next::new(c"dlopen", None);
    NEXT.get()
}

/// Looks up the functions that start programs.
pub(crate) fn find_exec() {
    EXEC.iter().for_each(|next| _ = next.get());
}

/// The version in which condition variables got their present form. Machines other than x86-64 have never
/// had another one.
const CONDITION: Option<&CStr> =
    if cfg!(target_arch = "x86_64") { Some(c"GLIBC_2.3.2") } else { None };

macro_rules! functions {
    ($($(#[$doc:meta])* $abi:literal fn $name:ident = $symbol:literal, $version:expr,
       ($($argument:ident: $type:ty),+);)+) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        #[inline]
        pub(crate) unsafe extern $abi fn $name($($argument: $type),+) -> c_int {
            static NEXT: Next = Next::new($symbol, $version);
            type Function = unsafe extern $abi fn($($type),+) -> c_int;
            // SAFETY: the C library's function of that name has this type.
            let function = unsafe { transmute::<*mut c_void, Function>(NEXT.get()) };
            // SAFETY: as the caller promises.
            unsafe { function($($argument),+) }
        }
    )+};
}

functions! {
    /// `pthread_mutex_destroy`.
    "C" fn destroy = c"pthread_mutex_destroy", None, (mutex: *mut pthread_mutex_t);
    /// `pthread_mutex_lock`.
    "C" fn lock = c"pthread_mutex_lock", None, (mutex: *mut pthread_mutex_t);
    /// `pthread_mutex_trylock`.
    "C" fn trylock = c"pthread_mutex_trylock", None, (mutex: *mut pthread_mutex_t);
    /// `pthread_mutex_timedlock`.
    "C" fn timedlock = c"pthread_mutex_timedlock", None,
        (mutex: *mut pthread_mutex_t, until: *const timespec);
    /// `pthread_mutex_clocklock`.
    "C" fn clocklock = c"pthread_mutex_clocklock", None,
        (mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec);
    /// `pthread_mutex_unlock`.
    "C" fn unlock = c"pthread_mutex_unlock", None, (mutex: *mut pthread_mutex_t);
    /// `pthread_cond_init`.
    "C" fn cond_init = c"pthread_cond_init", CONDITION,
        (condition: *mut pthread_cond_t, attributes: *const pthread_condattr_t);
    /// `pthread_cond_destroy`.
    "C" fn cond_destroy = c"pthread_cond_destroy", CONDITION, (condition: *mut pthread_cond_t);
    /// `pthread_cond_signal`.
    "C" fn cond_signal = c"pthread_cond_signal", CONDITION, (condition: *mut pthread_cond_t);
    /// `pthread_cond_broadcast`.
    "C" fn cond_broadcast = c"pthread_cond_broadcast", CONDITION,
        (condition: *mut pthread_cond_t);
    /// `sem_clockwait`: a cancellation point, which unwinds.
    "C-unwind" fn sem_clockwait = c"sem_clockwait", None,
        (semaphore: *mut sem_t, clock: clockid_t, until: *const timespec);
    /// `pthread_cond_wait`: a cancellation point, which unwinds.
    "C-unwind" fn cond_wait = c"pthread_cond_wait", CONDITION,
        (condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    /// `pthread_cond_timedwait`: a cancellation point, which unwinds.
    "C-unwind" fn cond_timedwait = c"pthread_cond_timedwait", CONDITION,
        (condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec);
    /// `pthread_cond_clockwait`: a cancellation point, which unwinds.
    "C-unwind" fn cond_clockwait = c"pthread_cond_clockwait", None,
        (condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
         until: *const timespec);
}

/// Of the functions that start programs; all are looked up before they are called.
static EXEC: [Next; 6] = [
    Next::new(c"execve", None),
    Next::new(c"execv", None),
    Next::new(c"execvp", None),
    Next::new(c"execvpe", None),
    Next::new(c"posix_spawn", None),
    Next::new(c"posix_spawnp", None),
];

macro_rules! exec_functions {
    ($(fn $name:ident = $i:literal, ($($argument:ident: $type:ty),+);)+) => {$(
        /// The C library's function of that name.
        ///
        /// # Safety
        /// As the C function.
        pub(crate) unsafe fn $name($($argument: $type),+) -> c_int {
            type Function = unsafe extern "C" fn($($type),+) -> c_int;
            // SAFETY: the C library's function of that name has this type.
            let function = unsafe { transmute::<*mut c_void, Function>(EXEC[$i].get()) };
            // SAFETY: as the caller promises.
            unsafe { function($($argument),+) }
        }
    )+};
}

type Strings = *const *const c_char;

exec_functions! {
    fn execve = 0, (file: *const c_char, arguments: Strings, environment: Strings);
    fn execv = 1, (file: *const c_char, arguments: Strings);
    fn execvp = 2, (file: *const c_char, arguments: Strings);
    fn execvpe = 3, (file: *const c_char, arguments: Strings, environment: Strings);
    fn posix_spawn = 4, (child: *mut pid_t, file: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: Strings, environment: Strings);
    fn posix_spawnp = 5, (child: *mut pid_t, file: *const c_char, actions: *const c_void, attributes: *const c_void,
        arguments: Strings, environment: Strings);
}
