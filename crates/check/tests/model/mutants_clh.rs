//! Bugs of the CLH lock that must be found. See `mutants.rs`.

use std::rc::Rc;

use overspin_locks::{Bug, Clh};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation};

type Lock = Clh<LoomPlatform>;

fn two_cpus() -> Model {
    Model::pairs::<Lock>(2, 1, 2)
}

/// CPU 0 takes the lock twice, so that it uses its node again; CPU 1 once.
fn one_of_them_twice() -> Model {
    Model::new(2, 2, || {
        let it = Protected::<Lock>::new(2);
        let shared = Rc::clone(&it);
        on_cpus(2, move |cpu| (cpu..2).for_each(|_| shared.pair()));
        it.assert_idle(3);
    })
}

#[test]
fn b1_clh_exchange_in_two_steps() {
    two_cpus().catches(Mutation::SplitSwap, EXCLUSION);
}

#[test]
fn b2_clh_release_relaxed() {
    two_cpus().catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_clh_acquire_relaxed() {
    two_cpus().catches(Mutation::NoAcquire, EXCLUSION);
}

/// The bug of the seL4 big lock: a waiter sees the node as it was before it was queued.
#[test]
fn c1_clh_swap_does_not_publish() {
    one_of_them_twice().catches(Mutation::NoPublication, EXCLUSION);
}

#[test]
fn c2_clh_reuse_without_new_version() {
    one_of_them_twice()
        .catches(Mutation::Seeded(Bug::C2ClhReuseWithoutNewVersion), DEADLOCK_MESSAGE);
}
