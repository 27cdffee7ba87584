use super::*;
use overspin_host::{Moment, Observer, Timed};
use overspin_runs::scenario_file;
use overspin_scenario::{Outcome, Scenario, US};
use overspin_testing::TWO_ON_ONE;

fn scenario() -> Scenario {
    scenario_file::parse("t", "t", TWO_ON_ONE, &[]).unwrap()
}

/// The frames of these moments, each `interval` long.
fn frames(moments: &[(Picos, Moment)], interval: Picos, end: Picos) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut meter = Meter::new(&scenario(), move || interval, |frame| frames.push(frame));
    for (at, moment) in moments {
        meter.observe(&[Timed { at: *at, moment: *moment }]);
    }
    meter.finish(end);
    frames
}

fn switch(prev: Option<u32>, prev_state: VcpuState, next: Option<u32>) -> Moment {
    Moment::Switch { pcpu: 0, prev, prev_state, why: None, next }
}

#[test]
fn an_interval_has_its_own_times_and_no_others() {
    let frames = frames(
        &[
            (Picos::ZERO, switch(None, VcpuState::Runnable, Some(0))),
            (2 * US, Moment::LockAcquired { vcpu: 0, lock: 0, contended: false }),
            (4 * US, Moment::Wake { vcpu: 1, pcpu: None, runnable: true }),
            (6 * US, switch(Some(0), VcpuState::Runnable, Some(1))),
            (7 * US, Moment::LockWait { vcpu: 1, lock: 0, holder: Some(0), releasing: false }),
            (12 * US, switch(Some(1), VcpuState::Blocked, Some(0))),
            (13 * US, Moment::LockReleased { vcpu: 0, lock: 0, contended: true }),
            (14 * US, Moment::LockAcquired { vcpu: 1, lock: 0, contended: true }),
        ],
        10 * US,
        15 * US,
    );
    assert_eq!(frames.len(), 2);
    let (first, second) = (&frames[0], &frames[1]);
    assert_eq!((first.from, first.until, second.until), (Picos::ZERO, 10 * US, 15 * US));
    let spent = |frame: &Frame, v: usize| frame.vcpus[v].spent;
    assert_eq!(
        spent(first, 0),
        Spent { running: 6 * US, runnable: 4 * US, ..Spent::default() },
        "it left its pCPU at 6 us"
    );
    assert_eq!(
        spent(first, 1),
        Spent {
            offline: 4 * US,
            runnable: 2 * US,
            running: 4 * US,
            spinning: 3 * US,
            ..Spent::default()
        },
        "it spun from 7 us on"
    );
    assert_eq!(
        (first.vcpus[1].waits_for.as_deref(), first.locks[0].waiters),
        (Some("guest/section"), 1)
    );
    assert_eq!(first.locks[0].holder.as_deref(), Some("guest/v0"));
    assert_eq!(
        spent(second, 1),
        Spent { running: 2 * US, spinning: 2 * US, blocked: 3 * US, ..Spent::default() }
    );
    let lock = &second.locks[0];
    assert_eq!((lock.acquisitions, lock.waits, lock.waited, lock.longest), (1, 1, 7 * US, 7 * US));
    assert_eq!((first.pcpus[0].busy, first.pcpus[0].switches), (10 * US, 2));
}

#[test]
fn frames_of_a_run_add_up_to_its_outcome() {
    // Frames show everything, so everything must count.
    let (limit, warmup) = (Picos::ms(50), Some(Picos::ZERO));
    let scenario = Scenario { limit, warmup, ..scenario() };
    let run = |interval: Picos| -> (Vec<Frame>, Outcome) {
        let mut frames = Vec::new();
        let mut meter = Meter::new(&scenario, move || interval, |frame| frames.push(frame));
        let outcome =
            overspin_host::run(&overspin_sim::Simulator::new(), &scenario, 1, &mut meter, &())
                .unwrap();
        meter.finish(outcome.elapsed);
        (frames, outcome)
    };
    let (frames, outcome) = run(Picos::ms(7));
    assert_eq!(frames.len(), 8);
    let domain = &outcome.domains[0];
    for (v, of) in domain.vcpus.iter().enumerate() {
        let sum = |part: fn(&Spent) -> Picos| {
            frames.iter().map(|f| part(&f.vcpus[v].spent)).sum::<Picos>()
        };
        // The hypervisor counts in whole nanoseconds, at each change.
        let slack = 1_000 * (2 * of.dispatches + 2);
        assert!(sum(|s| s.running).0.abs_diff(of.running.0) <= slack, "v{v}: {of:?}");
        // No moment says when a vCPU comes up: until it runs for the first time it counts as offline.
        let off = sum(|s| s.runnable) + sum(|s| s.offline);
        assert!(off.0.abs_diff((of.runnable + of.offline).0) <= slack, "v{v}: {of:?}");
    }
    let acquisitions: u64 = frames.iter().map(|f| f.domains[0].acquisitions).sum();
    assert_eq!(acquisitions, domain.locks.iter().map(|l| l.acquisitions).sum::<u64>());
    let waited: Picos = frames.iter().map(|f| f.domains[0].waited).sum();
    assert_eq!(waited, domain.locks.iter().map(|l| l.wait_total).sum::<Picos>());
    // A frame of the whole run has the same sums.
    let (whole, _) = run(scenario.limit);
    assert_eq!(whole.len(), 1);
    assert_eq!(whole[0].domains[0].acquisitions, acquisitions);
}

#[test]
fn text_names_what_there_is() {
    let (frame, room) = (
        frames(&[(Picos::ZERO, switch(None, VcpuState::Runnable, Some(0)))], US, US).remove(0),
        Room { vcpus: 1, locks: 4 },
    );
    let text = overspin_report::text(&report(&frame, room));
    for words in ["0: guest/v0 100.0 %", "guest/v0", "and 1 more vCPUs", "running"] {
        assert!(text.contains(words), "{text}");
    }
}
