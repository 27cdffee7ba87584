//! A lock that contains state for each CPU: Anderson's array lock, for at most 8 CPUs, checked in all worlds.
//!
//! [`RawLock::new`] does not know the number of CPUs, because locks lie in statics and structures whose size does
//! not depend on it. So the type fixes the size of the array, and with it the capacity of the lock. The state of the
//! system knows the number of CPUs, and so how much of the array is used.
//!
//! `cargo run -p overspin-check --example array_lock`

use std::process::ExitCode;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overspin_check::model::LoomPlatform;
use overspin_check::schedules::SchedulePlatform;
use overspin_check::threads::StdPlatform;
use overspin_check::{Limits, Profile, Verdict, checks, quietly};
use overspin_locks::{
    AtomicCell, Budget, CachePadded, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning,
};

const WAIT: u32 = 0;
const ENTER: u32 = 1;

/// An arriving CPU draws a slot and waits there; a leaving CPU opens the next slot. Anderson 1990.
#[derive(Debug)]
struct Anderson<P: Platform, const SLOTS: usize> {
    /// The next number to draw.
    next: P::U32,
    slots: [CachePadded<P::U32>; SLOTS],
}

/// The number of used slots: a power of two, so that numbers may wrap, and at least the number of CPUs.
#[derive(Debug)]
struct Used(u32);

impl Used {
    fn slot(&self, number: u32) -> usize {
        (number & (self.0 - 1)) as usize
    }
}

impl<P: Platform, const SLOTS: usize> Anderson<P, SLOTS> {
    fn enter(&self, slot: usize) -> usize {
        // For the next round. The last opener is done: its release came before our look.
        self.slots[slot].store(WAIT, Relaxed);
        slot
    }
}

impl<P: Platform, const SLOTS: usize> RawLock<P> for Anderson<P, SLOTS> {
    const INFO: LockInfo = LockInfo {
        name: "anderson",
        brief: "An arriving CPU draws a slot of an array, and waits there.",
        source: "Anderson 1990",
        fair: true,
        local_spin: true,
        lhp: Meanwhile::Burn,
        lwp: Meanwhile::Burn,
        abortable: false,
        blocks: false,
        max_cpus: SLOTS as u32,
        size: (SLOTS + 1) * size_of::<CachePadded<u8>>(),
    };
    type Shared = Used;
    type Token = usize;

    fn shared(cpus: usize, _: Tuning) -> Result<Used, CapacityError> {
        assert!(SLOTS.is_power_of_two(), "numbers wrap");
        <Self as RawLock<P>>::INFO.check_capacity(cpus)?;
        Ok(Used(cpus.next_power_of_two() as u32))
    }

    fn new() -> Self {
        let slot = |n| CachePadded::new(P::U32::new(if n == 0 { ENTER } else { WAIT }));
        Self { next: P::U32::new(0), slots: std::array::from_fn(slot) }
    }

    fn lock(&self, used: &Used) -> usize {
        // Acquire and release: a CPU that draws a slot must see that it was closed after its last use, not the older
        // opening. (It was relaxed until the models found two holders.)
        let mine = used.slot(self.next.fetch_add(1, AcqRel));
        // Acquires: pairs with the release in `unlock`.
        let _ = self.slots[mine].spin_until(|slot| slot == ENTER, Budget::Forever);
        self.enter(mine)
    }

    fn try_lock(&self, used: &Used) -> Option<usize> {
        // Acquire: as in `lock`, before the look at the slot.
        let next = self.next.load(Acquire);
        let slot = used.slot(next);
        // The slot is open and not drawn: no CPU has the lock.
        let is_free = self.slots[slot].load(Acquire) == ENTER
            && self.next.compare_exchange(next, next.wrapping_add(1), AcqRel, Relaxed).is_ok();
        is_free.then(|| self.enter(slot))
    }

    fn unlock(&self, used: &Used, mine: usize) {
        // Release: what the holder did happens before the next acquisition.
        self.slots[used.slot(mine as u32 + 1)].store(ENTER, Release);
    }

    fn is_locked(&self, used: &Used) -> bool {
        self.slots[used.slot(self.next.load(Relaxed))].load(Relaxed) != ENTER
    }

    /// The slots of holder and waiters look alike.
    fn is_contended(&self, _: &Used) -> bool {
        false
    }
}

/// Prints a line for each check. Returns the fault of the first check that fails.
fn check(limits: &Limits) -> Option<String> {
    const SLOTS: usize = 8;
    let profile = Profile { records_waiters: false, ..Profile::default() };
    let checks = checks::<
        Anderson<LoomPlatform, SLOTS>,
        Anderson<SchedulePlatform, SLOTS>,
        Anderson<StdPlatform, SLOTS>,
    >(profile, limits);
    for check in checks {
        let report = check.run();
        let verdict = check.verdict(&report);
        println!(
            "{:10} {}, {}, {} CPUs",
            verdict.name(),
            check.world.name(),
            check.name,
            check.cpus
        );
        if verdict != Verdict::Passes {
            return Some(report.fault.unwrap_or_else(|| "out of time".into()));
        }
    }
    None
}

fn main() -> ExitCode {
    match quietly(|| check(&Limits::default())) {
        None => ExitCode::SUCCESS,
        Some(fault) => {
            println!("{fault}");
            ExitCode::FAILURE
        }
    }
}

/// Also checks a lock for fewer CPUs than the largest schedules have, with as many as it serves.
#[test]
fn an_array_lock_for_8_cpus_passes() {
    assert_eq!(check(&Limits { schedules: 200, ..Limits::default() }), None);
}
