//! Model checking of the condition variable: no notification is lost, whether it comes under the mutex, after its
//! release, or while another CPU holds it, and each bug that is put in loses one.

use std::rc::Rc;

use crate::bounds::Bounded;
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::sync::mpsc::channel;
use overspin_check::Mutation;
use overspin_check::model::{
    DEADLOCK_MESSAGE, FREED_MESSAGE, LoomPlatform, LoomU32, Model, Protected, on_cpus, world,
};
use overspin_locks::mutex::Shared;
use overspin_locks::{AtomicCell, Bug, Condvar, Mutex};

/// The message about a count that no CPU leaves.
const LEFT: &str = "nobody waits, but it is contended";

/// No deadline.
const NEVER: u64 = u64::MAX;

/// Things behind a mutex, for which CPUs wait.
struct Store {
    mutex: Rc<Protected<Mutex<LoomPlatform>>>,
    things: UnsafeCell<usize>,
    more: Condvar<LoomPlatform>,
}

#[derive(Clone, Copy)]
enum Notify {
    OneUnder,
    OneAfter,
    AllUnder,
    AllAfter,
}
use Notify::{AllAfter, AllUnder, OneAfter, OneUnder};

impl Store {
    /// Waiters for the mutex sleep at once, and each release wakes one, or only if no CPU has taken the mutex.
    fn new(rotates: bool) -> Rc<Self> {
        Self::with(Shared::impatient(if rotates { 0 } else { NEVER }))
    }

    fn with(shared: Shared) -> Rc<Self> {
        let more = Condvar::of(LoomU32::new(0), LoomU32::new(0));
        let mutex = Protected::with_shared(shared);
        Rc::new(Self { mutex, things: UnsafeCell::new(0), more })
    }

    /// For a CPU that holds the mutex.
    fn add(&self, number: isize) -> usize {
        self.things.with_mut(|things| {
            // SAFETY: loom has just checked that no other access is unordered with this one.
            unsafe {
                *things = (*things).wrapping_add_signed(number);
                *things
            }
        })
    }

    /// Waits for a thing until the deadline and takes it. Returns whether there was one.
    fn take(&self, deadline_ns: u64) -> bool {
        let (mutex, shared) = self.mutex.raw();
        let mut token = self.mutex.lock();
        let mut notified = true;
        while self.add(0) == 0 && notified {
            let release = || self.mutex.unlock(token);
            (token, notified) = self.more.wait((), mutex, shared, release, deadline_ns);
        }
        let there = self.add(0) > 0;
        if there {
            self.add(-1);
        }
        self.mutex.unlock(token);
        there
    }

    fn put(&self, number: isize, how: Notify) {
        let mutex = |_| self.mutex.raw().0;
        let notify = || match how {
            OneUnder | OneAfter => _ = self.more.notify_one(mutex),
            AllUnder | AllAfter => _ = self.more.notify_all(mutex),
        };
        let token = self.mutex.lock();
        self.add(number);
        if matches!(how, OneUnder | AllUnder) {
            notify();
        }
        self.mutex.unlock(token);
        if matches!(how, OneAfter | AllAfter) {
            notify();
        }
    }
}

/// `takers` CPUs take a thing each. The next CPU puts them into the store in pieces, each with a notification. The rest take
/// the mutex once, for something else.
fn takers(
    cpus: usize,
    takers: usize,
    preemptions: usize,
    (piece, how): (usize, Notify),
    spurious: bool,
) -> Bounded {
    let model = Model::new(cpus, preemptions, move || {
        // Two takers of three CPUs without rotations are two million executions. Schedules have both.
        let store = Store::new(cpus == 2 || takers == 2);
        let shared = Rc::clone(&store);
        on_cpus(cpus, move |cpu| {
            if spurious {
                world().wake_spuriously(1);
            }
            match cpu {
                _ if cpu < takers => assert!(shared.take(NEVER)),
                _ if cpu == takers => {
                    (0..takers / piece).for_each(|_| shared.put(piece as isize, how));
                }
                _ => _ = shared.mutex.pair(),
            }
        });
        assert_eq!(store.add(0), 0, "everything was taken once");
        store.mutex.assert_as_new();
    });
    Bounded::new(model)
}

#[test]
fn a_notification_under_the_mutex_is_not_lost() {
    let model = takers(2, 1, 3, (1, OneUnder), false);
    model.passes();
    model.finds(Mutation::Seeded(Bug::D1CondvarQueuesLate), DEADLOCK_MESSAGE);
    model.finds(Mutation::Seeded(Bug::D7CondvarMovedWaiterStaysCounted), LEFT);
}

#[test]
fn a_notification_after_the_release_is_not_lost() {
    let model = takers(2, 1, 3, (1, OneAfter), false);
    model.passes();
    for bug in [Bug::D1CondvarQueuesLate, Bug::D3CondvarWakesBeforeItNotifies] {
        model.finds(Mutation::Seeded(bug), DEADLOCK_MESSAGE);
    }
}

