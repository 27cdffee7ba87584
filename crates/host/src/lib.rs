//! What a paravirtual host does, whatever runs it, and how what happens is told.
//!
//! - [`World`]: something that runs scenarios; [`run`] has one run and completes its outcome.
//! - [`Moment`] and [`Observer`]: the one stream of what happens. [`TraceHash`] and [`Attribution`] are
//!   observers; so are traces and live views.
//! - [`why`]: why a vCPU left its pCPU.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod attribution;
mod hash;
pub mod irq;
mod moment;
mod why;
mod world;

pub use attribution::Attribution;
pub use hash::TraceHash;
pub use moment::{Interest, Moment, Observer, Timed, VcpuState, WindowEnd};
pub use why::{Doing, Leaving, why};
pub use world::{Cancel, Refused, Unhonoured, World, run};
