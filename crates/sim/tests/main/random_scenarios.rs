//! Random small scenarios: each ends, its times add up, and a second run gives the same outcome.

use crate::attribution::{check_causes, check_outcome};
use crate::common::{domain, host, kernbench, run, scenario, traced};
use crate::conservation::{check_locks, check_scheduling, check_times};
use crate::slice_extension::outstanding;
use overspin_host::Refused;
use overspin_scenario::{
    Change, Costs, DirectedYieldRules, Domain, Ending, Event, HaltPolling, Host, Kernel, MS, NS,
    NewProcess, Noise, NoisePlacement, NotificationProtocol, NotifiedGuests, PauseLoopExiting,
    Picos, Pool, Preemption, PreemptionNotification, Quantiles, Scenario, Settings, StealGovernor,
    US, Varying, Workloads,
};
use overspin_workload::{BurnWait, Distribution, Excursion, LockLoop, Mode, SliceRequest, Waking};
use proptest::prelude::*;
use std::ops::Range;

fn times(within: Range<Picos>) -> impl Strategy<Value = Picos> {
    (within.start.0..within.end.0).prop_map(Picos)
}

fn upto(most: Picos) -> impl Strategy<Value = Picos> {
    times(Picos::ZERO..most)
}

fn distribution() -> impl Strategy<Value = Distribution> {
    prop::sample::select(vec![Distribution::Fixed, Distribution::Exponential])
}

fn workload() -> impl Strategy<Value = Workloads> {
    let mode = prop::sample::select(Mode::ALL.to_vec());
    let loops =
        (0..6_u32, upto(20 * US), upto(100 * US), any::<bool>(), (mode, any::<bool>()), 0..40_u64)
            .prop_map(|(threads, section, outside, fixed, (mode, irqs_off), count)| {
                let irqs_off = irqs_off && mode == Mode::Kernel;
                Workloads::from(LockLoop {
                    threads,
                    locks: 1 + threads % 3,
                    section,
                    outside,
                    fixed,
                    mode,
                    irqs_off,
                    count,
                    unmap_every: count % 4,
                    // One in three sleeps between sections; programs also sleep within.
                    idle: if count % 3 == 1 { outside } else { Picos::ZERO },
                    idle_every: 1 + count % 5,
                    requests: count % 6 == 4 && outside > Picos::ZERO,
                    asleep: if count % 4 == 2 && mode == Mode::User {
                        section
                    } else {
                        Picos::ZERO
                    },
                    asleep_every: 1 + count % 7,
                    woken: Waking::ALL[count as usize % 2],
                    excursion: if count % 5 == 3 && mode == Mode::User {
                        section
                    } else {
                        Picos::ZERO
                    },
                    excursion_every: 1 + count % 3,
                    excursion_kind: Excursion::ALL[count as usize / 2 % 2],
                    run_up: if count % 7 == 2 && mode == Mode::User {
                        outside
                    } else {
                        Picos::ZERO
                    },
                    slice_request: match mode {
                        Mode::User => SliceRequest::ALL[count as usize % 3],
                        Mode::Kernel => SliceRequest::Never,
                    },
                })
            });
    let burns =
        (0..6_u32, times(NS..3 * MS), upto(3 * MS), 0..10_u64, distribution(), distribution())
            .prop_map(|(threads, burn, wait, count, burn_distribution, wait_distribution)| {
                Workloads::from(BurnWait {
                    threads,
                    burn,
                    wait,
                    count,
                    burn_distribution,
                    // One in five is drawn from quantiles.
                    burn_quantiles: (count % 5 == 3).then(|| Quantiles::new(burn, 4 * burn)),
                    wait_distribution,
                })
            });
    prop_oneof![3 => loops, 2 => burns, 1 => (1..4_u32, 1..3_u32).prop_map(|(j, u)| kernbench(j, u))]
}

