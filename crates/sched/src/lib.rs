#![doc = include_str!("../README.md")]
//!
//! # What a world must do
//!
//! - Call every method with a `now` that never runs backwards (it may stand still).
//! - On [`Action::Resched`], call [`Hypervisor::schedule`] on that pCPU as soon as it can, after
//!   all timers due at that instant. Several requests before that pass count as one.
//! - After each `schedule` whose `prev` and `next` differ, switch, then call
//!   [`Hypervisor::context_saved`]; only then may that pCPU schedule again.
//! - When a timer expires, call [`Hypervisor::timer`]. Deliver timers due at the same instant in
//!   the order of [`TimerId`]: ticks, then accounting, then slices, with pCPUs in index order.
//!
//! # Where to look
//!
//! To write a scheduler, implement [`Scheduler`]. [`Schedulers`] lists the existing schedulers and
//! accepts yours. [`make`] builds a scheduler of this crate by name.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod affinity;
mod builtin;
mod bvt;
pub mod conformance;
mod cosched;
mod cpuset;
mod credit;
mod credit2;
mod error;
mod homes;
mod hypervisor;
mod ids;
mod linux;
mod list;
mod machine;
mod nearest;
mod null;
mod params;
mod pools;
mod registry;
mod round_robin;
mod rtds;
mod scheduler;
mod sedf;
mod time;
mod topology;

pub use affinity::{Affinity, AffinityMask};
pub use cpuset::CpuSet;
pub use credit::Credit;
pub use credit2::Credit2;
pub use error::SchedError;
pub use hypervisor::{Change, Hypervisor, Switch};
pub use ids::{Action, DomainId, PcpuId, PoolId, TimerId, VcpuId};
pub use linux::{Cfs2008Queues, TaskQueues};
pub use machine::{Machine, RunState, RunTimes};
pub use nearest::{nearest, suggestion};
pub use params::{ParamInfo, ParamKind, ParamValue, Params};
pub use pools::Pools;
pub use registry::{MakeScheduler, SchedulerInfo, Schedulers, find, make, schedulers};
pub use scheduler::{Context, Decision, Detail, DomainParams, Opaque, Scheduler, Whose};
pub use time::Nanos;
pub use topology::Topology;
