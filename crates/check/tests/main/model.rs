//! Model checking: the shipped lock code under loom, in every interleaving and with every stale
//! value that the memory model allows, up to a bound on preemptions that each model states.
//!
//! Runs for each lock: the models of every lock, its [special] models with the bugs that they must find,
//! and two lost orders. It needs no special set-up: `cargo test -p overspin-check --test main model::`.
//! `docs/model-checking.md` has results and limits.

use std::rc::Rc;

use crate::bounds::Bounded;
use overspin_check::model::{
    DEADLOCK_MESSAGE, EXCLUSION_MESSAGE, FREED_MESSAGE, LoomPlatform, Model, Point, Protected,
    TinyCell, irqsave, last_user_frees, on_cpus, spurious_wakes, tries, weak_failures, world,
};
use overspin_check::{Mutation, NO_SPIN, Profile, abort, special};
use overspin_locks::ticket::TicketLock;
use overspin_locks::{PvTicket, RawLock, Ticket, Tuning, for_each_lock};

/// Runs the model of this lock's profile with this many CPUs and pairs.
fn pairs<L: RawLock<LoomPlatform> + 'static>(test: &str, index: usize, cpus: usize, pairs: usize) {
    let model = Model::pairs::<L>(cpus, pairs, Profile::of(&L::INFO).preemptions[index]);
    Bounded::of(L::INFO.name, test, model).passes();
}

fn access_after_release<L: RawLock<LoomPlatform> + 'static>() {
    let model = Bounded::new(last_user_frees::<L>());
    if Profile::of(&L::INFO).touches_after_release {
        model.fails(FREED_MESSAGE);
    } else {
        model.passes();
    }
}

fn special<L: RawLock<LoomPlatform> + 'static>() {
    for it in special::of(L::INFO.name) {
        println!("{}, {}", it.name, it.bound);
        let model = Bounded::of(L::INFO.name, it.name, it.model);
        model.passes();
        for (bug, words) in it.bugs {
            model.finds(bug, words);
        }
    }
}

/// Checks nothing if the lock cannot give up.
fn giving_up<L: RawLock<LoomPlatform> + 'static>() {
    for (name, words, model) in abort::models::<L>(Profile::of(&L::INFO).preemptions) {
        println!("{name}, {words}");
        Bounded::of(L::INFO.name, name, model).passes();
    }
}

macro_rules! of_each_lock {
    ($($lock:ident)+) => {$(
        // The module has the name of the type, because a macro cannot derive another name from it.
        #[allow(non_snake_case)]
        mod $lock {
            use super::{Bounded, EXCLUSION_MESSAGE, LoomPlatform, Model, Mutation, Point, RawLock};

            type Lock = overspin_locks::$lock<LoomPlatform>;

            #[test]
            fn two_cpus_twice() {
                super::pairs::<Lock>("two CPUs twice", 0, 2, 2);
            }

            #[test]
            fn three_cpus_once() {
                super::pairs::<Lock>("three CPUs once", 1, 3, 1);
            }

            #[test]
            fn three_cpus_twice() {
                super::pairs::<Lock>("three CPUs twice", 2, 3, 2);
            }

            #[test]
            fn tries() {
                Bounded::new(super::tries::<Lock>()).passes();
            }

            #[test]
            fn irqsave() {
                for point in [Point::Spin, Point::Clear, Point::Poll] {
                    Bounded::new(super::irqsave::<Lock>(point)).passes();
                }
            }

            #[test]
            fn spurious_wakes() {
                if <Lock as RawLock<LoomPlatform>>::INFO.blocks {
                    Bounded::new(super::spurious_wakes::<Lock>()).passes();
                }
            }

            #[test]
            fn access_after_release() {
                super::access_after_release::<Lock>();
            }

            #[test]
            fn weak_failures() {
                Bounded::new(super::weak_failures::<Lock>()).passes();
            }

            #[test]
            fn giving_up() {
                super::giving_up::<Lock>();
            }

            #[test]
            fn special() {
                super::special::<Lock>();
            }

            #[test]
            fn release_relaxed() {
                let model = Bounded::new(Model::pairs::<Lock>(2, 1, 2));
                model.finds(Mutation::NoRelease, EXCLUSION_MESSAGE);
            }

            #[test]
            fn acquire_relaxed() {
                let model = Bounded::new(Model::pairs::<Lock>(2, 1, 2));
                model.finds(Mutation::NoAcquire, EXCLUSION_MESSAGE);
            }
        }
    )+};
}

mod every {
    use super::*;

    for_each_lock!(of_each_lock);
}

/// Locks used against their rules. The failures show that the rules are needed.
mod misuse {
    use super::*;

    /// Two ticket values, which serve one CPU.
    type OneBit = TicketLock<LoomPlatform, TinyCell<1>>;

    #[test]
    fn t3_ticket_beyond_its_capacity() {
        assert!(OneBit::shared(3, NO_SPIN).is_err(), "and therefore it refuses");
        Bounded::new(Model::new(3, 2, || {
            let it = Protected::<OneBit>::new(1);
            on_cpus(3, move |_| _ = it.pair());
        }))
        .fails(EXCLUSION_MESSAGE);
    }

    /// The handler queues behind its own CPU. `irqsave`, above, is the same with interrupts off.
    #[test]
    fn t4_ticket_with_interrupts_on_while_waiting() {
        Bounded::new(Model::new(2, 2, || {
            let it = Protected::<Ticket<LoomPlatform>>::new(2);
            on_cpus(2, move |cpu| {
                if cpu == 1 {
                    let handler = Rc::clone(&it);
                    world().arm(Point::Spin, move || _ = handler.pair());
                }
                it.pair();
            });
        }))
        .fails(DEADLOCK_MESSAGE);
    }

    /// CPU 0 releases in one mode and CPU 1 waits in the other. All locks of a system share the mode, so
    /// only a program with two such systems can do this.
    #[test]
    fn p9_pv_ticket_native_release_of_a_sleeper() {
        type Lock = PvTicket<LoomPlatform>;
        Bounded::new(Model::new(2, 2, || {
            let native = Tuning { nopvspin: true, ..NO_SPIN };
            let native = Lock::shared(2, native).expect("two CPUs are few");
            let it = Protected::<Lock>::new(2);
            on_cpus(2, move |cpu| {
                let (lock, shared) = it.raw();
                let shared = if cpu == 0 { &native } else { shared };
                let token = lock.lock(shared);
                it.inside();
                lock.unlock(shared, token);
            });
        }))
        .fails(DEADLOCK_MESSAGE);
    }
}
