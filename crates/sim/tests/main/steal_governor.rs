//! Guests that fold onto fewer vCPUs while the host steals time, compared with what the rules say.

use crate::common::{domain, hog, host, kernbench, lock_loop, run, scenario, traced};
use overspin_host::Moment;
use overspin_scenario::{
    Domain, FoldingOutcome, GuestScheduler, Kernel, MS, Outcome, Picos, SEC, Scenario,
    StealGovernor, US, Workload, Workloads,
};
use overspin_workload::{BurnWait, LockLoop};

/// Linux's limits, with a period of 20 ms. One vCPU of eight that waits all the time is 12.5 %.
fn governor() -> StealGovernor {
    StealGovernor { period: 20 * MS, ..StealGovernor::default() }
}

fn guest(name: &str, vcpus: u32, governed: bool, work: impl Into<Workloads>) -> Domain {
    let kernel = Kernel { steal_governor: governed.then(governor), ..Kernel::default() };
    Domain { name: name.into(), kernel, ..domain(vcpus, "ticket", work) }
}

fn with_scheduler(mut s: Scenario, scheduler: GuestScheduler) -> Scenario {
    for domain in &mut s.domains {
        domain.kernel.scheduler = scheduler;
    }
    s
}

const SCHEDULERS: [GuestScheduler; 3] =
    [GuestScheduler::Cfs2008, GuestScheduler::Eevdf, GuestScheduler::Eevdf618];

fn folding(outcome: &Outcome, domain: usize) -> FoldingOutcome {
    outcome.domains[domain].folding.expect("its kernel has a governor")
}

/// How many vCPUs a guest prefers on average in the second half of a run, from runs of both lengths.
fn preferred_later(s: &Scenario, domain: usize) -> f64 {
    let half = Scenario { limit: s.limit / 2, ..s.clone() };
    let of = |s| folding(&run(s, 1), domain).preferred;
    (of(s) - of(&half)).ratio(s.limit / 2)
}

/// Nothing is stolen on pCPUs of one's own: the governor only looks, every period, and the work is what it is without one
/// but for the looks.
#[test]
fn nothing_changes_without_steal() {
    let of =
        |governed| run(&scenario(host(4, "null"), vec![guest("a", 4, governed, hog())], SEC), 1);
    let (with, without) = (of(true), of(false));
    assert!(without.domains[0].folding.is_none());
    let f = folding(&with, 0);
    // Each vCPU waits once: for the interrupt that starts its pCPU.
    assert_eq!((f.narrowed, f.widened, f.pushed, f.steal), (0, 0, 0, 4 * US));
    // A look is late by what it takes, the tick that comes with it, and the interrupt: less than a period in a second.
    assert!((48..=50).contains(&f.samples), "{f:?}");
    assert_eq!(f.preferred, 4 * SEC);
    let items = |o: &Outcome| o.domains[0].tasks.iter().map(|t| t.items).sum::<u64>();
    assert!(items(&without) - items(&with) <= 1 + items(&without) / 1000);
}

/// Four guests of eight vCPUs that compute, on eight pCPUs: each folds to the two pCPUs' worth that it gets, and rarely to
/// one more or less. All of its tasks go on, on the vCPUs that are left.
#[test]
fn guests_fold_to_their_share() {
    for scheduler in SCHEDULERS {
        let guests = ["a", "b", "c", "d"].map(|name| guest(name, 8, true, hog()));
        let s = scenario(host(8, "eevdf-6.18"), guests.to_vec(), 2 * SEC);
        let s = with_scheduler(s, scheduler);
        let total: f64 = (0..4).map(|d| preferred_later(&s, d)).sum();
        assert!((7.0..=10.0).contains(&total), "{scheduler:?}: {total}");
        let outcome = run(&s, 1);
        for d in &outcome.domains {
            let f = d.folding.unwrap();
            assert!(f.narrowed >= 5 && f.pushed >= 5, "{f:?}");
            // 2 s of eight pCPUs for 32 tasks are 0.5 s each. The first look comes after 20 ms, and no task is lost.
            for t in &d.tasks {
                assert!(t.cpu > 100 * MS, "{scheduler:?}: {} ran for {} only", t.name, t.cpu);
            }
        }
    }
}

/// A guest beside one with as many vCPUs and no governor keeps one vCPU at least, however much is stolen from that.
#[test]
fn one_vcpu_stays_preferred() {
    let beside = guest("b", 8, false, hog());
    let s = scenario(host(2, "eevdf-6.18"), vec![guest("a", 4, true, hog()), beside], 2 * SEC);
    let later = preferred_later(&s, 0);
    assert!((1.0..1.1).contains(&later), "{later}");
    assert!(run(&s, 1).domains[0].tasks.iter().all(|t| t.cpu > 10 * MS));
}

