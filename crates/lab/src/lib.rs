//! Results: scenarios from TOML, experiments with their published figures, statistics, reports and traces.
//! This crate computes everything that the `overspin` command prints.
#![forbid(unsafe_code)]

pub mod advise;
pub mod bench;
pub mod calibrate;
pub mod catalog;
pub mod claims;
pub mod compare;
pub mod doctor;
pub mod environment;
pub mod examples;
pub mod experiment;
pub mod explain;
pub mod fit;
pub mod listing;
pub mod located;
pub mod machine;
pub mod measure;
pub mod metric;
pub mod output;
pub mod page;
pub mod parallel;
pub mod perf_sched;
pub mod perfetto;
pub mod real;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod results;
pub mod rt_app;
pub mod scenario_file;
pub mod schedbench;
pub mod seeds;
pub mod stats;
pub mod sweep;
pub mod timeline;
pub mod top;
pub mod validate;
pub mod way;
pub mod xen_spinlocks;
