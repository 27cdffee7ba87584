//! Nothing is lost: times add up, and the trace agrees with the outcome.

use crate::common::{
    crowd, domain, host, kernbench, lock_loop, run, scenario, tickless, traced, waited,
};
use overspin_host::{LockEvent, Moment, VcpuState};
use overspin_scenario::{Domain, Ending, Host, MS, NS, Outcome, Picos, SEC, Scenario, Setting, US};
use overspin_workload::LockLoop;
use std::collections::HashMap;

fn cases() -> Vec<Scenario> {
    let mixed = vec![
        Domain { name: "compiles".into(), ..domain(3, "lock-byte", kernbench(4, 6)) },
        Domain { name: "loops".into(), cap: 40, ..domain(2, "xen-pv", lock_loop(3 * US, 20 * US)) },
    ];
    vec![
        crowd("ticket", 4, 20 * MS),
        crowd("lock-byte", 2, 100 * MS),
        crowd("xen-pv", 2, 100 * MS),
        crowd("mcs-tp", 3, 50 * MS),
        scenario(host(2, "credit"), mixed.clone(), 10 * SEC),
        scenario(host(3, "rr"), mixed.clone(), 10 * SEC),
        scenario(host_of_threads(), mixed, 10 * SEC),
    ]
}

/// Two cores of two threads under credit2, which pays for progress and gives space back.
fn host_of_threads() -> Host {
    let params = [
        ("runqueue", Setting::Word("core".into())),
        ("smt_charge", Setting::Number(650)),
        ("smt_space", Setting::Flag(true)),
    ];
    let params = params.map(|(key, value)| (key.to_owned(), value)).into();
    Host { threads: 2, params, ..host(2, "credit2") }
}

/// Checks that times of vCPUs and pCPUs add up to the elapsed time, and that no part exceeds its whole.
pub fn check_times(outcome: &Outcome) {
    // The hypervisor's clock counts whole nanoseconds, so a vCPU's running time is off by up to 1 ns for
    // each dispatch.
    let elapsed = outcome.elapsed / NS * NS;
    let mut running = outcome.noise.map_or(Picos::ZERO, |noise| noise.running);
    for v in outcome.domains.iter().flat_map(|d| &d.vcpus) {
        assert_eq!(v.running + v.runnable + v.blocked + v.offline, elapsed);
        assert!(v.spinning <= v.running + NS * v.dispatches, "spins only while it runs: {v:?}");
        assert!(v.waiting <= v.running + NS * v.dispatches, "waits on its pCPU: {v:?}");
        running += v.running;
    }
    for l in outcome.domains.iter().flat_map(|d| &d.locks) {
        assert!(l.wait_p999 <= l.wait_max, "a part is not more than the whole: {l:?}");
    }
    let mut occupied = Picos::ZERO;
    for p in &outcome.pcpus {
        assert_eq!(p.busy + p.switching + p.idle, outcome.elapsed);
        occupied += p.busy + p.switching;
    }
    // A pCPU is occupied while a vCPU runs on it, from the pass that chose the vCPU. Both sides count the
    // same time, except for the fractions of nanoseconds at the ends of each dispatch.
    let dispatches: u64 = outcome.pcpus.iter().map(|p| p.switches + 1).sum();
    let off = occupied.abs_diff(running);
    assert!(off <= dispatches * NS, "pCPUs {occupied}, vCPUs {running}");
    for d in &outcome.domains {
        let tasks: Picos = d.tasks.iter().map(|t| t.cpu).sum();
        let running: Picos = d.vcpus.iter().map(|v| v.running + NS * v.dispatches).sum();
        assert!(tasks <= running, "tasks run on vCPUs that run: {tasks}, {running}");
    }
}

#[test]
fn times_add_up() {
    for scenario in cases() {
        check_times(&run(&scenario, 1));
    }
}

/// Sums of a vCPU from the scheduling events of a trace.
#[derive(Default)]
struct Seen {
    times: [Picos; 4],
    dispatches: u64,
    migrations: u64,
    pcpu: Option<u32>,
}

