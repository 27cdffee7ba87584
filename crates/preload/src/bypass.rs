//! What happens to a mutex that somebody has released past this library.
//!
//! Code that reaches the C library's own functions (a library loaded with `RTLD_DEEPBIND`, whatever looks them
//! up in libc.so.6 itself) releases the mutex, or waits on a condition variable with it, and knows nothing of
//! the lock before it. The lock stays held, and its waiters would wait forever. Acquisitions past the library do no
//! harm: the mutex decides.
//!
//! **How it is seen.** While a thread is noted as the holder of the lock it holds the mutex, too: it is
//! noted after it has acquired the mutex, and struck out before it releases it. The C library keeps the holder of a
//! mutex in the mutex itself. So there are these signs, and none of them costs the fast path anything:
//!
//! - a thread that waits in the lock looks now and then ([`look`]; ten times a second if it sleeps) and finds the
//!   mutex free, or held by another thread than the lock;
//! - a thread that has got the mutex past the lock finds another thread noted as the holder of the lock;
//! - the holder of the lock comes back, and does not hold the mutex.
//!
//! **What is done.** The mutex goes without its lock from now on, for what was done once will be done again. That
//! is said once in a process. If nobody else can release the lock, who has seen it does so in the name of
//! the thread that left it behind, and those who wait come out one after another, by the rules of the lock.
//!
//! **In its name.** A lock may use records of the thread that releases it, which are that thread's alone. Each thread
//! has a [`Seat`], by its number, which says whether it is in a lock. Whoever acts for a thread asks it to stay
//! out, then sees that it is out, or stands still where it waits. The thread writes, then reads; the other one writes,
//! then reads: one of them must see the other. The fence for that is on the side that is rare: `membarrier` makes
//! all threads of the process pass one, and the fast path has only to keep the compiler from changing the order.
//!
//! The release runs in a thread of its own: it may have to wait for the next in the queue, who is, it may be, who has
//! seen it.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, compiler_fence};
use std::thread;
use std::time::{Duration, Instant};

use overspin_native::{MAX_THREADS, try_thread_id, with_number_of};

use crate::shadow::{Holder, Shadow};

/// How long to wait for a thread to leave the lock that it is in, or to stand still there: more than a sleeper takes to look.
/// If that is not enough, there is a next time.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_micros(200);

/// The thread is in no lock.
const OUT: *mut Shadow = ptr::null_mut();

/// Where a thread is, by its number.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Seat {
    /// `OUT`; or a shadow in whose lock the thread is. Written by the thread.
    shadow: AtomicPtr<Shadow>,
    /// The thread acquires, and does not release. Written by the thread.
    acquires: AtomicBool,
    /// The thread is asked to stay out, or to stand still where it waits. Written by who acts for it.
    asked: AtomicBool,
    /// It stands still. Written by the thread.
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

/// Somebody acts for a thread.
static ACTING: AtomicBool = AtomicBool::new(false);
/// For the thread that releases: which lock, and whose number.
static RELEASED: AtomicPtr<Shadow> = AtomicPtr::new(ptr::null_mut());
static NUMBER: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread looks or acts, and what it waits for meanwhile is no reason to look again.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// The seat of the thread `number`.
#[inline]
pub(crate) fn seat(number: usize) -> Option<&'static Seat> {
    SEATS.get(number)
}

impl Seat {
    /// For its thread, before it acquires the shadow's lock (or releases it: `acquires`).
    #[inline]
    pub(crate) fn enter(&self, shadow: &Shadow, acquires: bool) {
        loop {
            self.acquires.store(acquires, Relaxed);
            self.shadow.store(ptr::from_ref(shadow).cast_mut(), Relaxed);
            // See "In its name".
            compiler_fence(SeqCst);
            // Acquire: pairs with the end of what was done in this thread's name.
            if !self.asked.load(Acquire) {
                return;
            }
            self.stay_out();
        }
    }

    /// Ends [`Seat::enter`].
    #[inline]
    pub(crate) fn leave(&self) {
        // Release: who finds it out finds the records as it has left them.
        self.shadow.store(OUT, Release);
    }

