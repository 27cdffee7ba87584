//! The way of a thread through a mutex and its lock. An acquisition takes the lock, then the mutex; a release
//! releases the mutex, then the lock. A mutex that no thread has had to wait for has no lock: the first thread that finds it held
//! gives it one, takes that, and waits for the mutex.
//!
//! (So a thread may own the mutex without the lock, although others are queued in the lock. Then there is no recorded holder.)
//!
//! | Step | Recorded holder of the lock | Mutex |
//! |---|---|---|
//! | the lock is acquired | none | held by a thread that went past the lock, else free |
//! | the mutex is acquired | none, then this thread | this thread's |
//! | a release begins | none | this thread's |
//! | the mutex is released | none | free, and perhaps destroyed |
//! | the lock is released | the next one's | |
//!
//! **Invariants.**
//! - The recorded holder of the lock owns the mutex, unless some code has released the mutex past this library.
//!   [`bypass`] relies on this.
//! - A thread is in its [`Seat`] whenever it touches the lock, and leaves it before it waits for the mutex.
//! - After the release of the mutex, nothing touches the mutex: another thread may have destroyed it. The shadow and
//!   its lock stay while this thread is in its seat.
//! - `errno` is unchanged, and nothing is a cancellation point.

use std::ffi::c_int;
use std::hint;
use std::time::Duration;

use libc::{clockid_t, pthread_mutex_t, timespec};
use overspin_native::kernel_thread_id;

use crate::bypass::{self, Seat};
use crate::mutex::Mutex;
use crate::policy::{HandledMutex, ours, seat_of_mine};
use crate::shadow::{self, Holder, Shadow};
use crate::shards;
use crate::system::{KeepErrno, pause};
use crate::waiters::Waiters;
use crate::{holding, real, record, stats, tally};

/// The time that a releaser keeps the lock when a thread that sleeps on the mutex is next. It is about the time that
/// a sleeper takes to wake up on a free CPU.
const TURN: Duration = Duration::from_micros(50);

/// Looks at a mutex that is held without a lock, before the thread sleeps: some 20 us, as long as a wake-up takes. All
/// other threads wait for this thread meanwhile, and so does a holder that wants the mutex again. With sections of 3 us it
/// waits for 2 us. If this thread slept at once, it would wait for 30 to 45 us.
const LOOKS: u32 = 1000;

/// Counts an acquisition, for the thread that has just made it.
#[inline]
fn count(shadow: &Shadow, contended: bool) {
    if stats::are_on()
        && let Some(account) = shadow.account()
    {
        account.count(contended);
    }
}

/// Called after an acquisition of the mutex without the lock. The lock has no holder, or its holder has left it
/// behind.
fn acquired_past_lock(shadow: &Shadow, contended: bool) {
    if shadow.holder().is_some() && !shadow.is_bypassed() {
        bypass::notice(shadow);
    }
    count(shadow, contended);
}

/// Acquires the mutex, but not the lock.
///
/// # Safety
/// As `pthread_mutex_lock`.
unsafe fn lock_past_lock(mutex: *mut pthread_mutex_t, shadow: &Shadow) -> c_int {
    // SAFETY: as the caller promises.
    let mut result = unsafe { real::trylock(mutex) };
    let contended = result == libc::EBUSY;
    if contended {
        let began = stats::are_on().then(record::now);
        // SAFETY: as the caller promises.
        result = unsafe { real::lock(mutex) };
        began.into_iter().for_each(tally::waited);
    }
    if result == 0 {
        acquired_past_lock(shadow, contended);
    }
    result
}

/// Acquires a mutex that another thread may hold without the lock.
///
/// # Safety
/// As `pthread_mutex_lock`. Not for a mutex that this thread holds.
#[cold]
unsafe fn lock_after_looks(mutex: *mut pthread_mutex_t) -> c_int {
    for _ in 0..LOOKS {
        // SAFETY: as the caller promises, here and below.
        if unsafe { ours(mutex) }.is_none_or(Mutex::is_free) {
            // SAFETY: as above.
            let result = unsafe { real::trylock(mutex) };
            if result != libc::EBUSY {
                return result;
            }
        }
        hint::spin_loop();
    }
    // SAFETY: as above.
    unsafe { real::lock(mutex) }
}

