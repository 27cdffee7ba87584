//! Attribution of waits, checked in two ways: computed again from the trace, and derived by hand for each
//! cause.

use crate::common::{
    crowd, domain, host, kernbench, lock_loop, run, scenario, tickless, traced, waited,
};
use crate::conservation::{as_a_vcpu, domain_of, number_of_task};
use overspin_host::{Moment, SleepEvent, VcpuState};
use overspin_scenario::{
    Cause, Change, Event, MS, NS, Outcome, PauseLoopExiting, Picos, Scenario, Setting, US, Varying,
    WaitCauses, Why, Workloads,
};
use overspin_workload::{LockLoop, Mode};
use std::collections::HashMap;

/// The state of a vCPU, by the scheduling events of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Runs,
    Sleeps,
    Wakes,
    Wants,
    /// A task whose guest runs another one on its vCPU.
    Preempted,
}

/// Where tasks that take locks in user mode are.
#[derive(Debug, Default)]
struct Tasks {
    /// The task that each vCPU runs, and the vCPU of each of these tasks.
    of_vcpu: HashMap<u32, u32>,
    on: HashMap<u32, u32>,
    /// Those that sleep, or were woken and have not returned.
    asleep: HashMap<u32, Doing>,
}

impl Tasks {
    fn take(&mut self, event: &Moment, domain_of: impl Fn(u32) -> usize) {
        match *event {
            Moment::Task { vcpu, task } => {
                if let Some(before) = self.of_vcpu.remove(&vcpu) {
                    self.on.remove(&before);
                }
                if let Some(task) = task {
                    let task = number_of_task(domain_of(vcpu) as u32, task);
                    self.of_vcpu.insert(vcpu, task);
                    self.on.insert(task, vcpu);
                }
            }
            Moment::TaskSleep { domain, task, what } => {
                let task = number_of_task(domain.into(), task);
                match what {
                    SleepEvent::Begins => self.asleep.insert(task, Doing::Sleeps),
                    SleepEvent::Wakes => self.asleep.insert(task, Doing::Wakes),
                    SleepEvent::Returns => self.asleep.remove(&task),
                };
            }
            _ => {}
        }
    }

    /// What a vCPU or a task does.
    fn doing(&self, vcpus: &[Doing], who: u32) -> Doing {
        match (vcpus.get(who as usize), self.asleep.get(&who), self.on.get(&who)) {
            (Some(doing), ..) | (_, Some(doing), _) => *doing,
            (.., Some(vcpu)) => vcpus[*vcpu as usize],
            (.., None) => Doing::Preempted,
        }
    }
}

/// Changes of the vCPUs' states, in order of time. A vCPU runs when the switch to it is complete.
fn changes(scenario: &Scenario, trace: &[(Picos, Moment)]) -> Vec<(Picos, u32, Doing)> {
    let vcpus = scenario.domains.iter().map(|d| d.vcpus as usize).sum();
    let mut woken = vec![None; vcpus];
    let mut on = vec![false; vcpus];
    let mut runs = vec![None; vcpus];
    let mut changes = Vec::new();
    for (at, event) in trace {
        match *event {
            Moment::Switch { prev, prev_state, next, why, .. } => {
                if let Some(v) = prev {
                    on[v as usize] = false;
                    let doing = match prev_state {
                        VcpuState::Blocked => Doing::Sleeps,
                        // It wanted to sleep, and a wake-up came before it had left.
                        _ if woken[v as usize] == Some(*at) => Doing::Wakes,
                        _ => Doing::Wants,
                    };
                    changes.push((*at, v, doing));
                }
                if let Some(v) = next {
                    on[v as usize] = true;
                    let costs = &scenario.host.costs;
                    let forced = match why {
                        None | Some(Why::Yield | Why::PauseLoop) => Picos::ZERO.into(),
                        Some(_) => costs.preemption,
                    };
                    runs[v as usize] = match (costs.context_switch, forced) {
                        (Varying::Always(switch), Varying::Always(forced)) => {
                            Some(*at + switch + forced)
                        }
                        _ => None,
                    };
                }
            }
            Moment::Runs { vcpu, .. } => {
                let expected = runs[vcpu as usize].unwrap_or(*at);
                assert_eq!(*at, expected, "when vCPU {vcpu} has been switched to");
                changes.push((*at, vcpu, Doing::Runs));
            }
            Moment::Wake { vcpu, runnable: true, .. } => {
                woken[vcpu as usize] = Some(*at);
                if !on[vcpu as usize] {
                    changes.push((*at, vcpu, Doing::Wakes));
                }
            }
            _ => {}
        }
    }
    changes.sort_by_key(|c| c.0);
    changes
}

