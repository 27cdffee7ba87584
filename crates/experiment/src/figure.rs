//! Published figures: what the file says about each, and the simulated figure beside it.

use super::file::fail;
use crate::{Compared, Grade};
use overspin_claims::{Formula, Index, Samples};
use overspin_located::LocatedError;
use overspin_runs::record::Role;
use overspin_runs::scenario_file::tree::Document;
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
    /// The formula, in terms of measured and published values.
    #[serde(default)]
    pub simulated: Option<String>,
    /// Published mean.
    #[serde(default)]
    pub mean: Option<f64>,
    /// The mean as it was printed, for a figure that is recomputed: the digits count.
    #[serde(default)]
    pub printed: Option<String>,
    /// The publication says that this never ended.
    #[serde(default)]
    pub never: bool,
    /// Published standard deviation.
    #[serde(default)]
    pub stddev: Option<f64>,
    /// The permitted use.
    pub role: Role,
    /// The published words that `simulated` follows.
    #[serde(default)]
    pub words: Option<String>,
    /// `simulated`, once it is read.
    #[serde(skip)]
    pub formula: Option<Formula>,
}

impl Figure {
    /// Checks that it states in exactly one way what was published.
    pub(super) fn check(&self, document: &Document, number: usize) -> Result<(), LocatedError> {
        let (below, message, help) = match (self.role, &self.printed, self.mean, self.never) {
            (Role::Recompute, Some(_), None, false) if self.published().is_some() => return Ok(()),
            (Role::Recompute, Some(printed), None, false) => {
                (".printed", format!("`{printed}` is not a number"), "for example \"-3.32422\"")
            }
            (Role::Recompute, ..) => {
                let message = "a figure to recompute needs `printed` and no other value";
                ("", message.into(), "the digits count: `printed = \"-3.32422\"`")
            }
            (_, None, Some(_), false) | (_, None, None, true) => return Ok(()),
            _ => {
                let message = "a figure needs either `mean` or `never`";
                (
                    "",
                    message.into(),
                    "`mean = 1.5` or `never = true`; `printed` is for figures to recompute",
                )
            }
        };
        fail(document, &format!("figures.{number}{below}"), message, help)
    }

    /// The published value, in the unit of its metric.
    pub(super) fn published(&self) -> Option<f64> {
        let printed = || self.printed.as_ref()?.parse().ok().filter(|v: &f64| v.is_finite());
        self.mean.or_else(printed)
    }

    /// A value in the format of the printed one: with a sign if that has one, and as many digits.
    fn digits(&self, value: f64) -> Option<String> {
        let printed = self.printed.as_ref()?;
        let digits = printed.split_once('.').map_or(0, |(_, part)| part.len());
        Some(if printed.starts_with(['+', '-']) {
            format!("{value:+.digits$}")
        } else {
            format!("{value:.digits$}")
        })
    }

    /// The value that follows from other figures, with the printed number of digits.
    pub(super) fn again(&self, samples: &Samples) -> Option<String> {
        let computed = self.formula.as_ref()?.compute(&Index::new(samples)).ok()?;
        self.digits(computed.mean)
    }

    /// The figure beside the value of its formula.
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
            // The publication has no number, so none can be near it. But we can count the runs that have what
            // the formula refers to; where they do not, no expression has a value.
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

/// The figures beside the measured values.
pub(crate) fn compared(figures: &[Figure], samples: &Samples) -> Vec<Compared> {
    let index = Index::new(samples);
    figures.iter().map(|figure| figure.compared(&index)).collect()
}
