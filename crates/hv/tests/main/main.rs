//! Tests of the micro-hypervisor from outside. They are one program, so that it is linked once.

/// A guest in C.
mod c_guest;
/// Scenarios, and the reason to skip.
mod common;
/// Hypercalls and pages of a hostile guest.
mod hostile;
/// Runs on KVM.
mod real;
/// Guests whose tasks share vCPUs.
mod tasks;
