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
// A kernel that schedules only its own tasks does without `vcpus`. What remains has parts for vCPUs, of which the compiler
// makes no code: nothing calls them, and they are not public.
#![cfg_attr(not(feature = "vcpus"), allow(dead_code, unused_imports))]

extern crate alloc;

mod affinity;
#[cfg(feature = "vcpus")]
mod builtin;
#[cfg(feature = "vcpus")]
mod bvt;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "vcpus")]
mod cosched;
mod cpuset;
#[cfg(feature = "vcpus")]
mod credit;
#[cfg(feature = "vcpus")]
mod credit2;
mod error;
mod homes;
#[cfg(feature = "vcpus")]
mod hypervisor;
mod ids;
mod linux;
mod list;
mod machine;
mod nearest;
#[cfg(feature = "vcpus")]
mod null;
mod params;
#[cfg(feature = "vcpus")]
mod pools;
mod registry;
#[cfg(feature = "vcpus")]
mod round_robin;
#[cfg(feature = "vcpus")]
mod rtds;
mod scheduler;
#[cfg(feature = "vcpus")]
mod sedf;
mod time;
mod topology;

#[cfg(not(feature = "vcpus"))]
mod builtin {
    pub(crate) static BUILTIN: &[crate::registry::SchedulerInfo] = &[];
}

macro_rules! names {
    ($($visible:tt)*) => {
        $($visible)* use {
            affinity::{Affinity, AffinityMask},
            cpuset::CpuSet,
            error::SchedError,
            ids::{Action, DomainId, PcpuId, PoolId, TimerId, VcpuId},
            machine::{Machine, RunState, RunTimes},
            nearest::{nearest, suggestion},
            params::{ParamInfo, ParamKind, ParamValue, Params},
            registry::{MakeScheduler, SchedulerInfo, Schedulers, find, make, schedulers},
            scheduler::{
                Context, Decision, Detail, DomainParams, Opaque, Scheduler, Throttling, Whose,
            },
            topology::Topology,
        };
    };
}

#[cfg(feature = "vcpus")]
names!(pub);
// For modules of this crate, which may be there without the feature.
#[cfg(not(feature = "vcpus"))]
names!();

pub use linux::{Cfs2008Queues, TaskQueues};
pub use time::Nanos;
#[cfg(feature = "vcpus")]
pub use {
    credit::Credit,
    credit2::Credit2,
    hypervisor::{Change, Hypervisor, Switch},
    pools::Pools,
};
