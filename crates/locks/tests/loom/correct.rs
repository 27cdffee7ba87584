//! The locks as they are.

use std::rc::Rc;

use overspin_locks::{LockByte, RawLock, Ticket, TicketSmall, XenPv};

use crate::harness::{Model, Protected, on_cpus};
use crate::platform::{FREED_MESSAGE, LoomPlatform, Point, world};

/// One CPU tries twice while another takes the lock twice.
fn tries<L: RawLock<LoomPlatform> + 'static>() {
    let model = Model::new(2, 3, || {
        let it = Protected::<L>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |cpu| {
            for _ in 0..2 {
                if cpu == 0 {
                    shared.pair();
                } else if let Some(token) = shared.lock.try_lock(&shared.shared) {
                    shared.inside();
                    shared.lock.unlock(&shared.shared, token);
                }
            }
        });
        assert!(!it.lock.is_locked(&it.shared));
    });
    model.passes();
}

/// Two CPUs, and an interrupt handler on one that takes the same lock.
fn irqsave<L: RawLock<LoomPlatform> + 'static>() {
    for point in [Point::Spin, Point::Clear, Point::Poll] {
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
        .passes();
    }
}

/// Whoever is last in the critical section frees the lock after its own unlock. A lock whose
/// unlock touches it after the release has then touched freed memory.
pub fn last_user_frees<L: RawLock<LoomPlatform> + 'static>() -> Model {
    Model::new(2, 2, || {
        world().expect_free();
        let it = Protected::<L>::new(2);
        on_cpus(2, move |_| {
            let token = it.lock.lock(&it.shared);
            let last = it.inside() == 2;
            it.lock.unlock(&it.shared, token);
            if last {
                world().free(&it.lock);
            }
        });
    })
}

/// One line per lock; the last word says whether its unlock may touch the lock after the release.
macro_rules! correct {
    ($($name:ident: $lock:ty, $after_release:ident;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn two_cpus_twice() {
                Model::pairs::<$lock>(2, 2, 6).passes();
            }

            #[test]
            fn three_cpus_once() {
                Model::pairs::<$lock>(3, 1, 3).passes();
            }

            #[test]
            fn three_cpus_twice() {
                Model::pairs::<$lock>(3, 2, 1).passes();
            }

            #[test]
            fn tries() {
                super::tries::<$lock>();
            }

            #[test]
            fn irqsave() {
                super::irqsave::<$lock>();
            }

            #[test]
            fn access_after_release() {
                correct!(@$after_release last_user_frees::<$lock>());
            }
        }
    )+};
    (@untouched $model:expr) => { $model.passes() };
    (@touched $model:expr) => { $model.fails(FREED_MESSAGE) };
}

correct! {
    lock_byte: LockByte<LoomPlatform>, untouched;
    ticket_small: TicketSmall<LoomPlatform>, untouched;
    ticket: Ticket<LoomPlatform>, untouched;
    xen_pv: XenPv<LoomPlatform>, touched;
}

/// Every sleep may end for no reason; here each CPU's first one does.
#[test]
fn xen_pv_spurious_wake() {
    Model::new(2, 3, || {
        let it = Protected::<XenPv<LoomPlatform>>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |_| {
            world().wake_spuriously(1);
            shared.pair();
        });
        it.assert_idle(2);
    })
    .passes();
}