/// The third CPU may release the mutex before the count.
#[test]
fn a_notification_beside_another_holder_is_not_lost() {
    let model = takers(3, 1, 2, (1, OneAfter), false);
    model.passes();
    model.finds(Mutation::Seeded(Bug::D5CondvarMovesToAFreeMutex), DEADLOCK_MESSAGE);
    takers(3, 1, 2, (1, OneUnder), false).passes();
}

/// It looks twice.
#[test]
fn a_waiter_that_looks_first_is_notified() {
    let model = Model::new(2, 2, || {
        let store = Store::with(Shared::impatient(NEVER).with_spin_budget(1));
        let shared = Rc::clone(&store);
        on_cpus(2, move |cpu| match cpu {
            0 => assert!(shared.take(NEVER)),
            _ => shared.put(1, OneAfter),
        });
        store.mutex.assert_as_new();
    });
    let model = Bounded::new(model);
    model.passes();
    for bug in [Bug::D9CondvarSleepsThroughANotification, Bug::D10CondvarLooksBeforeItNotifies] {
        model.finds(Mutation::Seeded(bug), DEADLOCK_MESSAGE);
    }
}

#[test]
fn a_notification_of_all_reaches_two() {
    let model = takers(3, 2, 2, (2, AllUnder), false);
    model.passes();
    model.finds(Mutation::Seeded(Bug::D4CondvarWakesOneOfAll), DEADLOCK_MESSAGE);
    takers(3, 2, 2, (2, AllAfter), false).passes();
}

#[test]
fn two_notifications_of_one_reach_two() {
    takers(3, 2, 2, (1, OneUnder), false).passes();
    takers(3, 2, 2, (1, OneAfter), false).passes();
}

#[test]
fn sleeps_may_end_for_no_reason() {
    takers(2, 1, 3, (1, OneUnder), true).passes();
    takers(3, 2, 2, (2, AllUnder), true).passes();
}

/// CPU 0 has queued itself, CPU 2 holds the mutex, and then CPU 1 notifies. CPU 2 may release the mutex before CPU 1 has moved CPU 0
/// to its sleepers. After its wait CPU 0 frees the mutex, if CPU 2 has
/// gone: nobody needs it. But CPU 1 may not have come to the end of its notification.
#[test]
fn a_waiter_may_free_the_mutex_after_its_wait() {
    let model = Model::new(3, 3, || {
        world().expect_free();
        let store = Store::new(false);
        let gone = AtomicBool::new(false);
        // Without preemptions, which the model counts.
        let (queued, when_queued) = channel();
        let (held, when_held) = channel();
        let (held_too, when_held_too) = channel();
        let (moves, when_moved) = channel();
        on_cpus(3, move |cpu| match cpu {
            0 => {
                let (mutex, shared) = store.mutex.raw();
                let token = store.mutex.lock();
                let release = || {
                    store.mutex.unlock(token);
                    queued.send(()).unwrap();
                    when_held.recv().unwrap();
                };
                let (token, _) = store.more.wait((), mutex, shared, release, NEVER);
                store.mutex.unlock(token);
                if gone.load(Acquire) {
                    store.mutex.free();
                }
            }
            1 => {
                when_held_too.recv().unwrap();
                let mutex = |_| {
                    moves.send(()).unwrap();
                    store.mutex.raw().0
                };
                assert!(store.more.notify_one(mutex));
                // If the waiter was awake.
                let _ = moves.send(());
            }
            _ => {
                when_queued.recv().unwrap();
                let token = store.mutex.lock();
                held.send(()).unwrap();
                held_too.send(()).unwrap();
                when_moved.recv().unwrap();
                store.mutex.unlock(token);
                gone.store(true, Release);
            }
        });
    });
    // D6 shows at 4,850, D8 at 1,462.
    let model = Bounded::within(model, 12_000);
    model.passes();
    model.finds(Mutation::Seeded(Bug::D6CondvarForgetsAWakeUpBeforeTheMove), DEADLOCK_MESSAGE);
    model.finds(Mutation::Seeded(Bug::D8CondvarReturnsBeforeItIsMoved), FREED_MESSAGE);
}

/// CPU 1 gives up after some looks at the clock. CPU 2 takes a thing.
fn one_gives_up(how: Notify) -> Bounded {
    let model = Model::new(3, 2, move || {
        world().advance_clock_by(1);
        let store = Store::new(false);
        let shared = Rc::clone(&store);
        on_cpus(3, move |cpu| match cpu {
            0 => (0..2).for_each(|_| shared.put(1, how)),
            1 => _ = shared.take(2),
            _ => assert!(shared.take(NEVER)),
        });
        assert!(store.add(0) <= 1);
        store.mutex.assert_as_new();
    });
    // D2 shows at 8,094.
    Bounded::within(model, 20_000)
}

/// Otherwise the mutex would count it as a sleeper for ever.
#[test]
fn a_notification_does_not_go_to_a_waiter_that_has_given_up() {
    let model = one_gives_up(OneUnder);
    model.passes();
    model.finds(Mutation::Seeded(Bug::D2CondvarGivesUpAndStaysQueued), LEFT);
    one_gives_up(OneAfter).passes();
}
