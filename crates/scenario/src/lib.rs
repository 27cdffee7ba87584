#![doc = include_str!("../README.md")]
//!
//! # What depends on what
//!
//! This crate knows no world, no lock, no scheduler and no workload; they depend on it. A workload
//! here is therefore the name of its kind with parameters ([`Workload`]); `overspin_workload` gives
//! them their meaning. The declarations of the keys of scenario files ([`keys`]) are here because
//! both the kinds and the reader of files use them.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod attribution;
mod event;
pub mod keys;
mod measurement;
mod metric;
mod noise;
mod outcome;
mod quantity;
mod scenario;
mod second;
mod time;
mod workload;

pub use attribution::*;
pub use event::*;
pub use measurement::*;
pub use metric::Metric;
pub use noise::*;
pub use outcome::*;
pub use quantity::*;
pub use scenario::*;
pub use second::*;
pub use serde_json::Value;
pub use time::*;
pub use workload::*;
