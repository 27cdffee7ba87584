//! Records of measurements: one file for each kind.

mod bench;
mod calibration;
mod noise;
mod real;
mod reproduction;
mod run;
mod schedbench;
mod validation;

pub use bench::{locks, speed};
pub use calibration::calibration;
pub use noise::noise;
pub use real::real;
pub use reproduction::reproductions;
pub use run::{one, seeds, seeds_head, sweep, sweep_head};
pub use schedbench::schedbench;
pub use validation::validation;
