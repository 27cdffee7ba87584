//! Tests of the simulated world from outside: scenarios in, outcomes and traces out. One program,
//! so that it is linked once.

mod common;
mod conservation;
mod determinism;