/// When a cap begins and ceases to keep each vCPU from running.
fn throttles(trace: &[(Picos, Moment)]) -> Vec<(Picos, u32, bool)> {
    let of = |(at, moment): &(Picos, Moment)| match *moment {
        Moment::Throttle { vcpu, on } => Some((*at, vcpu, on)),
        _ => None,
    };
    trace.iter().filter_map(of).collect()
}

/// Walks through the trace, charges the time between two moments to a cause for each open wait, by the
/// table in `docs/attribution.md`, and compares the sums with the simulator's own.
pub fn check_causes(scenario: &Scenario, trace: &[(Picos, Moment)]) {
    let all_waited = waited(scenario, trace);
    let scenario = &overspin_workload::with_noise(scenario);
    let vcpus: usize = scenario.domains.iter().map(|d| d.vcpus as usize).sum();
    let domains: Vec<usize> =
        (0..).zip(&scenario.domains).flat_map(|(i, d)| vec![i; d.vcpus as usize]).collect();
    let domain_of = |who: u32| domain_of(&domains, who);
    type Lock = (usize, u32);
    // The vCPUs that take each lock, from the last to the first.
    let mut takers: HashMap<Lock, Vec<u32>> = HashMap::new();
    for (_, event) in trace.iter().rev() {
        if let Moment::LockAcquired { vcpu, lock, .. } = as_a_vcpu(event) {
            takers.entry((domain_of(vcpu), lock)).or_default().push(vcpu);
        }
    }
    let mut changes = changes(scenario, trace).into_iter().peekable();
    let mut throttles = throttles(trace).into_iter().peekable();
    let mut throttled = vec![false; vcpus];
    let mut of_vcpus = vec![Doing::Wants; vcpus];
    let mut tasks = Tasks::default();
    // The holder of each lock, with `true` while it is releasing the lock.
    let mut holders: HashMap<Lock, (u32, bool)> = HashMap::new();
    // The waiters of each lock, in order of arrival.
    let mut waits: HashMap<Lock, Vec<(u32, [Picos; Cause::ALL.len()])>> = HashMap::new();
    let mut last = Picos::ZERO;
    let mut checked = 0;
    for ((at, event), waited) in trace.iter().zip(all_waited.iter().copied()) {
        loop {
            let to = changes.peek().map_or(*at, |c| c.0.min(*at));
            let to = throttles.peek().map_or(to, |t| t.0.min(to));
            for (lock, waits) in &mut waits {
                // A vCPU that is releasing the lock counts as holder only while it is descheduled.
                let doing = |who: u32| tasks.doing(&of_vcpus, who);
                // A task is where its vCPU is.
                let is_throttled = |who: u32| match throttled.get(who as usize) {
                    Some(is) => *is,
                    None => tasks.on.get(&who).is_some_and(|v| throttled[*v as usize]),
                };
                let away =
                    |who| matches!(doing(who), Doing::Wants | Doing::Wakes | Doing::Preempted);
                let holder = holders.get(lock).filter(|h| !h.1 || away(h.0)).map(|h| h.0);
                let next = takers[lock].last().copied();
                let front = match next {
                    Some(v) if waits.iter().any(|w| w.0 == v) => v,
                    _ => waits.first().map_or(0, |w| w.0),
                };
                for (v, times) in waits {
                    let cause = match (doing(*v), holder) {
                        (Doing::Wants | Doing::Preempted, _) => Cause::OwnPreemption,
                        (Doing::Wakes, _) => Cause::KickWake,
                        (_, Some(h)) => match doing(h) {
                            Doing::Preempted => Cause::HolderPreemptedByGuest,
                            Doing::Wants | Doing::Wakes if is_throttled(h) => {
                                Cause::HolderThrottled
                            }
                            Doing::Wants | Doing::Wakes => Cause::HolderPreempted,
                            Doing::Runs | Doing::Sleeps => Cause::HolderRunning,
                        },
                        (_, None) => match doing(front) {
                            Doing::Wants | Doing::Wakes if is_throttled(front) => {
                                Cause::NextThrottled
                            }
                            Doing::Preempted => Cause::NextPreemptedByGuest,
                            Doing::Wants => Cause::NextPreempted,
                            Doing::Wakes | Doing::Sleeps => Cause::KickWake,
                            Doing::Runs => Cause::LineTransfer,
                        },
                    };
                    times[cause as usize] += to - last;
                }
            }
            last = to;
            if let Some((_, v, new)) = throttles.next_if(|t| t.0 <= to) {
                throttled[v as usize] = new;
                continue;
            }
            match changes.next_if(|c| c.0 <= *at) {
                Some((_, v, new)) => of_vcpus[v as usize] = new,
                None => break,
            }
        }
        tasks.take(event, domain_of);
        match as_a_vcpu(event) {
            Moment::LockWait { vcpu, lock, .. } => {
                let lock = (domain_of(vcpu), lock);
                takers.entry(lock).or_default();
                waits.entry(lock).or_default().push((vcpu, [Picos::ZERO; Cause::ALL.len()]));
            }
            Moment::LockAcquired { vcpu, lock, .. } => {
                let lock = (domain_of(vcpu), lock);
                takers.get_mut(&lock).unwrap().pop();
                holders.insert(lock, (vcpu, false));
                if let Some(causes) = waited {
                    let waits = waits.get_mut(&lock).unwrap();
                    let i = waits.iter().position(|w| w.0 == vcpu).unwrap();
                    let (_, told) = waits.remove(i);
                    assert_eq!(causes, told.into(), "wait of {vcpu} for {lock:?} until {at}");
                    checked += 1;
                }
            }
            Moment::LockReleased { vcpu, lock, .. } => {
                holders.insert((domain_of(vcpu), lock), (vcpu, true));
            }
            Moment::LockFreed { vcpu, lock, .. } => {
                let lock = (domain_of(vcpu), lock);
                if holders.get(&lock) == Some(&(vcpu, true)) {
                    holders.remove(&lock);
                }
            }
            _ => {}
        }
    }
    assert_eq!(checked, all_waited.iter().flatten().count());
}