fn guest() -> impl Strategy<Value = Domain> {
    let locks: Vec<_> = overspin_locks::infos().iter().map(|i| i.name).collect();
    let hz = prop::sample::select(vec![0, 100, 1000, 10_000]);
    let preemption = prop::sample::select(Preemption::ALL.to_vec());
    (
        (1..5_u32, prop::sample::select(locks), workload()),
        ((hz, preemption), 1..2000_u32, 0..3_u32, prop::option::of(0..3000_u32)),
    )
        .prop_map(|((vcpus, lock, workload), ((hz, preemption), weight, cap, spin_budget))| {
            // Without ticks a task that spins in user mode never leaves its vCPU to the holder.
            let spins = workload.get::<LockLoop>().is_some_and(|w| w.mode == Mode::User);
            let hz = if spins { hz.max(100) } else { hz };
            Domain {
                weight,
                cap: cap * 40,
                spin_budget,
                kernel: Kernel {
                    hz,
                    preemption,
                    new_process: if weight % 2 == 0 {
                        NewProcess::Linux2626
                    } else {
                        NewProcess::Balanced
                    },
                    pv_tlb_flush: vcpus % 2 == 0,
                    slice_extension: (weight % 3 > 0)
                        .then(|| Picos::us(5 + u64::from(weight) % 46)),
                    // From limits that nearly every look exceeds to some that none does.
                    steal_governor: (hz > 0 && weight % 4 > 0).then(|| StealGovernor {
                        period: MS * u64::from(1 + weight % 3),
                        high_permille: weight / 2,
                        low_permille: weight / 5,
                        core: 1 + weight % 5 / 3,
                    }),
                    ..Kernel::default()
                },
                ..domain(vcpus, lock, workload)
            }
        })
}

/// A cost that varies half of the time.
fn varying(cost: Picos, varies: bool) -> Varying {
    let long = Quantiles::new(cost, 3 * cost + NS);
    if varies { long.into() } else { cost.into() }
}

/// Costs, some of them zero, some of them different each time.
fn costs() -> impl Strategy<Value = Costs> {
    let small = || prop_oneof![Just(Picos::ZERO), times(NS..3 * US)];
    (
        (times(Picos(100)..NS), times(NS..100 * NS)),
        (small(), small(), small(), small()),
        (small(), small(), small()),
        any::<[bool; 3]>(),
    )
        .prop_map(
            |(
                (cache_hit, spin_iteration),
                (line, switch, call, ipi),
                (fence, irq, cold),
                [varies, call_varies, late],
            )| {
                let machine = Costs {
                    cache_hit,
                    atomic: fence,
                    same_core: line / 4,
                    cross_core: line / 2,
                    cross_socket: line,
                    spin_iteration,
                    fence,
                    ..Costs::default()
                };
                Costs {
                    context_switch: varying(switch, varies),
                    preemption: varying(call, call_varies),
                    hypercall: varying(call, call_varies),
                    pause_loop_exit: call,
                    yield_to: switch,
                    run_queue: irq,
                    host_interrupt: call * 2,
                    ipi: varying(ipi, varies),
                    timer: varying(cold, varies),
                    host_timer: varying(if late { irq } else { Picos::ZERO }, late),
                    interrupt: irq,
                    migration: cold * 10,
                    ..machine
                }
            },
        )
}

fn notification() -> impl Strategy<Value = PreemptionNotification> {
    let guests = prop_oneof![Just(NotifiedGuests::Smp), Just(NotifiedGuests::All)];
    let protocol =
        prop_oneof![Just(NotificationProtocol::Upcall), Just(NotificationProtocol::Deferral)];
    (guests, protocol, times(US..MS), 1..5_u32, upto(10 * MS)).prop_map(
        |(guests, protocol, window, strikes, back_off)| PreemptionNotification {
            guests,
            protocol,
            window,
            strikes,
            back_off,
        },
    )
}

/// Pause-loop exits by the rules of some year, or none.
fn exits() -> impl Strategy<Value = Option<PauseLoopExiting>> {
    let rules = prop::sample::select(&DirectedYieldRules::ALL[..]);
    prop::option::of(
        rules.prop_map(|rules| PauseLoopExiting { rules, ..PauseLoopExiting::default() }),
    )
}

