#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod advise;
pub mod bench;
pub mod calibrate;
pub mod catalog;
pub mod compare;
pub mod doctor;
pub mod examples;
pub mod experiment;
pub mod explain;
pub mod fit;
pub mod listing;
pub mod measure;
pub mod metric;
pub mod page;
pub mod parallel;
pub mod perf_sched;
pub mod perfetto;
pub mod real;
pub mod record;
pub mod rt_app;
pub mod run;
pub mod scenario_file;
pub mod schedbench;
pub mod seeds;
pub mod sweep;
pub mod timeline;
pub mod top;
pub mod validate;
pub mod way;
pub mod xen_spinlocks;

pub use overspin_claims as claims;
pub use overspin_record::{environment, output, results};