/// Checks that sums, chains and worst waits of an outcome agree with each other.
pub fn check_outcome(scenario: &Scenario, outcome: &Outcome) {
    for (asked, d) in scenario.domains.iter().zip(&outcome.domains) {
        for l in &d.locks {
            assert_eq!(l.wait_causes.total(), l.wait_total, "{}", l.name);
        }
        // The first locks are those of tasks, if they take them in user mode.
        let loops = asked.workload.get::<LockLoop>().filter(|w| w.mode == Mode::User);
        let of_tasks = loops.map_or(0, |w| w.locks as usize);
        let locks = WaitCauses::sum(d.locks[of_tasks..].iter().map(|l| &l.wait_causes));
        let vcpus = WaitCauses::sum(d.vcpus.iter().map(|v| &v.wait_causes));
        assert_eq!(vcpus, locks, "each wait is one vCPU's and one lock's");
    }
    let worst = &outcome.worst_waits;
    assert!(worst.len() <= 10 && worst.is_sorted_by(|a, b| a.time >= b.time));
    for w in worst {
        assert_eq!(w.causes.total(), w.time);
        let end = w.chain.iter().fold(w.since, |at, link| {
            assert_eq!(link.since, at, "a chain has no gaps: {w:?}");
            assert_eq!(link.cause.is_some(), link.vcpu.is_some());
            assert!(
                link.unlisted <= link.time
                    && (link.unlisted == Picos::ZERO || link.cause.is_none())
            );
            at + link.time
        });
        assert_eq!(end, w.since + w.time);
        assert_eq!(w.chain.iter().map(|l| l.acquisitions).sum::<u64>(), w.acquisitions);
        for cause in Cause::ALL {
            let listed = w.chain.iter().filter(|l| l.cause == Some(cause));
            let listed: Picos = listed.map(|l| l.time).sum();
            assert!(listed <= w.causes.of(cause), "{cause:?}: {w:?}");
        }
    }
    let finished = worst.iter().filter(|w| w.finished).map(|w| w.time).max();
    let longest = outcome.domains.iter().flat_map(|d| &d.locks).map(|l| l.wait_max).max();
    if let Some(longest) = finished.or(longest.filter(|_| worst.len() < 10)) {
        assert_eq!(
            Some(longest),
            outcome.domains.iter().flat_map(|d| &d.locks).map(|l| l.wait_max).max()
        );
    }
}

