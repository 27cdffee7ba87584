//! What a paravirtual host does, whatever runs it, and how what happens is told.
//!
//! - [`World`]: something that runs scenarios; [`run`] has one run and completes its outcome.
//! - [`Moment`] and [`Observer`]: the one stream of what happens. [`TraceHash`] and [`Attribution`] are
//!   observers; so are traces and live views.
//! - [`block`]: when a vCPU that blocks goes on; [`halt_polling`]: when it polls on its pCPU first.
//! - [`pause_loop`], [`directed_yield`]: when a vCPU that spins exits, and which one runs instead.
//! - [`notification`]: windows in which a vCPU may finish what it does before it is preempted.
//! - [`admin`]: what an administrator does.
//! - [`why`]: why a vCPU left its pCPU.
//! - [`nanos`] and [`picos`]: times of the hypervisor and of scenarios.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod admin;
mod attribution;
pub mod block;
pub mod directed_yield;
pub mod halt_polling;
mod hash;
pub mod irq;
mod moment;
pub mod notification;
pub mod pause_loop;
mod time;
mod why;
mod windows;
mod world;

pub use attribution::Attribution;
pub use hash::TraceHash;
pub use moment::{Interest, Moment, Observer, Timed, VcpuState, WindowEnd};
pub use time::{nanos, picos};
pub use why::{Doing, Leaving, why};
pub use world::{Cancel, Refused, Unhonoured, World, run};
