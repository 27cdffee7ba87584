//! The locks as they are.

use std::rc::Rc;

use overspin_check::Profile;
use overspin_check::model::{irqsave, last_user_frees, tries};
use overspin_locks::{Clh, Cna, Malthusian, Mcs, McsTp, RawLock, XenPv, for_each_lock};

use crate::harness::{Model, Protected, on_cpus};
use crate::platform::{FREED_MESSAGE, LoomPlatform, Point, world};

/// The model of this lock's profile with so many CPUs and pairs.
fn pairs<L: RawLock<LoomPlatform> + 'static>(index: usize, cpus: usize, pairs: usize) {
    Model::pairs::<L>(cpus, pairs, Profile::of(&L::INFO).preemptions[index]).passes();
}

fn access_after_release<L: RawLock<LoomPlatform> + 'static>() {
    if Profile::of(&L::INFO).touches_after_release {
        last_user_frees::<L>().fails(FREED_MESSAGE);
    } else {
        last_user_frees::<L>().passes();
    }
}

macro_rules! correct {
    ($($lock:ident)+) => {$(
        // The module has the name of the type: a macro cannot make another of it.
        #[allow(non_snake_case)]
        mod $lock {
            use super::{LoomPlatform, Point};

            type Lock = overspin_locks::$lock<LoomPlatform>;

            #[test]
            fn two_cpus_twice() {
                super::pairs::<Lock>(0, 2, 2);
            }

            #[test]
            fn three_cpus_once() {
                super::pairs::<Lock>(1, 3, 1);
            }

            #[test]
            fn three_cpus_twice() {
                super::pairs::<Lock>(2, 3, 2);
            }

            #[test]
            fn tries() {
                super::tries::<Lock>().passes();
            }

            #[test]
            fn irqsave() {
                for point in [Point::Spin, Point::Clear, Point::Poll] {
                    super::irqsave::<Lock>(point).passes();
                }
            }

            #[test]
            fn access_after_release() {
                super::access_after_release::<Lock>();
            }
        }
    )+};
}

mod every {
    use super::*;

    for_each_lock!(correct);
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
