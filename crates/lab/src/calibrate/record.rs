//! Records of `overspin calibrate`.

use crate::calibrate::told;
use crate::metric::threads;
use overspin_native::calibrate::Calibration;
use overspin_runs::record::{Kind, Record, Run};

/// The record of a calibration. A run is a round: every quantity has a sample in each round that measured it.
#[must_use]
pub fn record(calibration: &Calibration) -> Record {
    let mut record = Record::new(Kind::Calibration, "calibration");
    record.warnings = calibration.warnings.iter().map(ToString::to_string).collect();
    let missing = calibration.missing.iter();
    record.warnings.extend(missing.map(|(q, why)| format!("{}: {why}", told(*q).words)));
    let rounds = calibration.series.iter().map(|s| s.samples.len()).max().unwrap_or(0);
    record.runs = (0..).take(rounds).map(|number| Run { number, ..Run::default() }).collect();
    for series in &calibration.series {
        let told = told(series.quantity);
        for (round, sample) in (0..).zip(&series.samples) {
            record.push_as(round, &told.place, threads::COST.name, told.unit, *sample);
        }
    }
    record
}
