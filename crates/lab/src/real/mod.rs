//! Real benchmarks (`overspin measure`): their report, and the seconds of their runs.

mod answer;
mod record;
mod report;
mod seconds;

pub use record::record;
pub use report::report;
pub use seconds::{csv, vmstat};
