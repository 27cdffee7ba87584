//! `liboverspin_preload.so`: unmodified programs get a lock of `overspin-locks` for their pthread mutexes.
//! `overspin exec` loads it; `docs/preload.md` describes its use and its limits.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `OVERSPIN_LOCK` | name of the lock; without it the library does nothing |
//! | `OVERSPIN_STATS` | `1`: statistics on standard error when the program ends |
//!
//! **Construction.** The C library's mutex stays in place, and the lock stands before it: to acquire is to
//! acquire the lock, then the mutex; to release is to release the mutex, then the lock. Whoever comes through
//! the lock finds the mutex free, so that waiting is done in the lock, by the lock's rules. *Correctness
//! rests on the mutex alone.* Therefore a thread may go past the lock whenever the lock cannot serve it, and
//! only its place in the queue is lost:
//!
//! - with a time limit: most locks cannot give up waiting;
//! - back from a condition variable, whose functions release and acquire the mutex inside the C library;
//!   cancellation during such a wait is thereby the C library's, too;
//! - without a number ([`overspin_native::try_thread_id`]) or records in the lock;
//! - inside the C library itself, whose own calls do not come here;
//! - in code that calls the C library past this one. If it *releases* a mutex so, the lock stays held: what is done
//!   then, `bypass.rs` describes.
//!
//! Such threads sleep on the mutex. Those that come through the lock would always be faster, so every
//! sixteenth release that leaves a sleeper keeps the lock for a while ([`TURN`]).
//!
//! Types (recursive, error-checking), error codes and the state after a fork are the C library's as well.
//! A thread that already holds a mutex goes straight to it, for what happens then is a matter of the type.
//!
//! **Not touched**: mutexes that are robust, shared between processes, or inherit or protect priority.
//!
//! The general idea of a library that stands before pthread mutexes is LiTL's: Guiroux, Lachaize and Quéma,
//! "Multicore Locks: The Case Is Not Closed Yet", USENIX ATC 2016. It keeps a table of mutexes by address and
//! holds a mutex of the C library with each lock for the sake of condition variables.

mod arena;
mod bypass;
mod gate;
mod mutex;
mod real;
mod shadow;
mod stats;
mod watched;

use std::arch::naked_asm;
use std::cell::Cell;
use std::env;
use std::ffi::c_int;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};

use bypass::Seat;
use mutex::Mutex;
use shadow::{Holder, Shadow, served_number};

#[global_allocator]
static ARENA: arena::Arena = arena::Arena;

/// How long a releaser keeps the lock when it is the turn of who sleeps on the mutex: about the time that
/// a sleeper takes to wake up on a CPU that is free.
pub const TURN: Duration = Duration::from_micros(50);

static STATS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The kernel's number of this thread; 0 before it was asked for.
    static TID: Cell<i32> = const { Cell::new(0) };
}

#[inline]
fn tid() -> i32 {
    match TID.get() {
        0 => refresh_tid(),
        tid => tid,
    }
}

fn refresh_tid() -> i32 {
    // SAFETY: it has no preconditions.
    let tid = unsafe { libc::gettid() };
    TID.set(tid);
    tid
}

/// Keeps `errno` as it was: pthread functions leave it alone, and callers count on that.
struct KeepErrno(c_int);

