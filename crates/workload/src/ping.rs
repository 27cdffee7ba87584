//! Answers to the pings of another machine: an interrupt, and a little work, at a rate.
//!
//! The other machine is not simulated: requests come by its clock, or, if its `ping` has no time left
//! between two of them, `round_trip` after each answer. So is the device: a request is a timer
//! interrupt of the guest.

use crate::{Mode, Program, WorkloadInfo};
use overspin_scenario::Ping;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "ping",
    brief: "answers to the pings of another machine: interrupts at a rate",
    source: "the I/O load of the preemption notification tests, xen-devel, May 2005; ping of iputils",
};

pub(crate) fn start(w: &Ping) -> Vec<(String, Option<u32>, Program)> {
    if w.rate == 0 {
        return Vec::new();
    }
    let w = w.clone();
    let program: Program = Box::new(move |env| {
        let interval = w.interval();
        // The other machine's clock has nothing to do with this one's.
        let mut due = env.now() + env.random(0).below(interval.unwrap_or(w.round_trip).max(1));
        loop {
            env.sleep(due.saturating_sub(env.now()));
            env.compute(w.work, Mode::Kernel);
            env.item_done();
            due = match interval {
                Some(interval) => due + interval,
                None => env.now() + w.round_trip,
            };
        }
    });
    vec![("ping".into(), Some(0), program)]
}
