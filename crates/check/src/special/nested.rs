//! Two locks: a handler takes one while its CPU waits for the other.

use std::cell::Cell;
use std::rc::Rc;

use overspin_locks::RawLock;

use crate::model::{LoomPlatform, Model, Point, Protected, on_cpus, start, world};

/// CPU 0 holds two locks, created by `make`. The others wait for the first. An interrupt strikes CPU 1 at `point`,
/// and its handler takes the second lock and may sleep. CPU 0 releases the lock `first_released` first. A third CPU
/// may queue behind CPU 1, perhaps with the same ticket that the handler draws from the second lock.
pub(super) fn two_locks<L: RawLock<LoomPlatform> + 'static>(
    cpus: usize,
    preemptions: usize,
    point: Point,
    first_released: usize,
    make: fn(usize) -> Rc<Protected<L>>,
) -> Model {
    Model::new(cpus, preemptions, move || {
        let first = make(cpus);
        let locks = [Rc::clone(&first), first.another()];
        let tokens = [0, 1].map(|index: usize| Cell::new(Some(locks[index].lock())));
        on_cpus(cpus, move |cpu| {
            if cpu == 0 {
                for index in [first_released, 1 - first_released] {
                    locks[index].inside();
                    locks[index].unlock(tokens[index].take().expect("released once"));
                }
                return;
            }
            if cpu == 1 {
                let inner = Rc::clone(&locks[1]);
                world().arm(point, move || _ = inner.pair());
            }
            locks[0].pair();
        });
    })
}

/// [`two_locks`] with three CPUs, in the order that one bug needs. CPU 2 sleeps for the first lock, CPU 1 is about
/// to, and its handler starts. From then on CPU 0 releases while the handler waits for the second lock. The steps
/// before that are one of many ways to get there; no other is explored.
pub(super) fn released_meanwhile<L: RawLock<LoomPlatform> + 'static>(
    preemptions: usize,
    make: fn(usize) -> Rc<Protected<L>>,
) -> Model {
    Model::new(3, preemptions, move || {
        let first = make(3);
        let second = first.another();
        let tokens = [first.lock(), second.lock()];
        let locks = [Rc::clone(&first), Rc::clone(&second)];
        loom::stop_exploring();
        let it = Rc::clone(&first);
        let sleeper = start(2, move || _ = it.pair());
        world().wait(|| world().polls(2));
        let interrupted = Rc::new(Cell::new(false));
        let flag = Rc::clone(&interrupted);
        let nester = start(1, move || {
            world().arm(Point::Poll, move || {
                flag.set(true);
                world().progress();
                world().wait(|| true);
                second.pair();
            });
            first.pair();
        });
        world().wait(|| interrupted.get());
        loom::explore();
        for (it, token) in locks.iter().zip(tokens) {
            it.inside();
            it.unlock(token);
        }
        nester.join();
        sleeper.join();
    })
}
