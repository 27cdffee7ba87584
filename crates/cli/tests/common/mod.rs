//! What the tests of several files share.

#![allow(dead_code, reason = "each file of tests is a program of its own and uses a part of this")]

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Looks every 200 us whether something has come about. The limit is only against hanging: no machine is so slow.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(300), "after five minutes not yet: {what}");
        sleep(Duration::from_micros(200));
    }
}
