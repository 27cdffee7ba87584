//! `mutex`, with turns and without rotation, and its bugs.

use std::rc::Rc;

use overspin_locks::mutex::Shared;
use overspin_locks::{Bug, Mutex};

use super::{Special, few, three_that_wake_for_no_reason};
use crate::model::{self, DEADLOCK_MESSAGE, LoomPlatform, Model, Protected, world};
use crate::{Mutation, abort};

/// The message about a mark that no CPU clears.
const LEFT: &str = "nobody waits, but it is contended";

type Lock = Mutex<LoomPlatform>;

/// A release wakes sleepers only if no CPU takes the lock. The models of every lock rotate at each release.
fn never_rotates(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, || {
        Protected::<Lock>::with_shared(Shared::impatient(u64::MAX))
    })
}

/// Waiters look, yield, look again and sleep.
fn with_turns(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, || Protected::<Lock>::with_shared(Shared::restless()))
}

/// Every holder that has waited pays at its next acquisition, for as long as its sleepers could hold the lock.
fn charged(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, || {
        // Tokens have times in steps of 64.
        world().advance_clock_by(64);
        Protected::<Lock>::with_shared(Shared::charging())
    })
}

/// Woken waiters nap instead of yielding before they become the heir.
fn beside_processes_that_compute(cpus: usize, pairs: usize, preemptions: usize) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, || {
        world().say_that_yields_are_dear();
        Protected::<Lock>::with_shared(Shared::impatient(0).with_naps(1))
    })
}

/// A woken waiter goes back to sleep unless it is its turn. There are no turns, or after every second release; then a
/// waiter that is awake already may get its turn.
fn seldom_moves(cpus: usize, pairs: usize, preemptions: usize, turns: bool) -> Model {
    Model::pairs_of(cpus, pairs, preemptions, move || {
        let often = || Shared::impatient(0).with_releases_per_look(2);
        let shared = if turns { often() } else { Shared::impatient(u64::MAX) };
        Protected::<Lock>::with_shared(shared.staying())
    })
}

/// CPU 1 gives up after 4 looks at the clock. CPU 0 releases the lock, so that CPU 1 may be the woken one, takes it again,
/// yields twice while it holds it, so that CPU 1 may become the heir, and wants it once more.
fn gives_up(preemptions: usize, shared: fn() -> Shared) -> Model {
    Model::new(2, preemptions, move || {
        world().advance_clock_by(1);
        let it = Protected::<Lock>::with_shared(shared());
        let of_all = Rc::clone(&it);
        model::on_cpus(2, move |cpu| {
            if cpu == 1 {
                let _ = abort::modelled(&of_all, Lock::lock_until, 4);
                return;
            }
            for yields in [1, 2, 0] {
                let token = of_all.lock();
                (0..yields).for_each(|_| world().wait(|| true));
                of_all.unlock(token);
            }
        });
        it.assert_as_new();
    })
}

pub(super) fn models() -> Vec<Special> {
    let seeded = Mutation::Seeded;
    let (unrotated, turns) = ("without rotation", "waiters look, yield, look again");
    let dear = "yields are dear";
    let debts = "holders pay for their sections";
    let stays = "moves are dear";
    let early = seeded(Bug::O3MutexLooksBeforeItReleases);
    vec![
        few::<Lock>()
            .finds(seeded(Bug::O1MutexReadsWakesLate), DEADLOCK_MESSAGE)
            .finds(seeded(Bug::O2MutexSleepsOnAFreeLock), DEADLOCK_MESSAGE)
            .finds(early, DEADLOCK_MESSAGE)
            // While `WAKING` stands no waiter is woken. With two CPUs there is no waiter left, so only the
            // mark shows it.
            .finds(seeded(Bug::O4MutexForgetsItWasWoken), LEFT),
        // The sleeper must fall asleep between the two steps, hence a third preemption.
        Special::new("pairs, one more preemption", "1 pair each", Model::pairs::<Lock>(2, 1, 3))
            .finds(seeded(Bug::O6MutexWakesBeforeItCounts), DEADLOCK_MESSAGE),
        // An heir that has come and gone keeps all others out.
        Special::new("pairs, one more preemption", "2 pairs each", Model::pairs::<Lock>(2, 2, 3))
            .finds(seeded(Bug::O5MutexHeirStays), LEFT),
        // A sleeper may leave the count as the woken one, besides the one that was really woken.
        three_that_wake_for_no_reason::<Lock>(2),
        Special::new(unrotated, "2 pairs each", never_rotates(2, 2, 5)),
        // A CPU that takes the lock just after a release has the duty to wake, and must find the sleepers.
        Special::new(unrotated, "1 pair each", never_rotates(3, 1, 2))
            .finds(early, DEADLOCK_MESSAGE),
        Special::new(unrotated, "2 pairs each", never_rotates(3, 2, 1)),
        Special::new(turns, "2 pairs each", with_turns(2, 2, 3)),
        Special::new(turns, "1 pair each", with_turns(3, 1, 2)),
        Special::new(dear, "2 pairs each", beside_processes_that_compute(2, 2, 3)),
        Special::new(dear, "1 pair each", beside_processes_that_compute(3, 1, 2)),
        Special::new(stays, "2 pairs each", seldom_moves(2, 2, 3, false)),
        Special::new(stays, "2 pairs each", seldom_moves(3, 2, 2, false))
            .finds(seeded(Bug::O11MutexGoesBackAndStaysTheWokenThread), DEADLOCK_MESSAGE),
        Special::new("moves are dear, turns", "2 pairs each", seldom_moves(2, 2, 3, true))
            .finds(seeded(Bug::O12MutexStaysDue), LEFT),
        Special::new("moves are dear, turns", "1 pair each", seldom_moves(3, 1, 2, true)),
        // The first acquisition has no time stamp, the next section is free, and a thread owes for the third.
        Special::new(debts, "4 pairs each", charged(2, 4, 4))
            .finds(seeded(Bug::O8MutexPaysWithoutUsers), DEADLOCK_MESSAGE),
        Special::new(debts, "2 pairs each", charged(3, 2, 1)),
        Special::new(
            "an heir gives up",
            "3 pairs; 1 attempt",
            gives_up(3, || Shared::impatient(0)),
        )
        .finds(seeded(Bug::O9MutexGivesUpAndStaysTheHeir), DEADLOCK_MESSAGE),
        Special::new(
            "moves are dear, one gives up",
            "3 pairs; 1 attempt",
            gives_up(3, || Shared::impatient(u64::MAX).staying()),
        ),
    ]
}
