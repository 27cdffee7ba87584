//! Errors with a place in a text, as a compiler has them: the line, a mark under the fault, and the remedy.
#![forbid(unsafe_code)]

mod drawing;
mod error;
mod window;

pub use drawing::{drawing, plain};
pub use error::LocatedError;
