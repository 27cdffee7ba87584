//! Published figures: what the file says of each, and the simulated one beside it.

use super::file::{Role, fail};
use crate::claims::{Formula, Index, Samples};
use crate::reproduce::{Compared, Grade};
use crate::scenario_file::ScenarioError;
use crate::scenario_file::tree::Document;
use serde::Deserialize;

/// A published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Where it was measured, in words.
    #[serde(rename = "where")]
    pub place: String,
    /// What was measured, with its unit.
    pub metric: String,
    /// How it is computed of what is measured and published.
    #[serde(default)]
    pub simulated: Option<String>,
    /// Published mean.
    #[serde(default)]
    pub mean: Option<f64>,
    /// The same as it was printed, of a figure that is computed again: the digits count.
    #[serde(default)]
    pub printed: Option<String>,
    /// It was published that this never ended.
    #[serde(default)]
    pub never: bool,
    /// Published standard deviation.
    #[serde(default)]
    pub stddev: Option<f64>,
    /// What it may be used for.
    pub role: Role,
    /// The published words that `simulated` follows.
    #[serde(default)]
    pub words: Option<String>,
    /// `simulated`, once it was read.
    #[serde(skip)]
    pub formula: Option<Formula>,
}

impl Figure {
    /// Whether it says in one way what was published.
    pub(super) fn check(&self, document: &Document, number: usize) -> Result<(), ScenarioError> {
        let (below, message, help) = match (self.role, &self.printed, self.mean, self.never) {
            (Role::Recompute, Some(_), None, false) if self.published().is_some() => return Ok(()),
            (Role::Recompute, Some(printed), None, false) => {
                (".printed", format!("`{printed}` is no number"), "for example \"-3.32422\"")
            }
            (Role::Recompute, ..) => {
                let message = "a figure to recompute has `printed`, and nothing else";
                ("", message.into(), "the digits count: `printed = \"-3.32422\"`")
            }
            (_, None, Some(_), false) | (_, None, None, true) => return Ok(()),
            _ => {
                let message = "a figure has a `mean`, or was published as `never`";
                ("", message.into(), "`mean = 1.5` or `never = true`; `printed` is to recompute")
            }
        };
        fail(document, &format!("figures.{number}{below}"), message, help)
    }

    /// The published value, in the unit of its metric.
    pub(super) fn published(&self) -> Option<f64> {
        let printed = || self.printed.as_ref()?.parse().ok().filter(|v: &f64| v.is_finite());
        self.mean.or_else(printed)
    }

    /// A value as it would have been printed: with a sign if there is one, and as many digits.
    fn digits(&self, value: f64) -> Option<String> {
        let printed = self.printed.as_ref()?;
        let digits = printed.split_once('.').map_or(0, |(_, part)| part.len());
        Some(if printed.starts_with(['+', '-']) {
            format!("{value:+.digits$}")
        } else {
            format!("{value:.digits$}")
        })
    }

    /// What follows from other figures, with the printed digits.
    pub(super) fn again(&self, samples: &Samples) -> Option<String> {
        let computed = self.formula.as_ref()?.compute(&Index::new(samples)).ok()?;
        self.digits(computed.mean)
    }

    /// The figure beside what its formula comes to.
    fn compared(&self, index: &Index<'_>) -> Compared {
        let computed = match &self.formula {
            Some(formula) => formula.compute(index),
            None => Err("the figure does not say how (`simulated`)".into()),
        };
        let published = self.published();
        let (summary, why) = match computed {
            Ok(summary) => (Some(summary), None),
            Err(why) => (None, Some(format!("not computed: {why}"))),
        };
        let simulated = summary.map(|s| s.mean);
        let error = published.zip(simulated).map(|(p, s)| s / p - 1.0);
        let good = |is| if is { Grade::Good } else { Grade::Missed };
        let (grade, note) = if let (true, Some(formula)) = (self.never, &self.formula) {
            // No number was published, so none can be near it. What can be told is how many runs have
            // what the formula refers to, and no expression has a value where they have not.
            let (ended, runs) = formula.runs(index);
            (good(ended == 0 && runs > 0), Some(format!("{ended} of {runs} runs finished")))
        } else if let (Some(printed), Some(again)) =
            (&self.printed, simulated.and_then(|value| self.digits(value)))
        {
            (good(again == *printed), Some(format!("printed {printed}, follows {again}")))
        } else {
            (Grade::of(error), why)
        };
        Compared {
            metric: self.metric.clone(),
            place: self.place.clone(),
            published,
            published_stddev: self.stddev,
            simulated,
            simulated_stddev: summary.filter(|s| s.n > 1).map(|s| s.stddev),
            error,
            role: self.role,
            grade,
            note,
        }
    }
}

/// The figures beside what was measured.
pub(crate) fn compared(figures: &[Figure], samples: &Samples) -> Vec<Compared> {
    let index = Index::new(samples);
    figures.iter().map(|figure| figure.compared(&index)).collect()
}
