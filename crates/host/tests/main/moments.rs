//! Observers, alone and together, and attribution of hand-written moments.

use overspin_host::{
    Attribution, Cancel, Interest, Moment, Observer, Refused, Timed, TraceHash, Unhonoured,
    VcpuState, World, run,
};
use overspin_scenario::{
    Domain, Ending, Host, LockOutcome, Outcome, Picos, Scenario, US, VcpuOutcome, WaitCauses, Why,
    Workloads,
};

/// One domain of two vCPUs, on a host without noise.
fn scenario() -> Scenario {
    Scenario::new(
        "test",
        Host::default().undisturbed(),
        vec![Domain::new("guest", 2, "ticket", Workloads(Vec::new()))],
        US,
    )
}

/// A world that delivers the same moments each time, whatever the scenario.
#[derive(Debug)]
struct Played(Vec<Timed>);

impl World for Played {
    fn name(&self) -> &'static str {
        "played"
    }

    fn supports(&self, _: &Scenario) -> Result<Vec<Unhonoured>, Refused> {
        Ok(Vec::new())
    }

    fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        observer: &mut dyn Observer,
        cancel: &dyn Cancel,
    ) -> Result<Outcome, Refused> {
        let mut hash = TraceHash::new(seed);
        for (i, Timed { at, moment }) in self.0.iter().enumerate() {
            if moment.concerns().meets(observer.interest()) {
                observer.observe(&self.0[i..=i]);
            }
            hash.record(*at, moment);
        }
        let elapsed = self.0.last().map_or(Picos::ZERO, |t| t.at);
        let stopped = cancel.asked(elapsed);
        Ok(Outcome {
            seed,
            ending: stopped.map_or(Ending::Limit, |by| Ending::Stopped { by }),
            elapsed,
            warmup: Picos::ZERO,
            progress_step: Picos::ZERO,
            events: 0,
            run_ahead: 0,
            trace_hash: if observer.interest().meets(Interest::HASH) { hash.value() } else { 0 },
            pcpus: Vec::new(),
            domains: scenario
                .domains
                .iter()
                .map(|d| overspin_scenario::DomainOutcome {
                    vcpus: vec![VcpuOutcome::default(); d.vcpus as usize],
                    locks: vec![LockOutcome::default()],
                    ..Default::default()
                })
                .collect(),
            changes: Vec::new(),
            worst_waits: Vec::new(),
            noise: None,
            measurement: None,
        })
    }
}

/// vCPU 0 has the lock and is preempted by vCPU 1, which waits for the lock; then they change
/// places.
fn preempted_holder() -> Vec<Timed> {
    let switch = |prev, why, next| Moment::Switch {
        pcpu: 0,
        prev,
        prev_state: VcpuState::Runnable,
        why,
        next: Some(next),
    };
    let runs = |vcpu| Moment::Runs { vcpu, pcpu: 0 };
    let (lock, contended) = (0, true);
    [
        (0, switch(None, None, 0)),
        (0, runs(0)),
        (1, Moment::LockAcquired { vcpu: 0, lock, contended: false }),
        (2, switch(Some(0), Some(Why::Slice), 1)),
        (3, runs(1)),
        (4, Moment::LockWait { vcpu: 1, lock, holder: Some(0), releasing: false }),
        // Three microseconds of waiting for a holder that is off its pCPU.
        (7, switch(Some(1), Some(Why::Slice), 0)),
        (8, runs(0)),
        (9, Moment::LockReleased { vcpu: 0, lock, contended }),
        (10, Moment::LockFreed { vcpu: 0, lock, contended }),
        (11, switch(Some(0), Some(Why::Yield), 1)),
        // Five during which the waiter was off its own pCPU, which takes precedence over the state
        // of the lock.
        (12, runs(1)),
        // Two until it saw that the lock was free.
        (14, Moment::LockAcquired { vcpu: 1, lock, contended }),
        (15, Moment::LockReleased { vcpu: 1, lock, contended: false }),
        (15, Moment::LockFreed { vcpu: 1, lock, contended: false }),
    ]
    .map(|(at, moment)| Timed { at: at * US, moment })
    .into()
}

fn causes() -> WaitCauses {
    WaitCauses {
        holder_preempted: 3 * US,
        own_preemption: 5 * US,
        line_transfer: 2 * US,
        ..WaitCauses::default()
    }
}

#[test]
fn a_wait_is_told_when_it_ends() {
    let mut attribution = Attribution::new(&scenario());
    let moments = preempted_holder();
    let told = moments.iter().filter_map(|t| Some((t.at, attribution.record(t.at, &t.moment)?)));
    assert_eq!(told.collect::<Vec<_>>(), [(14 * US, causes())]);
}

#[test]
fn any_world_has_its_outcomes_completed() {
    let outcome = run(&Played(preempted_holder()), &scenario(), 1, &mut (), &()).unwrap();
    let domain = &outcome.domains[0];
    assert_eq!(domain.locks[0].wait_causes, causes());
    assert_eq!(
        [domain.vcpus[0].wait_causes, domain.vcpus[1].wait_causes],
        [WaitCauses::default(), causes()]
    );
    // It was on its pCPU for five of the ten microseconds.
    assert_eq!(domain.vcpus[1].waiting, 5 * US);
    let [worst] = outcome.worst_waits.as_slice() else { panic!("{:?}", outcome.worst_waits) };
    assert_eq!((worst.vcpu, worst.holder, worst.time), (1, Some(0), 10 * US));
    let decision = worst.chain[0].decision.expect("the holder was descheduled");
    assert_eq!((decision.at, decision.why), (2 * US, Why::Slice));
    assert_ne!(outcome.trace_hash, 0);
}

