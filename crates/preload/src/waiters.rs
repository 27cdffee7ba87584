//! Threads that wait on condition variables, in queues by the address of the variable.
//!
//! | State of a waiter | It is in | Next state |
//! |---|---|---|
//! | queued | a queue | taken; or removed by itself, at its time limit or when it is cancelled |
//! | taken | the list of a thread that signals, or of the holder of its mutex | woken |
//! | woken | nowhere; its semaphore has been posted | it returns |
//!
//! A waiter lives on the stack of its thread. Whoever has taken it posts its semaphore exactly once, and does not touch
//! it afterwards. A thread that finds its waiter taken waits for that.
//!
//! **No wake-up is lost.** A thread queues its waiter before it releases the mutex. A thread that acquires the mutex
//! later, changes what is waited for and signals, finds it.
//!
//! **Fork.** The child has no other threads, and empties all queues.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

use libc::{pthread_cond_t, pthread_mutex_t, sem_t};
use overspin_native::Mutex;

/// Queues; a power of two. Variables that share one disturb each other a little.
const QUEUES: usize = 512;

/// A thread that waits.
pub(crate) struct Waiter {
    /// The next one in a queue or a list.
    next: Cell<*mut Waiter>,
    /// The last one of the list that begins with this one.
    last: Cell<*mut Waiter>,
    condition: usize,
    pub(crate) mutex: *mut pthread_mutex_t,
    /// Changes under the lock of the queue.
    queued: Cell<bool>,
    semaphore: UnsafeCell<sem_t>,
    /// Others that were signalled with it and come after it.
    pub(crate) after: Cell<Waiters>,
}

/// A list of waiters, in the order of their waits: null, or the first one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiters(*mut Waiter);

impl Default for Waiters {
    fn default() -> Self {
        Self::NONE
    }
}

impl Waiters {
    const NONE: Self = Self(ptr::null_mut());

    /// The first one. A waiter exists until it has been woken or removed.
    #[inline]
    pub(crate) fn first(&self) -> Option<&Waiter> {
        // SAFETY: null, or a waiter that was neither woken nor removed.
        unsafe { self.0.as_ref() }
    }

    /// Puts `more` behind these.
    fn append(&mut self, more: Self) {
        let Some(first_of_more) = more.first() else { return };
        let Some(first) = self.first() else {
            *self = more;
            return;
        };
        // SAFETY: as in `first`.
        if let Some(last) = unsafe { first.last.get().as_ref() } {
            last.next.set(more.0);
        }
        first.last.set(first_of_more.last.get());
    }

    /// Takes the first one out.
    fn pop(&mut self) -> Self {
        let Some(first) = self.first() else { return Self::NONE };
        let (taken, rest) = (Self(self.0), Self(first.next.replace(ptr::null_mut())));
        if let Some(next) = rest.first() {
            next.last.set(first.last.get());
        }
        first.last.set(self.0);
        *self = rest;
        taken
    }

    /// Wakes the first one, which takes the others with it.
    #[inline]
    pub(crate) fn wake_first(mut self) {
        let one = self.pop();
        let Some(first) = one.first() else { return };
        first.after.set(self);
        // SAFETY: an initialised semaphore. The waiter may return as soon as it is posted; the C library allows that it
        // then ends the life of the semaphore.
        unsafe { libc::sem_post(first.semaphore.get()) };
    }
}

/// Waiters of signals under a mutex, which the release of the mutex wakes. The holder of the mutex adds, and it takes
/// them, or a thread that acts for it.
#[derive(Debug)]
pub(crate) struct Kept(AtomicPtr<Waiter>);

impl Kept {
    /// Adds `more`. For the holder.
    pub(crate) fn add(&self, more: Waiters) {
        let mut all = self.take();
        all.append(more);
        // Release: pairs with `take`.
        self.0.store(all.0, Release);
    }

    #[inline]
    pub(crate) fn take(&self) -> Waiters {
        // Relaxed: the holder reads what it has written; another thread may come a moment later.
        if self.0.load(Relaxed).is_null() {
            return Waiters::NONE;
        }
        // Acquire: pairs with `add`.
        Waiters(self.0.swap(ptr::null_mut(), AcqRel))
    }
}

/// The waiters of all variables with the same number.
#[repr(align(64))]
struct Queue {
    /// How many. Read without the lock: see "No wake-up is lost".
    waiters: AtomicU32,
    list: Mutex<Waiters>,
}

struct Queues(UnsafeCell<[Queue; QUEUES]>);

// SAFETY: the lists are behind locks, and waiters stay where they are. The array is replaced only by the only thread of a
// process.
unsafe impl Sync for Queues {}

static ALL: Queues = Queues(UnsafeCell::new(
    [const { Queue { waiters: AtomicU32::new(0), list: Mutex::new(Waiters::NONE) } }; QUEUES],
));

fn queue(condition: usize) -> &'static Queue {
    // Fibonacci hashing: variables are apart by multiples of their size.
    let hash = condition.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - QUEUES.ilog2());
    // SAFETY: see `Queues`. The hash has as many bits as there are queues.
    unsafe { &(&*ALL.0.get())[hash] }
}

