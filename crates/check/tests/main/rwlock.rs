//! Model checking of the reader-writer lock: a writer is alone, readers see what writers did, nobody waits for ever, and
//! each bug that is put in shows.

use std::cell::Cell;
use std::rc::Rc;

use crate::bounds::Bounded;
use loom::cell::UnsafeCell;
use overspin_check::Mutation;
use overspin_check::model::{DEADLOCK_MESSAGE, LoomPlatform, LoomU32, Model, on_cpus, world};
use overspin_locks::rwlock::{RwLock, Shared};
use overspin_locks::{AtomicCell, Bug, Futex, Mutex, Pace, Platform, RawLock, Tuning};

/// A number that writers count up, behind a lock.
struct Counter<M: RawLock<LoomPlatform>> {
    lock: RwLock<LoomPlatform, M>,
    shared: Shared<M::Shared>,
    count: UnsafeCell<usize>,
    /// How often it was counted up.
    expected: Cell<usize>,
}

/// What a CPU does.
#[derive(Clone, Copy)]
enum Step {
    Read,
    Write,
    /// With as many looks at the clock as patience.
    TryRead(u64),
    TryWrite(u64),
    WriteAndRead,
    ReadAndWrite,
}
use Step::{Read, ReadAndWrite, TryRead, TryWrite, Write, WriteAndRead};

impl<M: RawLock<LoomPlatform> + 'static> Counter<M> {
    fn new(cpus: usize, spin_budget: u32, patience: u32) -> Rc<Self> {
        let zero = || LoomU32::new(0);
        let tuning = Tuning { spin_budget: Some(0), ..Tuning::DEFAULT };
        let writers = M::shared(cpus, tuning).expect("few CPUs");
        Rc::new(Self {
            lock: RwLock::of(zero(), zero(), zero(), zero(), M::new()),
            shared: Shared { writers, spin_budget, patience, pace: Pace::ALWAYS },
            count: UnsafeCell::new(0),
            expected: Cell::new(0),
        })
    }

    fn reads(&self) {
        // SAFETY: loom has just checked that no write is unordered with this.
        self.count.with(|count| unsafe { std::ptr::read(count) });
    }

    fn writes(&self) {
        // SAFETY: loom has just checked that no other access is unordered with this.
        self.count.with_mut(|count| unsafe { *count += 1 });
        self.expected.set(self.expected.get() + 1);
    }

    fn does(&self, step: Step) {
        let Self { lock, shared, .. } = self;
        match step {
            Read => {
                lock.lock_shared(shared).expect("few readers");
                self.reads();
                lock.unlock_shared();
            }
            Write => {
                let token = lock.lock_exclusive(shared);
                self.writes();
                lock.unlock_exclusive(shared, token);
            }
            TryRead(looks) => {
                if lock.lock_shared_until(shared, LoomPlatform::now() + looks) {
                    self.reads();
                    lock.unlock_shared();
                }
            }
            TryWrite(looks) => {
                if let Some(token) = lock.lock_exclusive_until(shared, LoomPlatform::now() + looks)
                {
                    self.writes();
                    lock.unlock_exclusive(shared, token);
                }
            }
            WriteAndRead => {
                let token = lock.lock_exclusive(shared);
                self.writes();
                lock.downgrade(shared, token);
                self.reads();
                lock.unlock_shared();
            }
            ReadAndWrite => {
                let held = lock.lock_upgradable(shared).expect("few readers");
                self.reads();
                match lock.try_upgrade(held) {
                    Ok(token) => {
                        self.writes();
                        lock.unlock_exclusive(shared, token);
                    }
                    Err(held) => {
                        let token = lock.upgrade(shared, held);
                        self.writes();
                        lock.unlock_exclusive(shared, token);
                    }
                }
            }
        }
    }
}

/// Each CPU does its steps, and sleeps if it must wait.
fn cpus<M: RawLock<LoomPlatform> + 'static>(
    steps: &'static [&'static [Step]],
    preemptions: usize,
) -> Bounded {
    patient_cpus::<M>(steps, preemptions, 0, 0)
}

/// CPUs that look so many times before they sleep. A reader sleeps `patience` times before writers let it in first.
fn patient_cpus<M: RawLock<LoomPlatform> + 'static>(
    steps: &'static [&'static [Step]],
    preemptions: usize,
    spin_budget: u32,
    patience: u32,
) -> Bounded {
    let model = Model::new(steps.len(), preemptions, move || {
        world().advance_clock_by(1);
        let it = Counter::<M>::new(steps.len(), spin_budget, patience);
        let of_all = Rc::clone(&it);
        on_cpus(steps.len(), move |cpu| steps[cpu].iter().for_each(|step| of_all.does(*step)));
        let token = it.lock.try_lock_exclusive().expect("the lock is as new");
        it.count.with(|count| {
            // SAFETY: loom has just checked it.
            assert_eq!(unsafe { *count }, it.expected.get(), "a write was lost");
        });
        it.lock.unlock_exclusive(&it.shared, token);
        assert!(!it.lock.is_locked() && !it.lock.is_locked_exclusive());
    });
    // The latest bugs are L9, at 3,069, L10, at 2,810, L5, at 2,694, L2, at 2,667, and L3, at 2,260.
    Bounded::within(model, 8_000)
}

