#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod advise;
pub mod bench;
pub mod calibrate;
pub mod compare;
pub mod doctor;
pub mod examples;
pub mod fit;
pub mod listing;
pub mod measure;
pub mod metric;
pub mod page;
pub mod perf_sched;
pub mod real;
pub mod rt_app;
pub mod validate;
pub mod xen_spinlocks;

pub use overspin_claims as claims;
pub use overspin_experiment as experiment;
pub use overspin_record::{environment, output, results};
pub use overspin_runs::{
    catalog, parallel, record, run, scenario_file, schedbench, seeds, sweep, way,
};
pub use overspin_watch::{explain, perfetto, timeline, top};
