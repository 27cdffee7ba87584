//! Code that forbids `unsafe` cannot vouch for a lock.
#![forbid(unsafe_code)]

#[path = "support/open.rs"]
mod open;

use open::Open;
use overspin_native::{NativeLock, native_lock};

native_lock!(Open);
unsafe impl NativeLock for Open {}

fn main() {}
