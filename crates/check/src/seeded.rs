//! Bugs that are put into a lock on purpose, and that the checks must catch: who trusts the checks of
//! a lock should see them fail.
//!
//! Here are the bugs that the usual models and plans reach. Those that need a world of their own, such
//! as tickets of two bits or three locks in a certain order, are in the tests of this crate;
//! `docs/model-checking.md` has all.

use std::time::Duration;

use overspin_locks::{Bug, RawLock};

use crate::model::{self, LoomPlatform, Model, Mutation};
use crate::schedules::{self, SchedulePlatform, Strategy};
use crate::{Profile, Report, abort};

/// Schedules of each strategy. Of bugs that `pairs` finds the one that hides best takes some 700, of those
/// that need interrupts some 4,000: an order of magnitude more, so that no seed misses one.
const SCHEDULES_OF_PAIRS: usize = 5_000;
const SCHEDULES_OF_NESTING: usize = 100_000;

/// Seed of the schedules.
const SEED: u64 = 1;

/// The locks, and the bugs of each besides the ones of [`EVERY`].
const BUGS: &[(&str, Mutation)] = &[
    ("lock-byte", Mutation::SplitSwap),
    ("lock-byte", Mutation::Seeded(Bug::B3LockByteGivesUpAndStaysCounted)),
    ("xen-pv", Mutation::NoUnlockFence),
    ("xen-pv", Mutation::NoWaiterFence),
    ("xen-pv", Mutation::LateClear),
    ("xen-pv", Mutation::LateRegistration),
    ("futex", Mutation::Seeded(Bug::F1FutexForgetsOtherSleepers)),
    ("futex", Mutation::Seeded(Bug::F2FutexWaitsWithoutComparing)),
    ("pv-ticket-2012-small", Mutation::Seeded(Bug::P1PvTicketFlagBeforeRelease)),
    ("pv-ticket-2012", Mutation::Seeded(Bug::P1PvTicketFlagBeforeRelease)),
    ("pv-ticket", Mutation::Seeded(Bug::P3PvTicketHeadBeforeFlag)),
    ("pv-ticket", Mutation::Seeded(Bug::P4PvTicketKicksOldTicket)),
    ("pv-ticket", Mutation::Seeded(Bug::P5PvTicketFlagClearedBlindly)),
    ("pv-ticket", Mutation::Seeded(Bug::P6PvTicketRecordWithoutNull)),
    ("i-spinlock", Mutation::Seeded(Bug::I1InformedLearnsAfterRelease)),
    ("preemptable-ticket", Mutation::Seeded(Bug::K2PreemptableServesWithoutReleasing)),
    ("qspinlock", Mutation::Seeded(Bug::Q1QspinlockPendingNotUndone)),
    ("qspinlock", Mutation::Seeded(Bug::Q2QspinlockDropsTheTail)),
    ("qspinlock", Mutation::Seeded(Bug::Q4QspinlockResetAfterPublication)),
    ("pv-qspinlock", Mutation::Seeded(Bug::V1PvQspinlockHeadHalted)),
    ("pv-qspinlock", Mutation::Seeded(Bug::V2PvQspinlockKicksSleepersOnly)),
    ("pv-qspinlock", Mutation::Seeded(Bug::V3PvQspinlockLooksBeforePromoting)),
    ("pv-qspinlock", Mutation::Seeded(Bug::V4PvQspinlockReleaseBeforeRemoval)),
    ("pv-qspinlock", Mutation::Seeded(Bug::V5PvQspinlockNestedWaitClearsLatch)),
    ("pv-qspinlock", Mutation::Seeded(Bug::V6PvQspinlockSlowBeforeEntry)),
    ("pv-qspinlock", Mutation::Seeded(Bug::V8PvQspinlockStealsFromTheFirst)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V1PvQspinlockHeadHalted)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V2PvQspinlockKicksSleepersOnly)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V3PvQspinlockLooksBeforePromoting)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V4PvQspinlockReleaseBeforeRemoval)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V5PvQspinlockNestedWaitClearsLatch)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V6PvQspinlockSlowBeforeEntry)),
    ("pv-qspinlock-4.5", Mutation::Seeded(Bug::V8PvQspinlockStealsFromTheFirst)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V2PvQspinlockKicksSleepersOnly)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V3PvQspinlockLooksBeforePromoting)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V4PvQspinlockReleaseBeforeRemoval)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V5PvQspinlockNestedWaitClearsLatch)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V6PvQspinlockSlowBeforeEntry)),
    ("pv-qspinlock-4.2", Mutation::Seeded(Bug::V8PvQspinlockStealsFromTheFirst)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U1QspinlockUnfairFirstTakesBlindly)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U2QspinlockUnfairMissesItsGrant)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U3QspinlockUnfairLeavesItsLink)),
    ("qspinlock-unfair", Mutation::Seeded(Bug::U4QspinlockUnfairKeepsThePredecessor)),
    ("mcs", Mutation::SplitSwap),
    ("mcs", Mutation::Seeded(Bug::M1McsLinkBeforeReset)),
    ("mcs", Mutation::Seeded(Bug::M2McsUnlockLeavesUnlinkedWaiter)),
    ("clh", Mutation::SplitSwap),
    ("clh", Mutation::NoPublication),
    ("clh", Mutation::Seeded(Bug::C2ClhReuseWithoutNewVersion)),
    ("mcs-tp", Mutation::SplitSwap),
    ("mcs-tp", Mutation::Seeded(Bug::Y1McsTpGrantIgnoresTimeOut)),
    ("mcs-tp", Mutation::Seeded(Bug::Y2McsTpReusesTheNodeLeftBehind)),
    ("mcs-tp", Mutation::Seeded(Bug::Y3McsTpGivesUpThoughGranted)),
    ("malthusian", Mutation::SplitSwap),
    ("malthusian", Mutation::Seeded(Bug::A1MalthusianPassiveListIgnored)),
    ("cna", Mutation::SplitSwap),
    ("cna", Mutation::Seeded(Bug::N1CnaSecondaryQueueIgnored)),
    ("twa", Mutation::Seeded(Bug::W1TwaGrantBeforeSlot)),
    ("shfllock", Mutation::Seeded(Bug::S1ShflLockMovesTheTail)),
    ("hemlock", Mutation::SplitSwap),
    ("hemlock", Mutation::Seeded(Bug::H1HemlockUnlockWithoutAcknowledgement)),
    ("mutexee", Mutation::SplitSwap),
    ("mutexee", Mutation::Seeded(Bug::E1MutexeeForgetsOtherSleepers)),
    ("mutexee", Mutation::Seeded(Bug::E2MutexeeDropsTheDuty)),
    ("mutexee", Mutation::Seeded(Bug::E3MutexeeClearsBlindly)),
    ("mutexee", Mutation::Seeded(Bug::E4MutexeeWaitsWithoutComparing)),
    ("mutex", Mutation::Seeded(Bug::O1RotatingReadsWakesLate)),
    ("mutex", Mutation::Seeded(Bug::O2RotatingSleepsOnAFreeLock)),
    ("mutex", Mutation::Seeded(Bug::O3RotatingLooksBeforeItReleases)),
    ("mutex", Mutation::Seeded(Bug::O4RotatingForgetsItWasWoken)),
    ("mutex", Mutation::Seeded(Bug::O5RotatingHeirStays)),
    ("mutex", Mutation::Seeded(Bug::O6RotatingWakesBeforeItCounts)),
];

