//! Finished runs, a line each.

use super::error::{ResultsError, io_error};
use crate::{Record, Run, RunSeconds, Sample};
use overspin_scenario::Ending;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// A run that has ended, and its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The run. Until all runs have ended, it has neither its number nor its place.
    pub run: Run,
    /// Its figures.
    pub figures: Vec<Kept>,
    /// What the machine did meanwhile, of a real benchmark that has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<RunSeconds>,
}

/// A figure of a finished run: an array of place, metric, unit and value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "(String, String, String, f64)", into = "(String, String, String, f64)")]
pub struct Kept {
    /// See [`Sample::place`]; empty for the place of the run.
    pub place: String,
    /// See [`Sample::metric`].
    pub metric: String,
    /// See [`Sample::unit`].
    pub unit: String,
    /// See [`Sample::value`].
    pub value: f64,
}

impl From<(String, String, String, f64)> for Kept {
    fn from((place, metric, unit, value): (String, String, String, f64)) -> Self {
        Self { place, metric, unit, value }
    }
}

impl From<Kept> for (String, String, String, f64) {
    fn from(kept: Kept) -> Self {
        (kept.place, kept.metric, kept.unit, kept.value)
    }
}

impl Finished {
    /// Its line, with the newline.
    pub(super) fn line(&self) -> String {
        // It has only numbers, texts, lists and structs, which JSON can express.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    pub(super) fn was_stopped(&self) -> bool {
        matches!(self.run.ending, Some(Ending::Stopped { .. }))
    }

    /// Its samples.
    pub(super) fn samples(&self) -> impl Iterator<Item = Sample> {
        self.figures.iter().map(|kept| Sample {
            run: self.run.number,
            place: if kept.place.is_empty() { self.run.place.clone() } else { kept.place.clone() },
            metric: kept.metric.clone(),
            unit: kept.unit.clone(),
            value: kept.value,
        })
    }
}

/// The runs of a whole record.
pub(super) fn of_record(record: &Record) -> impl Iterator<Item = Finished> {
    let mut figures: HashMap<u32, Vec<Kept>> = HashMap::new();
    for s in &record.samples {
        figures.entry(s.run).or_default().push(Kept {
            place: s.place.clone(),
            metric: s.metric.clone(),
            unit: s.unit.clone(),
            value: s.value,
        });
    }
    let of_machine = record.real.as_ref().map_or(&[][..], |real| &real.seconds);
    record.runs.iter().map(move |run| {
        let figures = figures.remove(&run.number).unwrap_or_default();
        let seconds = of_machine.iter().find(|s| s.run == run.number).cloned();
        Finished { run: run.clone(), figures, seconds }
    })
}

/// Reads the finished runs.
pub(super) fn read(path: &Path, file: &File) -> Result<Vec<Finished>, ResultsError> {
    lines(path, file)
}

/// Reads a value from each line. Cuts off the beginning of a line that a killed command left, if the file is
/// open for writing.
pub(super) fn lines<T: DeserializeOwned>(
    path: &Path,
    mut file: &File,
) -> Result<Vec<T>, ResultsError> {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).map_err(io_error("read", path))?;
    let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |last| last + 1);
    if whole < text.len() {
        // A reader that may not write leaves it where it is.
        let _ = file.set_len(whole as u64);
    }
    let lines = text[..whole].split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let run = |(i, line): (usize, &[u8])| {
        let broken = |cause| {
            let path = path.display().to_string();
            ResultsError::Broken { path, line: i + 1, cause }
        };
        let line = std::str::from_utf8(line).map_err(|e| broken(e.to_string()))?;
        serde_json::from_str(line).map_err(|e| broken(e.to_string()))
    };
    lines.enumerate().map(run).collect()
}
