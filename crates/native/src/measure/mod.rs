//! Measurements of the machine at hand: figures for the host of a scenario.
//!
//! - [`noise()`]: how often, and for how long, a CPU is taken away from a thread that only computes.

mod busy_timer;
mod gaps;
mod histogram;
mod kernel;
mod noise;
mod packing;
mod singles;
mod system;

pub use gaps::{GapsByCause, LONG_NS, SHORTEST_NS};
pub use histogram::{Bin, Histogram};
pub use kernel::{KernelCosts, KernelSingles};
pub(crate) use kernel::{busy_lateness, lateness, median};
pub use noise::{CpuNoise, Noise, NoiseError, NoisePlan, Steal, noise};
pub use packing::packed_wakes;
pub use singles::{deviations, halves, without};
pub use system::{System, allowed_cpus};
