//! What to run and what came out, as plain data. Every world reads a [`Scenario`] and writes an
//! [`Outcome`]; neither knows how the other end uses it.

mod attribution;
mod dbench;
mod event;
mod noise;
mod outcome;
mod scenario;

pub use attribution::*;
pub use dbench::*;
pub use event::*;
pub use noise::*;
pub use outcome::*;
pub use scenario::*;
