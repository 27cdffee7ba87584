//! The record that everything that measures writes, and everything that reads reads.

mod sample;

pub use sample::Sample;
