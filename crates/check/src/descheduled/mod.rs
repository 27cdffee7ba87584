//! Compares the claims of [`LockInfo`] about descheduled CPUs with what happens. One CPU stops for ever, as the
//! holder or at one of its looks as a waiter, and the others go on. Also checks the claims about waiting: whether
//! waiters sleep, and whether they look at each other's cells.
//!
//! This is a shuttle world. Its scheduler draws the CPU of the next step from those that are neither asleep nor
//! stopped. The clock counts steps.

mod platform;
mod run;
mod world;

use std::rc::Rc;

use overspin_locks::{CpuId, LockInfo, Meanwhile, RawLock, Tuning};

pub use platform::Away;
use run::{LONG, run};
use world::{Cpu, Stop, VICTIM, World};

/// CPUs of a run in which one CPU stops.
pub(crate) const CPUS: usize = 4;
/// CPUs of a run in which the holder keeps the lock and the others look.
pub(crate) const CPUS_THAT_LOOK: usize = 6;
/// Steps after the stop. The verdict looks at the second half of them, the lasting state.
const STEPS: u64 = 20_000;
/// The victim stops after this many failed looks, one run for each count. `MORE_LOOKS` are tried until the worst
/// outcome that the lock claims is seen.
const LOOKS: [u32; 10] = [1, 2, 3, 5, 8, 13, 34, 55, 144, 377];
const MORE_LOOKS: std::ops::Range<u32> = 14..60;
/// Sections that the victim completes before the one in which it stops, one run for each count.
const SECTIONS: [u32; 7] = [0, 1, 2, 5, 9, 17, 33];
/// Locks of which one waiter may keep spinning behind a descheduled holder, though the others give way. It is the
/// first of the queue, which was woken and found the lock stolen.
const ONE_SPINS_ON: [&str; 2] = ["pv-qspinlock", "pv-qspinlock-4.5"];

/// Judges what the other CPUs have done since the halfway point.
fn outcome(world: &World, info: &LockInfo) -> Meanwhile {
    let stopped_at = world.stopped_at.get().expect("it was stopped");
    let halfway = stopped_at + world.limit / 2;
    let others = || world.cpus.iter().filter(|cpu| !cpu.stopped.get());
    let burns =
        |cpu: &Cpu| cpu.in_lock.get() && !cpu.asleep.get() && cpu.gave_way_at.get() < halfway;
    if others().filter(|cpu| burns(cpu)).count() > usize::from(ONE_SPINS_ON.contains(&info.name)) {
        Meanwhile::Burn
    } else if others().any(|cpu| cpu.acquired_at.get() > halfway) {
        Meanwhile::Pass
    } else {
        Meanwhile::GiveWay
    }
}

/// Returns the worse of two outcomes.
fn worse(one: Meanwhile, other: Meanwhile) -> Meanwhile {
    let badness = |it| match it {
        Meanwhile::Pass => 0,
        Meanwhile::GiveWay => 1,
        _ => 2,
    };
    if badness(one) >= badness(other) { one } else { other }
}

/// Returns a tuning with little patience, so that runs are short. FlexGuard keeps its default, which spins for
/// ever without hints. The mutex gets no patience: it then wakes a sleeper at each release, which may
/// become the heir.
fn tuning(info: &LockInfo) -> Tuning {
    let spin_budget = match info.name {
        "flexguard" => None,
        "mutex" => Some(0),
        _ => Some(8),
    };
    Tuning { spin_budget, ..Tuning::DEFAULT }
}

/// What a lock claims for a world that gives no hints, and for one that gives all.
fn said(claim: Meanwhile) -> [Meanwhile; 2] {
    match claim {
        Meanwhile::AvoidIfTold => [Meanwhile::Burn, Meanwhile::Pass],
        Meanwhile::GiveWayIfTold => [Meanwhile::Burn, Meanwhile::GiveWay],
        Meanwhile::PassIfTold => [Meanwhile::Burn, Meanwhile::Pass],
        always => [always, always],
    }
}

