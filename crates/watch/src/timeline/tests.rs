use super::*;
use base64::Engine;
use flate2::read::DeflateDecoder;
use overspin_host::{Moment, Observer, Timed, VcpuState};
use overspin_runs::scenario_file;
use overspin_scenario::{DomainOutcome, Ending, LockOutcome, Outcome, Scenario, US};
use overspin_testing::TWO_ON_ONE;
use std::io::Read;

fn scenario() -> Scenario {
    scenario_file::parse("t", "t", TWO_ON_ONE, &[]).unwrap()
}

fn outcome(end: Picos) -> Outcome {
    let lock = LockOutcome { name: "runqueue/0".into(), ..LockOutcome::default() };
    let locks = vec![LockOutcome::default(), lock];
    Outcome {
        seed: 1,
        ending: Ending::Limit,
        elapsed: end,
        warmup: Picos::ZERO,
        progress_step: Picos::ZERO,
        events: 0,
        run_ahead: 0,
        trace_hash: 0,
        pcpus: Vec::new(),
        domains: vec![DomainOutcome { name: "guest".into(), locks, ..DomainOutcome::default() }],
        changes: Vec::new(),
        worst_waits: Vec::new(),
        noise: None,
        measurement: None,
    }
}

fn switch(prev: Option<u32>, why: Option<Why>, next: Option<u32>) -> Moment {
    Moment::Switch { pcpu: 0, prev, prev_state: VcpuState::Runnable, why, next }
}

/// vCPU 0 holds lock 1 and loses its pCPU to vCPU 1, which waits for the lock until vCPU 0 is back.
fn moments() -> Vec<Timed> {
    let wake = |vcpu| Moment::Wake { vcpu, pcpu: None, runnable: true };
    let all = [
        (0, wake(0)),
        (1, switch(None, None, Some(0))),
        (2, wake(1)),
        (3, Moment::LockAcquired { vcpu: 0, lock: 1, contended: false }),
        (5, switch(Some(0), Some(Why::Slice), Some(1))),
        (6, Moment::LockWait { vcpu: 1, lock: 1, holder: Some(0), releasing: false }),
        (7, Moment::Kick { from: 1, to: 0 }),
        (9, switch(Some(1), Some(Why::PauseLoop), Some(0))),
        (10, Moment::LockReleased { vcpu: 0, lock: 1, contended: true }),
        (12, switch(Some(0), Some(Why::Yield), Some(1))),
        (13, Moment::LockAcquired { vcpu: 1, lock: 1, contended: true }),
    ];
    all.into_iter().map(|(at, moment)| Timed { at: at * US, moment }).collect()
}

fn recorded(from: u64, most: usize) -> Timeline {
    let mut recorder = Recorder::new(&scenario(), from * US, most);
    recorder.observe(&moments());
    recorder.finish(&outcome(20 * US))
}

fn slice(start: u64, end: u64, doing: Doing) -> Slice {
    Slice { start: start * US, end: end * US, doing }
}

#[test]
fn slices_are_what_the_moments_say() {
    let t = recorded(0, 1000);
    assert_eq!((t.from, t.until, t.end, t.pcpus), (Picos::ZERO, 20 * US, 20 * US, 1));
    assert_eq!(t.locks, ["guest/runqueue/0"]);
    let [first, second] = &t.vcpus[..] else { panic!("{t:?}") };
    assert_eq!((&*first.name, &*second.name), ("guest/v0", "guest/v1"));
    let states = [
        slice(0, 1, Doing::Off(None)),
        slice(1, 5, Doing::On(0)),
        slice(5, 9, Doing::Off(Some(Why::Slice))),
        slice(9, 12, Doing::On(0)),
        slice(12, 20, Doing::Off(Some(Why::Yield))),
    ];
    assert_eq!(first.states, states);
    assert_eq!(first.locks, [slice(3, 10, Doing::Holds(0))]);
    // What goes on at the end is cut there.
    assert_eq!(second.locks, [slice(6, 13, Doing::Waits(0)), slice(13, 20, Doing::Holds(0))]);
    assert_eq!(t.marks, [Mark { at: 7 * US, vcpu: 1, event: Event::Kick(0) }]);
    assert!(!t.is_cut());
}

