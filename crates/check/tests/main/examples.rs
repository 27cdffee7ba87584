//! The examples, included for the sake of their tests: so they stay up to date.

#[allow(dead_code, reason = "its tests do not need what prints the results")]
#[path = "../../examples/array_lock.rs"]
mod array_lock;

/// Puts the faults of the folder `faults` into a copy of the locks. Its test checks that they still apply.
#[allow(dead_code, reason = "its test does not run the faults")]
#[path = "../../examples/faults/main.rs"]
mod faults;

#[allow(dead_code, reason = "its tests do not need what prints the results")]
#[path = "../../examples/own_lock.rs"]
mod own_lock;
