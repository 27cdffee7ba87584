//! Experiments: a scenario, what to vary in it, and what was published about it.
//!
//! To add an experiment, add its file and a line in `BUILT_IN` of `registry.rs`. To add a kind of experiment, add a folder
//! here with a type that is a [`Kind`], and a line in `KINDS` there.
#![forbid(unsafe_code)]

mod along;
pub(crate) mod claim;
pub mod dbench;
pub(crate) mod figure;
mod file;
pub mod kernbench;
mod making;
pub mod notification;
mod outcome;
pub(crate) mod panels;
pub mod pv_ticket;
mod record;
mod registry;
pub mod report;
pub mod schedbench;

pub use along::Along;
pub use dbench::Dbench;
pub use figure::Figure;
pub use file::{Claim, Head};
pub use kernbench::Kernbench;
pub use notification::Notification;
pub use pv_ticket::PvTicket;
pub use record::record;
pub use schedbench::Schedbench;

pub use making::{Found, Progress, ReproduceError, Settings};
pub(crate) use making::{on_all_threads, raw};
#[cfg(test)]
pub(crate) use outcome::verdict;
pub use outcome::{Reproduction, verdict_of_all};
pub use overspin_runs::record::{Compared, Grade, Judged, Parameter, Role};
#[cfg(test)]
pub(crate) use registry::aligned_2001;
pub use registry::{
    all, built_in, kernbench_2008, metrics, names, nearest_name, parse, quickest_first,
    schedbench_2016, schedbench_machine, text,
};

use overspin_claims::Vocabulary;
use overspin_report::Panel;
use panels::of_figures;
use std::fmt::Debug;

/// An experiment of any kind.
pub type Experiment = Box<dyn Kind>;

/// A kind of experiment: what it varies, runs and measures.
pub trait Kind: Debug + Send + Sync {
    /// The part that all kinds have.
    fn head(&self) -> &Head;

    /// The part that all kinds have, to be changed.
    fn head_mut(&mut self) -> &mut Head;

    /// The names that expressions may use: what it measures where, and what its set-up says was published.
    fn vocabulary(&self) -> Vocabulary;

    /// The metric that its picture shows, and its label there.
    fn picture(&self) -> (&'static str, &'static str);

    /// The panels of its picture: at least the published figures of that metric beside the simulated ones.
    fn panels(&self, result: &Reproduction) -> Vec<Panel> {
        let (metric, words) = self.picture();
        let label = |f: &Compared| (f.metric == metric).then(|| f.place.clone());
        vec![of_figures(result, words, label)]
    }

    /// What its samples show as curves; empty if it varies nothing by steps.
    fn along(&self) -> &'static [Along] {
        &[]
    }

    /// Runs it and puts the results beside what was published.
    ///
    /// # Errors
    /// If the simulator refuses a scenario.
    fn run(&self, settings: Settings<'_>, progress: Progress<'_>) -> Result<Found, ReproduceError>;
}

/// Runs `experiment`. Calls `progress` with the number of finished runs and the number of all runs.
///
/// # Errors
/// If the simulator refuses a scenario.
pub fn reproduce(
    experiment: &Experiment,
    settings: Settings<'_>,
    progress: Progress<'_>,
) -> Result<Reproduction, ReproduceError> {
    let head = experiment.head();
    let found = experiment.run(settings, progress)?;
    Ok(Reproduction {
        experiment: head.id.clone(),
        title: head.title.clone(),
        source: head.source.clone(),
        scale: settings.scale(head),
        limit_s: found.limit_s,
        seeds: settings.seeds(head),
        figures: figure::compared(&head.figures, &found.samples),
        claims: claim::judged(&head.claims, &found.samples),
        parameters: head.parameters.clone(),
        runs: found.runs,
        samples: found.samples.rows,
        details: found.details,
    })
}

#[cfg(test)]
mod tests;
