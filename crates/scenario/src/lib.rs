//! What to run and what came out, as plain data. Every world reads a [`Scenario`] and writes an
//! [`Outcome`]; neither knows how the other end uses it.

mod outcome;
mod scenario;
mod trace;

pub use outcome::*;
pub use scenario::*;
pub use trace::*;