fn noise() -> impl Strategy<Value = Noise> {
    let placement = prop_oneof![Just(NoisePlacement::PerCpu), Just(NoisePlacement::Anywhere)];
    (placement, times(US..5 * MS), times(NS..MS), 0..6_u32, 1..1000_u32, any::<bool>()).prop_map(
        |(placement, every, length, vcpus, weight, varies)| Noise {
            placement,
            every,
            length: varying(length, varies),
            vcpus,
            weight,
            ..Noise::default()
        },
    )
}

fn any_host() -> impl Strategy<Value = Host> {
    let schedulers: Vec<_> = overspin_sched::schedulers().iter().map(|s| s.name).collect();
    (
        (1..3_u32, 1..3_u32, 1..3_u32, 100..=1000_u32),
        prop::sample::select(schedulers),
        prop_oneof![Just(Costs::default()), costs()],
        (exits(), any::<bool>(), any::<bool>(), prop::option::of(notification())),
        (prop::option::of(noise()), prop_oneof![Just(Picos::ZERO), Just(40 * MS)]),
    )
        .prop_map(
            |((sockets, cores, threads, smt_permille), scheduler, costs, options, disturbed)| {
                let (noise, stagger) = disturbed;
                Host {
                    noise,
                    stagger,
                    sockets,
                    cores,
                    threads,
                    smt_permille,
                    costs,
                    pause_loop_exiting: options.0,
                    directed_yield: options.1,
                    halt_polling: options.2.then(HaltPolling::default),
                    preemption_notification: options.3,
                    ..host(1, scheduler)
                }
            },
        )
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    (any_host(), prop::collection::vec((guest(), any::<bool>()), 1..4), times(US..30 * MS))
        .prop_map(|(host, guests, limit)| {
            let pcpus = host.pcpus();
            let guests = guests.into_iter().enumerate().map(|(d, (guest, pinned))| {
                // Each vCPU of a pinned guest may use one pCPU, which vCPUs of other guests may use too.
                let pin = |v| vec![(d as u32 + v) % pcpus];
                let affinity = if pinned { (0..guest.vcpus).map(pin).collect() } else { vec![] };
                Domain { affinity, ..guest }
            });
            scenario(host, guests.collect(), limit)
        })
}

/// A change of one of three domains, each of up to four vCPUs, among up to three pools.
fn any_change() -> impl Strategy<Value = Change> {
    let domain = 0..3_u32;
    prop_oneof![
        (domain.clone(), 1..2000_u32)
            .prop_map(|(domain, weight)| Change::Weight { domain, weight }),
        (domain.clone(), 0..3_u32).prop_map(|(domain, n)| Change::Cap { domain, cap: n * 40 }),
        (domain.clone(), 0..4_u32, 0..8_u32).prop_map(|(domain, vcpu, pcpu)| Change::Affinity {
            domain,
            vcpu: Some(vcpu),
            affinity: vec![vec![pcpu, 0]],
        }),
        (domain.clone(), prop::option::of(0..4_u32))
            .prop_map(|(domain, vcpu)| Change::Pause { domain, vcpu }),
        (domain.clone(), prop::option::of(0..4_u32))
            .prop_map(|(domain, vcpu)| Change::Unpause { domain, vcpu }),
        (domain, 0..3_u32).prop_map(|(domain, pool)| Change::MoveDomain { domain, pool }),
        (1..8_u32, 0..3_u32).prop_map(|(pcpu, pool)| Change::MovePcpu { pcpu, pool }),
    ]
}

