//! Giving up, of each lock that can, and bugs of it that must be found.

use overspin_check::{Profile, abort};
use overspin_locks::{Bug, LockByte, McsTp, QspinlockTas, RawLock, Ttas};

use crate::harness::EXCLUSION_MESSAGE;
use crate::platform::{LoomPlatform, Mutation};

/// The models of a lock, by their place in [`abort::models`].
const CROSSING: usize = 0;
const QUEUE: usize = 1;
const HELD: usize = 2;

fn model<L: RawLock<LoomPlatform> + 'static>(which: usize) -> overspin_check::model::Model {
    abort::models::<L>(Profile::of(&L::INFO).preemptions).swap_remove(which).2
}

fn all_pass<L: RawLock<LoomPlatform> + 'static>() {
    [CROSSING, QUEUE, HELD].into_iter().for_each(|which| model::<L>(which).passes());
}

#[test]
fn lock_byte() {
    all_pass::<LockByte<LoomPlatform>>();
}

#[test]
fn ttas() {
    all_pass::<Ttas<LoomPlatform>>();
}

#[test]
fn qspinlock_tas() {
    all_pass::<QspinlockTas<LoomPlatform>>();
}

#[test]
fn mcs_tp() {
    all_pass::<McsTp<LoomPlatform>>();
}

#[test]
fn b3_lock_byte_gives_up_and_stays_counted() {
    let bug = Mutation::Seeded(Bug::B3LockByteGivesUpAndStaysCounted);
    model::<LockByte<LoomPlatform>>(HELD).fails_with(bug, "contended");
}

#[test]
fn y2_mcs_tp_reuses_the_node_left_behind() {
    let bug = Mutation::Seeded(Bug::Y2McsTpReusesTheNodeLeftBehind);
    assert!(model::<McsTp<LoomPlatform>>(HELD).explore(bug).fault.is_some());
}

#[test]
fn y3_mcs_tp_gives_up_though_granted() {
    let bug = Mutation::Seeded(Bug::Y3McsTpGivesUpThoughGranted);
    assert!(model::<McsTp<LoomPlatform>>(CROSSING).explore(bug).fault.is_some());
}

#[test]
fn b2_mcs_tp_orders_of_giving_up() {
    for mutation in [Mutation::NoRelease, Mutation::NoAcquire] {
        model::<McsTp<LoomPlatform>>(CROSSING).fails_with(mutation, EXCLUSION_MESSAGE);
    }
}

/// A lock that cannot give up has nothing to check here.
#[test]
fn none_of_a_ticket_lock() {
    assert!(abort::models::<overspin_locks::Ticket<LoomPlatform>>([6, 3, 1]).is_empty());
}