impl KeepErrno {
    #[inline]
    fn new() -> Self {
        // SAFETY: it points to this thread's own `errno`.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeepErrno {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// A line on standard error. If nobody can read it, there is nobody to tell.
///
/// By a plain system call: `write` of the C library is a cancellation point, and the functions here are none.
fn say(line: fmt::Arguments<'_>) {
    let line = format!("overspin: {line}\n");
    let (start, length) = (line.as_ptr(), line.len());
    // SAFETY: the line lives until the end of the call.
    unsafe { libc::syscall(libc::SYS_write, libc::STDERR_FILENO, start, length) };
}

/// Sleeps for `time` or less. By a plain system call, as in [`say`].
fn pause(time: Duration) {
    let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    // It is less than a thousand million, which all integers of C hold.
    let time = libc::timespec { tv_sec: seconds, tv_nsec: time.subsec_nanos() as _ };
    // SAFETY: `time` lives until the end of the call, and what is left of it is not asked for.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, std::ptr::null::<()>()) };
}

/// Calls [`start`] once: when the library is loaded, or at the first `lock` if a constructor of another
/// library comes first. Whoever comes while it runs uses the mutex as it is.
#[cold]
fn start_once() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if !STARTED.swap(true, Relaxed) {
        start();
    }
}

fn start() {
    let Some(name) = env::var_os("OVERSPIN_LOCK") else { return };
    let Some(kind) = name.to_str().and_then(watched::kind) else {
        say(format_args!("OVERSPIN_LOCK: there is no lock {name:?}; see `overspin list locks`"));
        // A program that ran with other mutexes than it was told would be measured wrongly.
        // SAFETY: it has no preconditions.
        unsafe { libc::_exit(2) }
    };
    if !mutex::layout_is_as_expected() {
        say(format_args!("the mutexes of this C library are unknown here, and stay as they are"));
        return;
    }
    // It takes the key by which threads return their numbers while few are taken: the first ones need no
    // memory.
    let _ = overspin_native::try_thread_id();
    let before: unsafe extern "C" fn() = shadow::before_fork;
    let parent: unsafe extern "C" fn() = shadow::after_fork_in_parent;
    let child: unsafe extern "C" fn() = shadow::after_fork_in_child;
    // Early, so that in the child our locks work again before the program's own handlers use them.
    // SAFETY: the functions live as long as the process: the library is never unloaded.
    if unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) } != 0 {
        say(format_args!("no memory to watch for forks; mutexes stay as they are"));
        return;
    }
    if env::var_os("OVERSPIN_STATS").is_some_and(|value| value == "1") {
        STATS.store(true, Relaxed);
        // SAFETY: as above. If it fails, there are no statistics.
        unsafe { libc::atexit(stats::print) };
    }
    shadow::start(kind);
}