/// A scenario with pools and events, without the events that `check` refuses.
pub fn any_changing_scenario() -> impl Strategy<Value = Scenario> {
    let schedulers: Vec<_> = overspin_sched::schedulers().iter().map(|s| s.name).collect();
    let pools = prop::collection::vec(prop::sample::select(schedulers), 0..3);
    let events = prop::collection::vec((upto(30 * MS), any_change()), 1..20);
    (any_scenario(), pools, events).prop_map(|(mut scenario, pools, events)| {
        let pcpus = scenario.host.pcpus();
        for (i, scheduler) in (0..).zip(pools) {
            // Every third pCPU, but never pCPU 0.
            let cpus = (1..pcpus).filter(|p| p % 3 == i).collect();
            let (name, params) = (format!("pool{i}"), Settings::new());
            scenario.host.pools.push(Pool { name, cpus, scheduler: scheduler.into(), params });
        }
        for domain in &mut scenario.domains {
            domain.affinity.clear();
        }
        scenario.events = events.into_iter().map(|(at, change)| Event { at, change }).collect();
        while let Err(Refused::Event { index, .. }) = overspin_sim::check(&scenario) {
            scenario.events.remove(index);
        }
        scenario
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_changes_leave_times_that_add_up(scenario in any_changing_scenario(), seed: u64) {
        let (outcome, trace) = traced(&scenario, seed);
        prop_assert!(matches!(outcome.ending, Ending::Finished | Ending::Limit));
        check_times(&outcome);
        check_locks(&scenario, &outcome, &trace);
        check_outcome(&scenario, &outcome);
        // A trace does not show when halt polling begins, nor which vCPUs a pause keeps from waking.
        if scenario.host.halt_polling.is_none() && scenario.events.is_empty() {
            check_causes(&scenario, &trace);
        }
        // All events that were due by the end have come.
        let due = scenario.events.iter().filter(|e| e.at < outcome.elapsed).count();
        prop_assert!(outcome.changes.len() >= due);
        for change in &outcome.changes {
            let on_its_way = |why: &String| why.contains("on its way") || why.contains("no pCPU");
            prop_assert!(change.refused.as_ref().is_none_or(on_its_way), "{:?}", change);
        }
        prop_assert_eq!(run(&scenario, seed), outcome);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_small_scenario_ends_adds_up_and_repeats(scenario in any_scenario(), seed: u64) {
        let (outcome, trace) = traced(&scenario, seed);
        prop_assert!(outcome.elapsed <= scenario.limit);
        // The watchdog needs ten seconds to notice a deadlock; no run here lasts that long.
        prop_assert!(matches!(outcome.ending, Ending::Finished | Ending::Limit));
        check_times(&outcome);
        check_scheduling(&outcome, &trace);
        check_locks(&scenario, &outcome, &trace);
        check_outcome(&scenario, &outcome);
        // A trace does not show when halt polling begins, nor which vCPUs a pause keeps from waking.
        if scenario.host.halt_polling.is_none() && scenario.events.is_empty() {
            check_causes(&scenario, &trace);
        }
        for (d, asked) in outcome.domains.iter().zip(&scenario.domains) {
            prop_assert_eq!(d.vcpus.len(), asked.vcpus as usize);
            if let Some(w) = asked.workload.get::<LockLoop>() {
                // Each item is one acquisition, or a request with several. At the end each thread may be in a section, or may have
                // left it without counting the item yet.
                let items: u64 = d.tasks.iter().map(|t| t.items).sum();
                let its = &d.locks[..w.locks as usize];
                let taken: u64 = its.iter().map(|lock| lock.acquisitions).sum();
                let each = if w.requests { w.idle_every } else { 1 };
                let most = (items + d.tasks.len() as u64) * each;
                prop_assert!((items * each..=most).contains(&taken));
                prop_assert!(w.count == 0 || d.tasks.iter().all(|t| t.items <= w.count));
                prop_assert_eq!(d.shootdowns.is_some(), w.unmap_every > 0);
            }
            if let Some(e) = &d.extensions {
                outstanding(e, asked.vcpus);
            }
            if let Some(f) = &d.folding {
                prop_assert!(f.steal <= d.vcpus.iter().map(|v| v.runnable).sum::<Picos>());
                prop_assert!(f.preferred >= outcome.elapsed);
                prop_assert!(f.preferred <= outcome.elapsed * u64::from(asked.vcpus));
                prop_assert!(f.narrowed + f.widened <= f.samples && f.widened <= f.narrowed);
            }
            if let Some(s) = &d.shootdowns {
                prop_assert!(s.preempted <= s.waited && s.waited <= outcome.elapsed * d.tasks.len() as u64);
                prop_assert!(s.interrupts + s.skipped <= s.shootdowns * (d.vcpus.len() as u64 - 1));
            }
        }
        prop_assert_eq!(run(&scenario, seed), outcome);
    }
}