/// Bugs that any lock can have.
const EVERY: [Mutation; 2] = [Mutation::NoRelease, Mutation::NoAcquire];

/// The bugs that are tried on the lock of this name.
pub fn bugs(lock: &str) -> Vec<Mutation> {
    let of_lock = BUGS.iter().filter(|(name, _)| *name == lock);
    EVERY.into_iter().chain(of_lock.map(|(_, bug)| *bug)).collect()
}

/// Locks that have bugs of their own here.
pub(crate) fn locks() -> impl Iterator<Item = &'static str> {
    BUGS.iter().map(|(name, _)| *name)
}

/// What a bug is called in reports: as in the code.
pub fn name(bug: Mutation) -> String {
    match bug {
        Mutation::Seeded(bug) => format!("{bug:?}"),
        other => format!("{other:?}"),
    }
}

/// How a bug was caught.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The model, or the plan, in words.
    pub by: String,
    /// Executions until then.
    pub runs: usize,
    /// How long they took.
    pub time: Duration,
    /// What was seen.
    pub fault: String,
}

impl Caught {
    fn new(by: String, report: Report) -> Option<Self> {
        let Report { runs, time, fault, .. } = report;
        fault.map(|fault| Self { by, runs, time, fault })
    }
}

/// Puts `bug` into a lock and looks for it, with models first and then with schedules, from small to
/// large; `None` if it survives all of them.
pub fn hunt<M, S>(bug: Mutation) -> Option<Caught>
where
    M: RawLock<LoomPlatform> + 'static,
    S: RawLock<SchedulePlatform> + Send + Sync + 'static,
    S::Shared: Send + Sync,
{
    // Not more preemptions with three CPUs than the lock can afford.
    let [_, three_once, _] = Profile::of(&M::INFO).preemptions;
    for (cpus, pairs, preemptions) in [(2, 1, 2), (3, 1, three_once.min(2)), (2, 2, 3)] {
        let report = Model::pairs::<M>(cpus, pairs, preemptions).explore(bug);
        let by = format!("model, {cpus} CPUs x {pairs}, {preemptions} preemptions");
        if let Some(caught) = Caught::new(by, report) {
            return Some(caught);
        }
    }
    let freed = model::last_user_frees::<M>();
    // Says nothing of the bug if the lock does so anyway.
    if !Profile::of(&M::INFO).touches_after_release {
        let by = "model, last user frees, 2 CPUs".into();
        if let Some(caught) = Caught::new(by, freed.explore(bug)) {
            return Some(caught);
        }
    }
    let preemptions = Profile::of(&M::INFO).preemptions;
    if let Some((by, report)) = abort::hunt::<M, S>(bug, preemptions, SEED) {
        return Caught::new(by, report);
    }
    // The platform's own bugs are about orders, of which there are none to lose here.
    let Mutation::Seeded(bug) = bug else { return None };
    for (name, plan, count) in [
        ("pairs", schedules::pairs::<S>(4, 3, 2), SCHEDULES_OF_PAIRS),
        ("nesting", schedules::mixed::<S>(4, 4), SCHEDULES_OF_NESTING),
    ] {
        for strategy in [Strategy::Random, Strategy::Pct] {
            let report = plan.explore(strategy, count, SEED, Some(bug));
            let by = format!("{} schedules, {name}, 4 CPUs", strategy.name());
            if let Some(caught) = Caught::new(by, report) {
                return Some(caught);
            }
        }
    }
    None
}
