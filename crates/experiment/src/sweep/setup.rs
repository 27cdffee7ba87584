//! `[setup]` of a sweep, as it is in the file.

use serde::Deserialize;
use std::collections::BTreeMap;

/// What is measured, and what is shown besides figures and claims.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Instruments, or single metrics of them.
    pub(super) measure: Vec<String>,
    /// The domain that is measured, by number or name.
    #[serde(default)]
    pub(super) of: Option<String>,
    /// Keys of the scenario that are divided by the scale.
    #[serde(default)]
    pub(super) scaled: Vec<String>,
    /// Which combinations run; empty means all. A list of labels for each axis that the runs have.
    #[serde(default)]
    pub(super) runs: Vec<BTreeMap<String, Vec<String>>>,
    #[serde(default)]
    pub(super) picture: Option<Picture>,
    #[serde(default)]
    pub(super) curves: Vec<Curves>,
    #[serde(default)]
    pub(super) tables: Vec<Table>,
    /// Tools whose output is shown, of the first run at each place.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// The published lines of `vmstat 1`, to be shown beside.
    #[serde(default)]
    pub(super) vmstat: Vec<PublishedTrace>,
}

/// The metric of figures that the picture shows, and its title.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Picture {
    pub(super) metric: String,
    pub(super) title: String,
}

/// Plots of metrics along an axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Curves {
    /// Metrics, each with its title.
    pub(super) metrics: Vec<(String, String)>,
    /// The axis.
    pub(super) along: String,
    /// Its title.
    pub(super) title: String,
    /// Only places with these labels.
    #[serde(default)]
    pub(super) only: BTreeMap<String, String>,
    /// Axes whose labels have plots of their own. All others name the curves.
    #[serde(default)]
    pub(super) plots: Vec<String>,
}

/// A table of formulas.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) title: String,
    #[serde(default)]
    pub(super) text: Option<String>,
    /// A row for each combination of these words.
    pub(super) rows: Vec<Rows>,
    pub(super) columns: Vec<Column>,
}

/// `$each` in the columns stands for each of the words.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rows {
    pub(super) each: String,
    /// Its heading; the default is its name.
    #[serde(default)]
    pub(super) title: Option<String>,
    /// Parts of places; the default is the labels of the axis of this name.
    #[serde(default)]
    pub(super) words: Option<Vec<String>>,
}

/// A formula in the language of claims.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub(super) title: String,
    pub(super) value: String,
    /// Digits after the point.
    #[serde(default)]
    pub(super) digits: Option<usize>,
    /// Whether it has a sign.
    #[serde(default)]
    pub(super) sign: bool,
    /// Whether the standard deviation follows in parentheses.
    #[serde(default)]
    pub(super) sd: bool,
}

/// Columns r, b, bo, us, sy and id of each second.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedTrace {
    /// The label of the place.
    pub(super) at: String,
    pub(super) rows: Vec<[f64; 6]>,
}