fn limit(said: Meanwhile) -> u64 {
    if said == Meanwhile::Burn { STEPS } else { LONG }
}

/// Stops a holder, then a waiter, and compares the behaviour of the others with the lock's claims.
///
/// # Panics
/// If they differ.
pub fn holder_and_waiters<L>()
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    stops(&L::INFO, run::<L>);
}

/// What [`holder_and_waiters`] does, given [`run()`] for the lock that `info` describes.
fn stops(info: &LockInfo, run: fn(usize, Stop, bool, Tuning, u64) -> Option<Rc<World>>) {
    let mut slept = false;
    for (told, said) in said(info.lhp).into_iter().enumerate() {
        // The victim would not take the lock.
        if info.lhp == Meanwhile::AvoidIfTold && told == 1 {
            continue;
        }
        let mut seen = Meanwhile::Pass;
        for sections in SECTIONS {
            let stop = Stop::Holder(sections);
            let world = run(CPUS, stop, told == 1, tuning(info), limit(said));
            let world = world.expect("it gets the lock that often");
            seen = worse(seen, outcome(&world, info));
            slept |= world.slept.get();
        }
        assert_eq!(seen, said, "holder, {}, told: {told}", info.name);
    }
    for (told, said) in said(info.lwp).into_iter().enumerate() {
        let avoids = info.lwp == Meanwhile::AvoidIfTold && told == 1;
        let mut seen = Meanwhile::Pass;
        for looks in LOOKS.into_iter().chain(MORE_LOOKS) {
            // Beyond this count the waiter stays away.
            if avoids && looks > overspin_locks::ispinlock::REFUSALS
                || seen == said && MORE_LOOKS.contains(&looks)
            {
                break;
            }
            let stop = Stop::Waiter(looks);
            let again = |times| run(CPUS, stop, told == 1, tuning(info), times * limit(said));
            let Some(mut world) = again(1) else { continue };
            // The lock is acquired, but one CPU seems to starve. Does it get the lock in a longer run?
            if outcome(&world, info) != said && said == Meanwhile::Pass {
                world = again(8).expect("as before");
            }
            seen = worse(seen, outcome(&world, info));
            slept |= world.slept.get();
        }
        assert_eq!(seen, said, "waiter, {}, told: {told}", info.name);
    }
    assert_eq!(slept, info.blocks, "sleeps, {}", info.name);
}

/// Checks, for a lock that claims that each waiter spins on a cell of its own, that at most two CPUs share a cell.
///
/// # Panics
/// If more than two do.
pub fn local_spin<L>()
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let crowd = crowd::<L>();
    // `ttas` and `ticket-backoff` hardly look at all, which is a different property.
    assert!(!L::INFO.local_spin || crowd <= 2, "{crowd} look at one cell");
}

/// Counts the waiters that share their cells while the holder keeps the lock: those with more than a fifth of their
/// looks at cells that other waiters look at too.
pub fn crowd<L>() -> usize
where
    L: RawLock<Away> + Send + Sync + 'static,
    L::Shared: Send + Sync,
{
    let world = run::<L>(CPUS_THAT_LOOK, Stop::Holder(2), false, Tuning::DEFAULT, STEPS);
    crowd_in(&world.expect("it gets the lock"))
}

fn crowd_in(world: &World) -> usize {
    let looks = world.looks.borrow();
    let in_crowd = |cpu: &CpuId| {
        let mine = looks.iter().filter(|((_, who), _)| who == cpu);
        let all: u64 = mine.clone().map(|(_, count)| count).sum();
        let shared = mine.filter(|((at, _), _)| {
            looks.keys().any(|(other_at, who)| other_at == at && who != cpu && *who != VICTIM)
        });
        shared.map(|(_, count)| count).sum::<u64>() * 5 > all
    };
    (0..CPUS_THAT_LOOK).filter(|cpu| *cpu != VICTIM).filter(in_crowd).count()
}
