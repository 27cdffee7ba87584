//! The models that every lock must pass, besides [`Model::pairs`].

use std::rc::Rc;

use overspin_locks::RawLock;

use super::harness::{Model, Protected, on_cpus};
use super::platform::LoomPlatform;
use super::world::{Point, world};

/// One CPU tries twice while another takes the lock twice.
pub fn tries<L: RawLock<LoomPlatform> + 'static>() -> Model {
    Model::new(2, 3, || {
        let it = Protected::<L>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |cpu| {
            for _ in 0..2 {
                if cpu == 0 {
                    shared.pair();
                } else if let Some(token) = shared.try_lock() {
                    shared.inside();
                    shared.unlock(token);
                }
            }
        });
        it.assert_as_new();
    })
}

/// Two CPUs, and an interrupt handler on one that takes the same lock.
pub fn irqsave<L: RawLock<LoomPlatform> + 'static>(point: Point) -> Model {
    Model::new(2, 3, move || {
        let it = Protected::<L>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |cpu| {
            if cpu == 1 {
                let handler = Rc::clone(&shared);
                world().arm(point, move || handler.pair_irqsave());
            }
            shared.pair_irqsave();
        });
        it.assert_idle(3);
    })
}

/// Each CPU's first sleep ends spuriously.
pub fn spurious_wakes<L: RawLock<LoomPlatform> + 'static>() -> Model {
    Model::new(2, 3, || {
        let it = Protected::<L>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |_| {
            world().wake_spuriously(1);
            shared.pair();
        });
        it.assert_idle(2);
    })
}

/// Each CPU's first weak exchange fails spuriously, and so does the first one of the final check.
pub fn weak_failures<L: RawLock<LoomPlatform> + 'static>() -> Model {
    Model::new(2, 3, || {
        let it = Protected::<L>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |_| {
            world().fail_weakly(1);
            shared.pair();
        });
        world().fail_weakly(1);
        it.assert_idle(2);
    })
}

/// The last CPU in the critical section frees the lock after its own unlock. If an unlock touches the lock
/// after the release, it may then touch freed memory.
///
/// Each CPU's first sleep ends spuriously, so that the last CPU need not have been woken by the other,
/// after the other's last look. Falling asleep at just that point takes one more preemption.
pub fn last_user_frees<L: RawLock<LoomPlatform> + 'static>() -> Model {
    let preemptions = if L::INFO.blocks { 3 } else { 2 };
    Model::new(2, preemptions, || {
        world().expect_free();
        let it = Protected::<L>::new(2);
        on_cpus(2, move |_| {
            world().wake_spuriously(1);
            if it.pair() == 2 {
                it.free();
            }
        });
    })
}