    #[cold]
    fn stay_out(&self) {
        self.leave();
        while self.asked.load(Acquire) {
            thread::sleep(PAUSE);
        }
    }

    /// Stands still as long as somebody asks for it. For its thread, where it waits.
    #[cold]
    fn stand_still(&self) {
        while self.asked.load(Acquire) {
            // Release: as in `leave`.
            self.still.store(true, Release);
            while self.asked.load(Acquire) {
                thread::sleep(PAUSE);
            }
            self.still.store(false, Relaxed);
            // Somebody may have asked again, and have seen it stand still: see "In its name".
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
        // Forbidden, or a kernel before 4.3. No store stays in a CPU for so long, and each CPU takes an interrupt.
        thread::sleep(Duration::from_millis(20));
    }
}

/// Looks whether the lock that this thread waits for has been left behind. Called at times from within a lock.
#[cold]
pub(crate) fn look() {
    if BUSY.get() {
        return;
    }
    let Some((number, seat)) = try_thread_id().and_then(|number| Some((number, seat(number)?)))
    else {
        return;
    };
    // While it releases, others may wait for it, and its records are in use.
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
        act(shadow, holder, number);
        if holder.number() == number {
            // The number of a thread that has ended: its records are this thread's.
            seat.stand_still();
        }
    }
    BUSY.set(false);
}

/// Releases the lock of `shadow` in the name of `holder`, who has left it behind. `me`: the number of this
/// thread, which waits for it.
fn act(shadow: &'static Shadow, holder: Holder, me: usize) {
    let Some(seat) = seat(holder.number()) else { return };
    // Acquire: pairs with the end of the last time.
    if ACTING.swap(true, Acquire) {
        return;
    }
    seat.asked.store(true, Relaxed);
    barrier_of_all();
    let until = Instant::now() + PATIENCE;
    while holder.number() != me && !seat.is_out() {
        // It may be releasing in good order after all, and even wait for this thread.
        if shadow.holder() != Some(holder) || Instant::now() > until {
            return end(seat);
        }
        thread::sleep(PAUSE);
    }
    // Now it can do nothing to the lock, and this is exact.
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
    // Release, both: what was done with the records happens before what their owner, or the next who acts, does.
    seat.asked.store(false, Release);
    ACTING.store(false, Release);
}

/// A thread that runs [`release`], with all signals blocked: they are the program's. False if there can be none.
fn start_release() -> bool {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: what is read has been written before; `release` lives as long as the process and uses no argument;
    // the thread is detached once, and if it exists.
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
        // SAFETY: the thread of that number is out of all locks, or stands still where it waits, until it is told to
        // go on; it has acquired this one, and the next to acquire it has not come yet.
        unsafe { with_number_of(number, || shadow.lock().unlock()) };
        end(seat);
    }
    ptr::null_mut()
}

/// Releases the lock of `shadow` if its holder, this thread, comes back without the mutex. True if so.
#[cold]
pub(crate) fn come_back(shadow: &Shadow, holder: Holder) -> bool {
    let Some(seat) = seat(holder.number()) else { return false };
    seat.enter(shadow, false);
    let left_behind = shadow.left_behind() == Some(holder);
    if left_behind {
        notice(shadow);
        shadow.set_holder(None);
        // SAFETY: this thread has acquired it, and nobody has released it in its name.
        unsafe { shadow.lock().unlock() };
    }
    seat.leave();
    left_behind
}

/// From now on the mutex of `shadow` goes without its lock.
#[cold]
pub(crate) fn notice(shadow: &Shadow) {
    static SAID: AtomicBool = AtomicBool::new(false);
    shadow.set_bypassed(true);
    if !SAID.swap(true, Relaxed) {
        crate::say(format_args!(
            "mutex {:#x} was released past this library, by code that calls the C library's own functions (as \
             libraries loaded with RTLD_DEEPBIND do) or by a thread that had not locked it; it and others like it go \
             on as plain pthread mutexes, without the lock; to measure the lock on them, load those libraries \
             without RTLD_DEEPBIND",
            shadow.address()
        ));
    }
}

/// In the child of a fork: the other threads do not exist.
pub(crate) fn forget_other_threads() {
    for seat in &SEATS {
        // Most were never used, and their memory shall stay untouched.
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
