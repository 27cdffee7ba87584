//! Disturbances of a host: noise, and domains that do not all begin at one moment.

use crate::common::{domain, hog, host, lock_loop, near, run, scenario, tickless, traced};
use overspin_host::Moment;
use overspin_scenario::{
    Change, Costs, CpuNoise, Domain, Event, Host, MS, NS, Noise, NoisePlacement, Outcome, Picos,
    Pool, Quantiles, SEC, Scenario, Settings, US,
};
use overspin_workload::BurnWait;

/// A guest that sleeps nearly all the time.
fn sleeper() -> Domain {
    let workload = BurnWait { burn: US, wait: 100 * SEC, ..BurnWait::default() };
    tickless(1, "ticket", workload)
}

/// A machine on which a thread that sleeps and wakes uses next to no time for that.
fn costs_of_nothing() -> Costs {
    let none = Picos::ZERO;
    Costs {
        context_switch: none.into(),
        hypercall: none.into(),
        ipi: none.into(),
        interrupt: none,
        ..Costs::default()
    }
}

fn noisy(pcpus: u32, scheduler: &str, noise: Noise) -> Host {
    Host { noise: Some(noise), ..host(pcpus, scheduler) }
}

/// Eight pCPUs with two guests of eight vCPUs each, whose vCPUs contend for a lock. Undisturbed, this case is
/// gang-scheduled by accident.
fn two_equal_guests(host: Host) -> Scenario {
    let guest = || domain(8, "ticket", lock_loop(2 * US, 20 * US));
    scenario(host, vec![guest(), guest()], 500 * MS)
}

fn acquisitions(outcome: &Outcome) -> Vec<u64> {
    outcome.domains.iter().map(|d| d.locks[0].acquisitions).collect()
}

#[test]
fn threads_wake_as_often_and_run_as_long_as_asked() {
    let noise = Noise { every: 10 * MS, length: (100 * US).into(), ..Noise::default() };
    let outcome = run(&scenario(noisy(4, "credit", noise), vec![sleeper()], 20 * SEC), 1);
    let of = outcome.noise.expect("a noisy host");
    // 4 threads, 20 s, cycles of 10.1 ms: 7921 wake-ups. Run and wait times are exponential, so their standard
    // deviation is nearly the root of that number, 88.
    assert!((7921 - 4 * 89..7921 + 4 * 89).contains(&of.wakes), "{} wake-ups", of.wakes);
    // Each time a thread runs for 100 us, plus some 10 us (at these costs) that its kernel needs to sleep
    // and wake. The mean of 7921 exponential times has a standard error of 1.1 %.
    let each = of.running / of.wakes;
    assert!((96 * US..118 * US).contains(&each), "{each} ps each time");
    assert_eq!(outcome.domains.len(), 1, "noise is not listed among the domains");
}

/// Real noise sits on one CPU, and few of its interruptions are long.
#[test]
fn noise_of_one_pcpu_has_the_quantiles_of_its_table() {
    let length = Quantiles { max: Some(2 * MS), ..Quantiles::new(20 * US, MS) };
    let one = CpuNoise { cpus: vec![1], every: 5 * MS, length: length.into() };
    let noise =
        Noise { each: vec![one], every: 500 * MS, length: (10 * US).into(), ..Noise::default() };
    let host = Host { costs: costs_of_nothing(), ..noisy(2, "credit", noise) };
    let (_, trace) = traced(&scenario(host, vec![sleeper()], 40 * SEC), 1);
    // vCPU 0 is the guest's; each pCPU's noise is a domain of its own after it.
    let mut began = [Picos::ZERO; 2];
    let mut lengths = [const { Vec::new() }; 2];
    for (at, moment) in trace {
        match moment {
            Moment::Runs { vcpu: v @ 1.., pcpu } => {
                assert_eq!(pcpu, v - 1);
                began[pcpu as usize] = at;
            }
            Moment::Switch { pcpu, prev: Some(1..), .. } => {
                lengths[pcpu as usize].push(at - began[pcpu as usize]);
            }
            _ => {}
        }
    }
    // 80 and nearly 8,000 wake-ups; their standard errors are the roots.
    let [few, mut many] = lengths;
    assert!((50..110).contains(&few.len()), "{}", few.len());
    assert!((7_500..8_000).contains(&many.len()), "{}", many.len());
    // Half of the times are the median; its kernel needs some microseconds on top, always the same.
    many.sort_unstable();
    let kernel = many[many.len() / 4] - 20 * US;
    assert!(kernel < 10 * US, "{kernel}");
    let longer = |than: Picos| {
        let longer = many.iter().filter(|time| **time > than + kernel + NS).count();
        longer as f64 / many.len() as f64
    };
    assert!((longer(20 * US) - 0.5).abs() < 0.03, "{}", longer(20 * US));
    assert!((longer(MS) - 0.01).abs() < 0.004, "{}", longer(MS));
    assert_eq!(longer(2 * MS), 0.0);
}

#[test]
fn a_host_without_noise_says_so() {
    assert_eq!(run(&scenario(host(1, "credit"), vec![sleeper()], SEC), 1).noise, None);
}

