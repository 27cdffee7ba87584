//! The locks as they are.

use std::rc::Rc;

use overspin_locks::{
    Clh, Cna, FlexGuard, Futex, Hemlock, ISpinlock, LockByte, LockByteAligned, Malthusian, Mcs,
    McsTp, PreemptableTicket, PvTicket, PvTicket2012, Qspinlock, QspinlockTas, RawLock, ShflLock,
    Ticket, TicketAligned, TicketSmall, Twa, XenPv,
};

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

/// Preemptions in the models of two CPUs twice, three once, and three twice, for a lock that does
/// not say otherwise.
const PREEMPTIONS: [usize; 3] = [6, 3, 1];

/// One line per lock. The word after it says whether its unlock may touch the lock after the
/// release; last, if they are not the usual ones, the preemptions.
macro_rules! correct {
    ($($name:ident: $lock:ty, $after_release:ident $(, $preemptions:expr)?;)+) => {$(
        mod $name {
            use super::*;

            const BOUNDS: [usize; 3] = *[PREEMPTIONS $(, $preemptions)?].last().unwrap();

            #[test]
            fn two_cpus_twice() {
                Model::pairs::<$lock>(2, 2, BOUNDS[0]).passes();
            }

            #[test]
            fn three_cpus_once() {
                Model::pairs::<$lock>(3, 1, BOUNDS[1]).passes();
            }

            #[test]
            fn three_cpus_twice() {
                Model::pairs::<$lock>(3, 2, BOUNDS[2]).passes();
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
    mcs: Mcs<LoomPlatform>, untouched;
    clh: Clh<LoomPlatform>, untouched;
    mcs_tp: McsTp<LoomPlatform>, untouched, [3, 1, 1];
    malthusian: Malthusian<LoomPlatform>, untouched, [4, 3, 1];
    cna: Cna<LoomPlatform>, untouched;
    twa: Twa<LoomPlatform>, untouched;
    shfllock: ShflLock<LoomPlatform>, untouched, [3, 3, 1];
    hemlock: Hemlock<LoomPlatform>, untouched;
    flexguard: FlexGuard<LoomPlatform>, untouched;
    lock_byte_aligned: LockByteAligned<LoomPlatform>, untouched;
    ticket_aligned: TicketAligned<LoomPlatform>, untouched;
    futex: Futex<LoomPlatform>, untouched;
    pv_ticket: PvTicket<LoomPlatform>, untouched, [4, 3, 1];
    pv_ticket_2012: PvTicket2012<LoomPlatform>, touched, [3, 2, 1];
    preemptable: PreemptableTicket<LoomPlatform>, untouched;
    qspinlock: Qspinlock<LoomPlatform>, untouched;
    qspinlock_tas: QspinlockTas<LoomPlatform>, untouched;
    ispinlock: ISpinlock<LoomPlatform>, untouched;
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

/// A CPU has no node of its own left and uses the one inside the lock, while another queues.
fn spare_node<L: RawLock<LoomPlatform> + 'static>() {
    // As many as a CPU has nodes.
    const HELD: usize = 8;
    Model::new(2, 3, || {
        let it = Protected::<L>::new(2);
        let held: Vec<L> = (0..HELD).map(|_| L::new()).collect();
        let tokens: Vec<_> = held.iter().map(|lock| lock.lock(&it.shared)).collect();
        let shared = Rc::clone(&it);
        on_cpus(2, move |_| (0..2).for_each(|_| shared.pair()));
        it.assert_idle(4);
        held.iter().zip(tokens).for_each(|(lock, token)| lock.unlock(&it.shared, token));
    })
    .passes();
}

#[test]
fn clh_spare_node() {
    spare_node::<Clh<LoomPlatform>>();
}

#[test]
fn cna_spare_node() {
    spare_node::<Cna<LoomPlatform>>();
}

#[test]
fn malthusian_spare_node() {
    spare_node::<Malthusian<LoomPlatform>>();
}

#[test]
fn mcs_spare_node() {
    spare_node::<Mcs<LoomPlatform>>();
}

#[test]
fn mcs_tp_spare_node() {
    spare_node::<McsTp<LoomPlatform>>();
}
