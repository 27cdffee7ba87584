//! Work without locks, done by programs of a guest: its first process has the world `threads`, whose threads work in user mode.

use overspin_scenario::{Domain, DomainOutcome, Host, Outcome, Picos, Scenario};
use overspin_workload::Loads;

/// Whether programs of a guest can do this: they have no lock of the scenario.
pub(super) fn can(loads: &Loads, vcpus: u32) -> bool {
    /// Threads of a process that are served.
    const MOST: u64 = 1000;
    loads.lock_names().is_empty()
        && loads.only_simulated().is_none()
        && loads.most_tasks(vcpus) <= MOST
}

/// What runs inside the guest of `domain`: its vCPUs are the CPUs there.
pub(super) fn inside(scenario: &Scenario, domain: &Domain, warmup: Picos) -> Scenario {
    let host = Host { cores: domain.vcpus, stagger: scenario.host.stagger, ..Host::default() };
    let own = Domain::new(&*domain.name, domain.vcpus, &*domain.lock, domain.workload.clone());
    let own = Domain { affinity: (0..domain.vcpus).map(|v| vec![v]).collect(), ..own };
    let name = scenario.name.clone();
    Scenario { warmup: Some(warmup), ..Scenario::new(name, host, vec![own], scenario.limit) }
}

/// Completes the outcome of a domain with what happened inside, and with `steps` values of its curve, one for each `step`.
pub(super) fn of_domain(
    inside: &Outcome,
    (steps, step): (usize, Picos),
    outcome: DomainOutcome,
) -> DomainOutcome {
    let Some(own) = inside.domains.first() else { return outcome };
    let at = |time: Picos| {
        let number = time.0.checked_div(inside.progress_step.0).unwrap_or(0) as usize;
        let last = own.progress.len();
        number.min(last).checked_sub(1).map_or(0, |i| own.progress[i])
    };
    DomainOutcome {
        finished: own.finished,
        tasks: own.tasks.clone(),
        progress: (1..=steps as u64).map(|i| at(step * i)).collect(),
        ..outcome
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::scenario;
    use super::*;
    use overspin_scenario::{MS, SEC};
    use overspin_workload::{BurnWait, Kinds};

    #[test]
    fn a_guest_has_its_domain_alone_on_its_own_cpus() {
        let mut scenario = scenario("ticket", 2, BurnWait::default());
        let beside = Domain { name: "other".into(), ..scenario.domains[0].clone() };
        scenario.domains.push(beside);
        scenario.host.cores = 1;
        let inside = inside(&scenario, &scenario.domains[1], MS * 5);
        assert_eq!(inside.host.pcpus(), 2);
        assert_eq!((inside.limit, inside.warmup), (SEC, Some(MS * 5)));
        let names: Vec<_> = inside.domains.iter().map(|d| &*d.name).collect();
        assert_eq!(names, ["other"]);
        assert_eq!(inside.domains[0].affinity, [[0], [1]]);
        // It goes to the guest as text.
        let text = serde_json::to_string(&inside).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), inside);
        let loads = |d: &Domain| Loads::of(d, &Kinds::builtin()).unwrap();
        assert!(can(&loads(&scenario.domains[0]), 2));
    }

    #[test]
    fn a_curve_is_told_in_the_steps_of_the_run() {
        let own = DomainOutcome { progress: vec![2, 5, 9], ..DomainOutcome::default() };
        let outcome = super::super::tests::outcome(vec![own], MS * 2);
        let curve =
            |steps, step| of_domain(&outcome, (steps, step), DomainOutcome::default()).progress;
        // After 1, 2, 3 ... ms: what was done at the end of the last whole step of 2 ms.
        assert_eq!(curve(8, MS), [0, 2, 2, 5, 5, 9, 9, 9]);
        assert_eq!(curve(2, MS * 3), [2, 9]);
    }
}
