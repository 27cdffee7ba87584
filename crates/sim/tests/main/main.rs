//! Tests of the simulated world from outside: scenarios in, outcomes and traces out. They are one program,
//! so that it is linked once.

mod attribution;
mod callers_stack;
mod closed_forms;
mod common;
mod conservation;
mod costs;
mod dbench;
mod deadlock;
mod determinism;
mod errors;
mod events;
mod excursions;
mod guest_kernel;
mod host_options;
mod noise;
mod notification;
mod pgbench;
mod phases;
mod platform;
mod pools;
mod preemption;
mod queueing;
mod random_scenarios;
mod several;
mod shares;
mod shootdown;
mod slice_extension;
mod steal_governor;
mod stream;
mod ticks;
mod user_mode;
mod waiters;
mod warmup;