#[test]
fn causes_are_those_that_the_trace_tells_for_every_lock() {
    for lock in overspin_locks::infos() {
        for (scheduler, pcpus) in [("credit-2008", 2), ("credit2", 3), ("rr", 1)] {
            let work = Workloads::from(lock_loop(5 * US, 20 * US));
            let hog = domain(1, "ticket", crate::common::hog());
            let domains = vec![domain(4, lock.name, work), hog];
            let scenario = scenario(host(pcpus, scheduler), domains, 150 * MS);
            let (outcome, trace) = traced(&scenario, 1);
            check_causes(&scenario, &trace);
            check_outcome(&scenario, &outcome);
        }
    }
}

/// Three vCPUs under a cap and, with `cfs` and `eevdf`, one beside it share a lock. In user mode its holders are tasks.
#[test]
fn causes_tell_a_throttled_holder_from_a_preempted_one() {
    for scheduler in ["credit", "credit2", "cfs", "eevdf", "eevdf-6.18"] {
        // credit and credit2 may stop a domain's vCPUs together.
        let apart = !scheduler.starts_with("credit");
        let mut behind = Picos::ZERO;
        for (lock, mode) in
            [("ticket", Mode::Kernel), ("ttas", Mode::Kernel), ("futex", Mode::User)]
        {
            let work = LockLoop { mode, irqs_off: false, ..lock_loop(200 * US, 100 * US) };
            let mut guest = domain(4, lock, Workloads::from(work));
            guest.cap = 120;
            if scheduler.starts_with('c') && scheduler != "cfs" {
                guest.cap = 70;
            } else {
                guest.params.insert("capped_vcpus".into(), Setting::Number(3));
            }
            let hog = domain(1, "ticket", crate::common::hog());
            let scenario = scenario(host(3, scheduler), vec![guest, hog], 600 * MS);
            let (outcome, trace) = traced(&scenario, 1);
            check_causes(&scenario, &trace);
            check_outcome(&scenario, &outcome);
            let causes = outcome.domains[0].locks[0].wait_causes;
            behind += causes.holder_throttled + causes.next_throttled;
            assert_eq!(outcome.domains[0].throttling.is_some(), apart, "{scheduler}");
        }
        assert!(
            !apart || behind > Picos::ZERO,
            "{scheduler}: nobody waited behind a throttled one"
        );
    }
}

#[test]
fn causes_are_those_that_the_trace_tells_of_a_kernel() {
    for lock in ["ticket", "lock-byte", "xen-pv", "pv-ticket", "pv-qspinlock", "futex"] {
        let mut scenario = scenario(
            host(2, "credit"),
            vec![domain(4, lock, kernbench(6, 8)), domain(2, lock, kernbench(2, 4))],
            400 * MS,
        );
        scenario.host.pause_loop_exiting = Some(PauseLoopExiting::default());
        let (outcome, trace) = traced(&scenario, 3);
        check_causes(&scenario, &trace);
        check_outcome(&scenario, &outcome);
    }
}

