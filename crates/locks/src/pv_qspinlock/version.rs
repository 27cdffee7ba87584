//! The differences between the versions of Linux.
//!
//! | | 4.2 | 4.5 | from 4.15 |
//! |---|---|---|---|
//! | a newcomer takes the free lock past a queue | never | in one attempt, unless the first spins | as long as the first does not spin |
//! | a waiter sleeps early if its predecessor sleeps | no | yes | yes |
//! | a sleeper that becomes the first is woken | at once | by `unlock` | by `unlock` |
//!
//! 4.3 and 4.4 are 4.2 with the last row of 4.5.
//!
//! Sources, commits of Linux by Waiman Long: a23db284fe0d (4.2, "Implement simple paravirt support for the
//! qspinlock"), 75d2270280686 (4.3, "Only kick CPU at unlock time"), 1c4941fd53af (4.5, "Allow limited lock
//! stealing"), cd0272fab785 (4.5, "Queue node adaptive spinning"), 11752adb68a3 (4.15, "Implement hybrid PV
//! queued/unfair locks"). Left out: a waiter of 4.10 to 5.3 also asked whether the vCPU before it was preempted.

use core::fmt::Debug;

use crate::{LockInfo, Meanwhile, qspinlock};

/// Properties of [`PvQspinlock`](super::PvQspinlock).
pub const INFO: LockInfo = LockInfo {
    name: "pv-qspinlock",
    brief: "qspinlock whose waiters spin, then sleep; newcomers may pass a sleeping queue.",
    source: "Long; Linux 4.15 (kernel/locking/qspinlock_paravirt.h)",
    fair: false,
    local_spin: true,
    lhp: Meanwhile::GiveWay,
    lwp: Meanwhile::GiveWay,
    abortable: false,
    blocks: true,
    max_cpus: qspinlock::INFO.max_cpus,
    size: 4,
};

/// Properties of [`PvQspinlock45`](super::PvQspinlock45).
pub const INFO_4_5: LockInfo = LockInfo {
    name: "pv-qspinlock-4.5",
    brief: "pv-qspinlock of Linux 4.5: a newcomer tries once to pass a sleeping queue.",
    source: "Long; Linux 4.5 (kernel/locking/qspinlock_paravirt.h)",
    ..INFO
};

/// Properties of [`PvQspinlock42`](super::PvQspinlock42).
pub const INFO_4_2: LockInfo = LockInfo {
    name: "pv-qspinlock-4.2",
    brief: "The first pv-qspinlock: nobody passes the queue; a sleeping first is woken at once.",
    source: "Long; Linux 4.2 (kernel/locking/qspinlock_paravirt.h)",
    // As in qspinlock: queued waiters are served in order.
    fair: true,
    ..INFO
};

/// When a newcomer may take the free lock past queued waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stealing {
    /// Never.
    Never,
    /// In one attempt before it queues, unless the first of the queue spins.
    Once,
    /// As long as the first of the queue does not spin.
    WhileTheFirstSleeps,
}

/// A version of Linux.
pub trait Version: Debug + 'static {
    /// Properties of the lock.
    const INFO: LockInfo;
    /// When newcomers may steal.
    const STEALING: Stealing;
    /// Whether a waiter looks if its predecessor spins, and sleeps early if not.
    const ADAPTIVE: bool;
    /// Whether a holder wakes the waiter that it makes the first of the queue, while the lock is held.
    const WAKES_NEXT: bool;
}

/// Linux 4.2.
#[derive(Debug)]
pub struct Linux42;

impl Version for Linux42 {
    const INFO: LockInfo = INFO_4_2;
    const STEALING: Stealing = Stealing::Never;
    const ADAPTIVE: bool = false;
    const WAKES_NEXT: bool = true;
}

/// Linux 4.5.
#[derive(Debug)]
pub struct Linux45;

impl Version for Linux45 {
    const INFO: LockInfo = INFO_4_5;
    const STEALING: Stealing = Stealing::Once;
    const ADAPTIVE: bool = true;
    const WAKES_NEXT: bool = false;
}

/// Linux 4.15 to today.
#[derive(Debug)]
pub struct Linux415;

impl Version for Linux415 {
    const INFO: LockInfo = INFO;
    const STEALING: Stealing = Stealing::WhileTheFirstSleeps;
    const ADAPTIVE: bool = true;
    const WAKES_NEXT: bool = false;
}