type Small = Futex<LoomPlatform>;

/// The model passes, and each bug fails with its message.
fn finds(model: &Bounded, bugs: &[(Bug, &str)]) {
    model.passes();
    for (bug, message) in bugs {
        model.finds(Mutation::Seeded(*bug), message);
    }
}

#[test]
fn a_reader_and_a_writer() {
    finds(
        &cpus::<Small>(&[&[Read, Read], &[Write, Write]], 3),
        &[
            (Bug::L1RwLockReaderReadsWakesLate, DEADLOCK_MESSAGE),
            (Bug::L4RwLockLastReaderDoesNotWakeTheWriter, DEADLOCK_MESSAGE),
            (Bug::L6RwLockWriterDoesNotWaitForReaders, "Causality"),
        ],
    );
}

#[test]
fn orders_are_needed() {
    let model = cpus::<Small>(&[&[Read, Write], &[Write, Read]], 2);
    model.passes();
    model.finds(Mutation::NoRelease, "Causality");
    model.finds(Mutation::NoAcquire, "Causality");
}

/// A quarter of the looks are for an idle lock, before a writer queues. After the first looks, waiters take turns.
#[test]
fn waiters_that_look_before_they_sleep() {
    patient_cpus::<Small>(&[&[Write, Write], &[Write, Read]], 3, 20, 0).passes();
    patient_cpus::<Small>(&[&[Write], &[Write], &[Read]], 2, 10, 0).passes();
}

#[test]
fn two_readers_and_a_writer() {
    finds(
        &cpus::<Small>(&[&[Write], &[Read], &[Read]], 2),
        &[(Bug::L5RwLockWakesOneReader, DEADLOCK_MESSAGE)],
    );
}

#[test]
fn two_writers_and_a_reader() {
    finds(
        &cpus::<Small>(&[&[Write], &[Write], &[Read]], 3),
        &[
            (Bug::L3RwLockLastWaiterDoesNotWakeTheWriter, DEADLOCK_MESSAGE),
            (Bug::L7RwLockFasterWriterDoesNotWake, DEADLOCK_MESSAGE),
        ],
    );
}

/// Readers that are never counted, and one that is counted when it sleeps again.
#[test]
fn readers_that_writers_overtake() {
    let never = u32::MAX;
    patient_cpus::<Small>(&[&[Write, Write], &[Read]], 3, 0, never).passes();
    finds(
        &patient_cpus::<Small>(&[&[Write], &[Write], &[Read]], 3, 0, never),
        &[(Bug::L9RwLockForgetsReadersLate, DEADLOCK_MESSAGE)],
    );
    patient_cpus::<Small>(&[&[Write], &[Read], &[Read]], 2, 0, never).passes();
    patient_cpus::<Small>(&[&[Write, Write], &[Write, Read]], 3, 0, 1).passes();
    patient_cpus::<Small>(&[&[Write, Write], &[TryRead(2), Read]], 3, 0, 1).passes();
}

#[test]
fn giving_up() {
    finds(
        &cpus::<Small>(&[&[TryRead(0), TryRead(2), Read], &[Write, Write]], 3),
        // A writer waits for ever until that reader is in.
        &[(Bug::L2RwLockReaderGivesUpAndStaysCounted, DEADLOCK_MESSAGE)],
    );
    cpus::<Small>(&[&[TryWrite(0), TryWrite(2), Write], &[Read, Read]], 3).passes();
    finds(
        &cpus::<Small>(&[&[Read], &[TryWrite(1)], &[Read]], 2),
        &[(Bug::L8RwLockWriterGivesUpAndLeavesReadersAsleep, DEADLOCK_MESSAGE)],
    );
    cpus::<Small>(&[&[Read], &[TryWrite(1)], &[Write]], 2).passes();
    finds(
        &patient_cpus::<Small>(&[&[ReadAndWrite], &[TryWrite(1)], &[Read]], 3, 0, 1),
        &[(Bug::L10RwLockWriterGivesUpAndLeavesTheBarred, DEADLOCK_MESSAGE)],
    );
    cpus::<Small>(&[&[Write], &[TryRead(1)], &[Write]], 2).passes();
}

#[test]
fn from_one_mode_to_the_other() {
    cpus::<Small>(&[&[WriteAndRead, Read], &[Write]], 3).passes();
    cpus::<Small>(&[&[WriteAndRead], &[Write], &[Read]], 2).passes();
    // The bar of the writer that queues behind the first is not for the first.
    patient_cpus::<Small>(&[&[ReadAndWrite], &[Write]], 3, 0, u32::MAX).passes();
    cpus::<Small>(&[&[ReadAndWrite], &[Read, Write]], 3).passes();
    cpus::<Small>(&[&[ReadAndWrite], &[Write], &[Read]], 2).passes();
    cpus::<Small>(&[&[ReadAndWrite], &[ReadAndWrite], &[Read]], 2).passes();
}

#[test]
fn with_the_mutex_for_general_use() {
    cpus::<Mutex<LoomPlatform>>(&[&[Read, Write], &[Write, Read]], 3).passes();
    cpus::<Mutex<LoomPlatform>>(&[&[Write], &[Write], &[Read]], 2).passes();
    cpus::<Mutex<LoomPlatform>>(&[&[TryWrite(1)], &[Write], &[Read]], 2).passes();
}
