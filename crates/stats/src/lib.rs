//! Statistics of samples, whatever they measure.
#![forbid(unsafe_code)]

pub mod difference;
mod fairness;
mod groups;
mod spread;
mod summary;

pub use fairness::jain;
pub use groups::{FALSE_ALARMS, FEWEST};
pub use spread::{CONFIDENCE, Finding, Spread, ranges};
pub use summary::Summary;