extern "C" fn at_load() {
    start_once();
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// The mutex at `mutex` if this library has to do with it.
///
/// # Safety
/// It is a mutex: initialised, and destroyed at most.
#[inline]
unsafe fn ours<'a>(mutex: *mut pthread_mutex_t) -> Option<&'a Mutex> {
    // SAFETY: it is valid as the caller says, `Mutex` has its layout, and all of its fields are atomic.
    let mutex = unsafe { &*mutex.cast::<Mutex>() };
    mutex.is_ours().then_some(mutex)
}

/// Whether this thread holds the mutex, with its lock or without. Then what comes is for the C library to
/// decide.
#[inline]
fn is_mine(mutex: &Mutex, shadow: &Shadow) -> bool {
    let tid = tid();
    if mutex.is_held_by(tid) {
        return true;
    }
    match shadow.holder() {
        Some(holder) if holder.tid() == tid => !bypass::come_back(shadow, holder),
        _ => false,
    }
}

/// For who has just acquired the mutex.
#[inline]
fn count(shadow: &Shadow, contended: bool) {
    if STATS.load(Relaxed) {
        shadow.uses.count(contended);
    }
}

/// For a thread that has acquired the mutex and not the lock: the lock has no holder, or its holder has left it behind.
fn acquired_past_lock(shadow: &Shadow, contended: bool) {
    if shadow.holder().is_some() && !shadow.is_bypassed() {
        bypass::notice(shadow);
    }
    count(shadow, contended);
}

/// Acquires the mutex, and not the lock.
///
/// # Safety
/// As `pthread_mutex_lock`.
unsafe fn lock_past_lock(mutex: *mut pthread_mutex_t, shadow: &Shadow) -> c_int {
    // SAFETY: as the caller promises.
    let mut result = unsafe { real::trylock(mutex) };
    let contended = result == libc::EBUSY;
    if contended {
        // SAFETY: as the caller promises.
        result = unsafe { real::lock(mutex) };
    }
    if result == 0 {
        acquired_past_lock(shadow, contended);
    }
    result
}

/// This thread's seat, and what it is noted as when it holds the lock; `None` if it had better go past that: the
/// mutex goes without it, or it does not serve this thread.
#[inline]
fn seat_of_mine(shadow: &Shadow) -> Option<(&'static Seat, Holder)> {
    let number = served_number()?;
    // The holder has ended and left the lock behind, and this thread has its number now. In the queue it would find
    // itself as the holder.
    let is_heir = shadow.holder().is_some_and(|holder| holder.number() == number);
    if is_heir || shadow.is_bypassed() {
        return None;
    }
    Some((bypass::seat(number)?, Holder::new(tid(), number)?))
}

/// Acquires the mutex by `acquire`, with the lock acquired; gives the lock back if that fails.
#[inline]
fn behind_lock(
    shadow: &Shadow,
    (seat, me): (&Seat, Holder),
    contended: bool,
    acquire: impl FnOnce() -> c_int,
) -> c_int {
    let result = acquire();
    if result == 0 {
        shadow.set_holder(Some(me));
        count(shadow, contended);
    } else {
        give_back(shadow, seat);
    }
    result
}

/// Releases the lock that this thread has just acquired.
#[cold]
fn give_back(shadow: &Shadow, seat: &Seat) {
    seat.enter(shadow, false);
    // SAFETY: this thread has acquired it.
    unsafe { shadow.lock().unlock() };
    seat.leave();
}

/// # Safety
/// As `pthread_mutex_lock`.
unsafe extern "C" fn lock_from(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises, here and below.
    let real = || unsafe { real::lock(mutex) };
    // SAFETY: as above.
    let Some(inner) = (unsafe { ours(mutex) }) else { return real() };
    let Some(shadow) = shadow::of(inner, caller) else { return real() };
    if is_mine(inner, shadow) {
        return real();
    }
    let Some(mine) = seat_of_mine(shadow) else {
        // SAFETY: as above.
        return unsafe { lock_past_lock(mutex, shadow) };
    };
    mine.0.enter(shadow, true);
    let contended = STATS.load(Relaxed) && !shadow.lock().try_lock();
    if contended || !STATS.load(Relaxed) {
        shadow.lock().lock();
    }
    mine.0.leave();
    if shadow.is_bypassed() {
        // Another thread has noticed it meanwhile. With this release the waiters behind come out as well.
        give_back(shadow, mine.0);
        // SAFETY: as above.
        return unsafe { lock_past_lock(mutex, shadow) };
    }
    behind_lock(shadow, mine, contended, real)
}

/// # Safety
/// As `pthread_mutex_trylock`.
unsafe extern "C" fn trylock_from(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises, here and below.
    let real = || unsafe { real::trylock(mutex) };
    // SAFETY: as above.
    let Some(inner) = (unsafe { ours(mutex) }) else { return real() };
    let Some(shadow) = shadow::of(inner, caller) else { return real() };
    if is_mine(inner, shadow) {
        return real();
    }
    if let Some(mine) = seat_of_mine(shadow) {
        mine.0.enter(shadow, true);
        let acquired = shadow.lock().try_lock();
        mine.0.leave();
        if acquired {
            return behind_lock(shadow, mine, false, real);
        }
    }
    // Past the lock: its holder may have released the mutex already, and then "busy" would be wrong.
    let result = real();
    if result == 0 {
        acquired_past_lock(shadow, false);
    }
    result
}

/// `timed` is `pthread_mutex_timedlock` or its like.
///
/// # Safety
/// As these.
unsafe fn timedlock_from(
    mutex: *mut pthread_mutex_t,
    caller: usize,
    timed: impl FnOnce() -> c_int,
) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises, here and below.
    let Some(inner) = (unsafe { ours(mutex) }) else { return timed() };
    let Some(shadow) = shadow::of(inner, caller) else { return timed() };
    if is_mine(inner, shadow) {
        return timed();
    }
    // SAFETY: as above.
    match unsafe { trylock_from(mutex, caller) } {
        libc::EBUSY => {
            let result = timed();
            if result == 0 {
                acquired_past_lock(shadow, true);
            }
            result
        }
        result => result,
    }
}

/// What this thread releases with the mutex, by `unlock` or in a wait.
struct Held {
    shadow: &'static Shadow,
    seat: &'static Seat,
    has_sleepers: bool,
}

/// The lock that this thread releases when it releases the mutex. It is noted as nobody's, and the thread has
/// entered its seat.
///
/// # Safety
/// `mutex` is a mutex.
#[inline(always)]
unsafe fn held_lock(mutex: *mut pthread_mutex_t) -> Option<Held> {
    // SAFETY: as the caller promises.
    let inner = unsafe { ours(mutex) }?;
    let shadow = shadow::attached(inner)?;
    let holder = shadow.holder()?;
    if holder.tid() != tid() {
        not_the_holder(inner, shadow);
        return None;
    }
    if inner.is_nested() {
        return None;
    }
    let seat = bypass::seat(holder.number())?;
    seat.enter(shadow, false);
    if shadow.holder() != Some(holder) {
        // It has been released in this thread's name.
        seat.leave();
        return None;
    }
    shadow.set_holder(None);
    Some(Held { shadow, seat, has_sleepers: inner.has_sleepers() })
}