/// vCPUs that want nothing but one ticket lock, in sections of `section`. Each has a pCPU; there are no ticks.
fn queue(vcpus: u32, section: Picos, events: Vec<Event>) -> Scenario {
    let work = LockLoop { fixed: true, ..lock_loop(section, Picos::ZERO) };
    let guest = tickless(vcpus, "ticket", work);
    Scenario { events, ..scenario(host(vcpus, "null"), vec![guest], 60 * MS) }
}

/// A wait, as the trace shows it.
#[derive(Clone, Copy, Debug)]
struct TracedWait {
    vcpu: u32,
    since: Picos,
    until: Picos,
    causes: WaitCauses,
}

fn waits(scenario: &Scenario, trace: &[(Picos, Moment)]) -> Vec<TracedWait> {
    let mut since = HashMap::new();
    let mut waits = Vec::new();
    for ((at, event), causes) in trace.iter().zip(waited(scenario, trace)) {
        match *event {
            Moment::LockWait { vcpu, lock: 0, .. } => {
                since.insert(vcpu, *at);
            }
            Moment::LockAcquired { vcpu, lock: 0, .. } => {
                waits.extend(causes.map(|causes| {
                    let since = since[&vcpu];
                    TracedWait { vcpu, since, until: *at, causes }
                }));
            }
            _ => {}
        }
    }
    waits
}

/// Acquisitions (`true`) and releases of lock 0: time and vCPU.
fn holds(trace: &[(Picos, Moment)]) -> Vec<(Picos, u32, bool)> {
    trace
        .iter()
        .filter_map(|(at, event)| match *event {
            Moment::LockAcquired { vcpu, lock: 0, .. } => Some((*at, vcpu, true)),
            Moment::LockReleased { vcpu, lock: 0, .. } => Some((*at, vcpu, false)),
            _ => None,
        })
        .collect()
}

#[test]
fn undisturbed_waiters_wait_for_the_section_and_the_line() {
    let scenario = queue(2, 5 * US, Vec::new());
    let (outcome, trace) = traced(&scenario, 1);
    let waits = &waits(&scenario, &trace)[20..];
    assert!(waits.len() > 1000);
    // By the closed forms of this lock (`closed_forms.rs`): 128 ns after this vCPU's release the other
    // vCPU has the lock, for 5 us. This vCPU fails to get it 211 ns after its release, and has it 128 ns
    // after the other's release.
    for w in waits {
        let expected = WaitCauses {
            holder_running: 5 * US + 128 * NS - 211 * NS,
            line_transfer: 128 * NS,
            ..WaitCauses::default()
        };
        assert_eq!(w.causes, expected, "{w:?}");
    }
    for w in &outcome.worst_waits {
        assert_eq!(w.chain.len(), 1, "no vCPU was away: {w:?}");
    }
}

/// Pauses one vCPU of [`queue`], with sections of 1 ms, for 10 ms in the middle of a section. `whom`
/// chooses the vCPU from the order in which the vCPUs have the lock from then on.
fn paused(whom: impl Fn(&[u32]) -> u32) -> (Outcome, Vec<(Picos, Moment)>, [u32; 3]) {
    let (_, before) = traced(&queue(3, MS, Vec::new()), 1);
    // First come, first served: the order of the next holders does not depend on the pause.
    let holds = holds(&before);
    let now = holds.iter().rposition(|(at, _, got)| *got && *at < PAUSED_AT).unwrap();
    let order: Vec<u32> = holds[now..].iter().filter(|h| h.2).take(3).map(|h| h.1).collect();
    assert!(holds[now].0 + 100 * US < PAUSED_AT && PAUSED_AT + 100 * US < holds[now + 1].0);
    let vcpu = Some(whom(&order));
    let event = |at, change| Event { at, change };
    let (outcome, trace) = traced(
        &queue(
            3,
            MS,
            vec![
                event(PAUSED_AT, Change::Pause { domain: 0, vcpu }),
                event(PAUSED_AT + 10 * MS, Change::Unpause { domain: 0, vcpu }),
            ],
        ),
        1,
    );
    (outcome, trace, order.try_into().unwrap())
}

