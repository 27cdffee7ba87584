//! A condition variable: threads sleep until another one says that something has changed.
//!
//! | Word | Meaning |
//! |---|---|
//! | `lock` | guards the queue and the links of those who are in it |
//! | `first` | the number of the [`Waiter`] that has waited longest; 0: no CPU waits |
//!
//! Each CPU has one [`Waiter`], which its platform keeps. The waiters of a condition variable are a ring.
//!
//! | `Waiter::state` | Its CPU | Ends |
//! |---|---|---|
//! | `WAITING` | is the first of the queue and looks | by a notification, or before the CPU sleeps |
//! | `ASLEEP` | is queued, and sleeps on the state or is about to | by a notification, or when the CPU leaves the queue because its time is up |
//! | `WOKEN` | has been notified, and is awake or will be woken; then it acquires the mutex | when it has seen that |
//! | `MOVED` | has been notified and is a sleeper of the mutex | when the mutex wakes it, or its time is up |
//!
//! A waiter queues itself while it holds the mutex, releases the mutex, sleeps, and acquires the mutex again.
//!
//! **Why the first waiter looks before it sleeps.** It is the next to be notified. It looks for two of the mutex's spin budgets
//! whether that happens, and then its notifier makes no system call. So two threads that pass items to each other, with a
//! CPU each, stay awake. The others behind it wait for several notifications, and sleep at once. A CPU whose looks mostly
//! fail takes none (`doubt`): the one that would notify it may be waiting for this very processor.
//!
//! **A wait is a turn.** Waiters of the mutex yield now and then, for threads without a CPU (`turn.rs`). A thread that waits here
//! gives its CPU away anyway. Where threads share a queue of items, more turns do harm: each brings another thread to the
//! CPU, and that thread finds the queue empty or full. So a wait here puts the next turn off, by `NO_TURN_US`.
//!
//! **Why waiters are moved.** A waiter that is woken while another thread holds the mutex would sleep again at once, which
//! costs two switches. On the holder's own processor it may even take the CPU from the holder. So it becomes a sleeper of the
//! [`mutex`] instead, and a release of the mutex wakes it.
//!
//! **When they are not.** If the mutex is free, the waiter is woken. It is also woken if it began to wait on another processor:
//! then it can wake up while the holder goes on, which takes tens of microseconds on an idle processor. A notification of all that
//! finds the mutex free moves no waiter. Otherwise the first that wakes up would hold the mutex before the next is notified, and the
//! waiters would wake up one after another.
//!
//! **No wake-up is lost.** A thread acquires the mutex, changes what a waiter waits for, and notifies, before or after it
//! releases the mutex. If the waiter looked before, it also queued itself before: both come before its release of the
//! mutex. So the notifier finds it, and takes it from the queue. One of two cases follows. The notifier makes it a
//! sleeper of the mutex, and `mutex/adopt.rs` says why it wakes up. Or the notifier changes the state in an exchange, and then wakes
//! if the state was `ASLEEP`. The waiter sets `ASLEEP` in an exchange that fails once it is notified. A
//! sleep begins in one step with the look at the state, so the waiter does not fall asleep, or is woken.
//!
//! **No wake-up for no reason.** A CPU that finds `ASLEEP` sleeps again. So a wait ends by a notification or by its deadline.
//! A notification ends one wait, the longest. If the deadline comes at the same time, the lock of the queue decides which of
//! the two it was.
//!
//! **Order.** The links and `first` are guarded by `lock`. The look at `first` without it is relaxed: the mutex orders it, as said
//! above. `WOKEN` and `MOVED` are stored with release and loaded with acquire, so what the notifier has done with the
//! waiter comes before what its CPU does with it next. A waiter that was moved acquires the lock of the queue once more. Its
//! notifier stores the state, and only then moves it and looks at the mutex. By then the waiter could have returned, another
//! CPU could have freed the mutex, or the waiter could wait again, elsewhere.
//!
//! **Uncontended**: a notification without waiters is one load.
//!
//! **Source.** Our own. Moving waiters to the mutex is old, for example `FUTEX_CMP_REQUEUE` of Linux (2004) and parking_lot.

use core::fmt::Debug;
use core::iter;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bug::right;
use crate::deadline::{has_passed, sleep};
use crate::{AtomicCell, Budget, Futex, Mutex, Platform, RawLock, futex, mutex};

