//! Waits on condition variables, and signals.
//!
//! **Why not the C library's waits.** They release and acquire the mutex inside the C library, past the lock. A thread
//! that comes back would have the mutex without the lock. Threads that come through the lock would then sleep on the
//! mutex, and each hand-over would cost two more switches. So a wait here is: queue, release lock and mutex, sleep,
//! and acquire both again, as any other thread does.
//!
//! **Who wakes whom.** A waiter whose mutex is held by the thread that signals would only wake up to wait for the mutex;
//! on the signaller's own CPU it would even take it away from the holder. So the holder keeps it, and wakes it when it
//! releases the mutex. Several waiters of one signal follow each other: each takes the rest with it, and wakes the next
//! one when it releases the mutex.
//!
//! | The thread that signals | The waiters of that signal |
//! |---|---|
//! | holds the mutex with its lock | belong to the mutex's shadow ([`Kept`](crate::waiters::Kept)); the release wakes the first |
//! | does not | the first is woken at once |
//!
//! **The C library's waits still exist**: for variables shared between processes, for mutexes that this library does not
//! serve (for a new one, while a thread forks), for mutexes that some code uses past it, and for code that calls the C
//! library itself. So a signal also goes to the C library, which finds nobody in most cases. It goes there first: a woken
//! thread may end the variable.
//!
//! **Signals past this library** are not seen here. So when the program loads a library that will call past this one, or
//! when a mutex is found to be used past it, [`others_signal`] lets all waiters wake up as if by chance, which POSIX
//! allows. All further waits are the C library's.
//!
//! **Cancellation.** Waits are cancellation points. The C library unwinds a cancelled thread from its sleep, through a
//! frame here that has nothing to drop; a cleanup handler acquires the mutex again, as POSIX demands, before the
//! program's own handlers run.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use libc::{clockid_t, pthread_cond_t, pthread_mutex_t, timespec};
use overspin_native::kernel_thread_id;

use crate::passage::{before_wait, lock_from, unlock};
use crate::policy::ours;
use crate::shadow;
use crate::system::KeepErrno;
use crate::waiters::{Waiter, Waiters, taken, wake_all};
use crate::{bypass, condition, real, shards};

/// Some code of this process uses mutexes past this library.
static OTHERS: AtomicBool = AtomicBool::new(false);

/// Seconds between two looks of a waiter.
const EVERY: libc::time_t = 1;

/// When a wait ends at the latest, if it does.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Signal,
    /// By the clock of the variable.
    Time(*const timespec),
    TimeOf(clockid_t, *const timespec),
}

/// The C library's buffer of a cleanup handler: a function, its argument, a type, and the next buffer.
type CleanupBuffer = [usize; 4];

unsafe extern "C" {
    fn _pthread_cleanup_push(
        buffer: *mut CleanupBuffer,
        routine: unsafe extern "C" fn(*mut c_void),
        argument: *mut c_void,
    );
    fn _pthread_cleanup_pop(buffer: *mut CleanupBuffer, execute: c_int);
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// A wait that has begun.
struct Begun {
    waiter: Waiter,
    /// The clock and the time of its end.
    until: Option<(clockid_t, timespec)>,
    errno: c_int,
}

/// Waits on a condition variable.
///
/// # Safety
/// The rules of `pthread_cond_wait` and its variants.
pub(crate) unsafe fn wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: Until,
) -> c_int {
    // Nothing in this frame may need a drop: see "Cancellation".
    let mut begun = MaybeUninit::<Begun>::uninit();
    let mut buffer = MaybeUninit::<CleanupBuffer>::uninit();
    // SAFETY: as the caller promises. `begun` stays where it is until its waiter is woken or removed: `end` and `cancelled`
    // see to that, and one of them runs before this frame ends.
    unsafe {
        if !begin(&mut begun, condition, mutex, until) {
            before_wait(mutex);
            return match until {
                Until::Signal => real::cond_wait(condition, mutex),
                Until::Time(time) => real::cond_timedwait(condition, mutex, time),
                Until::TimeOf(clock, time) => real::cond_clockwait(condition, mutex, clock, time),
            };
        }
        _pthread_cleanup_push(buffer.as_mut_ptr(), cancelled, begun.as_mut_ptr().cast());
        let error = sleep(begun.as_ptr(), (*begun.as_ptr()).until);
        _pthread_cleanup_pop(buffer.as_mut_ptr(), 0);
        end(&*begun.as_ptr(), error)
    }
}

