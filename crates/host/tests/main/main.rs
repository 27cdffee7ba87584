//! Tests of the rules of a host from outside.

/// Observers, and attribution of hand-written moments.
mod moments;