#[test]
fn who_does_not_ask_for_the_hash_gets_none() {
    let world = Played(preempted_holder());
    let outcome = World::run(&world, &scenario(), 1, &mut (), &()).unwrap();
    assert_eq!((outcome.trace_hash, outcome.domains[0].vcpus[1].waiting), (0, Picos::ZERO));
}

#[test]
fn two_observers_are_told_the_same_and_nobody_is_told_nothing() {
    let world = Played(preempted_holder());
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let mut both = (&mut one, (None::<Vec<Timed>>, &mut other));
    assert_eq!(both.interest(), Interest::ALL);
    World::run(&world, &scenario(), 1, &mut both, &()).unwrap();
    assert_eq!(one, preempted_holder());
    assert_eq!(one, other);
    assert_eq!(().interest(), Interest::NOTHING);
    assert_eq!(None::<Vec<Timed>>.interest(), Interest::NOTHING);
}

#[test]
fn what_cannot_be_reaches_no_observer() {
    let mut moments = preempted_holder();
    let nobody_has_it = Moment::LockReleased { vcpu: 1, lock: 1, contended: true };
    moments.insert(3, Timed { at: 2 * US, moment: nobody_has_it });
    let mut told: Vec<Timed> = Vec::new();
    run(&Played(moments), &scenario(), 1, &mut told, &()).unwrap();
    assert_eq!(told, preempted_holder());
}

/// The clocks of two CPUs may differ, and then the next section begins before the last one ends.
#[test]
fn a_late_release_is_not_the_release_of_the_next_holder() {
    let lock = 0;
    let wait = |vcpu| Moment::LockWait { vcpu, lock, holder: Some(0), releasing: false };
    let acquired = |vcpu| Moment::LockAcquired { vcpu, lock, contended: true };
    let released = Moment::LockReleased { vcpu: 0, lock, contended: true };
    let mut scenario = scenario();
    scenario.domains[0].vcpus = 3;
    let mut attribution = Attribution::new(&scenario);
    for vcpu in 0..3 {
        attribution.record(Picos::ZERO, &Moment::Runs { vcpu, pcpu: vcpu });
    }
    for (at, moment) in [(1, wait(1)), (1, wait(2)), (2, acquired(1)), (3, released)] {
        assert!(attribution.record(US * at, &moment).is_none_or(|causes| causes.total() == US));
    }
    let causes = attribution.record(9 * US, &acquired(2)).expect("it has waited");
    assert_eq!(causes, WaitCauses { holder_running: 8 * US, ..WaitCauses::default() });
}

/// Moments outside its interest make no difference to attribution.
#[test]
fn attribution_needs_only_what_it_is_interested_in() {
    let moments = preempted_holder();
    let follow = |all: bool| {
        let mut attribution = Attribution::new(&scenario());
        let wanted = |t: &&Timed| all || t.moment.concerns().meets(Attribution::INTEREST);
        moments
            .iter()
            .filter(wanted)
            .filter_map(|t| attribution.record(t.at, &t.moment))
            .collect::<Vec<_>>()
    };
    assert!(moments.iter().any(|t| !t.moment.concerns().meets(Attribution::INTEREST)));
    assert_eq!(follow(true), follow(false));
}

#[test]
fn moments_that_do_not_fit_together_do_no_harm() {
    let mut attribution = Attribution::new(&scenario());
    for moment in [
        Moment::LockFreed { vcpu: 0, lock: 3, contended: true },
        Moment::LockAcquired { vcpu: 1, lock: 3, contended: true },
        Moment::LockAcquired { vcpu: 0, lock: 3, contended: true },
        Moment::Returns { vcpu: 0 },
    ] {
        assert_eq!(attribution.record(US, &moment), None);
    }
}

/// A real machine may tell only later that a vCPU, which already has the lock, runs again. The next wait, for another
/// lock, has nothing of that absence.
#[test]
fn an_absence_that_outlasts_its_wait_is_forgotten() {
    let wait = |vcpu, lock, holder| Moment::LockWait {
        vcpu,
        lock,
        holder: Some(holder),
        releasing: false,
    };
    let leaves = Moment::Switch {
        pcpu: 0,
        prev: Some(1),
        prev_state: VcpuState::Runnable,
        why: Some(Why::Slice),
        next: None,
    };
    let moments = [
        (1, wait(1, 0, 0)),
        (20, leaves),
        (40, Moment::LockAcquired { vcpu: 1, lock: 0, contended: true }),
        (41, wait(0, 1, 1)),
        (43, Moment::Runs { vcpu: 0, pcpu: 1 }),
    ];
    let mut attribution = Attribution::new(&scenario());
    for (at, moment) in moments {
        attribution.record(US * at, &moment);
    }
    let mut outcome = World::run(&Played(Vec::new()), &scenario(), 1, &mut (), &()).unwrap();
    outcome.elapsed = 50 * US;
    attribution.complete(&mut outcome);
    let cut: Vec<Picos> = outcome.worst_waits.iter().map(|w| w.time).collect();
    assert!(cut.contains(&(9 * US)), "the second wait was cut after 9 us: {cut:?}");
}
