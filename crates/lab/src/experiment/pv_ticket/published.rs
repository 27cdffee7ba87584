//! The published table: averages of pgbench under three kernels, and improvements in percent.

use super::PvTicket;
use crate::compare::difference::{Means, student};
use crate::experiment::Role;
use crate::reproduce::{Compared, Grade};
use crate::stats::Summary;
use serde::{Deserialize, Serialize};

/// What the figures are.
pub(super) const METRIC: &str = "improvement_percent";

/// Transactions a second of so many clients under a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Average {
    /// Kernel.
    pub kernel: String,
    /// Size of the database, in units of 100,000 accounts.
    pub scale: u32,
    /// Clients.
    pub clients: u32,
    /// Runs.
    pub runs: usize,
    /// Least of the runs.
    pub min: f64,
    /// Most.
    pub max: f64,
    /// Middle.
    pub median: f64,
    /// Mean.
    pub avg: f64,
    /// Standard deviation.
    pub stddev: f64,
}

impl Average {
    fn summary(&self) -> Summary {
        Summary {
            n: self.runs,
            mean: self.avg,
            stddev: self.stddev,
            min: self.min,
            median: self.median,
            max: self.max,
        }
    }
}

/// A published improvement over the base kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Kernel.
    pub kernel: String,
    /// Size of the database.
    pub scale: u32,
    /// Clients.
    pub clients: u32,
    /// Percent, as printed: the digits count.
    pub percent: String,
    /// What it may be used for.
    pub role: Role,
}

impl Figure {
    /// Where it was measured, in words.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}, scale {}, {} clients", self.kernel, self.scale, self.clients)
    }
}

/// The averages of the base kernel and of the figure's.
pub(super) fn rows<'a>(
    averages: &'a [Average],
    base: &str,
    figure: &Figure,
) -> Option<[&'a Average; 2]> {
    let row = |kernel: &str| {
        averages
            .iter()
            .find(|a| a.kernel == kernel && (a.scale, a.clients) == (figure.scale, figure.clients))
    };
    Some([row(base)?, row(&figure.kernel)?])
}

/// A figure computed again.
#[derive(Clone, Debug)]
pub(super) struct Again {
    /// In percent.
    pub(super) percent: f64,
    /// The same with as many digits as were printed.
    pub(super) text: String,
    /// Student's test of the two averages, as ministat makes it.
    pub(super) test: Option<Means>,
    /// Half the width of the confidence interval, in percent of the base.
    pub(super) margin: Option<f64>,
}

/// (new - base) / base, and whether that is more than chance at 95 %.
pub(super) fn again(experiment: &PvTicket, figure: &Figure) -> Option<Again> {
    let [base, new] = rows(&experiment.averages, &experiment.base, figure)?;
    let percent = 100.0 * (new.avg - base.avg) / base.avg;
    let digits = figure.percent.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let test = student(&base.summary(), &new.summary(), 0.95);
    Some(Again {
        percent,
        text: format!("{percent:+.digits$}"),
        test,
        margin: test.map(|t| 100.0 * t.margin / base.avg),
    })
}

/// The figure beside what follows from the averages. It is good if every printed digit is right, and
/// missed otherwise.
pub(super) fn compare(experiment: &PvTicket, figure: &Figure) -> Compared {
    let again = again(experiment, figure);
    let published = figure.percent.parse().ok();
    let same = again.as_ref().is_some_and(|a| a.text == figure.percent);
    let percent = again.as_ref().map(|a| a.percent);
    Compared {
        metric: METRIC.into(),
        place: figure.place(),
        published,
        published_stddev: None,
        simulated: percent,
        simulated_stddev: None,
        error: published.zip(percent).map(|(p, s): (f64, f64)| s / p - 1.0),
        role: figure.role,
        grade: if same { Grade::Good } else { Grade::Missed },
        note: again.map(|a| format!("printed {}, follows {}", figure.percent, a.text)),
    }
}
