//! Mutexes that some code releases past this library.
//!
//! Some code calls the C library's own functions: a library that was loaded with `RTLD_DEEPBIND`, or code that looks
//! them up in libc.so.6 itself. When such code releases a mutex, or waits on a condition variable with it, it does
//! not know about the lock in front of the mutex. The lock stays held, and its waiters would wait for ever. An
//! acquisition past the library does no harm, because the mutex decides.
//!
//! **Detection.** A thread records itself as the holder of the lock after it has acquired the mutex, and removes this
//! record before it releases the mutex. So the recorded holder also holds the mutex, and the C library keeps the
//! owner of a mutex in the mutex itself. A lock is *left behind* if its holder does not own the mutex. Three threads
//! can detect this, without any cost on the fast path:
//!
//! - A thread that waits in the lock looks now and then ([`look`]; ten times a second if it sleeps), and finds that
//!   the mutex is free or that another thread owns it.
//! - A thread acquires the mutex past the lock, and finds another thread recorded as the holder of the lock.
//! - The holder of the lock comes back, and does not own the mutex.
//!
//! **Reaction.** From then on the mutex works without its lock, because the same code will do the same again. The
//! library reports this once per process. A waiter that detects it arranges a release of the lock in the name of the
//! holder. Then all waiters come out one after another, by the rules of the lock.
//!
//! **In the name of the holder.** A lock may use records of the thread that releases it, and only that thread may use
//! them. Each thread number has a [`Seat`], which says whether the thread is in a lock. The waiter asks the holder to
//! stay out of all locks. Then it waits until it sees that the holder is out, or stands still where it waits for
//! another lock. Each of the two writes first and then reads, so that one of them must see the other. The fence that
//! this needs is on the rare side: `membarrier` makes all threads of the process pass a fence. The fast path only has
//! to keep the compiler from changing the order.
//!
//! A separate thread runs the release. With some locks the releaser waits for the next thread in the queue, which may
//! be the waiter that detected the problem.
//!
//! **Nothing here is a cancellation point**, because `pthread_mutex_lock` is not one. Pauses and messages are plain
//! system calls.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, compiler_fence};
use std::time::{Duration, Instant};

use overspin_native::{MAX_THREADS, try_thread_id, with_number_of};

use crate::shadow::{Holder, Shadow};
use crate::system::{pause, say};
use crate::waiting::others_signal;

/// The time that a waiter gives the holder to leave another lock or to stand still in it. It is longer than a
/// sleeper's interval between looks. If it does not suffice, the waiter tries again at its next look.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_micros(200);

/// The thread is in no lock.
const OUT: *mut Shadow = ptr::null_mut();

/// The state of a thread, by its number.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Seat {
    /// `OUT`, or a shadow whose lock the thread is in. Written by the thread.
    shadow: AtomicPtr<Shadow>,
    /// The thread acquires; otherwise it releases. Written by the thread.
    acquires: AtomicBool,
    /// The thread is asked to stay out, or to stand still where it waits. Written by the thread that acts for it.
    asked: AtomicBool,
    /// The thread stands still. Written by the thread.
    still: AtomicBool,
}

static SEATS: [Seat; MAX_THREADS] = [const {
    Seat {
        shadow: AtomicPtr::new(OUT),
        acquires: AtomicBool::new(false),
        asked: AtomicBool::new(false),
        still: AtomicBool::new(false),
    }
}; MAX_THREADS];

/// A thread acts for another one.
static ACTING: AtomicBool = AtomicBool::new(false);
/// Arguments of [`release`]: the lock, and the number of its holder.
static RELEASED: AtomicPtr<Shadow> = AtomicPtr::new(ptr::null_mut());
static NUMBER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread looks or acts. If it waits meanwhile, it does not look again.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Returns the seat of the thread `number`.
#[inline]
pub(crate) fn seat(number: usize) -> Option<&'static Seat> {
    SEATS.get(number)
}

impl Seat {
    /// The thread of this seat calls this before it acquires the shadow's lock, or releases it if not `acquires`.
    #[inline]
    pub(crate) fn enter(&self, shadow: &Shadow, acquires: bool) {
        loop {
            self.acquires.store(acquires, Relaxed);
            self.shadow.store(ptr::from_ref(shadow).cast_mut(), Relaxed);
            // See "In the name of the holder".
            compiler_fence(SeqCst);
            // Acquire: pairs with `end`.
            if !self.asked.load(Acquire) {
                return;
            }
            self.stay_out();
        }
    }

    /// Ends [`Seat::enter`].
    #[inline]
    pub(crate) fn leave(&self) {
        // Release: a thread that sees this thread out also sees the current state of its records.
        self.shadow.store(OUT, Release);
    }

    #[cold]
    fn stay_out(&self) {
        self.leave();
        while self.asked.load(Acquire) {
            pause(PAUSE);
        }
    }

    /// Stands still while another thread asks for it. The thread of this seat calls this where it waits.
    #[cold]
    fn stand_still(&self) {
        while self.asked.load(Acquire) {
            // Release: as in `leave`.
            self.still.store(true, Release);
            while self.asked.load(Acquire) {
                pause(PAUSE);
            }
            self.still.store(false, Relaxed);
            // Another thread may have asked again and have seen this one stand still: see "In the name of the
            // holder".
            compiler_fence(SeqCst);
        }
    }

    fn is_out(&self) -> bool {
        // Acquire: pairs with `leave` and `stand_still`.
        self.shadow.load(Acquire) == OUT || self.still.load(Acquire)
    }
}