/// Queues a waiter and releases the mutex. Returns false if the wait is the C library's.
///
/// # Safety
/// As for [`wait`]. If it returns true, `to` is a wait that must end.
unsafe fn begin(
    to: &mut MaybeUninit<Begun>,
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: Until,
) -> bool {
    if OTHERS.load(Relaxed) {
        return false;
    }
    // SAFETY: as the caller promises, here and below.
    let Some(inner) = (unsafe { ours(mutex) }) else { return false };
    // A mutex that is held more than once stays held, and one that is another thread's is an error: cases for the C library.
    let shadow = {
        let _errno = KeepErrno::new();
        shards::of(inner, 0)
    };
    let is_served = shadow.is_some_and(|shadow| !shadow.is_bypassed());
    if !is_served || !inner.is_held_by(kernel_thread_id()) || inner.is_nested() {
        return false;
    }
    // SAFETY: as above.
    let Some(own_clock) = (unsafe { condition::private_clock(condition) }) else { return false };
    let (clock, time) = match until {
        Until::Signal => (own_clock, ptr::null()),
        Until::Time(time) => (own_clock, time),
        Until::TimeOf(clock, time) => (clock, time),
    };
    // SAFETY: null, or a time.
    let until = unsafe { time.as_ref() }.map(|time| (clock, *time));
    let is_legal = |&(clock, time): &(clockid_t, timespec)| {
        matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC)
            && (0..1_000_000_000).contains(&time.tv_nsec)
    };
    // The C library knows the errors.
    if !until.as_ref().is_none_or(is_legal) {
        return false;
    }
    // SAFETY: it points to this thread's own `errno`.
    let errno = unsafe { *libc::__errno_location() };
    let waiter = Waiter::new(condition, mutex);
    let begun = to.write(Begun { waiter, until, errno });
    begun.waiter.queue();
    // Once more: this waiter may have come too late to be woken by `others_signal`.
    if OTHERS.load(Relaxed) && begun.waiter.remove() {
        return false;
    }
    // SAFETY: this thread holds the mutex.
    unsafe { unlock(mutex) };
    true
}

/// Sleeps until the waiter is woken (0) or `until` (`ETIMEDOUT`).
///
/// # Safety
/// `begun` is a wait that has begun. The thread may be cancelled here.
unsafe fn sleep(begun: *const Begun, until: Option<(clockid_t, timespec)>) -> c_int {
    // SAFETY: as the caller promises. Nothing here needs a drop.
    unsafe {
        let semaphore = (*begun).waiter.semaphore();
        loop {
            let look = next_look(until);
            let result = real::sem_clockwait(semaphore, look.clock, &raw const look.time);
            match result {
                0 => return 0,
                // Otherwise a signal handler ran.
                _ if *libc::__errno_location() == libc::ETIMEDOUT => {
                    if look.is_last {
                        return libc::ETIMEDOUT;
                    }
                    look_around(&*begun);
                }
                _ => {}
            }
        }
    }
}

/// The end of a piece of a sleep.
struct Look {
    clock: clockid_t,
    time: timespec,
    /// The sleep is over then.
    is_last: bool,
}

/// The next one: a second from now, or at the end of the wait.
fn next_look(until: Option<(clockid_t, timespec)>) -> Look {
    let clock = until.map_or(libc::CLOCK_MONOTONIC, |(clock, _)| clock);
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is ours to write. Both clocks exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec += EVERY;
    match until {
        Some((_, end)) if (end.tv_sec, end.tv_nsec) <= (time.tv_sec, time.tv_nsec) => {
            Look { clock, time: end, is_last: true }
        }
        _ => Look { clock, time, is_last: false },
    }
}

