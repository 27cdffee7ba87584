//! The published averages of pgbench under three kernels, and the significance of their differences.

use super::PvTicket;
use super::threads::CONFIDENCE;
use overspin_stats::Summary;
use overspin_stats::difference::{Means, student};
use serde::{Deserialize, Serialize};

/// Transactions per second of `clients` clients under a kernel.
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
    /// Minimum of the runs.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Median.
    pub median: f64,
    /// Mean.
    pub avg: f64,
    /// Standard deviation.
    pub stddev: f64,
}

impl Average {
    /// The place of the measurement in words: that of the figure that follows from it.
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

/// Student's test of two averages, as in ministat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Test {
    /// New minus base, and whether the difference is more than chance.
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

/// The base kernel's average that corresponds to this average.
pub(super) fn base<'a>(averages: &'a [Average], base: &str, of: &Average) -> Option<&'a Average> {
    averages.iter().find(|a| a.kernel == base && (a.scale, a.clients) == (of.scale, of.clients))
}

/// The test of an average against the base kernel's; `None` if one of them is of a single run.
pub(super) fn test(experiment: &PvTicket, new: &Average) -> Option<Test> {
    let base = base(&experiment.averages, &experiment.base, new)?;
    let means = student(&base.summary(), &new.summary(), CONFIDENCE)?;
    Some(Test { means, margin: 100.0 * means.margin / base.avg })
}