#[test]
fn a_wait_at_the_end_has_not_ended() {
    let mut recorder = Recorder::new(&scenario(), Picos::ZERO, 1000);
    recorder.observe(&moments()[..8]);
    let t = recorder.finish(&outcome(20 * US));
    assert_eq!(t.vcpus[1].locks, [slice(6, 20, Doing::StillWaits(0))]);
}

#[test]
fn a_part_begins_and_ends_where_it_says() {
    let t = recorded(8, 1000);
    assert_eq!(t.from, 8 * US);
    // The wait began before the part.
    assert_eq!(t.vcpus[1].locks[0], slice(8, 13, Doing::Waits(0)));
    assert_eq!(t.vcpus[0].states[0], slice(8, 9, Doing::Off(Some(Why::Slice))));
    assert!(t.marks.is_empty() && t.is_cut());

    let t = recorded(0, 4);
    assert!(t.is_cut() && t.until < 20 * US, "{t:?}");
    for slice in t.vcpus.iter().flat_map(|v| v.states.iter().chain(&v.locks)) {
        assert!(slice.end <= t.until && slice.start < slice.end, "{slice:?}");
    }
}

/// The columns of packed data, unpacked as `timeline-data.js` does it.
fn columns(packed: &Packed) -> Vec<Vec<u32>> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(&packed.data).unwrap();
    let mut planes = Vec::new();
    DeflateDecoder::new(&bytes[..]).read_to_end(&mut planes).unwrap();
    let slices: usize = packed.head.rows.iter().sum();
    let mut rest = &planes[..];
    let mut column = |n: usize| {
        let (all, after) = rest.split_at(4 * n);
        rest = after;
        (0..n).map(|i| (0..4).map(|p| u32::from(all[p * n + i]) << (8 * p)).sum()).collect()
    };
    let mut all: Vec<Vec<u32>> = (0..3).map(|_| column(slices)).collect();
    all.extend((0..4).map(|_| column(packed.head.marks)));
    assert!(rest.is_empty());
    all
}

#[test]
fn packed_slices_come_back() {
    let t = recorded(0, 1000);
    let packed = pack(&t, MOST_BYTES);
    assert_eq!((packed.head.quantum_ns, packed.head.length), (1, 20_000));
    assert_eq!(packed.head.rows, [5, 1, 4, 2]);
    let columns = columns(&packed);
    let mut i = 0;
    for row in t.vcpus.iter().flat_map(|v| [&v.states, &v.locks]) {
        let mut last = 0_i64;
        for slice in row {
            let gap = i64::from(columns[0][i] >> 1) ^ -i64::from(columns[0][i] & 1);
            let start = last + gap;
            last = start + i64::from(columns[1][i]);
            assert_eq!((start as u64 * 1000, last as u64 * 1000), (slice.start.0, slice.end.0));
            i += 1;
        }
    }
    assert_eq!(columns[3..].iter().map(|c| c[0]).collect::<Vec<_>>(), [7000, 0, 1, 0]);
}

#[test]
fn what_is_too_large_gets_a_longer_quantum_and_no_error_adds_up() {
    // Lengths that no quantum divides, from a fixed sequence.
    let mut time = Picos::ZERO;
    let mut step = 1_u64;
    let mut lane = Lane { name: "v".into(), ..Lane::default() };
    for _ in 0..20_000 {
        step = step * 1_103_515_245 % 2_147_483_648 + 12_345;
        let end = time + Picos(step % 50_000_000 + 1);
        lane.states.push(Slice { start: time, end, doing: Doing::On(0) });
        time = end;
    }
    let last = lane.states[19_999];
    let t = Timeline { until: time, end: time, pcpus: 1, vcpus: vec![lane], ..Timeline::default() };
    let whole = pack(&t, MOST_BYTES);
    let less = pack(&t, whole.data.len() / 2);
    assert!(less.data.len() <= whole.data.len() / 2, "{} of {}", less.data.len(), whole.data.len());
    assert!(less.head.quantum_ns > whole.head.quantum_ns);
    let lengths: u64 = columns(&less)[1].iter().map(|n| u64::from(*n)).sum();
    let end = lengths * less.head.quantum_ns * 1000;
    assert!(end.abs_diff(last.end.0) <= less.head.quantum_ns * 500, "after 20,000 slices");
}

