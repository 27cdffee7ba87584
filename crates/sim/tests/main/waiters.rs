//! Waiters that are found by the value that they wait for change no run: it is that of waiters that are asked one by one.

use crate::common::{domain, host, lock_loop, scenario};
use overspin_host::{Moment, Timed};
use overspin_locks::{
    AtomicCell, Budget, CapacityError, LockInfo, Platform, RawLock, Tuning, lock_byte, ticket,
};
use overspin_scenario::{MS, NS, Outcome, Picos, Scenario, US};
use overspin_sim::{SimPlatform, Simulator};
use std::convert::identity;
use std::sync::atomic::Ordering::SeqCst;

type Count = <SimPlatform as Platform>::U32;

/// Waits until `cell` is `wanted`. Budgets run out too.
fn wait<const BY_VALUE: bool>(cell: &Count, wanted: u32) {
    let budget = Budget::Iterations(1000);
    while if BY_VALUE {
        cell.spin_until_eq(identity, wanted, budget).is_err()
    } else {
        cell.spin_until(move |value| value == wanted, budget).is_err()
    } {}
}

/// A ticket lock whose draws write the line of the waiters too. Every `ODD`-th waiter has a condition that is no equality; 0:
/// none has.
#[derive(Debug)]
struct Tickets<const BY_VALUE: bool, const ODD: u32> {
    drawn: Count,
    served: Count,
}

impl<const BY_VALUE: bool, const ODD: u32> RawLock<SimPlatform> for Tickets<BY_VALUE, ODD> {
    const INFO: LockInfo = LockInfo { name: "own", size: 8, ..ticket::INFO };
    type Shared = ();
    type Token = ();

    fn shared(_: usize, _: Tuning) -> Result<(), CapacityError> {
        Ok(())
    }
    fn new() -> Self {
        Self { drawn: Count::new(0), served: Count::new(0) }
    }
    fn lock(&self, (): &()) {
        let mine = self.drawn.fetch_add(1, SeqCst);
        if ODD != 0 && mine.is_multiple_of(ODD) {
            let _ = self.served.spin_until(move |served| served >= mine, Budget::Forever);
        } else {
            wait::<BY_VALUE>(&self.served, mine);
        }
    }
    fn try_lock(&self, (): &()) -> Option<()> {
        let mine = self.served.load(SeqCst);
        self.drawn.compare_exchange(mine, mine + 1, SeqCst, SeqCst).is_ok().then_some(())
    }
    fn unlock(&self, (): &(), (): ()) {
        self.served.fetch_add(1, SeqCst);
    }
    fn is_locked(&self, (): &()) -> bool {
        self.served.load(SeqCst) != self.drawn.load(SeqCst)
    }
    fn is_contended(&self, (): &()) -> bool {
        self.drawn.load(SeqCst).wrapping_sub(self.served.load(SeqCst)) > 1
    }
}

/// A lock where all wait for the same value.
#[derive(Debug)]
struct Word<const BY_VALUE: bool>(Count);

impl<const BY_VALUE: bool> RawLock<SimPlatform> for Word<BY_VALUE> {
    const INFO: LockInfo = LockInfo { name: "own", size: 4, ..lock_byte::INFO };
    type Shared = ();
    type Token = ();

    fn shared(_: usize, _: Tuning) -> Result<(), CapacityError> {
        Ok(())
    }
    fn new() -> Self {
        Self(Count::new(0))
    }
    fn lock(&self, (): &()) {
        while self.0.swap(1, SeqCst) != 0 {
            wait::<BY_VALUE>(&self.0, 0);
        }
    }
    fn try_lock(&self, (): &()) -> Option<()> {
        (self.0.swap(1, SeqCst) == 0).then_some(())
    }
    fn unlock(&self, (): &(), (): ()) {
        self.0.store(0, SeqCst);
    }
    fn is_locked(&self, (): &()) -> bool {
        self.0.load(SeqCst) != 0
    }
    fn is_contended(&self, (): &()) -> bool {
        false
    }
}

/// So many vCPUs want one lock that its line has an index. Ticks interrupt their spins.
fn crowds() -> impl Iterator<Item = Scenario> {
    // Half of the vCPUs spin without a pCPU now and then; or none does.
    [24, 48].into_iter().map(|pcpus| {
        let work = lock_loop(100 * NS, 3 * US);
        scenario(host(pcpus, "credit"), vec![domain(48, "own", work)], 20 * MS)
    })
}

fn traced<L: RawLock<SimPlatform> + 'static>(
    scenario: &Scenario,
) -> (Outcome, Vec<(Picos, Moment)>) {
    let mut moments: Vec<Timed> = Vec::new();
    let simulator = Simulator::new().with_lock::<L>();
    let outcome = overspin_host::run(&simulator, scenario, 1, &mut moments, &());
    let moments = moments.into_iter().map(|t| (t.at, t.moment)).collect();
    (outcome.expect("a legal scenario"), moments)
}

fn assert_same<One: RawLock<SimPlatform> + 'static, Other: RawLock<SimPlatform> + 'static>() {
    for scenario in crowds() {
        let (one, other) = (traced::<One>(&scenario), traced::<Other>(&scenario));
        assert!(one.0.domains[0].locks[0].acquisitions > 1000, "{:?}", one.0.domains[0].locks);
        assert_eq!(one.0, other.0);
        assert!(one.1 == other.1, "the traces differ");
    }
}

#[test]
fn tickets_that_are_found_by_value_give_the_same_runs() {
    assert_same::<Tickets<true, 0>, Tickets<false, 0>>();
}

#[test]
fn so_do_those_among_waiters_with_another_condition() {
    assert_same::<Tickets<true, 50>, Tickets<false, 50>>();
}

#[test]
fn so_do_waiters_that_all_wait_for_one_value() {
    assert_same::<Word<true>, Word<false>>();
}
