//! Locks that would hang a check. Each check must end and report the fault.

use std::time::{Duration, Instant};

use overspin_check::model::LoomPlatform;
use overspin_check::schedules::SchedulePlatform;
use overspin_check::threads::{STUCK, StdPlatform};
use overspin_check::{Check, Limits, Profile, Report, World, checks};
use overspin_locks::{
    AtomicCell, Budget, CapacityError, LockInfo, Platform, RawLock, Ticket, Tuning,
};
use overspin_testing::{deep, skip};

const OFF_BY_ONE: u8 = 0;
const TRY_BLOCKS: u8 = 1;
const NEVER_RELEASES: u8 = 2;
const TRY_SPINS: u8 = 3;

/// A ticket lock with a fault.
#[derive(Debug)]
struct Broken<P: Platform, const HOW: u8> {
    lock: Ticket<P>,
    word: P::U32,
}

impl<P: Platform, const HOW: u8> RawLock<P> for Broken<P, HOW> {
    const INFO: LockInfo = <Ticket<P> as RawLock<P>>::INFO;
    type Shared = <Ticket<P> as RawLock<P>>::Shared;
    type Token = <Ticket<P> as RawLock<P>>::Token;

    fn shared(cpus: usize, tuning: Tuning) -> Result<Self::Shared, CapacityError> {
        <Ticket<P> as RawLock<P>>::shared(cpus, tuning)
    }
    fn new() -> Self {
        Self { lock: Ticket::new(), word: P::U32::new(0) }
    }
    fn lock(&self, shared: &Self::Shared) -> Self::Token {
        self.lock.lock(shared)
    }
    fn try_lock(&self, shared: &Self::Shared) -> Option<Self::Token> {
        match HOW {
            TRY_BLOCKS => Some(self.lock.lock(shared)),
            TRY_SPINS => loop {
                if let Some(token) = self.lock.try_lock(shared) {
                    return Some(token);
                }
                P::relax();
            },
            _ => self.lock.try_lock(shared),
        }
    }
    fn unlock(&self, shared: &Self::Shared, token: Self::Token) {
        if HOW == NEVER_RELEASES {
            _ = self.word.spin_until(|value| value == 1, Budget::Forever);
        }
        self.lock.unlock(shared, token);
    }
    fn is_locked(&self, shared: &Self::Shared) -> bool {
        self.lock.is_locked(shared)
    }
    fn is_contended(&self, shared: &Self::Shared) -> bool {
        HOW != OFF_BY_ONE && self.lock.is_contended(shared)
    }
}

/// Lists the faults that the checks of a world find, among checks whose names contain `name`.
fn faults<const HOW: u8>(world: World, name: &str) -> Vec<(&'static str, String)> {
    let limits = Limits { schedules: 50, time_limit: Duration::from_secs(20), ..Limits::default() };
    let all = checks::<
        Broken<LoomPlatform, HOW>,
        Broken<SchedulePlatform, HOW>,
        Broken<StdPlatform, HOW>,
    >(Profile::default(), &limits);
    let find = |check: &Check| -> Option<(&'static str, String)> {
        let Report { fault, .. } = check.run();
        Some((check.name, fault?))
    };
    let asked = |check: &&Check| check.world == world && check.name.contains(name);
    all.iter().filter(asked).filter_map(find).collect()
}

fn says(found: &[(&str, String)], check: &str, words: &str) -> bool {
    found.iter().any(|(name, fault)| *name == check && fault.contains(words))
}

#[test]
fn waiters_that_are_not_counted_fail_at_once() {
    let start = Instant::now();
    let found = faults::<OFF_BY_ONE>(World::Threads, "");
    assert!(says(&found, "waiters", "left: false"), "{found:?}");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(start.elapsed() < STUCK, "no thread waits for the limit");
}

#[test]
fn a_try_lock_that_blocks_is_a_fault_in_each_world() {
    for world in [World::Model, World::Schedules, World::Threads] {
        let found = faults::<TRY_BLOCKS>(world, "");
        assert!(found.iter().any(|(_, fault)| fault.contains("try_lock waits")), "{found:?}");
    }
}

#[test]
fn a_try_lock_that_spins_on_ends() {
    let found = faults::<TRY_SPINS>(World::Model, "");
    assert!(says(&found, "tries", "deadlock"), "{found:?}");
    let found = faults::<TRY_SPINS>(World::Schedules, "");
    assert!(found.iter().all(|(_, fault)| fault.contains("no acquisition in")), "{found:?}");
    assert!(!found.is_empty());
}

#[test]
fn an_unlock_that_never_returns_is_told_with_where_each_thread_stands() {
    if !deep() {
        return skip(
            "threads that spin until a check gives them up, twice ten seconds: OVERSPIN_DEEP=1",
        );
    }
    let found = faults::<NEVER_RELEASES>(World::Threads, "lock_irqsave");
    let words = "no acquisition for 10 s: CPU 0 is in unlock";
    assert!(says(&found, "lock_irqsave", words), "{found:?}");
    let found = faults::<NEVER_RELEASES>(World::Threads, "waiters");
    assert!(says(&found, "waiters", "CPU 3 is in lock"), "{found:?}");
}