/// Another thread holds the lock. Either it has left the lock behind, and this thread owns the mutex. Or this thread
/// releases a mutex that it has not locked, which POSIX leaves undefined and the C library does.
#[cold]
fn not_the_holder(mutex: &Mutex, shadow: &Shadow) {
    if !shadow.is_bypassed() && (mutex.is_held_by(tid()) || mutex.anyone_may_unlock()) {
        bypass::notice(shadow);
    }
}

impl Held {
    /// Releases the lock.
    #[inline]
    fn release(self) {
        // SAFETY: the holder was this thread, see `held_lock`.
        unsafe { self.shadow.lock().unlock() };
        self.seat.leave();
    }
}

/// # Safety
/// As `pthread_mutex_timedlock`.
unsafe extern "C" fn timedlock_at(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { timedlock_from(mutex, caller, || real::timedlock(mutex, until)) }
}

/// # Safety
/// As `pthread_mutex_clocklock`.
unsafe extern "C" fn clocklock_at(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { timedlock_from(mutex, caller, || real::clocklock(mutex, clock, until)) }
}

/// Defines a function of the C library that goes on to `$inner` with one argument more, the address from
/// which it was called. Only the call's first instruction can tell that.
macro_rules! with_caller {
    ($name:ident($($argument:ident: $type:ty),+), $x86:literal, $arm:literal, $inner:ident) => {
        /// The C library's function of that name.
        ///
        /// # Safety
        /// As that.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),+) -> c_int {
            #[cfg(target_arch = "x86_64")]
            naked_asm!(concat!("mov ", $x86, ", [rsp]"), "jmp {}", sym $inner);
            #[cfg(target_arch = "aarch64")]
            naked_asm!(concat!("mov ", $arm, ", x30"), "b {}", sym $inner);
        }
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("overspin-preload knows the calling conventions of x86-64 and AArch64 only");

with_caller!(pthread_mutex_lock(mutex: *mut pthread_mutex_t), "rsi", "x1", lock_from);
with_caller!(pthread_mutex_trylock(mutex: *mut pthread_mutex_t), "rsi", "x1", trylock_from);
with_caller!(
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec),
    "rdx", "x2", timedlock_at
);
with_caller!(
    pthread_mutex_clocklock(
        mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec
    ),
    "rcx", "x3", clocklock_at
);

/// The C library's function of that name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises.
    let Some(held) = (unsafe { held_lock(mutex) }) else {
        // SAFETY: as the caller promises.
        return unsafe { real::unlock(mutex) };
    };
    let sleepers_turn = held.has_sleepers && held.shadow.is_sleepers_turn();
    // SAFETY: as the caller promises. From here on `mutex` may be gone.
    let result = unsafe { real::unlock(mutex) };
    if sleepers_turn {
        pause(TURN);
    }
    held.release();
    result
}

/// The C library's function of that name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises, here and below.
    let shadow = unsafe { ours(mutex) }.and_then(shadow::attached);
    // SAFETY: as above.
    let result = unsafe { real::destroy(mutex) };
    if let Some(shadow) = shadow.filter(|_| result == 0) {
        shadow::retire(shadow);
    }
    result
}

/// Releases the lock before a wait that releases the mutex. Who gets it waits for the mutex, a moment.
///
/// # Safety
/// `mutex` is a mutex.
unsafe extern "C" fn before_wait(mutex: *mut pthread_mutex_t) {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises.
    if let Some(held) = unsafe { held_lock(mutex) } {
        held.release();
    }
}

// A cancelled thread unwinds through the following functions. They have nothing to drop.

/// The C library's function of that name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        before_wait(mutex);
        real::cond_wait(condition, mutex)
    }
}

/// The C library's function of that name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        before_wait(mutex);
        real::cond_timedwait(condition, mutex, until)
    }
}

/// The C library's function of that name.
///
/// # Safety
/// As that.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        before_wait(mutex);
        real::cond_clockwait(condition, mutex, clock, until)
    }
}
