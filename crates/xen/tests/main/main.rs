//! Tests of real Xen.

/// Xen in an emulated machine.
mod emulated;
