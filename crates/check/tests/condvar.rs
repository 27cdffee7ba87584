//! Model checking of the condition variable: no notification is lost, whether it comes under the mutex or after its
//! release, and each bug that is put in loses one.

use std::rc::Rc;

use loom::cell::UnsafeCell;
use overspin_check::Mutation;
use overspin_check::model::{
    DEADLOCK_MESSAGE, LoomPlatform, LoomU32, Model, Protected, on_cpus, world,
};
use overspin_locks::{AtomicCell, Bug, Condvar, Futex, Mutex, Platform, RawLock};

/// Things behind a mutex, for which threads wait.
struct Store<L: RawLock<LoomPlatform>> {
    mutex: Rc<Protected<L>>,
    things: UnsafeCell<usize>,
    more: Condvar<LoomPlatform>,
}

#[derive(Clone, Copy)]
enum Notify {
    OneUnder,
    OneAfter,
    AllUnder,
}

impl<L: RawLock<LoomPlatform> + 'static> Store<L> {
    fn new(cpus: usize) -> Rc<Self> {
        let more = Condvar::of(LoomU32::new(0), LoomU32::new(0));
        Rc::new(Self { mutex: Protected::new(cpus), things: UnsafeCell::new(0), more })
    }

    /// For a thread that holds the mutex.
    fn add(&self, number: isize) -> usize {
        self.things.with_mut(|things| {
            // SAFETY: loom has just checked that no other access is unordered with this one.
            unsafe {
                *things = (*things).wrapping_add_signed(number);
                *things
            }
        })
    }

    /// Waits for a thing and takes it.
    fn take(&self) {
        let mut token = self.mutex.lock();
        while self.add(0) == 0 {
            let prepared = self.more.prepare();
            self.mutex.unlock(token);
            self.more.sleep(prepared, LoomPlatform::wait);
            token = self.mutex.lock();
        }
        self.add(-1);
        self.mutex.unlock(token);
    }

    fn put(&self, number: isize, how: Notify) {
        let token = self.mutex.lock();
        self.add(number);
        match how {
            Notify::OneUnder => self.more.notify_one(),
            Notify::AllUnder => self.more.notify_all(),
            Notify::OneAfter => {}
        }
        self.mutex.unlock(token);
        if matches!(how, Notify::OneAfter) {
            self.more.notify_one();
        }
    }
}

/// All CPUs but the first take one thing each; the first puts them there in pieces of `piece`.
fn takers<L: RawLock<LoomPlatform> + 'static>(
    cpus: usize,
    preemptions: usize,
    (piece, how): (isize, Notify),
    spurious: bool,
) -> Model {
    Model::new(cpus, preemptions, move || {
        let store = Store::<L>::new(cpus);
        let shared = Rc::clone(&store);
        on_cpus(cpus, move |cpu| {
            if spurious {
                world().wake_spuriously(1);
            }
            if cpu > 0 {
                return shared.take();
            }
            for _ in 0..(cpus - 1) / piece.unsigned_abs() {
                shared.put(piece, how);
            }
        });
        assert_eq!(store.add(0), 0, "everything was taken once");
        store.mutex.assert_as_new();
    })
}

type Small = Futex<LoomPlatform>;

#[test]
fn a_notification_under_the_mutex_is_not_lost() {
    let model = takers::<Small>(2, 3, (1, Notify::OneUnder), false);
    model.passes();
    for bug in
        [Bug::D1CondvarCountsLate, Bug::D2CondvarReadsLate, Bug::D3CondvarWakesBeforeItSignals]
    {
        model.fails_with(Mutation::Seeded(bug), DEADLOCK_MESSAGE);
    }
}

#[test]
fn a_notification_after_the_release_is_not_lost() {
    let model = takers::<Small>(2, 3, (1, Notify::OneAfter), false);
    model.passes();
    for bug in
        [Bug::D1CondvarCountsLate, Bug::D2CondvarReadsLate, Bug::D3CondvarWakesBeforeItSignals]
    {
        model.fails_with(Mutation::Seeded(bug), DEADLOCK_MESSAGE);
    }
}

#[test]
fn a_notification_of_all_reaches_two() {
    let model = takers::<Small>(3, 3, (2, Notify::AllUnder), false);
    model.passes();
    model.fails_with(Mutation::Seeded(Bug::D4CondvarWakesOneOfAll), DEADLOCK_MESSAGE);
}

#[test]
fn two_notifications_of_one_reach_two() {
    takers::<Small>(3, 3, (1, Notify::OneUnder), false).passes();
    takers::<Small>(3, 3, (1, Notify::OneAfter), false).passes();
}

#[test]
fn sleeps_may_end_for_no_reason() {
    takers::<Small>(2, 3, (1, Notify::OneUnder), true).passes();
    takers::<Small>(3, 2, (2, Notify::AllUnder), true).passes();
}

#[test]
fn with_the_mutex_for_general_use() {
    takers::<Mutex<LoomPlatform>>(2, 3, (1, Notify::OneUnder), false).passes();
    takers::<Mutex<LoomPlatform>>(2, 3, (1, Notify::OneAfter), false).passes();
}
