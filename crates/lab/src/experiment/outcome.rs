//! What came out of an experiment, beside what was published.

use super::{Parameter, Role};
use crate::record::Sample;
use overspin_report::Block;
use serde::{Deserialize, Serialize};

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

impl Grade {
    /// The grade of a figure with this error.
    pub(crate) fn of(error: Option<f64>) -> Self {
        match error {
            Some(e) if e.abs() <= 0.10 => Self::Good,
            Some(e) if e.abs() <= 0.25 => Self::Fair,
            _ => Self::Missed,
        }
    }
}

/// All results of an experiment. [`record::reproductions`](crate::record::reproductions) writes them.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// Experiment.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Runs were 1/scale of the published length.
    pub scale: u32,
    /// Simulated seconds after which a run counted as not finished, if some may not finish.
    pub limit_s: Option<f64>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Published figures and simulated ones.
    pub figures: Vec<Compared>,
    /// Claims.
    pub claims: Vec<Judged>,
    /// Fitted parameters.
    pub parameters: Vec<Parameter>,
    /// Every run.
    pub runs: Vec<serde_json::Value>,
    /// The measurements in long form. Runs are numbered as in `runs`.
    pub samples: Vec<Sample>,
    /// The output of the benchmark itself.
    pub details: Vec<Block>,
}

impl Reproduction {
    /// Whether the claims hold.
    #[must_use]
    pub fn verdict(&self) -> Option<bool> {
        verdict(&self.claims)
    }

    /// Numbers of figures of a role that are good, fair and missed.
    #[must_use]
    pub fn tally(&self, role: Role) -> [usize; 3] {
        let count =
            |grade| self.figures.iter().filter(|f| f.role == role && f.grade == grade).count();
        [Grade::Good, Grade::Fair, Grade::Missed].map(count)
    }
}

/// Whether all claims of several experiments hold.
#[must_use]
pub fn verdict_of_all(results: &[Reproduction]) -> Option<bool> {
    verdict(results.iter().flat_map(|e| &e.claims))
}

/// `Some(true)`: all claims hold; `Some(false)`: one does not; `None`: undecided.
pub(crate) fn verdict<'a>(claims: impl IntoIterator<Item = &'a Judged>) -> Option<bool> {
    let mut verdict = Some(true);
    for claim in claims {
        match claim.holds {
            Some(true) => {}
            Some(false) => return Some(false),
            None => verdict = None,
        }
    }
    verdict
}
