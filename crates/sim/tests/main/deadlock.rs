//! Scenarios that can make no more progress end with a report of what waits for what; they do not hang.

use crate::common::{domain, host, lock_loop, run, scenario, tickless};
use overspin_host::Timed;
use overspin_locks::{
    AtomicCell, Budget, CachePadded, CapacityError, LockInfo, Platform, RawLock, Tuning, XenPv,
    lock_byte,
};
use overspin_scenario::keys::Section;
use overspin_scenario::{
    Domain, Ending, Host, MS, NS, Noise, Outcome, Parameters, Picos, SEC, Scenario, US,
};
use overspin_sim::{SimPlatform, Simulator};
use overspin_workload::{Env, Kinds, Load, LockLoop, Start, WorkloadInfo};
use std::sync::atomic::Ordering::SeqCst;

type Byte = <SimPlatform as Platform>::U8;
type Count = <SimPlatform as Platform>::U32;

const OWN: LockInfo = LockInfo { name: "own", blocks: true, ..lock_byte::INFO };

/// A lock of a user's own, after the Xen PV lock. It lacks the last look at the lock between the
/// registration and the sleep: a release before the count finds no sleeper to kick, and the waiter
/// never learns of the release.
#[derive(Debug)]
struct NoRecheck {
    lock: Byte,
    sleepers: Count,
}

/// For each CPU, whether it sleeps.
type Sleeping = <SimPlatform as Platform>::Slots<CachePadded<Byte>>;

impl RawLock<SimPlatform> for NoRecheck {
    const INFO: LockInfo = OWN;
    type Shared = Sleeping;
    type Token = ();

    fn shared(cpus: usize, _: Tuning) -> Result<Sleeping, CapacityError> {
        Ok(SimPlatform::slots(cpus, |_| CachePadded::new(Byte::new(0))))
    }
    fn new() -> Self {
        Self { lock: Byte::new(0), sleepers: Count::new(0) }
    }
    fn lock(&self, sleeping: &Sleeping) {
        while self.lock.swap(1, SeqCst) != 0 {
            if self.lock.spin_until(|lock| lock == 0, Budget::Iterations(50)).is_err() {
                let me = &sleeping[SimPlatform::cpu_id()];
                SimPlatform::latch_clear();
                me.store(1, SeqCst);
                self.sleepers.fetch_add(1, SeqCst);
                // Here the original looks at the lock again.
                while !SimPlatform::latch_test() {
                    SimPlatform::poll();
                }
                self.sleepers.fetch_sub(1, SeqCst);
                me.store(0, SeqCst);
            }
        }
    }
    fn try_lock(&self, _: &Sleeping) -> Option<()> {
        (self.lock.swap(1, SeqCst) == 0).then_some(())
    }
    fn unlock(&self, sleeping: &Sleeping, (): ()) {
        self.lock.store(0, SeqCst);
        if self.sleepers.load(SeqCst) != 0
            && let Some(cpu) = sleeping.iter().position(|s| s.load(SeqCst) != 0)
        {
            SimPlatform::kick(cpu);
        }
    }
    fn is_locked(&self, _: &Sleeping) -> bool {
        self.lock.load(SeqCst) != 0
    }
    fn is_contended(&self, _: &Sleeping) -> bool {
        self.sleepers.load(SeqCst) != 0
    }
}

/// Two vCPUs take the lock once each. The second comes up 10 us after the first and waits; the
/// first releases after `section`.
fn once_each(lock: &str, section: Picos) -> Scenario {
    let work = LockLoop { count: 1, fixed: true, ..lock_loop(section, Picos::ZERO) };
    let guest = tickless(2, lock, work);
    let guest = Domain { spin_budget: Some(50), ..guest };
    scenario(host(2, "null"), vec![guest], 60 * SEC)
}

/// Sections whose releases come before a waiter does, and while it spins, registers, or sleeps.
fn sections() -> impl Iterator<Item = Picos> {
    (0..500).map(|i| 5 * US + i * 20 * NS)
}

