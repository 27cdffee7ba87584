//! Two locks, one of which a handler takes while its CPU waits for the other.

use std::cell::Cell;
use std::rc::Rc;

use overspin_locks::RawLock;

use crate::model::{LoomPlatform, Model, Point, Protected, on_cpus, start, world};

/// CPU 0 holds two locks that `make` makes. CPU 1 waits for the first, and an interrupt that strikes it at
/// `point` takes the second, with a sleep if need be. CPU 0 releases the lock `first_released` first.
pub(super) fn two_locks<L: RawLock<LoomPlatform> + 'static>(
    preemptions: usize,
    point: Point,
    first_released: usize,
    make: impl Fn() -> Rc<Protected<L>> + Send + Sync + 'static,
) -> Model {
    Model::new(2, preemptions, move || {
        let first = make();
        let locks = [Rc::clone(&first), first.another()];
        let tokens = [0, 1].map(|index: usize| Cell::new(Some(locks[index].lock())));
        on_cpus(2, move |cpu| {
            if cpu == 0 {
                for index in [first_released, 1 - first_released] {
                    locks[index].inside();
                    locks[index].unlock(tokens[index].take().expect("released once"));
                }
                return;
            }
            let inner = Rc::clone(&locks[1]);
            world().arm(point, move || _ = inner.pair());
            locks[0].pair();
        });
    })
}

/// The same with a third CPU that waits for the first lock too, perhaps with the ticket that the handler on
/// CPU 1 draws from the second.
pub(super) fn with_a_third<L: RawLock<LoomPlatform> + 'static>(
    preemptions: usize,
    make: impl Fn() -> Rc<Protected<L>> + Send + Sync + 'static,
) -> Model {
    Model::new(3, preemptions, move || {
        let first = make();
        let locks = [Rc::clone(&first), first.another()];
        let tokens = [0, 1].map(|index: usize| Cell::new(Some(locks[index].lock())));
        on_cpus(3, move |cpu| match cpu {
            0 => {
                for (it, token) in locks.iter().zip(&tokens) {
                    it.inside();
                    it.unlock(token.take().expect("released once"));
                }
            }
            1 => {
                let inner = Rc::clone(&locks[1]);
                world().arm(Point::Poll, move || _ = inner.pair());
                locks[0].pair();
            }
            _ => _ = locks[0].pair(),
        });
    })
}

/// The same in the order that it takes: CPU 2 sleeps for the first lock, CPU 1 is about to, its handler comes, and
/// from then on CPU 0 releases while the handler waits for the second. What comes before is one of many ways to get
/// there, and no other is explored.
pub(super) fn released_meanwhile<L: RawLock<LoomPlatform> + 'static>(
    preemptions: usize,
    make: impl Fn() -> Rc<Protected<L>> + Send + Sync + 'static,
) -> Model {
    Model::new(3, preemptions, move || {
        let first = make();
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
