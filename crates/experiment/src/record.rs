//! Records of experiments. Runs and samples of all experiments are in one table: their places begin with the
//! name of the experiment.

use crate::Reproduction;
use overspin_runs::record::{Kind, Record, Run, Sample, next_number};

/// The record of one experiment or of several.
#[must_use]
pub fn record(results: &[Reproduction]) -> Record {
    let mut record = match results {
        [one] => {
            let mut record = Record::new(Kind::Reproduction, one.experiment.id.clone());
            record.description.clone_from(&one.experiment.title);
            record
        }
        _ => Record::new(Kind::Reproduction, "experiments"),
    };
    for result in results {
        let (id, first) = (&result.experiment.id, next_number(&record.runs));
        record.runs.extend(result.runs.iter().zip(first..).map(|(run, number)| Run {
            number,
            place: dotted(id, &run.place),
            ..run.clone()
        }));
        record.samples.extend(result.samples.iter().map(|s| Sample {
            run: first.saturating_add(s.run),
            place: dotted(id, &s.place),
            ..s.clone()
        }));
        record.experiments.push(result.experiment.clone());
    }
    record
}

fn dotted(place: &str, word: &str) -> String {
    if word.is_empty() { place.to_owned() } else { format!("{place}.{word}") }
}