#[test]
fn a_lost_wakeup_of_a_users_lock_is_found_and_explained() {
    let outcomes: Vec<Outcome> = sections()
        .map(|section| {
            let scenario = once_each(OWN.name, section);
            overspin_host::run(
                &Simulator::new().with_lock::<NoRecheck>(),
                &scenario,
                1,
                &mut (),
                &(),
            )
            .expect("a legal scenario")
        })
        .collect();
    let lost: Vec<_> = outcomes.iter().filter(|o| o.ending != Ending::Finished).collect();
    // The window is a few memory operations long; most releases come before or after it.
    assert!(!lost.is_empty() && lost.len() < outcomes.len() / 10, "{} lost", lost.len());
    for outcome in lost {
        let Ending::Deadlock { waits } = &outcome.ending else { panic!("{:?}", outcome.ending) };
        assert_eq!(
            waits,
            &["guest/v1 (task loop1) sleeps in the hypervisor waiting for lock section, \
               held by no vCPU (a lost wake-up)"]
        );
        assert_eq!(outcome.domains[0].finished, None);
        assert_eq!(outcome.domains[0].locks[0].acquisitions, 1);
        // The watchdog looks ten times, a second apart, and sees no progress.
        assert!(outcome.elapsed <= 12 * SEC, "{}", outcome.elapsed);
    }
}

/// Noise goes on for ever, but its work is no progress.
#[test]
fn a_deadlock_is_noticed_on_a_noisy_host() {
    let lost = sections().find_map(|section| {
        let noisy = Host { noise: Some(Noise::default()), ..host(2, "credit") };
        let scenario = Scenario { host: noisy, ..once_each(OWN.name, section) };
        let outcome = overspin_host::run(
            &Simulator::new().with_lock::<NoRecheck>(),
            &scenario,
            1,
            &mut (),
            &(),
        )
        .unwrap();
        (outcome.ending != Ending::Finished).then_some(outcome)
    });
    let lost = lost.expect("some release falls between the registration and the sleep");
    let Ending::Deadlock { waits } = &lost.ending else { panic!("{:?}", lost.ending) };
    assert_eq!(waits.len(), 1, "the guest's waiter only: {waits:?}");
    assert!(lost.elapsed <= 12 * SEC, "{}", lost.elapsed);
    assert!(lost.noise.expect("a noisy host").wakes > 100);
}

#[test]
fn the_lock_that_looks_again_loses_no_wakeup() {
    let slow_paths: u64 = sections()
        .map(|section| {
            let outcome = run(&once_each("xen-pv", section), 1);
            assert_eq!(outcome.ending, Ending::Finished, "section of {section} ps");
            outcome.domains[0].locks[0].slow_paths
        })
        .sum();
    assert!(slow_paths > 0, "some waiters slept");
}

/// A byte lock that is never released once it has a waiter.
#[derive(Debug)]
struct NeverServed {
    lock: Byte,
    waiters: Count,
}

impl RawLock<SimPlatform> for NeverServed {
    const INFO: LockInfo = OWN;
    type Shared = ();
    type Token = ();

    fn shared(_: usize, _: Tuning) -> Result<(), CapacityError> {
        Ok(())
    }
    fn new() -> Self {
        Self { lock: Byte::new(0), waiters: Count::new(0) }
    }
    fn lock(&self, (): &()) {
        while self.lock.swap(1, SeqCst) != 0 {
            self.waiters.fetch_add(1, SeqCst);
            let _ = self.lock.spin_until(|lock| lock == 0, Budget::Forever);
        }
    }
    fn try_lock(&self, (): &()) -> Option<()> {
        (self.lock.swap(1, SeqCst) == 0).then_some(())
    }
    fn unlock(&self, (): &(), (): ()) {
        if self.waiters.load(SeqCst) == 0 {
            self.lock.store(0, SeqCst);
        }
    }
    fn is_locked(&self, (): &()) -> bool {
        self.lock.load(SeqCst) != 0
    }
    fn is_contended(&self, (): &()) -> bool {
        self.waiters.load(SeqCst) != 0
    }
}

#[test]
fn spinners_that_nobody_releases_are_a_deadlock_although_ticks_go_on() {
    for irqs_off in [false, true] {
        let work = LockLoop { irqs_off, ..lock_loop(20 * US, 5 * US) };
        let guest = domain(2, OWN.name, work);
        let scenario = scenario(host(2, "credit"), vec![guest], 60 * SEC);
        let outcome = overspin_host::run(
            &Simulator::new().with_lock::<NeverServed>(),
            &scenario,
            1,
            &mut (),
            &(),
        )
        .unwrap();
        let Ending::Deadlock { waits } = &outcome.ending else {
            panic!("irqs_off {irqs_off}: {:?}", outcome.ending)
        };
        assert_eq!(waits.len(), 2, "{waits:?}");
        for (v, wait) in waits.iter().enumerate() {
            assert_eq!(
                *wait,
                format!(
                    "guest/v{v} (task loop{v}) spins on lock section, held by no vCPU (a lost wake-up)"
                )
            );
        }
    }
}

