//! What came out of an experiment, beside what was published.

use overspin_record::Experiment;
use overspin_report::Block;
use overspin_runs::record::{Judged, Run, Sample};

/// All results of an experiment. [`record`](super::record()) writes them.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// What was published, what came out, and the verdicts.
    pub experiment: Experiment,
    /// Every run; its place is within the experiment.
    pub runs: Vec<Run>,
    /// The measurements in long form. Runs are numbered as in `runs`.
    pub samples: Vec<Sample>,
    /// The output of the benchmark itself.
    pub details: Vec<Block>,
}

impl Reproduction {
    /// Whether the claims hold.
    #[must_use]
    pub fn verdict(&self) -> Option<bool> {
        verdict(&self.experiment.claims)
    }
}

/// Whether all claims of several experiments hold.
#[must_use]
pub fn verdict_of_all(results: &[Reproduction]) -> Option<bool> {
    verdict(results.iter().flat_map(|e| &e.experiment.claims))
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