// SAFETY: waiters of a list are reached by the thread that has the list or its lock.
unsafe impl Send for Waiters {}

impl Waiter {
    /// A waiter that is not queued.
    pub(crate) fn new(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> Self {
        let mut semaphore = MaybeUninit::uninit();
        // SAFETY: it is written here, and the type may be moved until a thread uses it.
        let semaphore = unsafe {
            libc::sem_init(semaphore.as_mut_ptr(), 0, 0);
            semaphore.assume_init()
        };
        Self {
            next: Cell::new(ptr::null_mut()),
            last: Cell::new(ptr::null_mut()),
            condition: condition.addr(),
            mutex,
            queued: Cell::new(false),
            semaphore: UnsafeCell::new(semaphore),
            after: Cell::default(),
        }
    }

    pub(crate) fn semaphore(&self) -> *mut sem_t {
        self.semaphore.get()
    }

    /// The address of the variable, which may be gone.
    pub(crate) fn condition(&self) -> usize {
        self.condition
    }

    /// Queues it. It must stay where it is until it is removed or woken.
    pub(crate) fn queue(&self) {
        let queue = queue(self.condition);
        let own = ptr::from_ref(self).cast_mut();
        let mut list = queue.list.lock();
        self.last.set(own);
        self.queued.set(true);
        list.append(Waiters(own));
        queue.waiters.fetch_add(1, Relaxed);
    }

    /// Removes it. Returns false if it has been taken.
    pub(crate) fn remove(&self) -> bool {
        let queue = queue(self.condition);
        let mut list = queue.list.lock();
        if self.queued.get() {
            take(queue, &mut list, 1, |waiter| ptr::eq(waiter, self));
            return true;
        }
        false
    }

    /// Whether it has been taken.
    pub(crate) fn is_taken(&self) -> bool {
        let _list = queue(self.condition).list.lock();
        !self.queued.get()
    }
}

/// Takes wanted waiters out of the list, at most this many. In time proportional to those before the last of them.
fn take(
    queue: &Queue,
    list: &mut Waiters,
    most: usize,
    is_wanted: impl Fn(&Waiter) -> bool,
) -> Waiters {
    let (mut taken, mut kept, mut number) = (Waiters::NONE, Waiters::NONE, 0);
    while number < most {
        let one = list.pop();
        let Some(waiter) = one.first() else { break };
        if is_wanted(waiter) {
            waiter.queued.set(false);
            queue.waiters.fetch_sub(1, Relaxed);
            taken.append(one);
            number += 1;
        } else {
            kept.append(one);
        }
    }
    kept.append(*list);
    *list = kept;
    taken
}

/// Takes waiters of a variable, those that have waited longest, at most this many.
pub(crate) fn taken(condition: usize, most: usize) -> Waiters {
    let queue = queue(condition);
    // Relaxed: a waiter that this thread must find was queued before this thread acquired the mutex.
    if queue.waiters.load(Relaxed) == 0 {
        return Waiters::NONE;
    }
    take(queue, &mut queue.list.lock(), most, |waiter| waiter.condition == condition)
}

/// Wakes all waiters of all variables, as if by chance.
pub(crate) fn wake_all() {
    // SAFETY: see `Queues`.
    for queue in unsafe { &*ALL.0.get() } {
        loop {
            let one = take(queue, &mut queue.list.lock(), 1, |_| true);
            if one.first().is_none() {
                break;
            }
            one.wake_first();
        }
    }
}

/// Empties all queues in the child of a fork. A lock that is free is replaced too: it may know other threads as sleepers, or
/// as woken, and then it would wake no thread of the child.
pub(crate) fn forget_other_threads() {
    // SAFETY: this is the only thread, and it does not wait.
    for queue in unsafe { &mut *ALL.0.get() } {
        *queue = Queue { waiters: AtomicU32::new(0), list: Mutex::new(Waiters::NONE) };
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// The process forks while a sleeper has been woken and does not run yet. In the child, the lock of the queue still counts
    /// on that thread until all threads are forgotten. Not each fork comes at that moment, so there are many.
    #[test]
    fn the_child_of_a_fork_wakes_its_own_sleepers() {
        let lock_later = || {
            let locker = thread::spawn(|| drop(queue(1).list.lock()));
            thread::sleep(Duration::from_millis(2));
            locker
        };
        for _ in 0..50 {
            let held = queue(1).list.lock();
            let sleepers = [lock_later(), lock_later()];
            drop(held);
            // SAFETY: the child uses the queue, threads and memory, which the C library permits.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: a number.
                unsafe { libc::alarm(10) };
                forget_other_threads();
                let held = queue(1).list.lock();
                let sleeper = lock_later();
                drop(held);
                let failed = sleeper.join().is_err();
                // SAFETY: it ends the child.
                unsafe { libc::_exit(failed.into()) };
            }
            let mut status = 0;
            // SAFETY: the child of above.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "the signal or the exit status of the child");
            for sleeper in sleepers {
                sleeper.join().unwrap();
            }
        }
    }
}
