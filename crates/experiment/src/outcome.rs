//! What came out of an experiment, beside what was published.

use overspin_report::Block;
use overspin_runs::record::{Compared, Grade, Judged, Parameter, Role, Sample};

/// All results of an experiment. [`record`](super::record()) writes them.
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