const WAITING: u32 = 0;
const WOKEN: u32 = 1;
const MOVED: u32 = 2;
const ASLEEP: u32 = 3;

/// How long a wait puts the next turn off, in microseconds. With sections of 1 us, waits of 8 threads for the mutex have a 99.9th
/// percentile of about this time. With 300 the throughput is 5 % less, with 4 a third less.
const NO_TURN_US: u32 = 500;

/// A CPU whose looks fail takes this many more of them in vain.
const LOOKING: u32 = 8;

/// Then it waits this many times without a look, and tries again. Looks in vain take up to 80 us, and a wait and a notification
/// on one processor less than 1 us.
const RESTING: u32 = 512;

const MOST_DOUBT: u32 = LOOKING + RESTING;

/// Waiters that a notification of all takes from the queue at a time, before it wakes them.
const BATCH: usize = 64;

/// Platforms whose CPUs can wait on condition variables.
pub trait Parking: Platform {
    /// A reference to a [`Waiter`].
    type Waiter: Deref<Target = Waiter<Self>>;
    /// What a caller of [`Condvar::wait`] shows. Where all condition variables share the waiters of CPUs, and a wrong one would
    /// leave the address of a mutex that is gone, only code that keeps the rules of `wait` has it.
    type Permit;

    /// The number of this CPU's waiter, from 1. No other CPU has it.
    fn own_waiter() -> u32;
    /// The waiter with this number.
    fn waiter(number: u32) -> Self::Waiter;
    /// Moves a CPU that sleeps in [`Platform::wait`] on the cell at `from`, if there is one, to the sleepers of the cell at `to`.
    /// One step with respect to looks, sleeps and wake-ups. The addresses are only compared.
    fn requeue(from: *const Self::U32, to: *const Self::U32);
}

/// A CPU that can wait. See the [module](self).
#[derive(Debug)]
pub struct Waiter<P: Platform> {
    state: P::U32,
    next: P::U32,
    previous: P::U32,
    /// The [processor](Platform::processor) on which its CPU began to wait.
    processor: P::U32,
    /// The address of the mutex that it acquires after the wait.
    mutex: P::Usize,
    /// What speaks against looks before a sleep. Only its CPU uses it.
    ///
    /// | Value | Its CPU |
    /// |---|---|
    /// | 0 to `LOOKING` | looks; looks that fail add 1, and others subtract 1 |
    /// | to `LOOKING + RESTING` | does not look; each wait adds 1, and the last one makes it `LOOKING` |
    doubt: P::U32,
}

impl<P: Platform> Waiter<P> {
    /// Makes a waiter from cells that are 0.
    pub const fn of(
        state: P::U32,
        next: P::U32,
        previous: P::U32,
        processor: P::U32,
        mutex: P::Usize,
        doubt: P::U32,
    ) -> Self {
        Self { state, next, previous, processor, mutex, doubt }
    }

    /// Looks for a notification, unless that has mostly been in vain.
    fn look(&self, looks: u32) {
        let doubt = self.doubt.load(Relaxed);
        let doubt = match doubt {
            ..=LOOKING => {
                let notified = |state| state != WAITING;
                match self.state.spin_until(notified, Budget::Iterations(looks)) {
                    Ok(_) => doubt.saturating_sub(1),
                    Err(_) => doubt + 1,
                }
            }
            MOST_DOUBT.. => LOOKING,
            _ => doubt + 1,
        };
        self.doubt.store(doubt, Relaxed);
    }

    /// Changes `WAITING` into `ASLEEP`, unless a notification has come. Returns whether it did.
    fn falls_asleep(&self) -> bool {
        // Acquire: see "Order".
        let unless_notified = || self.state.compare_exchange(WAITING, ASLEEP, Relaxed, Acquire);
        let anyway = || Ok(self.state.swap(ASLEEP, Relaxed));
        right!(unless_notified(), P, D9CondvarSleepsThroughANotification, anyway()).is_ok()
    }
}

/// The algorithm. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub struct Condvar<P: Platform> {
    lock: Futex<P>,
    first: P::U32,
}

impl<P: Parking> Condvar<P> {
    /// Without waiters. The cells are 0.
    pub const fn of(lock: P::U32, first: P::U32) -> Self {
        Self { lock: Futex::of(lock), first }
    }

