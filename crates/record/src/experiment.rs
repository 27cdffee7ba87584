//! What the record of an experiment says: published figures beside simulated ones, claims, and fitted parameters.

use serde::{Deserialize, Serialize};

/// An experiment: the published results, the simulated results, and the verdicts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Name; the places of its runs and samples begin with it.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs were 1/scale of the published length.
    pub scale: u32,
    /// Simulated seconds after which a run counted as not finished, if some may not finish.
    pub limit_s: Option<f64>,
    /// Seeds of the runs of each configuration.
    pub seeds: Vec<u64>,
    /// Published figures beside simulated ones.
    pub figures: Vec<Compared>,
    /// Claims.
    pub claims: Vec<Judged>,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
}

/// How near a simulated figure is to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Within 10 %.
    Good,
    /// Within 25 %.
    Fair,
    /// Farther away, or not computable.
    Missed,
}

/// A published figure and the simulated one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// What was measured, with its unit.
    pub metric: String,
    /// The place.
    #[serde(rename = "where")]
    pub place: String,
    /// Published mean; null if the publication says that it never ended.
    pub published: Option<f64>,
    /// Published standard deviation, if any.
    pub published_stddev: Option<f64>,
    /// Simulated mean, scaled up to the published length; null if it could not be computed.
    pub simulated: Option<f64>,
    /// Simulated standard deviation.
    pub simulated_stddev: Option<f64>,
    /// Simulated / published - 1.
    pub error: Option<f64>,
    /// The permitted use of the figure.
    pub role: Role,
    /// How near the simulated figure is.
    pub grade: Grade,
    /// A remark, for example how many runs did not finish.
    pub note: Option<String>,
}

/// A claim and whether it holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Number.
    pub id: u32,
    /// The claim, in words.
    pub text: String,
    /// Whether it holds; null if that could not be decided.
    pub holds: Option<bool>,
    /// The numbers that decide it, in a sentence. Records of versions before it existed have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_words: Option<String>,
    /// All figures that decide it, with their formulas.
    pub evidence: String,
}

impl Experiment {
    /// Numbers of figures of a role that are good, fair and missed.
    #[must_use]
    pub fn tally(&self, role: Role) -> [usize; 3] {
        let count =
            |grade| self.figures.iter().filter(|f| f.role == role && f.grade == grade).count();
        [Grade::Good, Grade::Fair, Grade::Missed].map(count)
    }
}

impl Grade {
    /// The grade of a figure with this error.
    #[must_use]
    pub fn of(error: Option<f64>) -> Self {
        match error {
            Some(e) if e.abs() <= 0.10 => Self::Good,
            Some(e) if e.abs() <= 0.25 => Self::Fair,
            _ => Self::Missed,
        }
    }
}

/// What a figure may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Used to set a parameter.
    Fit,
    /// Used to judge the model: the model must yield it without being fitted to it.
    Predict,
    /// Used to check the arithmetic: it must follow from other published figures, to every digit.
    Recompute,
}

/// A parameter that was set to match the `fit` figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its key in the scenario.
    pub key: String,
    /// Its meaning.
    pub meaning: String,
    /// Least plausible value.
    pub low: String,
    /// Largest plausible value.
    pub high: String,
    /// The figures by which it was set.
    pub reason: String,
    /// Its value, as the scenario writes it.
    #[serde(default)]
    pub value: String,
}