/// Checks that moments come in order of time, and that scheduling events agree with the outcome.
pub fn check_scheduling(outcome: &Outcome, trace: &[(Picos, Moment)]) {
    assert!(trace.is_sorted_by_key(|(at, _)| at));
    let vcpus: Vec<_> = outcome.domains.iter().flat_map(|d| &d.vcpus).collect();
    // vCPUs of the host's noise follow the others: at most one for each pCPU, or six in each pool.
    let all = vcpus.len() + outcome.pcpus.len() + 24;
    let mut state = vec![(Picos::ZERO, VcpuState::Offline); all];
    let mut seen: Vec<Seen> = (0..all).map(|_| Seen::default()).collect();
    let mut on = vec![None; outcome.pcpus.len()];
    let mut switches = vec![0; outcome.pcpus.len()];
    let mut enter = |seen: &mut Seen, v: u32, at: Picos, new: VcpuState| {
        // The clock of the states counts whole nanoseconds.
        let at = at / NS * NS;
        let (since, old) = std::mem::replace(&mut state[v as usize], (at, new));
        seen.times[old as usize] += at - since;
    };
    for (at, event) in trace {
        match *event {
            Moment::Switch { pcpu, prev, prev_state, next, .. } => {
                switches[pcpu as usize] += 1;
                assert_eq!(std::mem::replace(&mut on[pcpu as usize], next), prev);
                if let Some(v) = prev {
                    enter(&mut seen[v as usize], v, *at, prev_state);
                }
                if let Some(v) = next {
                    let s = &mut seen[v as usize];
                    enter(s, v, *at, VcpuState::Running);
                    s.dispatches += 1;
                    s.migrations += u64::from(s.pcpu.replace(pcpu).is_some_and(|p| p != pcpu));
                }
            }
            // A vCPU that wanted to sleep and has not left its pCPU yet goes on there.
            Moment::Wake { vcpu, runnable: true, .. } if !on.contains(&Some(vcpu)) => {
                enter(&mut seen[vcpu as usize], vcpu, *at, VcpuState::Runnable);
            }
            _ => {}
        }
        let mut running: Vec<u32> = on.iter().flatten().copied().collect();
        running.sort_unstable();
        assert!(running.is_sorted_by(|a, b| a < b), "a vCPU is on one pCPU: {on:?}");
    }
    for (i, v) in vcpus.iter().enumerate() {
        let seen = &mut seen[i];
        enter(seen, i as u32, outcome.elapsed, VcpuState::Offline);
        assert_eq!(seen.times[VcpuState::Running as usize], v.running);
        assert_eq!(seen.times[VcpuState::Blocked as usize], v.blocked);
        // The last switch may not be complete.
        assert!((v.dispatches..=v.dispatches + 1).contains(&seen.dispatches));
        assert!((v.migrations..=v.migrations + 1).contains(&seen.migrations));
    }
    assert_eq!(switches, outcome.pcpus.iter().map(|p| p.switches).collect::<Vec<_>>());
}

/// Sums of one lock from the trace.
#[derive(Debug, Default, PartialEq)]
struct LockSums {
    acquisitions: u64,
    contended: u64,
    wait_total: Picos,
    wait_max: Picos,
    hold_total: Picos,
    hold_max: Picos,
}

/// Numbers of tasks that take locks in user mode, where those of vCPUs are expected.
const TASKS: u32 = 1 << 20;
const TASKS_OF_DOMAIN: u32 = 1 << 10;

pub fn number_of_task(domain: u32, task: u32) -> u32 {
    TASKS + domain * TASKS_OF_DOMAIN + task
}

/// The domain of a vCPU or a task; `domains` are those of the vCPUs.
pub fn domain_of(domains: &[usize], who: u32) -> usize {
    match who.checked_sub(TASKS) {
        Some(task) => (task / TASKS_OF_DOMAIN) as usize,
        None => domains[who as usize],
    }
}

/// What a task does at a lock of user mode, as if a vCPU did it; all other moments as they are.
pub fn as_a_vcpu(moment: &Moment) -> Moment {
    let Moment::TaskLock { domain, task, lock, what } = *moment else { return *moment };
    let number = |task: u32| number_of_task(domain.into(), task);
    let vcpu = number(task);
    match what {
        LockEvent::Waits { holder, releasing } => {
            Moment::LockWait { vcpu, lock, holder: holder.map(number), releasing }
        }
        LockEvent::Acquired { contended } => Moment::LockAcquired { vcpu, lock, contended },
        LockEvent::Released { contended } => Moment::LockReleased { vcpu, lock, contended },
        LockEvent::Freed { contended } => Moment::LockFreed { vcpu, lock, contended },
    }
}

