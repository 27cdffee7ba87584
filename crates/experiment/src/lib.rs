//! Experiments: a scenario, what to vary in it, and what was published about it.
//!
//! To add an experiment, add its file and a line in `BUILT_IN` of `registry.rs`. Most are of the kind `sweep`, which is data
//! alone. To add another kind, add a folder here with a type that is a [`Kind`], and a line in `KINDS` there.
#![forbid(unsafe_code)]

mod along;
pub(crate) mod claim;
pub(crate) mod figure;
mod file;
mod making;
mod outcome;
pub(crate) mod panels;
pub mod pv_ticket;
mod record;
mod registry;
pub mod report;
pub mod schedbench;
pub mod sweep;

pub use along::{Along, place_words};
pub use figure::Figure;
pub use file::{Claim, Head};
pub use pv_ticket::PvTicket;
pub use record::record;
pub use schedbench::Schedbench;
pub use sweep::Sweep;

pub use making::{KindResult, Progress, ReproduceError, Settings};
#[cfg(test)]
pub(crate) use outcome::verdict;
pub use outcome::{Reproduction, verdict_of_all};
pub use overspin_runs::record::{Compared, Grade, Judged, Parameter, Role};
pub use registry::{
    all, built_in, kernbench_2008, metrics, names, parse, quickest_first, schedbench_2016,
    schedbench_machine, text,
};

use overspin_claims::{Samples, Vocabulary};
use overspin_located::LocatedError;
use overspin_report::Panel;
use overspin_runs::record::Record;
use overspin_runs::scenario_file::tree::Document;
use panels::of_figures;
use std::fmt::Debug;
use std::sync::Arc;

/// An experiment of any kind.
#[derive(Debug)]
pub struct Experiment {
    /// The part that all kinds have.
    pub head: Head,
    /// The rest.
    pub kind: Box<dyn Kind>,
}

/// A kind of experiment: what it varies, runs and measures.
pub trait Kind: Debug + Send + Sync {
    /// The names that expressions may use: what it measures where, and what its set-up says was published.
    fn vocabulary(&self) -> Vocabulary;

    /// Reads the expressions of its set-up, if that has some.
    ///
    /// # Errors
    /// If one makes no sense.
    fn read_expressions(
        &mut self,
        _document: &Document,
        _vocabulary: &Arc<Vocabulary>,
    ) -> Result<(), LocatedError> {
        Ok(())
    }

    /// The metric of published figures that its picture shows, and its label there.
    fn picture(&self) -> (&str, &str);

    /// The panels of its picture: at least the published figures of that metric beside the simulated ones.
    fn panels(&self, result: &Reproduction) -> Vec<Panel> {
        let (metric, words) = self.picture();
        let label = |f: &Compared| (f.metric == metric).then(|| f.place.clone());
        vec![of_figures(result, words, label)]
    }

    /// What its samples show as curves; empty if it varies nothing by steps.
    fn along(&self) -> Vec<Along> {
        Vec::new()
    }

    /// Whether it also measures on threads of this machine, besides what it simulates.
    fn measures_threads(&self) -> bool {
        false
    }

    /// Runs it and measures.
    ///
    /// # Errors
    /// If the simulator refuses a scenario.
    fn run(
        &self,
        head: &Head,
        settings: Settings<'_>,
        progress: Progress<'_>,
    ) -> Result<KindResult, ReproduceError>;
}

/// Runs `experiment` and puts the results beside what was published. Calls `progress` with the number of finished runs and
/// the number of all runs.
///
/// # Errors
/// If the simulator refuses a scenario.
pub fn reproduce(
    experiment: &Experiment,
    settings: Settings<'_>,
    progress: Progress<'_>,
) -> Result<Reproduction, ReproduceError> {
    let head = &experiment.head;
    let result = experiment.kind.run(head, settings, progress)?;
    Ok(Reproduction {
        experiment: overspin_record::Experiment {
            id: head.id.clone(),
            title: head.title.clone(),
            source: head.source.clone(),
            scale: settings.scale(head),
            limit_s: result.limit_s,
            seeds: settings.seeds(head),
            figures: figure::compared(&head.figures, &result.samples),
            claims: claim::judged(&head.claims, &result.samples),
            parameters: head.parameters.clone(),
        },
        runs: result.runs,
        samples: result.samples.rows,
        details: result.details,
    })
}

/// What was published, held against a record of the same benchmark in another world: places and metrics have the names of the
/// experiment's own.
#[must_use]
pub fn against(experiment: &Experiment, record: &Record) -> (Vec<Compared>, Vec<Judged>) {
    let seeds = record.runs.iter().map(|_| None).collect();
    let samples = Samples { rows: record.samples.clone(), seeds };
    let Head { figures, claims, .. } = &experiment.head;
    (figure::compared(figures, &samples), claim::judged(claims, &samples))
}

#[cfg(test)]
mod tests;
