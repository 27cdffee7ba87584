//! Records of experiments. Runs and samples of all experiments are in one table: their places begin with the
//! name of the experiment.

use crate::Reproduction;
use overspin_runs::record::{Experiment, Kind, Record, Run, Sample, next_number};
use overspin_scenario::{Ending, Picos, SEC, WaitCauses};
use serde_json::{Map, Value};

/// The record of one experiment or of several.
#[must_use]
pub fn record(results: &[Reproduction]) -> Record {
    let mut record = match results {
        [one] => {
            let mut record = Record::new(Kind::Reproduction, one.experiment.clone());
            record.description.clone_from(&one.title);
            record
        }
        _ => Record::new(Kind::Reproduction, "experiments"),
    };
    for result in results {
        add(&mut record, result);
    }
    record
}

fn add(record: &mut Record, result: &Reproduction) {
    let first = next_number(&record.runs);
    for run in &result.runs {
        of_run(record, result, run);
    }
    record.samples.extend(result.samples.iter().map(|s| Sample {
        run: first.saturating_add(s.run),
        place: dotted(&result.experiment, &s.place),
        ..s.clone()
    }));
    record.experiments.push(Experiment {
        id: result.experiment.clone(),
        title: result.title.clone(),
        source: result.source.clone(),
        scale: result.scale,
        limit_s: result.limit_s,
        seeds: result.seeds.clone(),
        figures: result.figures.clone(),
        claims: result.claims.clone(),
        parameters: result.parameters.clone(),
    });
}

/// Adds a run to the table. The fields before its seed are its place.
fn of_run(record: &mut Record, result: &Reproduction, run: &Value) {
    let Value::Object(fields) = run else { return };
    let conditions = match fields.keys().position(|key| key == "seed") {
        Some(seed) => seed,
        None => fields.values().take_while(|v| !v.is_array()).count(),
    };
    let words = fields.iter().take(conditions).map(|(key, value)| word(key, value));
    let place = words.fold(result.experiment.clone(), |place, word| dotted(&place, &word));
    let number = next_number(&record.runs);
    let vcpus = |list: Option<&Value>| list.and_then(Value::as_array).map(Vec::len);
    let vcpus = vcpus(fields.get("vcpu_time_s"))
        .or_else(|| vcpus(run.pointer("/domain/vcpus")))
        .unwrap_or(0);
    let elapsed = elapsed(fields);
    record.runs.push(Run {
        number,
        place,
        seed: fields.get("seed").and_then(Value::as_u64),
        ending: ending(fields),
        elapsed,
        vcpu_time: fields
            .get("vcpu_time")
            .and_then(Value::as_u64)
            .map(Picos)
            .or_else(|| elapsed.map(|t| t.saturating_mul(vcpus as u64)))
            .filter(|time| *time > Picos::ZERO),
        wait_causes: wait_causes(run),
        trace_hash: fields
            .get("trace_hash")
            .and_then(Value::as_str)
            .and_then(|digits| u64::from_str_radix(digits, 16).ok()),
        ..Run::default()
    });
}

fn dotted(place: &str, word: &str) -> String {
    if place.is_empty() || word.is_empty() {
        format!("{place}{word}")
    } else {
        format!("{place}.{word}")
    }
}

/// A condition of a run, as a word of a place.
fn word(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // The name of the field says what it is, for example a rate of pings.
        Value::Object(fields) => {
            let parts: Vec<String> = fields.iter().map(|(key, value)| word(key, value)).collect();
            parts.join("-")
        }
        _ => {
            let (name, unit) = key.strip_suffix("_ns").map_or((key, ""), |name| (name, "ns"));
            format!("{}-{value}{unit}", name.replace('_', "-"))
        }
    }
}

fn ending(fields: &Map<String, Value>) -> Option<Ending> {
    let finished = || fields.get("finished").and_then(Value::as_bool);
    match fields.get("ending").and_then(Value::as_str) {
        Some("finished") => Some(Ending::Finished),
        Some("limit") => Some(Ending::Limit),
        Some("deadlock") => Some(Ending::Deadlock { waits: Vec::new() }),
        _ => finished().map(|end| if end { Ending::Finished } else { Ending::Limit }),
    }
}

/// Simulated time at the end.
fn elapsed(fields: &Map<String, Value>) -> Option<Picos> {
    let seconds = || fields.get("simulated_s").and_then(Value::as_f64);
    let picos = fields.get("elapsed").and_then(Value::as_u64);
    let picos = picos.or_else(|| seconds().map(|s| (s * SEC.0 as f64) as u64));
    picos.map(Picos)
}

/// The causes for the whole run, or for the locks of its domain.
fn wait_causes(run: &Value) -> Option<WaitCauses> {
    let read = |value: &Value| serde_json::from_value::<WaitCauses>(value.clone()).ok();
    let locks = || run.pointer("/domain/locks").and_then(Value::as_array);
    match run.get("wait_causes") {
        Some(causes) => read(causes),
        None => locks().map(|locks| {
            let all: Vec<WaitCauses> =
                locks.iter().filter_map(|lock| read(lock.get("wait_causes")?)).collect();
            WaitCauses::sum(&all)
        }),
    }
}
