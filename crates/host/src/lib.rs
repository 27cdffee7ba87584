#![doc = include_str!("../README.md")]
//!
//! # Where to look
//!
//! - [`World`]: something that runs scenarios; [`run`] runs a scenario in a world and completes the
//!   outcome. [`Ignored`]: the keys that a world ignores.
//! - [`Moment`] and [`Observer`]: the single stream of what happens. [`TraceHash`] and [`Attribution`]
//!   are observers; so are traces and live views.
//! - [`Curve`]: how much work each domain has done, over time.
//! - [`block`]: when a blocked vCPU continues; [`halt_polling`]: when it polls on its pCPU first.
//! - [`pause_loop`], [`directed_yield`]: when a spinning vCPU exits, and which vCPU runs instead.
//! - [`notification`]: windows in which a vCPU may finish its critical sections before it is preempted.
//! - [`admin`]: the actions of an administrator.
//! - [`why()`]: why a vCPU left its pCPU.
//! - [`nanos`] and [`picos`]: conversion between times of the hypervisor and of scenarios.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod admin;
mod attribution;
pub mod block;
mod curve;
pub mod directed_yield;
pub mod guest_type;
pub mod halt_polling;
mod hash;
mod ignored;
pub mod ipis;
pub mod irq;
mod moment;
pub mod notification;
pub mod pause_loop;
mod sense;
mod time;
mod why;
mod windows;
mod world;

pub use attribution::Attribution;
pub use curve::Curve;
pub use hash::TraceHash;
pub use ignored::Ignored;
pub use moment::{Interest, LockEvent, Moment, Observer, SleepEvent, Timed, VcpuState, WindowEnd};
pub use overspin_scenario::Unhonoured;
pub use time::{nanos, picos};
pub use why::{Doing, Leaving, why};
pub use world::{Cancel, Refused, World, run};

/// Version of the model. It changes whenever a change alters simulated results.
pub const MODEL_VERSION: u32 = 7;
