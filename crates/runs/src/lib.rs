//! Runs in any world: a [catalog] of locks, schedulers, workloads and worlds, a [runner] in one of them, and what is
//! run: a scenario, many [seeds], a [sweep], a plan of [schedbench]. Each has its record and its report. [instruments] measure
//! runs of experiments.
#![forbid(unsafe_code)]

pub mod catalog;
pub mod examples;
pub mod instruments;
pub mod load;
pub mod parallel;
pub mod record;
pub mod run;
pub mod runner;
pub mod scenario_file;
pub mod schedbench;
pub mod seeds;
pub mod sweep;
