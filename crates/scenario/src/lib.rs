#![doc = include_str!("../README.md")]
//!
//! # What depends on what
//!
//! This crate knows no world, no lock, no scheduler and no workload; they depend on it. A workload
//! here is therefore the name of its kind with parameters ([`Workload`]); `overspin_workload` gives
//! them their meaning. The structures are declared together with their keys in files ([`keys`],
//! [`parameters!`]): the kinds of workloads, the reader and the writer of files, and the checks of worlds use these tables.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

#[macro_use]
mod parameters;

mod attribution;
mod counted;
mod event;
mod fault;
pub mod keys;
mod measurement;
mod metric;
mod noise;
mod outcome;
mod quantity;
mod scenario;
mod second;
mod time;
mod varying;
mod workload;

pub use attribution::*;
pub use counted::Halves;
pub use event::*;
pub use fault::Fault;
pub use measurement::*;
pub use metric::Metric;
pub use noise::*;
pub use outcome::*;
pub use quantity::*;
pub use scenario::*;
pub use second::*;
pub use serde_json::Value;
pub use time::*;
pub use varying::*;
pub use workload::*;