#[test]
fn equal_guests_stay_in_step_only_on_a_host_that_nothing_disturbs() {
    let schedulers = ["credit", "credit2", "cfs", "eevdf"];
    for scheduler in schedulers {
        let quiet = acquisitions(&run(&two_equal_guests(host(8, scheduler)), 1));
        let disturbed =
            Host { noise: Some(Noise::default()), stagger: 40 * MS, ..host(8, scheduler) };
        let real = acquisitions(&run(&two_equal_guests(disturbed), 1));
        for (quiet, real) in quiet.iter().zip(&real) {
            // In step, both have the throughput of a guest alone. Otherwise a holder or the next waiter is
            // often descheduled, which leaves a third to a twentieth, whatever the seed.
            assert!(2 * real < *quiet, "{scheduler}: {quiet} in step, {real} disturbed");
        }
    }
}

#[test]
fn domains_begin_at_offsets_of_their_own_the_first_at_zero() {
    let host = Host { stagger: 40 * MS, ..host(4, "credit") };
    let starts = |seed| -> Vec<Picos> {
        let domains = vec![domain(2, "ticket", hog()); 3];
        let outcome = run(&scenario(host.clone(), domains, 100 * MS), seed);
        outcome.domains.iter().map(|d| d.started).collect()
    };
    let (one, other) = (starts(1), starts(2));
    assert_ne!(one, other, "the seed decides");
    assert_eq!(one, starts(1));
    for starts in [&one, &other] {
        assert_eq!(starts.iter().min(), Some(&Picos::ZERO));
        assert!(starts.iter().all(|at| *at < 40 * MS));
        assert_ne!(starts[0], starts[1]);
        assert_ne!(starts[1], starts[2]);
    }
}

#[test]
fn periodic_tasks_begin_anywhere_in_their_period() {
    let worker = BurnWait { burn: MS, wait: 9 * MS, ..BurnWait::default() };
    let guest = tickless(4, "ticket", worker);
    // The time at which each task runs again after its first sleep.
    let after_a_sleep = |stagger| -> Vec<Picos> {
        let host = Host { stagger, ..host(4, "null") };
        let (_, trace) = traced(&scenario(host, vec![guest.clone()], 30 * MS), 1);
        let second = |index: u32| {
            let runs = trace
                .iter()
                .filter(|(_, e)| matches!(e, Moment::Task { task: Some(i), .. } if *i == index));
            runs.map(|(at, _)| *at).nth(1).expect("it runs again")
        };
        (0..4).map(second).collect()
    };
    // All tasks run a period after they began, as close together as their vCPUs came up.
    for at in after_a_sleep(Picos::ZERO) {
        near(at, 10 * MS, 200 * US);
    }
    let apart = after_a_sleep(40 * MS);
    assert!(apart.iter().all(|at| *at < 11 * MS), "{apart:?}");
    let spread = *apart.iter().max().unwrap() - *apart.iter().min().unwrap();
    assert!(spread > MS, "{apart:?}");
}

#[test]
fn threads_of_a_pcpu_that_leaves_its_pool_go_elsewhere() {
    let pool = |name: &str, cpus: Vec<u32>| Pool {
        name: name.into(),
        cpus,
        scheduler: "credit".into(),
        params: Settings::new(),
    };
    for placement in [NoisePlacement::PerCpu, NoisePlacement::Anywhere] {
        let noise = Noise { placement, every: MS, ..Noise::default() };
        let host = Host { pools: vec![pool("b", vec![2, 3])], ..noisy(4, "credit", noise) };
        let events = [(1, 10 * MS), (0, 20 * MS)]
            .map(|(pool, at)| Event { at, change: Change::MovePcpu { pcpu: 1, pool } })
            .to_vec();
        let domains = vec![domain(2, "ticket", hog())];
        let outcome = run(&Scenario { events, ..scenario(host, domains, 50 * MS) }, 1);
        assert_eq!(outcome.changes.len(), 2);
        assert!(outcome.changes.iter().all(|c| c.refused.is_none()), "{:?}", outcome.changes);
        let noise = outcome.noise.expect("a noisy host");
        assert!(noise.wakes > 40, "4 threads, 50 ms, every millisecond beside two hogs: {noise:?}");
    }
}

/// `null` gives a pCPU for good to the vCPU that comes first.
#[test]
fn noise_takes_no_pcpu_from_a_domain_under_null() {
    let host = Host { stagger: 40 * MS, ..noisy(4, "null", Noise::default()) };
    let outcome = run(&scenario(host, vec![tickless(3, "ticket", hog())], SEC), 1);
    for v in &outcome.domains[0].vcpus {
        assert!(v.runnable < MS, "{v:?}");
    }
    // One noise thread found a free pCPU.
    assert!(outcome.noise.expect("a noisy host").wakes > 0);
}

#[test]
fn every_scheduler_runs_noise() {
    for info in overspin_sched::schedulers() {
        let noise = Noise { every: 2 * MS, ..Noise::default() };
        // One pCPU stays free, for schedulers that give a vCPU its pCPU for good.
        let host = noisy(3, info.name, noise);
        let outcome = run(&scenario(host, vec![domain(2, "ticket", hog())], 200 * MS), 1);
        let of = outcome.noise.expect("a noisy host");
        assert!(of.wakes > 20, "{}: {of:?}", info.name);
        let hogs: Picos = outcome.domains[0].vcpus.iter().map(|v| v.running).sum();
        assert!(
            hogs > 100 * MS,
            "{}: guests run at least a quarter of their time: {hogs}",
            info.name
        );
    }
}