/// Acquires the mutex by `acquire`, with the lock held. Releases the lock if that fails.
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
        if stats::are_on() {
            holding::begin(shadow, me);
        }
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
    unsafe { shadow.unlock() };
    seat.leave();
}

/// # Safety
/// As `pthread_mutex_lock`.
pub(crate) unsafe extern "C" fn lock_from(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    tally::takes();
    // SAFETY: as the caller promises, here and below.
    let real = || unsafe { real::lock(mutex) };
    // SAFETY: as above.
    let Some(found) = (unsafe { HandledMutex::at(mutex) }) else { return real() };
    let was_plain = found.is_plain();
    if was_plain {
        // SAFETY: as above.
        let result = unsafe { real::trylock(mutex) };
        // "Busy" may mean that this thread holds it: its type decides below.
        if result != libc::EBUSY {
            return result;
        }
    }
    let _errno = KeepErrno::new();
    let Some(shadow) = found.not_straight(caller) else { return real() };
    let Some(mine) = seat_of_mine(shadow) else {
        // SAFETY: as above.
        return unsafe { lock_past_lock(mutex, shadow) };
    };
    mine.0.enter(shadow, true);
    let counts = stats::are_on();
    // SAFETY: this thread is in its seat, and served.
    let contended = counts && !unsafe { shadow.try_lock() };
    if contended || !counts {
        let began = contended.then(record::now);
        // SAFETY: as above.
        unsafe { shadow.lock() };
        began.into_iter().for_each(tally::waited);
    }
    mine.0.leave();
    if shadow.is_bypassed() {
        // Another thread has detected a bypass meanwhile. This release also lets the waiters behind come out.
        give_back(shadow, mine.0);
        // SAFETY: as above.
        return unsafe { lock_past_lock(mutex, shadow) };
    }
    if was_plain {
        // SAFETY: as above. If this thread held it, it would have gone straight.
        return behind_lock(shadow, mine, contended, || unsafe { lock_after_looks(mutex) });
    }
    behind_lock(shadow, mine, contended, real)
}