/// Checks that a lock has one holder at a time, that a vCPU waits for a lock once at a time, and that lock
/// events agree with the outcome.
pub fn check_locks(scenario: &Scenario, outcome: &Outcome, trace: &[(Picos, Moment)]) {
    let domains: Vec<usize> =
        (0..).zip(&outcome.domains).flat_map(|(i, d)| vec![i; d.vcpus.len()]).collect();
    let domain_of = |who: u32| domain_of(&domains, who);
    let mut told: HashMap<(usize, u32), LockSums> = HashMap::new();
    let mut waits = HashMap::new();
    let mut holds = HashMap::new();
    let mut all_waits: HashMap<(usize, u32), Vec<Picos>> = HashMap::new();
    for ((at, event), waited) in trace.iter().zip(waited(scenario, trace)) {
        match as_a_vcpu(event) {
            // Noise takes the locks of its runqueues, which the outcome does not list.
            Moment::LockWait { vcpu, .. }
            | Moment::LockAcquired { vcpu, .. }
            | Moment::LockReleased { vcpu, .. }
                if (domains.len()..TASKS as usize).contains(&(vcpu as usize)) => {}
            Moment::LockWait { vcpu, lock, .. } => {
                assert_eq!(waits.insert((vcpu, lock), at), None, "waits once at a time");
            }
            Moment::LockAcquired { vcpu, lock, .. } => {
                let id = (domain_of(vcpu), lock);
                assert_eq!(holds.insert(id, (vcpu, at)), None, "one holder at a time");
                let t = told.entry(id).or_default();
                t.acquisitions += 1;
                let since = waits.remove(&(vcpu, lock));
                assert_eq!(since.map(|since| *at - *since), waited.map(|causes| causes.total()));
                if let Some(since) = since {
                    all_waits.entry(id).or_default().push(*at - *since);
                    t.contended += 1;
                    t.wait_total += *at - *since;
                    t.wait_max = t.wait_max.max(*at - *since);
                }
            }
            Moment::LockReleased { vcpu, lock, .. } => {
                let id = (domain_of(vcpu), lock);
                let (holder, since) = holds.remove(&id).expect("released by its holder");
                assert_eq!(holder, vcpu);
                let t = told.entry(id).or_default();
                t.hold_total += *at - *since;
                t.hold_max = t.hold_max.max(*at - *since);
            }
            _ => {}
        }
    }
    for (i, d) in outcome.domains.iter().enumerate() {
        for (lock, l) in d.locks.iter().enumerate() {
            let measured = LockSums {
                acquisitions: l.acquisitions,
                contended: l.contended,
                wait_total: l.wait_total,
                wait_max: l.wait_max,
                hold_total: l.hold_total,
                hold_max: l.hold_max,
            };
            let told = told.remove(&(i, lock as u32)).unwrap_or_default();
            assert_eq!(told, measured, "{}: {}", d.name, l.name);
            assert_eq!(l.wait_causes.total(), l.wait_total, "{}: {}", d.name, l.name);
            // Of the acquisitions, one in a thousand, rounded down, may wait for longer than `wait_p999`,
            // which is at most 1/128 too long and counts whole nanoseconds. The others are alike.
            let mut waits = all_waits.remove(&(i, lock as u32)).unwrap_or_default();
            waits.sort_unstable_by(|a, b| b.cmp(a));
            for (one_in, told) in [(2, l.wait_p50), (100, l.wait_p99), (1000, l.wait_p999)] {
                let beyond = (l.acquisitions / one_in) as usize;
                let at = |rank: usize| waits.get(rank).copied().unwrap_or_default();
                // A rounding error may make `wait_p999` the wait of the rank above.
                let above = if one_in == 1000 { at(beyond.saturating_sub(1)) } else { at(beyond) };
                let near = at(beyond) / NS * NS..=above + above / 128 + NS;
                assert!(near.contains(&told), "1 in {one_in}: {l:?}");
            }
        }
    }
    assert!(told.is_empty(), "the trace has locks that the outcome lacks: {told:?}");
}

