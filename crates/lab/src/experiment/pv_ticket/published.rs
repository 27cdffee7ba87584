//! The published averages of pgbench under three kernels, and which of their differences are significant.

use super::PvTicket;
use super::threads::CONFIDENCE;
use crate::compare::difference::{Means, student};
use crate::stats::Summary;
use serde::{Deserialize, Serialize};

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
    /// Where it was measured, in words: as the figure is called that follows from it.
    pub(super) fn place(&self) -> String {
        format!("{}, scale {}, {} clients", self.kernel, self.scale, self.clients)
    }

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

/// Student's test of two averages, as ministat makes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// New minus base, and whether that is more than chance.
    pub(super) means: Means,
    /// Half the width of the confidence interval, in percent of the base.
    pub(super) margin: f64,
}

impl Test {
    /// Whether the new kernel is significantly better or worse.
    pub(super) fn sign(&self) -> &'static str {
        match self.means {
            Means { p, .. } if p >= 1.0 - CONFIDENCE => "",
            Means { difference, .. } if difference > 0.0 => "+",
            _ => "-",
        }
    }
}

/// The averages of the base kernel where another has this one.
pub(super) fn base<'a>(averages: &'a [Average], base: &str, of: &Average) -> Option<&'a Average> {
    averages.iter().find(|a| a.kernel == base && (a.scale, a.clients) == (of.scale, of.clients))
}

/// An average against that of the base kernel; none if one of them is of a single run.
pub(super) fn test(experiment: &PvTicket, new: &Average) -> Option<Test> {
    let base = base(&experiment.averages, &experiment.base, new)?;
    let means = student(&base.summary(), &new.summary(), CONFIDENCE)?;
    Some(Test { means, margin: 100.0 * means.margin / base.avg })
}