/// The paused vCPU leaves one interprocessor interrupt (1 us) after the pause begins. It runs again one
/// interprocessor interrupt and one switch (2 us) after the pause ends.
const AWAY: Picos = Picos::us(10_002);
const PAUSED_AT: Picos = Picos::us(20_500);
const LEAVES: Picos = Picos::us(20_501);

/// The waits that were under way when the vCPU left.
fn under_way(trace: &[(Picos, Moment)]) -> Vec<TracedWait> {
    let scenario = queue(3, MS, Vec::new());
    waits(&scenario, trace).into_iter().filter(|w| w.since < LEAVES && LEAVES < w.until).collect()
}

#[test]
fn who_waits_for_a_paused_holder_waits_for_just_that_long() {
    let (outcome, trace, [holder, ..]) = paused(|order| order[0]);
    let waits = under_way(&trace);
    assert_eq!(waits.len(), 2);
    for w in &waits {
        assert_eq!(w.causes.holder_preempted, AWAY);
        assert_eq!(
            (w.causes.next_preempted, w.causes.own_preemption, w.causes.kick_wake),
            (Picos::ZERO, Picos::ZERO, Picos::ZERO)
        );
    }
    // The chain: the holder ran, was away by that decision, and went on.
    let worst = &outcome.worst_waits[0];
    assert_eq!(worst.time, waits.iter().map(|w| w.until - w.since).max().unwrap());
    let away = worst.chain[1];
    assert_eq!((away.since, away.time, away.vcpu), (LEAVES, AWAY, Some(holder)));
    assert_eq!(away.cause, Some(Cause::HolderPreempted));
    let decision = away.decision.unwrap();
    assert_eq!((decision.at, decision.why, decision.by), (LEAVES, Why::Paused, None));
    assert_eq!(worst.chain.len(), 3);
}

#[test]
fn who_waits_behind_a_paused_waiter_waits_from_the_release_on() {
    let (outcome, trace, [holder, next, last]) = paused(|order| order[1]);
    let waits = under_way(&trace);
    let released = holds(&trace).iter().find(|h| h.0 > LEAVES).copied().unwrap();
    assert_eq!((released.1, released.2), (holder, false));
    let of = |vcpu| waits.iter().find(|w| w.vcpu == vcpu).unwrap();
    // The free lock is kept for the paused waiter.
    assert_eq!(of(last).causes.next_preempted, LEAVES + AWAY - released.0);
    assert_eq!(
        (of(last).causes.own_preemption, of(last).causes.holder_preempted),
        (Picos::ZERO, Picos::ZERO)
    );
    // For the paused waiter itself it does not matter whether the lock is free.
    assert_eq!(of(next).causes.own_preemption, AWAY);
    assert_eq!(
        (of(next).causes.next_preempted, of(next).causes.holder_preempted),
        (Picos::ZERO, Picos::ZERO)
    );
    assert!(outcome.worst_waits.iter().any(|w| {
        let link = |l: &overspin_scenario::Link| {
            (l.cause, l.vcpu) == (Some(Cause::NextPreempted), Some(next)) && l.acquisitions == 0
        };
        w.vcpu == last && w.chain.iter().any(link)
    }));
}

#[test]
fn who_is_paused_in_the_middle_of_a_release_holds_the_lock_still() {
    let holds = holds(&traced(&queue(2, MS, Vec::new()), 1).1);
    let (released, vcpu, _) = *holds.iter().find(|h| !h.2 && h.0 > 20 * MS).unwrap();
    // A release takes 68 ns (`closed_forms.rs`); an interprocessor interrupt arrives after 1 us.
    let pause_at = released + 30 * NS - US;
    let vcpu = Some(vcpu);
    let events = vec![
        Event { at: pause_at, change: Change::Pause { domain: 0, vcpu } },
        Event { at: pause_at + 10 * MS, change: Change::Unpause { domain: 0, vcpu } },
    ];
    let scenario = queue(2, MS, events);
    let (_, trace) = traced(&scenario, 1);
    let wait = waits(&scenario, &trace)
        .into_iter()
        .find(|w| w.since < released && released < w.until)
        .unwrap();
    let expected = WaitCauses {
        holder_running: released - wait.since,
        holder_preempted: AWAY,
        line_transfer: 128 * NS,
        ..WaitCauses::default()
    };
    assert_eq!(wait.causes, expected);
}

