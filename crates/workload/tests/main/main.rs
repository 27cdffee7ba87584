//! Tests of the workloads from outside.

/// Workloads on operating system threads.
mod threads;