    /// Waits for a notification, until the deadline of [`Platform::now`] at the latest; `u64::MAX` is none. The caller holds the mutex,
    /// and `release` releases it. Returns the token of the mutex, which is acquired again, and whether a notification came.
    ///
    /// `release` does not wait on a condition variable, and does not unwind: the CPU is queued already, and has one waiter.
    pub fn wait(
        &self,
        _: P::Permit,
        mutex: &Mutex<P>,
        shared: &mutex::Shared,
        release: impl FnOnce(),
        deadline_ns: u64,
    ) -> (mutex::Token, bool) {
        let number = P::own_waiter();
        let me = P::waiter(number);
        me.mutex.store(ptr::from_ref(mutex).expose_provenance(), Relaxed);
        me.processor.store(P::processor() as u32, Relaxed);
        let patient = shared.spin_budget > 0;
        let looks = right!(self.queue(number, patient), P, D1CondvarQueuesLate, false);
        mutex.put_turns_off(shared, NO_TURN_US);
        release();
        right!((), P, D1CondvarQueuesLate, _ = self.queue(number, patient));
        if looks {
            // As long as a sleep costs, and once more for a notifier that must first be woken itself.
            me.look(2 * shared.spin_budget);
            if !me.falls_asleep() {
                return (mutex.lock(&shared.after_a_sleep()), true);
            }
        }
        loop {
            sleep::<P>(&me.state, ASLEEP, deadline_ns);
            match me.state.load(Acquire) {
                ASLEEP if has_passed::<P>(deadline_ns) && self.leave(number) => {
                    return (mutex.lock(&shared.after_a_sleep()), false);
                }
                ASLEEP => {}
                MOVED => {
                    // The notifier may still be about to move it.
                    right!(self.locked(|| ()), P, D8CondvarReturnsBeforeItIsMoved, ());
                    let stays = || mutex.lock(&shared.after_a_sleep());
                    let adopted = || mutex.lock_adopted(shared);
                    let token = right!(adopted(), P, D7CondvarMovedWaiterStaysCounted, stays());
                    return (token, true);
                }
                _ => return (mutex.lock(&shared.after_a_sleep()), true),
            }
        }
    }

