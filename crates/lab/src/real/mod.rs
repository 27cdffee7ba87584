//! Real benchmarks (`overspin measure`): their report and their curves, and the seconds of their runs.

mod answer;
mod curves;
mod record;
mod report;
mod seconds;

pub use curves::curves;
pub use record::{Of, of_last, record};
pub use report::{change, report};
pub use seconds::{csv, labels, vmstat};
