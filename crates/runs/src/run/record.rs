//! The record of one run, and what records of several runs have of it.

use crate::catalog::names;
use crate::record::{Kind, Record, Run};
use crate::seeds::{Figure, figures};
use overspin_host::guest_type::with_guest_types;
use overspin_scenario::{Outcome, Scenario};

/// The record of one run. `set` has the arguments of `--set`, `trace` names the trace that was written beside
/// it.
#[must_use]
pub fn record(
    scenario: &Scenario,
    set: &[String],
    trace: Option<String>,
    outcome: &Outcome,
) -> Record {
    let mut record = of_scenario(Kind::Run, scenario, set, Some(outcome.seed));
    record.trace = trace;
    // A run that deadlocked or was cut off has the figures of a shorter run; they are in its outcome only.
    if outcome.ending.is_sound() {
        add(&mut record, 0, &figures(outcome));
    }
    record.runs = vec![Run { outcome: Some(Box::new(outcome.clone())), ..Run::of(outcome) }];
    record
}

/// The begin of a record of runs of `scenario`.
pub(crate) fn of_scenario(
    kind: Kind,
    scenario: &Scenario,
    set: &[String],
    seed: Option<u64>,
) -> Record {
    let mut record = Record::new(kind, scenario.name.clone());
    record.description.clone_from(&scenario.description);
    record.set = set.to_vec();
    record.seed = seed;
    record.machine = Some(scenario.host.machine.clone());
    let typed = with_guest_types(scenario, names().schedulers());
    record.scenario = Some(Box::new(typed));
    record
}

/// Adds the figures of a run.
pub(crate) fn add(record: &mut Record, run: u32, figures: &[Figure]) {
    for figure in figures {
        record.push(run, &figure.of, figure.quantity.metric, figure.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overspin_scenario::{Domain, GuestType, Host, Picos, Workloads};

    #[test]
    fn a_record_says_how_guests_are_virtualised() {
        let of = |scheduler: &str, guest_type| {
            let host = Host { scheduler: scheduler.into(), ..Host::default() };
            let domain =
                Domain { guest_type, ..Domain::new("d", 1, "ticket", Workloads(Vec::new())) };
            let scenario = Scenario::new("s", host, vec![domain], Picos::sec(1));
            let record = of_scenario(Kind::Run, &scenario, &[], None);
            record.scenario.and_then(|s| s.domains[0].guest_type)
        };
        assert_eq!(of("credit2", None), Some(GuestType::Pv));
        assert_eq!(of("eevdf", None), Some(GuestType::Hvm));
        assert_eq!(of("credit2", Some(GuestType::Hvm)), Some(GuestType::Hvm));
    }
}
