#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod advise;
pub mod bench;
pub mod calibrate;
pub mod compare;
pub mod doctor;
pub mod fit;
mod kernels_scheduler;
pub mod measure;
pub mod metric;
pub mod perf_lock;
pub mod perf_sched;
pub mod real;
pub mod rt_app;
pub mod runqlat;
pub mod validate;
pub mod watch;
pub mod xen_spinlocks;