/// # Safety
/// As `pthread_mutex_trylock`.
pub(crate) unsafe extern "C" fn trylock_from(mutex: *mut pthread_mutex_t, caller: usize) -> c_int {
    tally::takes();
    // SAFETY: as the caller promises, here and below.
    let real = || unsafe { real::trylock(mutex) };
    // SAFETY: as above.
    let Some(found) = (unsafe { HandledMutex::at(mutex) }).filter(|it| !it.is_plain()) else {
        return real();
    };
    let _errno = KeepErrno::new();
    let Some(shadow) = found.not_straight(caller) else { return real() };
    if let Some(mine) = seat_of_mine(shadow) {
        mine.0.enter(shadow, true);
        // SAFETY: this thread is in its seat, and served.
        let acquired = unsafe { shadow.try_lock() };
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

/// Acquires with a time limit. `timed` is `pthread_mutex_timedlock` or a variant.
///
/// # Safety
/// As for `timed`.
unsafe fn timedlock_from(
    mutex: *mut pthread_mutex_t,
    caller: usize,
    timed: impl FnOnce() -> c_int,
) -> c_int {
    tally::takes();
    // SAFETY: as the caller promises, here and below.
    let Some(found) = (unsafe { HandledMutex::at(mutex) }) else { return timed() };
    if found.is_plain() {
        // A thread with a time limit has no place in a lock, so it need not make one.
        // SAFETY: as above.
        let result = unsafe { real::trylock(mutex) };
        return if result == libc::EBUSY { timed() } else { result };
    }
    let _errno = KeepErrno::new();
    let Some(shadow) = found.not_straight(caller) else { return timed() };
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

/// # Safety
/// As `pthread_mutex_timedlock`.
pub(crate) unsafe extern "C" fn timedlock_at(
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { timedlock_from(mutex, caller, || real::timedlock(mutex, until)) }
}

/// # Safety
/// As `pthread_mutex_clocklock`.
pub(crate) unsafe extern "C" fn clocklock_at(
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    let timed = || unsafe { real::clocklock(mutex, clock, until) };
    if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
        // An error, even if the mutex is free.
        return timed();
    }
    // SAFETY: as the caller promises.
    unsafe { timedlock_from(mutex, caller, timed) }
}

/// The lock that this thread releases together with the mutex, by `unlock` or in a wait.
struct Held {
    shadow: &'static Shadow,
    seat: &'static Seat,
    has_sleepers: bool,
    /// Threads to wake when both are released.
    kept: Waiters,
}

/// Returns the lock that this thread releases with the mutex. The lock then has no recorded holder, and the thread
/// has entered its seat.
///
/// # Safety
/// `mutex` points to a mutex.
#[inline(always)]
unsafe fn held_lock(mutex: *mut pthread_mutex_t) -> Option<Held> {
    // SAFETY: as the caller promises.
    let inner = unsafe { ours(mutex) }?;
    let shadow = shadow::attached(inner)?;
    let holder = shadow.holder()?;
    if holder.tid() != kernel_thread_id() {
        not_the_holder(inner, shadow);
        return None;
    }
    if inner.is_nested() {
        return None;
    }
    let seat = bypass::seat(holder.number())?;
    seat.enter(shadow, false);
    if shadow.holder() != Some(holder) {
        // Another thread has released the lock in this thread's name.
        seat.leave();
        return None;
    }
    if stats::are_on() {
        holding::end(shadow);
    }
    shadow.set_holder(None);
    let (has_sleepers, kept) = (inner.has_sleepers(), shadow.kept.take());
    Some(Held { shadow, seat, has_sleepers, kept })
}

/// Called if the recorded holder is another thread. Either that thread has left the lock behind, and this thread owns
/// the mutex. Or this thread releases a mutex that it has not locked, which POSIX leaves undefined and the C library
/// allows.
#[cold]
fn not_the_holder(mutex: &Mutex, shadow: &Shadow) {
    if !shadow.is_bypassed() && (mutex.is_held_by(kernel_thread_id()) || mutex.anyone_may_unlock())
    {
        bypass::notice(shadow);
    }
}

impl Held {
    /// Releases the lock.
    #[inline]
    fn release(self) {
        // SAFETY: the holder was this thread; see `held_lock`.
        unsafe { self.shadow.unlock() };
        self.seat.leave();
        self.kept.wake_first();
    }
}

/// # Safety
/// As `pthread_mutex_unlock`.
#[inline]
pub(crate) unsafe fn unlock(mutex: *mut pthread_mutex_t) -> c_int {
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

/// # Safety
/// As `pthread_mutex_destroy`.
#[inline]
pub(crate) unsafe fn destroy(mutex: *mut pthread_mutex_t) -> c_int {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises, here and below.
    let shadow = unsafe { ours(mutex) }.and_then(shadow::attached);
    // SAFETY: as above.
    let result = unsafe { real::destroy(mutex) };
    if let Some(shadow) = shadow.filter(|_| result == 0) {
        shards::retire(shadow, mutex.addr());
    }
    result
}

/// Releases the lock before a wait of the C library, which releases the mutex. The next thread in the lock waits a moment
/// for the mutex.
///
/// # Safety
/// `mutex` points to a mutex.
pub(crate) unsafe extern "C" fn before_wait(mutex: *mut pthread_mutex_t) {
    let _errno = KeepErrno::new();
    // SAFETY: as the caller promises.
    if let Some(held) = unsafe { held_lock(mutex) } {
        held.release();
    }
}
