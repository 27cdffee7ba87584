//! What to run and what came out, as plain data. Every world reads a [`Scenario`] and writes an
//! [`Outcome`]; neither knows how the other end uses it.
//!
//! This crate knows no world, no lock, no scheduler and no workload; those know it. So a workload is
//! here the name of its kind with its parameters ([`Workload`]), and what a kind makes of them is
//! the business of `overspin_workload`. The words in which keys of scenario files are declared
//! ([`keys`]) are here because the kinds use them as well as the reader of files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod attribution;
mod event;
pub mod keys;
mod noise;
mod outcome;
mod quantity;
mod scenario;
mod time;
mod workload;

pub use attribution::*;
pub use event::*;
pub use noise::*;
pub use outcome::*;
pub use quantity::*;
pub use scenario::*;
pub use serde_json::Value;
pub use time::*;
pub use workload::*;
