//! Tests of the schedulers from outside. They are one program, so that it is linked once.

/// The worked examples of the specification for bvt.
mod bvt_traces;
/// Run-time operations that are reported, and refused ones that are not.
mod changes;
/// A small deterministic world without costs.
mod common;
/// The conformance suite, on every scheduler and on seeded bugs.
mod conformance;
/// The worked examples of the specification for the co-schedulers.
mod cosched_traces;
/// Placement and moves of credit2, with their turns.
mod credit2_placement;
/// What the old profiles of credit2 do.
mod credit2_profiles;
/// The guarantees of credit2 on random hosts and loads.
mod credit2_properties;
/// The worked examples of the specification for credit2.
mod credit2_traces;
/// What the old profiles of credit do.
mod credit_profiles;
/// The worked examples of the specification for credit.
mod credit_traces;
/// The shares of equal vCPUs that start at one instant, over any long window.
mod equals;
/// Balancing of cfs and eevdf.
mod linux_balance;
/// The worked examples of the specification for cfs and eevdf.
mod linux_quotas;
mod linux_traces;
/// What directed yields cost under eevdf.
mod linux_yields;
/// The worked examples of the specification for null.
mod null_traces;
/// pCPUs and domains that move between pools.
mod pools;
/// Properties of every scheduler under random calls.
mod properties;
/// The worked examples of the specification for round robin.
mod rr_traces;
/// The worked examples of the specification for rtds.
mod rtds_traces;
/// The worked examples of the specification for sedf.
mod sedf_traces;
