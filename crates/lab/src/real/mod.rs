//! Real benchmarks (`overspin measure`): their report, and the seconds of their runs.

mod report;
mod seconds;

pub use report::report;
pub use seconds::{csv, vmstat};