/// Makes all threads of the process pass a memory barrier.
fn barrier_of_all() {
    let command = |command: c_int| {
        // SAFETY: the commands have no preconditions and touch no memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    };
    let done = command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        || command(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
            && command(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
        || command(libc::MEMBARRIER_CMD_GLOBAL);
    if !done {
        // The call is forbidden, or the kernel is older than 4.3. No CPU keeps a store to itself for this long.
        pause(Duration::from_millis(20));
    }
}

/// Checks whether the lock that this thread waits for has been left behind. Waiters call this now and then from
/// within a lock.
#[cold]
pub(crate) fn look() {
    if BUSY.get() {
        return;
    }
    let Some(seat) = try_thread_id().and_then(seat) else { return };
    // While this thread releases a lock, it uses its records.
    if !seat.acquires.load(Relaxed) {
        return;
    }
    // SAFETY: null, or a shadow that this thread has put there; shadows are never freed.
    let Some(shadow) = (unsafe { seat.shadow.load(Relaxed).as_ref() }) else { return };
    BUSY.set(true);
    if seat.asked.load(Acquire) {
        seat.stand_still();
    }
    if let Some(holder) = shadow.left_behind() {
        act(shadow, holder);
    }
    BUSY.set(false);
}

/// Releases the lock of `shadow` in the name of `holder`, another thread, which has left it behind.
fn act(shadow: &'static Shadow, holder: Holder) {
    let Some(seat) = seat(holder.number()) else { return };
    // Acquire: pairs with the previous `end`.
    if ACTING.swap(true, Acquire) {
        return;
    }
    seat.asked.store(true, Relaxed);
    barrier_of_all();
    let until = Instant::now() + PATIENCE;
    while !seat.is_out() {
        // The holder may be releasing the lock after all, and its release may wait for this thread.
        if shadow.holder() != Some(holder) || Instant::now() > until {
            return end(seat);
        }
        pause(PAUSE);
    }
    // Now the holder cannot touch the lock, so this check is exact.
    if shadow.left_behind() != Some(holder) {
        return end(seat);
    }
    notice(shadow);
    shadow.set_holder(None);
    RELEASED.store(ptr::from_ref(shadow).cast_mut(), Relaxed);
    NUMBER.store(holder.number(), Relaxed);
    if !start_release() {
        shadow.set_holder(Some(holder));
        end(seat);
    }
}

/// Lets the thread of `seat` go on.
fn end(seat: &Seat) {
    // Release, both: all uses of the records happen before their owner goes on, and before another thread acts.
    seat.asked.store(false, Release);
    ACTING.store(false, Release);
}

/// Starts a thread that runs [`release`]. It blocks all signals, because they are meant for the program. Returns
/// false if the thread cannot be started.
fn start_release() -> bool {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: each value is written before it is read; `release` lives as long as the process and uses no argument;
    // the thread is detached once, and only if it exists.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let error =
            libc::pthread_create(thread.as_mut_ptr(), ptr::null(), release, ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        if error == 0 {
            libc::pthread_detach(thread.assume_init());
        }
        error == 0
    }
}

extern "C" fn release(_: *mut c_void) -> *mut c_void {
    BUSY.set(true);
    let number = NUMBER.load(Relaxed);
    // SAFETY: a shadow, which is never freed.
    let shadow = unsafe { RELEASED.load(Relaxed).as_ref() };
    if let (Some(shadow), Some(seat)) = (shadow, seat(number)) {
        // SAFETY: the thread of that number is out of all locks, or stands still where it waits, until `end`. It has
        // acquired this lock, and no other thread has released it: `act` has removed the holder's record.
        unsafe { with_number_of(number, || shadow.lock().unlock()) };
        end(seat);
    }
    ptr::null_mut()
}

/// Releases the lock of `shadow` if its holder, this thread, comes back without the mutex. Returns whether it did.
#[cold]
pub(crate) fn come_back(shadow: &Shadow, holder: Holder) -> bool {
    let Some(seat) = seat(holder.number()) else { return false };
    seat.enter(shadow, false);
    let left_behind = shadow.left_behind() == Some(holder);
    if left_behind {
        notice(shadow);
        shadow.set_holder(None);
        // SAFETY: this thread has acquired it, and no thread has released it in its name.
        unsafe { shadow.lock().unlock() };
    }
    seat.leave();
    left_behind
}

/// Makes the mutex of `shadow` work without its lock from now on. Reports this once per process.
#[cold]
pub(crate) fn notice(shadow: &Shadow) {
    static SAID: AtomicBool = AtomicBool::new(false);
    shadow.set_bypassed(true);
    // Nobody may come who would wake them.
    shadow.kept.take().wake_first();
    others_signal();
    if !SAID.swap(true, Relaxed) {
        say(format_args!(
            "mutex {:#x} was released past this library, by code that calls the C library's own functions (as \
             libraries loaded with RTLD_DEEPBIND do) or by a thread that had not locked it; it and others like it go \
             on as plain pthread mutexes, without the lock; to measure the lock on them, load those libraries \
             without RTLD_DEEPBIND",
            shadow.address()
        ));
    }
}

/// Resets all seats in the child of a fork, where the other threads do not exist.
pub(crate) fn forget_other_threads() {
    for seat in &SEATS {
        // Most seats were never used, and their memory should stay untouched.
        if seat.shadow.load(Relaxed) != OUT {
            seat.shadow.store(OUT, Relaxed);
        }
        for flag in [&seat.asked, &seat.still] {
            if flag.load(Relaxed) {
                flag.store(false, Relaxed);
            }
        }
    }
    ACTING.store(false, Relaxed);
}