/// If each vCPU has a pCPU and nothing interrupts it, the waiting time of the vCPUs equals the waiting time
/// at their locks, to the picosecond. With a ticket lock the waiter spins all that time. With a byte lock,
/// a waiter that sees the lock free must still get its line.
#[test]
fn vcpus_wait_as_long_as_locks_are_waited_for() {
    for lock in ["ticket", "lock-byte", "mcs", "xen-pv"] {
        let work = LockLoop { count: 200, ..lock_loop(2 * US, US) };
        let guest = tickless(4, lock, work);
        let outcome = run(&scenario(host(4, "null"), vec![guest], SEC), 1);
        assert_eq!(outcome.ending, Ending::Finished);
        let d = &outcome.domains[0];
        let waiting: Picos = d.vcpus.iter().map(|v| v.waiting).sum();
        let spinning: Picos = d.vcpus.iter().map(|v| v.spinning).sum();
        let at_locks: Picos = d.locks.iter().map(|l| l.wait_total).sum();
        if lock == "xen-pv" {
            assert!(waiting <= at_locks, "it sleeps part of the time: {waiting}, {at_locks}");
        } else {
            assert_eq!(waiting, at_locks, "{lock}");
        }
        match lock {
            "ticket" => assert_eq!(spinning, waiting),
            "lock-byte" => {
                assert!(
                    Picos::ZERO < spinning && 10 * spinning < 9 * waiting,
                    "{spinning}, {waiting}"
                )
            }
            _ => {}
        }
    }
}

#[test]
fn the_trace_tells_the_same_as_the_outcome() {
    for scenario in cases() {
        let (outcome, trace) = traced(&scenario, 1);
        check_scheduling(&outcome, &trace);
        check_locks(&scenario, &outcome, &trace);
    }
}

#[test]
fn every_kick_is_traced() {
    let (outcome, trace) = traced(&crowd("xen-pv", 2, 100 * MS), 1);
    let told = trace.iter().filter(|(_, e)| matches!(e, Moment::Kick { .. })).count();
    let counted: u64 = outcome.domains[0].locks.iter().map(|l| l.kicks).sum();
    assert!(counted > 0, "waiters sleep when four vCPUs share two pCPUs");
    assert_eq!(told as u64, counted);
}

#[test]
fn a_finite_workload_does_what_it_was_told() {
    for lock in overspin_locks::infos() {
        let work = LockLoop { threads: 6, count: 50, ..lock_loop(2 * US, 10 * US) };
        let guest = domain(4, lock.name, work);
        let outcome = run(&scenario(host(2, "credit"), vec![guest], SEC), 1);
        assert_eq!(outcome.ending, Ending::Finished, "{}", lock.name);
        let d = &outcome.domains[0];
        assert_eq!(d.finished, d.tasks.iter().map(|t| t.ended.expect("ended")).max());
        assert_eq!(d.tasks.iter().map(|t| t.items).collect::<Vec<_>>(), [50; 6], "{}", lock.name);
        assert_eq!(d.locks[0].acquisitions, 6 * 50, "{}", lock.name);
        check_times(&outcome);
    }
}

#[test]
fn a_compile_does_all_its_units() {
    let guest = domain(4, "ticket", kernbench(3, 7));
    let outcome = run(&scenario(host(4, "credit"), vec![guest], 10 * SEC), 1);
    assert_eq!(outcome.ending, Ending::Finished);
    let d = &outcome.domains[0];
    // `make`, and for each unit a driver, a compiler and an assembler, each of which counts one item.
    assert_eq!(d.tasks.len(), 1 + 3 * 7);
    assert_eq!(d.tasks.iter().map(|t| t.items).sum::<u64>(), 3 * 7);
    // User work is 20 ms a unit, of which a unit's size gives 40 % to 160 %, on 4 vCPUs that are never
    // preempted. The compile cannot have used less CPU time than 40 %, nor have ended sooner.
    let cpu: Picos = d.tasks.iter().map(|t| t.cpu).sum();
    assert!(cpu >= 7 * 8 * MS, "{cpu}");
    assert!(outcome.elapsed >= cpu / 4);
}
