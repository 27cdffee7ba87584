//! Nested waits of the Xen lock, and its bugs.

use overspin_locks::XenPv;

use super::nested::two_locks;
use super::{Special, few, tries_alone};
use crate::Mutation;
use crate::model::{DEADLOCK_MESSAGE, LoomPlatform, Point, Protected};

type Lock = XenPv<LoomPlatform>;

pub(super) fn models() -> Vec<Special> {
    let make = Protected::<Lock>::new;
    vec![
        few::<Lock>()
            .finds(Mutation::NoUnlockFence, DEADLOCK_MESSAGE)
            .finds(Mutation::NoWaiterFence, DEADLOCK_MESSAGE)
            .finds(Mutation::LateClear, DEADLOCK_MESSAGE)
            .finds(Mutation::LateRegistration, DEADLOCK_MESSAGE),
        tries_alone::<Lock>(),
        Special::new(
            "a nested wait before the sleep",
            "2 locks",
            two_locks(2, 2, Point::Poll, 0, make),
        )
        .finds(Mutation::NoPickupSet, DEADLOCK_MESSAGE),
        Special::new(
            "a nested wait before the clear",
            "2 locks",
            two_locks(2, 2, Point::Clear, 1, make),
        )
        .finds(Mutation::NoRestore, DEADLOCK_MESSAGE),
    ]
}
