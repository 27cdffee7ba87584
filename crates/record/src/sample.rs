//! Samples in long form: one row for each measured number, never only an average.

use serde::{Deserialize, Serialize};

/// One measured number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Number of the run in its record, from 0. Samples of one run have one seed and one scenario.
    pub run: u32,
    /// The place of the measurement: a configuration, or a part of it, as dotted words from the general to
    /// the particular (`byte.half`, `guest/v0`).
    #[serde(rename = "where")]
    pub place: String,
    /// Name of the metric, in words that need no unit (`elapsed`, `wait-p99.9`).
    pub metric: String,
    /// Unit of `value`: `s`, `ns`, `%`, `1/s`, or empty for a plain number.
    pub unit: String,
    /// The number. It is always finite: a value that could not be measured has no sample.
    pub value: f64,
}
