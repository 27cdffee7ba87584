//! Bugs of Hemlock that must be found. See `mutants.rs`.

use std::rc::Rc;

use overspin_check::NO_SPIN;
use overspin_locks::{Bug, Hemlock, RawLock};

use crate::harness::{Model, Protected, on_cpus};
use crate::mutants::EXCLUSION;
use crate::platform::{DEADLOCK_MESSAGE, LoomPlatform, Mutation};

type Lock = Hemlock<LoomPlatform>;

fn two_cpus() -> Model {
    Model::pairs::<Lock>(2, 1, 2)
}

#[test]
fn b1_hemlock_exchange_in_two_steps() {
    two_cpus().catches(Mutation::SplitSwap, DEADLOCK_MESSAGE);
}

#[test]
fn b2_hemlock_release_relaxed() {
    two_cpus().catches(Mutation::NoRelease, EXCLUSION);
}

#[test]
fn b2_hemlock_acquire_relaxed() {
    two_cpus().catches(Mutation::NoAcquire, EXCLUSION);
}

/// CPU 0 takes the lock twice. Somebody who then queues behind it, but behind another holder too,
/// sees the grant of the first time.
#[test]
fn c1_hemlock_swap_does_not_publish() {
    let model = Model::new(3, 2, || {
        let it = Protected::<Lock>::new(3);
        let shared = Rc::clone(&it);
        on_cpus(3, move |cpu| (0..if cpu == 0 { 2 } else { 1 }).for_each(|_| shared.pair()));
        it.assert_idle(4);
    });
    model.catches(Mutation::NoPublication, EXCLUSION);
}

/// CPU 0 holds two locks, for which CPUs 1 and 2 wait.
#[test]
fn h1_hemlock_unlock_without_acknowledgement() {
    let model = Model::new(3, 2, || {
        // What is granted is in the CPU's word, not in the lock's.
        let shared = Rc::new(Lock::shared(3, NO_SPIN).expect("three CPUs are few"));
        let locks = [Protected::<Lock>::new(3), Protected::<Lock>::new(3)];
        let tokens = locks.each_ref().map(|it| it.lock.lock(&shared));
        let tokens = std::cell::Cell::new(Some(tokens));
        on_cpus(3, move |cpu| {
            if cpu == 0 {
                let tokens = tokens.take().expect("CPU 0 runs once");
                for (it, token) in locks.iter().zip(tokens) {
                    it.inside();
                    it.lock.unlock(&shared, token);
                }
            } else {
                let it = &locks[cpu - 1];
                let token = it.lock.lock(&shared);
                it.inside();
                it.lock.unlock(&shared, token);
            }
        });
    });
    model.catches(Mutation::Seeded(Bug::H1HemlockUnlockWithoutAcknowledgement), DEADLOCK_MESSAGE);
}