/// What the governor has seen stolen is what the host says, up to its last look.
#[test]
fn the_steal_clocks_are_the_hosts() {
    let work = |i: u32| -> Workloads {
        match i {
            0 => hog(),
            1 => kernbench(6, 200),
            _ => Workloads::from(lock_loop(5 * US, 50 * US)),
        }
    };
    for scheduler in ["eevdf-6.18", "credit", "credit2", "cfs"] {
        let guests = (0..3).map(|i| guest(["a", "b", "c"][i as usize], 4, true, work(i))).collect();
        let s = scenario(host(4, scheduler), guests, SEC);
        let outcome = run(&s, 3);
        for (d, of) in outcome.domains.iter().enumerate() {
            let stolen: Picos = of.vcpus.iter().map(|v| v.runnable).sum();
            let f = folding(&outcome, d);
            assert!(f.steal <= stolen, "{scheduler}: {f:?}");
            // Since the last look, at most a period and its own wait for a pCPU ago, four vCPUs can have waited.
            let since = stolen - f.steal;
            assert!(since <= 4 * (20 + 100) * MS, "{scheduler}: {} were not seen", since);
            assert!(f.preferred >= outcome.elapsed && f.preferred <= 4 * outcome.elapsed);
        }
    }
}

/// Runs of tasks by vCPU, from the trace: how often each vCPU of the first domain began to run a task.
fn begins(s: &Scenario, after: Picos) -> Vec<u64> {
    let mut counts = vec![0; s.domains[0].vcpus as usize];
    for (at, moment) in traced(s, 1).1 {
        if let Moment::Task { vcpu, task: Some(_) } = moment
            && at > after
            && let Some(count) = counts.get_mut(vcpu as usize)
        {
            *count += 1;
        }
    }
    counts
}

/// Tasks that sleep and wake do so on preferred vCPUs only. One bound to the last vCPU stays there.
#[test]
fn wake_ups_avoid_vcpus_and_affinity_wins() {
    let naps = BurnWait { threads: 6, burn: 2 * MS, wait: MS, ..BurnWait::default() };
    for scheduler in SCHEDULERS {
        for bound in [false, true] {
            let mut work = vec![Workload::from(naps.clone())];
            if bound {
                let one = BurnWait { threads: 1, ..naps.clone() };
                work.push(Workload {
                    name: Some("bound".into()),
                    vcpus: vec![3],
                    ..Workload::from(one)
                });
            }
            let beside = guest("b", 8, false, hog());
            let guests = vec![guest("a", 4, true, Workloads(work)), beside];
            let s = with_scheduler(scenario(host(2, "eevdf-6.18"), guests, SEC), scheduler);
            // Three periods fold it to one vCPU; each look may be late by a wait.
            let [first, rest @ .., last] = &begins(&s, 500 * MS)[..] else { panic!("four vCPUs") };
            assert!(*first > 10, "{scheduler:?}");
            assert_eq!(rest, [0, 0], "{scheduler:?}, bound: {bound}");
            assert_eq!(*last > 10, bound, "{scheduler:?}: {last} runs on the last vCPU");
        }
    }
}

/// When the neighbour has done its work, the guest gets all its vCPUs back and its tasks spread over them.
#[test]
fn vcpus_come_back() {
    let ends = BurnWait { threads: 4, burn: MS, count: 500, ..BurnWait::default() };
    let guests = vec![guest("a", 4, true, hog()), guest("b", 4, false, ends)];
    let s = Scenario { to_the_limit: true, ..scenario(host(4, "eevdf-6.18"), guests, 3 * SEC) };
    let later = preferred_later(&s, 0);
    assert!(later > 3.9, "{later}");
    let outcome = run(&s, 1);
    let f = folding(&outcome, 0);
    assert!(f.narrowed >= 1 && f.widened == f.narrowed, "{f:?}");
    // The last second and a half belongs to it alone, on all four vCPUs.
    assert!(outcome.domains[0].vcpus.iter().all(|v| v.running > 1400 * MS));
}

/// Forks, pipes and locks: all work is done, in kernels that start processes in either way.
#[test]
fn work_that_ends_ends() {
    for scheduler in SCHEDULERS {
        let work = || guest("a", 4, true, kernbench(8, 40));
        let mut other = guest("b", 4, true, kernbench(8, 40));
        other.lock = "pv-qspinlock".into();
        let locks = LockLoop { count: 20_000, ..lock_loop(2 * US, 20 * US) };
        let guests = vec![work(), other, guest("c", 4, true, locks)];
        let s = with_scheduler(scenario(host(4, "eevdf-6.18"), guests, 60 * SEC), scheduler);
        let outcome = run(&s, 2);
        assert_eq!(outcome.ending, overspin_scenario::Ending::Finished, "{scheduler:?}");
        assert_eq!(run(&s, 2), outcome);
    }
}