/// A workload of a user's own, whose tasks wait for a unit that never comes.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Stuck {
    tasks: u32,
}

impl Parameters for Stuck {
    const KIND: &'static str = "stuck";
}

impl Load for Stuck {
    fn is_endless(&self) -> bool {
        false
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        self.tasks.into()
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        let one = |i| Start {
            name: format!("stuck{i}"),
            vcpu: Some(i % vcpus),
            program: Box::new(|env: &dyn Env| env.down(env.semaphore(0))),
        };
        (0..self.tasks).map(one).collect()
    }
}

const STUCK: Section = Section { heading: "[domain.workload]", doc: "Waits.", keys: &[] };

#[test]
fn a_task_that_nobody_wakes_is_a_deadlock() {
    let guest = domain(2, "ticket", Stuck { tasks: 1 });
    let scenario = scenario(host(2, "credit"), vec![guest], 60 * SEC);
    let kinds = Kinds::builtin().with(WorkloadInfo::of::<Stuck>("waits", "a test", &STUCK));
    let run = |kinds| {
        let simulator = Simulator::new().with_workloads(kinds);
        overspin_host::run(&simulator, &scenario, 1, &mut (), &())
    };
    let waits = vec![
        "guest: task stuck0 sleeps on semaphore 0, which no task or device raises".to_string(),
    ];
    assert_eq!(run(kinds).unwrap().ending, Ending::Deadlock { waits });
    let unknown = run(Kinds::builtin()).unwrap_err().to_string();
    assert!(unknown.contains("`workload.kind`: there is no workload `stuck`"), "{unknown}");
}

#[test]
fn long_sections_and_long_sleeps_are_no_deadlock() {
    // No task makes progress for 30 s; then all do.
    let work = LockLoop { count: 1, ..lock_loop(30 * SEC, Picos::ZERO) };
    let guest = domain(2, "ticket", work);
    let outcome = run(&scenario(host(1, "credit"), vec![guest], 200 * SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    let work = overspin_workload::BurnWait {
        threads: 0,
        burn: MS,
        wait: 40 * SEC,
        count: 2,
        ..overspin_workload::BurnWait::default()
    };
    let guest = domain(2, "ticket", work);
    let outcome = run(&scenario(host(1, "credit"), vec![guest], 200 * SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
}

/// A user's lock replaces the registered lock of the same name. Here both are the same lock, so the run is
/// the same.
#[test]
fn a_lock_given_by_type_runs_as_the_one_in_the_registry() {
    let scenario = once_each("xen-pv", 10 * US);
    let simulator = Simulator::new().with_lock::<XenPv<SimPlatform>>();
    let mut moments: Vec<Timed> = Vec::new();
    let by_type = overspin_host::run(&simulator, &scenario, 1, &mut moments, &()).unwrap();
    assert_eq!(by_type, run(&scenario, 1));
    assert!(!moments.is_empty());
}

/// Of two user's locks with one name, the simulator uses the later one.
#[test]
fn a_lock_of_the_same_name_takes_the_place_of_the_one_before() {
    let mut scenario = once_each("xen-pv", 10 * US);
    scenario.domains[0].lock = OWN.name.into();
    let run = |simulator: Simulator| overspin_host::run(&simulator, &scenario, 1, &mut (), &());
    let [first, second] = [
        run(Simulator::new().with_lock::<NoRecheck>()).unwrap(),
        run(Simulator::new().with_lock::<NeverServed>()).unwrap(),
    ];
    assert_ne!(first, second);
    let both = Simulator::new().with_lock::<NeverServed>().with_lock::<NoRecheck>();
    assert_eq!(both.locks().filter(|(info, _)| info.name == OWN.name).count(), 1);
    assert_eq!(run(both).unwrap(), first);
}

#[test]
fn a_vcpu_that_never_gets_a_pcpu_is_named() {
    // `null` gives a vCPU a pCPU for good, and two domains have one pCPU here.
    let work = LockLoop { count: 1, ..lock_loop(US, US) };
    let guests = ["first", "second"].map(|name| {
        let guest = domain(1, "ticket", work.clone());
        Domain { name: name.into(), ..guest }
    });
    let outcome = run(&scenario(host(1, "null"), guests.into(), 60 * SEC), 1);
    let waits = vec!["second/v0 waits for a pCPU, which it never gets".to_string()];
    assert_eq!(outcome.ending, Ending::Deadlock { waits });
    assert!(outcome.domains[0].finished.is_some());
}
