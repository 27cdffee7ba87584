//! A lock from outside, checked in all worlds, and a broken variant that is caught.
//!
//! `cargo run -p overspin-check --example own_lock`; docs/locks.md walks through it.

use std::process::ExitCode;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overspin_check::model::LoomPlatform;
use overspin_check::schedules::SchedulePlatform;
use overspin_check::threads::StdPlatform;
use overspin_check::{Limits, Profile, Verdict, checks, quietly};
use overspin_locks::{
    AtomicCell, Budget, CapacityError, LockInfo, Meanwhile, Platform, RawLock, Tuning,
};

/// Two counters: draw a number, wait until it is served. `BROKEN` forgets the release order.
#[derive(Debug)]
struct Deli<P: Platform, const BROKEN: bool> {
    next: P::U32,
    served: P::U32,
}

impl<P: Platform, const BROKEN: bool> RawLock<P> for Deli<P, BROKEN> {
    const INFO: LockInfo = LockInfo {
        name: "deli",
        brief: "draw a number, wait until it is served",
        source: "this example",
        fair: true,
        local_spin: false,
        lhp: Meanwhile::Burn,
        lwp: Meanwhile::Burn,
        abortable: false,
        blocks: false,
        max_cpus: u32::MAX,
        size: 8,
    };
    type Shared = ();
    type Token = u32;

    fn shared(cpus: usize, _: Tuning) -> Result<(), CapacityError> {
        <Self as RawLock<P>>::INFO.check_capacity(cpus)
    }

    fn new() -> Self {
        Self { next: P::U32::new(0), served: P::U32::new(0) }
    }

    fn lock(&self, (): &()) -> u32 {
        let mine = self.next.fetch_add(1, Relaxed);
        let _ = self.served.spin_until(|served| served == mine, Budget::Forever);
        mine
    }

    fn try_lock(&self, (): &()) -> Option<u32> {
        let served = self.served.load(Acquire);
        self.next.compare_exchange(served, served.wrapping_add(1), Relaxed, Relaxed).ok()
    }

    fn unlock(&self, (): &(), mine: u32) {
        self.served.store(mine.wrapping_add(1), if BROKEN { Relaxed } else { Release });
    }

    fn is_locked(&self, (): &()) -> bool {
        self.next.load(Relaxed) != self.served.load(Relaxed)
    }

    fn is_contended(&self, (): &()) -> bool {
        self.next.load(Relaxed).wrapping_sub(self.served.load(Relaxed)) > 1
    }
}

/// Prints a line for each check, up to the first that fails; returns what that one found.
fn check<const BROKEN: bool>(limits: &Limits) -> Option<String> {
    let checks = checks::<
        Deli<LoomPlatform, BROKEN>,
        Deli<SchedulePlatform, BROKEN>,
        Deli<StdPlatform, BROKEN>,
    >(Profile::default(), limits);
    for check in checks {
        let report = check.run();
        let (verdict, runs) = (check.verdict(&report), report.runs);
        let (world, name, cpus) = (check.world.name(), check.name, check.cpus);
        println!(
            "{:10} {world}, {name}, {cpus} CPUs, {}: {runs} runs",
            verdict.name(),
            check.bound
        );
        if verdict != Verdict::Passes {
            return Some(report.fault.unwrap_or_else(|| "out of time".into()));
        }
    }
    None
}

fn main() -> ExitCode {
    quietly(|| {
        println!("The lock:");
        let right = check::<false>(&Limits::default());
        println!("\nThe same with a relaxed release:");
        let broken = check::<true>(&Limits::default());
        println!("  {}", broken.as_deref().unwrap_or("not found").trim());
        if right.is_none() && broken.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    })
}

#[test]
fn the_lock_passes_and_the_broken_one_is_caught() {
    let limits = Limits { schedules: 200, ..Limits::default() };
    assert_eq!(check::<false>(&limits), None);
    let fault = check::<true>(&limits).expect("a relaxed release orders nothing");
    assert!(fault.contains(overspin_check::model::EXCLUSION_MESSAGE), "{fault}");
}