    /// Ends the longest wait. Returns whether there was one. `mutex_at` gets the address of a mutex with which a CPU waits, and
    /// returns the mutex; while it runs and the result is used, that CPU waits.
    #[inline]
    pub fn notify_one<'m>(&self, mutex_at: impl Fn(usize) -> &'m Mutex<P>) -> bool {
        // Relaxed: see "Order".
        self.first.load(Relaxed) != 0 && self.notify_some::<1>(1, true, &mutex_at) > 0
    }

    /// Ends all waits. Returns how many there were. See [`notify_one`](Condvar::notify_one).
    #[inline]
    pub fn notify_all<'m>(&self, mutex_at: impl Fn(usize) -> &'m Mutex<P>) -> usize {
        // Relaxed: see "Order".
        if self.first.load(Relaxed) == 0 {
            return 0;
        }
        // No more waits than there are now: others may begin meanwhile. And see "When they are not".
        let (count, moves) = self.locked(|| {
            (self.count(), self.first().is_some_and(|it| Self::mutex_of(&it, &mutex_at).is_held()))
        });
        let all = right!(count, P, D4CondvarWakesOneOfAll, 1);
        let mut ended = 0;
        while ended < all {
            match self.notify_some::<BATCH>(all - ended, moves, &mutex_at) {
                // The rest have left: their time was up.
                0 => break,
                some => ended += some,
            }
        }
        ended
    }

    /// Ends the longest waits, up to `most` and up to `N`. Returns how many. If it `moves`, some become sleepers of the mutex.
    #[cold]
    fn notify_some<'m, const N: usize>(
        &self,
        most: usize,
        moves: bool,
        mutex_at: &impl Fn(usize) -> &'m Mutex<P>,
    ) -> usize {
        let mut woken = [0; N];
        let ended = self.locked(|| {
            let mut ended = 0;
            while let Some(it) = self.first().filter(|_| ended < most.min(N)) {
                let number = self.first.load(Relaxed);
                self.remove(number);
                if !(moves && Self::moves(&it, mutex_at)) && Self::end(&it) {
                    woken[ended] = number;
                }
                ended += 1;
            }
            ended
        });
        // Without the lock: a thread that wakes up may take this CPU, or want the lock for its next wait.
        for number in woken.into_iter().filter(|&number| number != 0) {
            let it = P::waiter(number);
            // Its CPU may have gone on, and may even wait again. Then it wakes up for no reason.
            let wake = || P::wake_one(ptr::from_ref(&it.state));
            right!(wake(), P, D3CondvarWakesBeforeItNotifies, ());
        }
        ended
    }

    /// The mutex of a waiter. The waiter needs it before it can leave, and cannot have it before the lock of the queue is free.
    fn mutex_of<'m>(it: &Waiter<P>, mutex_at: &impl Fn(usize) -> &'m Mutex<P>) -> &'m Mutex<P> {
        // Relaxed: the lock orders it.
        mutex_at(it.mutex.load(Relaxed))
    }

    /// Makes a waiter a sleeper of its mutex, if it sleeps, began to wait on this processor, and the mutex is held.
    fn moves<'m>(it: &Waiter<P>, mutex_at: &impl Fn(usize) -> &'m Mutex<P>) -> bool {
        // Relaxed: a waiter that sleeps goes on only with the lock of the queue, or if it is notified.
        let sleeps = || it.state.load(Relaxed) == ASLEEP;
        let here = it.processor.load(Relaxed) == P::processor() as u32;
        here && sleeps() && Self::mutex_of(it, mutex_at).adopt(&it.state, MOVED)
    }

    /// Ends the reason to sleep. Returns whether the waiter is to be woken.
    fn end(it: &Waiter<P>) -> bool {
        right!((), P, D3CondvarWakesBeforeItNotifies, P::wake_one(ptr::from_ref(&it.state)));
        // Release: see "Order". One step: a waiter that fell asleep after a look at its state would not be woken.
        let at_once = || it.state.swap(WOKEN, Release);
        let after_a_look = || {
            let seen = it.state.load(Relaxed);
            it.state.store(WOKEN, Release);
            seen
        };
        right!(at_once(), P, D10CondvarLooksBeforeItNotifies, after_a_look()) == ASLEEP
    }

    fn locked<R>(&self, work: impl FnOnce() -> R) -> R {
        const SHARED: futex::Shared = futex::Shared::DEFAULT;
        let () = self.lock.lock(&SHARED);
        let result = work();
        self.lock.unlock(&SHARED, ());
        result
    }

    /// Leaves the queue, unless a notification has come. Returns whether it did.
    fn leave(&self, number: u32) -> bool {
        self.locked(|| {
            // Relaxed: the lock orders it.
            let waits = P::waiter(number).state.load(Relaxed) == ASLEEP;
            if waits {
                right!(self.remove(number), P, D2CondvarGivesUpAndStaysQueued, ());
            }
            waits
        })
    }

    /// Queues a waiter and sets its state. Returns whether it looks before it sleeps: if it is `patient` and the first.
    fn queue(&self, number: u32, patient: bool) -> bool {
        self.locked(|| {
            let looks = self.push(number) && patient;
            P::waiter(number).state.store(if looks { WAITING } else { ASLEEP }, Relaxed);
            looks
        })
    }

    /// Adds a waiter at the end of the ring. Returns whether it is alone.
    fn push(&self, number: u32) -> bool {
        let it = P::waiter(number);
        let (mut first, mut last) = (self.first.load(Relaxed), number);
        if first == 0 {
            first = number;
            self.first.store(number, Relaxed);
        } else {
            last = P::waiter(first).previous.load(Relaxed);
        }
        it.next.store(first, Relaxed);
        it.previous.store(last, Relaxed);
        P::waiter(last).next.store(number, Relaxed);
        P::waiter(first).previous.store(number, Relaxed);
        first == number
    }

    /// Takes a waiter out of the ring.
    fn remove(&self, number: u32) {
        let it = P::waiter(number);
        let (next, previous) = (it.next.load(Relaxed), it.previous.load(Relaxed));
        P::waiter(previous).next.store(next, Relaxed);
        P::waiter(next).previous.store(previous, Relaxed);
        if self.first.load(Relaxed) == number {
            self.first.store(if next == number { 0 } else { next }, Relaxed);
        }
    }

    /// The number of waiters.
    fn count(&self) -> usize {
        let first = self.first.load(Relaxed);
        let after = |&number: &u32| {
            let next = P::waiter(number).next.load(Relaxed);
            (next != first).then_some(next)
        };
        iter::successors((first != 0).then_some(first), after).count()
    }

    fn first(&self) -> Option<P::Waiter> {
        let first = self.first.load(Relaxed);
        (first != 0).then(|| P::waiter(first))
    }
}
