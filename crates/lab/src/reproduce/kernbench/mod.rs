//! Kernbench under several locks and loads.

mod claims;
mod measure;

pub use measure::{Measured, Sample};

use super::{
    Compared, Grade, Judged, Progress, ReproduceError, Reproduction, Runs, Settings, all, grade,
    seeds, spread,
};
use crate::experiment::{Figure, Kernbench, Load};
use crate::stats::Summary;
use overspin_sim::Options;

/// Runs `experiment`.
pub(super) fn reproduce(
    experiment: &Kernbench,
    settings: Settings,
    progress: Progress<'_>,
) -> Result<Reproduction, ReproduceError> {
    let scale = if settings.full { 1 } else { experiment.scale };
    let seeds = seeds(experiment.scenario.seed, settings.seeds.unwrap_or(experiment.seeds));
    let mut jobs = Vec::new();
    for lock in &experiment.locks {
        for load in &experiment.loads {
            jobs.extend(seeds.iter().map(|seed| (lock, load, *seed)));
        }
    }
    let one = |(lock, load, seed): (&String, &Load, u64)| {
        let scenario = experiment.variant(lock, load, scale);
        let outcome = overspin_sim::run(&scenario, seed, Options::default()).map_err(|cause| {
            ReproduceError::Sim { run: format!("{lock}, {} load", load.name), cause }
        })?;
        Ok(Sample::new(lock, &load.name, &outcome, f64::from(scale)))
    };
    let runs = all(jobs, settings.threads, progress, one)?;
    Ok(assemble(experiment, scale, seeds, runs))
}

/// Puts the runs beside the published figures.
fn assemble(
    experiment: &Kernbench,
    scale: u32,
    seeds: Vec<u64>,
    runs: Vec<Sample>,
) -> Reproduction {
    let measured = Measured::new(experiment, &runs);
    let figures = experiment.figures.iter().map(|f| compare(f, &measured)).collect();
    let claims = experiment
        .claims
        .iter()
        .map(|claim| {
            let (holds, evidence) = claims::judge(&experiment.id, claim.id, &measured);
            Judged { id: claim.id, text: claim.text.clone(), holds, evidence }
        })
        .collect();
    Reproduction {
        schema: "overspin-reproduction/1",
        version: env!("CARGO_PKG_VERSION"),
        experiment: experiment.id.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        scale,
        limit_s: measure::seconds(experiment.scenario.limit) / f64::from(scale),
        seeds,
        figures,
        claims,
        parameters: experiment.parameters.clone(),
        runs: Runs::Kernbench(runs),
    }
}

fn compare(figure: &Figure, measured: &Measured<'_>) -> Compared {
    let (summary, unfinished) = measured.figure(figure);
    let mut note = unfinished.note();
    let error = figure.mean.zip(summary).map(|(published, s)| s.mean / published - 1.0);
    let grade = if figure.never {
        note = Some(format!(
            "{} of {} runs finished",
            unfinished.runs - unfinished.unfinished,
            unfinished.runs
        ));
        if unfinished.runs > 0 && unfinished.unfinished == unfinished.runs {
            Grade::Good
        } else {
            Grade::Missed
        }
    } else {
        // The runs that finished may be the lucky ones.
        grade(error.filter(|_| unfinished.unfinished == 0))
    };
    Compared {
        metric: figure.metric.clone(),
        place: figure.place(),
        published: figure.mean,
        published_stddev: figure.stddev,
        simulated: summary.map(|s: Summary| s.mean),
        simulated_stddev: spread(summary),
        error,
        role: figure.role,
        grade,
        note,
    }
}

#[cfg(test)]
mod tests;