#[test]
fn a_sleeping_waiter_waits_from_the_release_to_its_dispatch_for_the_kick() {
    // The time outside is so long that the sleeper gets the lock before the other vCPU wants it again.
    let work = LockLoop { fixed: true, ..lock_loop(MS, 100 * US) };
    let guest = tickless(2, "xen-pv", work);
    let scenario = scenario(host(2, "null"), vec![guest], 60 * MS);
    let (_, trace) = traced(&scenario, 1);
    let kicks: Vec<(Picos, u32)> = trace
        .iter()
        .filter_map(|(at, e)| match *e {
            Moment::Kick { to, .. } => Some((*at, to)),
            _ => None,
        })
        .collect();
    let mut slept = 0;
    for w in &waits(&scenario, &trace)[2..] {
        let Some(kick) = kicks.iter().find(|k| k.1 == w.vcpu && w.since < k.0 && k.0 < w.until)
        else {
            continue;
        };
        slept += 1;
        let holds = holds(&trace);
        let released = holds.iter().rfind(|h| !h.2 && h.0 < w.until).unwrap().0;
        // The kick takes effect when the hypercall is done. An interprocessor interrupt (1 us) tells the
        // sleeper's pCPU, which then switches to the sleeper (2 us).
        let runs = kick.0 + 3 * US;
        assert_eq!(w.causes.holder_running, released - w.since, "{w:?}");
        assert_eq!(w.causes.kick_wake, runs - released, "{w:?}");
        assert_eq!(w.causes.line_transfer, w.until - runs, "{w:?}");
    }
    assert!(slept > 10, "{slept}");
}

#[test]
fn the_end_of_a_slice_is_told_with_who_came() {
    // Two vCPUs take turns on a pCPU: a waiter has not run since the other vCPU was dispatched.
    let work = LockLoop { fixed: true, ..lock_loop(2 * MS, Picos::ZERO) };
    let guest = tickless(2, "ticket", work);
    let scenario = scenario(host(1, "rr"), vec![guest], 2000 * MS);
    let outcome = run(&scenario, 1);
    check_outcome(&scenario, &outcome);
    assert_eq!(outcome.worst_waits.len(), 10);
    for w in &outcome.worst_waits {
        let away: Vec<_> = w.chain.iter().filter(|l| l.cause.is_some()).collect();
        assert!(!away.is_empty());
        for link in away {
            let d = link.decision.expect("no vCPU sleeps");
            assert_eq!((d.why, d.pcpu), (Why::Slice, 0));
            assert_eq!(d.by.map(|v| v.vcpu), link.vcpu.map(|v| 1 - v));
        }
    }
}

#[test]
fn reasons_are_told_apart() {
    let reasons = |scenario: &Scenario| -> Vec<Why> {
        let outcome = run(scenario, 1);
        let links = outcome.worst_waits.iter().flat_map(|w| &w.chain);
        links.filter_map(|l| l.decision.map(|d| d.why)).collect()
    };
    let mut capped = crowd("ticket", 4, 500 * MS);
    capped.domains[0].cap = 50;
    assert!(reasons(&capped).contains(&Why::Parked));
    let mut exits = crowd("ticket", 2, 500 * MS);
    exits.host.pause_loop_exiting = Some(PauseLoopExiting::default());
    assert!(reasons(&exits).contains(&Why::PauseLoop));
    // A vCPU that wakes often preempts by boost.
    let mut woken = crowd("ticket", 2, 500 * MS);
    let wakes = overspin_workload::BurnWait { burn: 100 * US, wait: MS, ..Default::default() };
    woken.domains.push(domain(1, "ticket", wakes));
    assert!(reasons(&woken).contains(&Why::Wake));
}