#[test]
fn a_run_that_is_observed_is_the_same_run() {
    // Two vCPUs that begin together on two pCPUs wait for each other.
    let text = TWO_ON_ONE.replace("cores = 1", "cores = 2\nstagger = \"0\"");
    let all = ["warmup=0".to_owned()];
    let scenario = scenario_file::parse("t", "t", &text, &all).unwrap();
    let mut observers =
        (Recorder::new(&scenario, Picos::ZERO, 10_000), WaitLengths::new(&scenario));
    let world = overspin_runs::catalog::catalog().simulator();
    let outcome = overspin_host::run(world, &scenario, 5, &mut observers, &()).unwrap();
    let alone = overspin_host::run(world, &scenario, 5, &mut (), &()).unwrap();
    assert_eq!(outcome, alone);
    // Every wait that ended with the lock is in a histogram.
    let lock = &outcome.domains[0].locks[0];
    assert_eq!(observers.1.of(0, 0).unwrap().count(), lock.contended);
    let t = observers.0.finish(&outcome);
    for (lane, vcpu) in t.vcpus.iter().zip(&outcome.domains[0].vcpus) {
        let on = lane.states.iter().filter(|s| matches!(s.doing, Doing::On(_)));
        let on = on.map(|s| s.end - s.start).sum::<Picos>();
        // The host counts in whole nanoseconds.
        let error = on.0.abs_diff(vcpu.running.0);
        assert!(error <= 1000 * lane.states.len() as u64, "{}: {on} {}", lane.name, vcpu.running);
    }
}

#[test]
fn tasks_that_take_a_lock_in_user_mode_have_lanes_and_their_waits_count() {
    let text = "limit = \"200ms\"\nwarmup = \"0\"\n[host]\ncores = 1\n[[domain]]\nname = \"program\"\nvcpus = 1\nlock = \"mutex\"\n\
                workload = { kind = \"lock-loop\", threads = 3, mode = \"user\", section = \"50us\", outside = \"50us\" }\n\
                [[domain]]\nname = \"hog\"\nvcpus = 1\nlock = \"ticket\"\nworkload = { kind = \"burn-wait\" }\n";
    let scenario = scenario_file::parse("t", "t", text, &[]).unwrap();
    let mut observers =
        (Recorder::new(&scenario, Picos::ZERO, 100_000), WaitLengths::new(&scenario));
    let world = overspin_runs::catalog::catalog().simulator();
    let outcome = overspin_host::run(world, &scenario, 1, &mut observers, &()).unwrap();
    let lock = &outcome.domains[0].locks[0];
    assert!(lock.contended > 0, "{lock:?}");
    assert_eq!(observers.1.of(0, 0).unwrap().count(), lock.contended);
    let t = observers.0.finish(&outcome);
    let names: Vec<&str> = t.tasks.iter().map(|lane| &*lane.name).collect();
    assert_eq!(names, ["program/loop0", "program/loop1", "program/loop2"]);
    let time = |lanes: &[Lane], of: fn(&Doing) -> bool| -> u64 {
        let slices = lanes.iter().flat_map(|l| l.states.iter().chain(&l.locks));
        slices.filter(|s| of(&s.doing)).map(|s| (s.end - s.start).0).sum()
    };
    let waits = time(&t.tasks, |d| matches!(d, Doing::Waits(_)));
    assert!(waits.abs_diff(lock.wait_total.0) <= 1000 * lock.contended, "{waits} {lock:?}");
    // The only vCPU of the program has one of its tasks on it, but for starts and switches of tasks.
    let on = |d: &Doing| matches!(d, Doing::On(_));
    let (tasks, vcpu) = (time(&t.tasks, on), time(&t.vcpus[..1], on));
    assert!(tasks <= vcpu && tasks > vcpu * 9 / 10, "{tasks} of {vcpu}");
    assert!(time(&t.tasks, |d| *d == Doing::Off(Some(Why::Guest))) > 0, "the guest preempts");
    assert!(time(&t.tasks, |d| *d == Doing::Asleep) > 0, "waiters of a mutex sleep");
}