/// Frees a waiter that was taken under a mutex which some code has then released past this library: nobody would wake it.
#[cold]
fn look_around(begun: &Begun) {
    let waiter = &begun.waiter;
    // SAFETY: a waiter's mutex exists.
    let shadow = unsafe { ours(waiter.mutex) }.and_then(shadow::attached);
    if let Some(shadow) = shadow
        && waiter.is_taken()
        && shadow.left_behind().is_some()
    {
        bypass::notice(shadow);
    }
}

/// Sleeps until the waiter, which has been taken, is woken. Not a cancellation point.
fn sleep_on(begun: &Begun) {
    let mut before = 0;
    // SAFETY: numbers, and a wait that has begun; the state forbids that the thread is cancelled.
    unsafe {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before);
        sleep(begun, None);
        pthread_setcancelstate(before, ptr::null_mut());
    }
}

/// Acquires the mutex again, after a sleep that ended with `error`. The result of the wait.
fn end(begun: &Begun, error: c_int) -> c_int {
    let waiter = &begun.waiter;
    let timed_out = error != 0 && waiter.remove();
    if error != 0 && !timed_out {
        sleep_on(begun);
    }
    let result = acquire_again(begun);
    // SAFETY: it points to this thread's own `errno`.
    unsafe { *libc::__errno_location() = begun.errno };
    match result {
        0 if timed_out => error,
        result => result,
    }
}

/// Acquires the mutex, and wakes those that come after this waiter when it is released again.
fn acquire_again(begun: &Begun) -> c_int {
    let waiter = &begun.waiter;
    // SAFETY: the mutex of a wait exists until the wait is over.
    let result = unsafe { lock_from(waiter.mutex, 0) };
    pass_on(waiter.mutex, waiter.after.take());
    result
}

/// The cleanup handler of a wait.
///
/// # Safety
/// `begun` is a wait that has begun, of this thread.
unsafe extern "C" fn cancelled(begun: *mut c_void) {
    // SAFETY: as the caller promises.
    let begun = unsafe { &*begun.cast::<Begun>() };
    let waiter = &begun.waiter;
    let was_signalled = !waiter.remove();
    if was_signalled {
        sleep_on(begun);
    }
    acquire_again(begun);
    if was_signalled {
        // A cancelled thread must not use up a signal.
        pass_on(waiter.mutex, taken(waiter.condition(), 1));
    }
}

/// Wakes waiters of `mutex`: when this thread releases the mutex if it holds it together with its lock, else now.
fn pass_on(mutex: *mut pthread_mutex_t, waiters: Waiters) {
    if waiters.first().is_none() {
        return;
    }
    // SAFETY: a waiter's mutex exists.
    let shadow = unsafe { ours(mutex) }.and_then(shadow::attached);
    let tid = kernel_thread_id();
    match shadow.filter(|shadow| shadow.holder().is_some_and(|holder| holder.tid() == tid)) {
        Some(shadow) => shadow.kept.add(waiters),
        None => waiters.wake_first(),
    }
}

/// Wakes waiters of a variable, at most this many.
fn signal_ours(condition: *mut pthread_cond_t, most: usize) {
    let waiters = taken(condition.addr(), most);
    if let Some(first) = waiters.first() {
        pass_on(first.mutex, waiters);
    }
}

/// # Safety
/// The rules of `pthread_cond_signal`.
pub(crate) unsafe fn signal(condition: *mut pthread_cond_t) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises. First, because a woken thread may end the variable.
    let result = unsafe { real::cond_signal(condition) };
    signal_ours(condition, 1);
    result
}

/// # Safety
/// The rules of `pthread_cond_broadcast`.
pub(crate) unsafe fn broadcast(condition: *mut pthread_cond_t) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as in `signal`.
    let result = unsafe { real::cond_broadcast(condition) };
    signal_ours(condition, usize::MAX);
    result
}

/// Some code uses mutexes past this library, and may signal past it as well.
pub(crate) fn others_signal() {
    if !OTHERS.swap(true, Relaxed) {
        wake_all();
    }
}
