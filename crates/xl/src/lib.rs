//! Runs on real Xen: takes pCPUs for a pool, starts guests in it, collects what they report, and restores the host.
//!
//! Everything goes through the program `xl` of Xen's own tools, so that this crate depends on no version of Xen. The
//! same code runs in the dom0 of a real host and in that of an emulated one.
//!
//! A [`Job`] is one run. [`run`] makes it. A guest runs a program that speaks the [`Line`]s of this crate on its
//! console.
#![forbid(unsafe_code)]

mod console;
mod error;
mod guest;
mod job;
mod line;
mod message;
mod pool;
mod session;
mod xl;

pub use error::XlError;
pub use guest::{GuestType, Images};
pub use job::{Guest, Job, Pool, SCHEDULERS};
pub use line::{Line, Sample, Start, WORK};
pub use message::{Message, Orders};
pub use session::{Reports, run, watch};
pub use xl::Xl;
