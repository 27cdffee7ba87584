//! Records of `overspin validate`.

use crate::validate::{OTHERS, STEAL, Side, Validation};
use overspin_runs::record::{Kind, Record, Run};

/// The record of a validation. A place names the world, the scheduler, the case and the side.
#[must_use]
pub fn record(validation: &Validation) -> Record {
    let mut record = Record::new(Kind::Validation, "validate");
    record.description = "The simulator beside this machine".into();
    record.machine = validation.plan.subjects.first().map(|s| s.scenario.host.machine.clone());
    for (number, run) in (0..).zip(&validation.runs) {
        let subject = &validation.plan.subjects[run.subject];
        let side = match run.side {
            Side::Simulated => "simulated",
            Side::Measured => "measured",
        };
        let (world, case) = (subject.world.name(), &subject.case.name);
        let place = format!("{world}.{}.{case}.{side}", subject.scheduler);
        for figure in &run.figures {
            let place = match &figure.domain {
                Some(domain) => format!("{place}/{domain}"),
                None => place.clone(),
            };
            record.push(number, &place, figure.metric, figure.value);
        }
        if let Some(by) = run.disturbance {
            record.push(number, &place, &OTHERS, by.others);
            record.push(number, &place, &STEAL, by.steal);
        }
        record.runs.push(Run { number, place, seed: Some(run.seed), ..Run::default() });
    }
    record.validation = Some(validation.result.clone());
    record
}
