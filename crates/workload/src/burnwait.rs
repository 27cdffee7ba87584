//! Threads that compute and sleep in turn: hogs, batch jobs, and things that wake like I/O.

use crate::{Mode, Program, WorkloadInfo};
use overspin_scenario::{BurnWait, Distribution};

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "burn-wait",
    brief: "threads that compute and sleep in turn; a wait of 0 makes them hogs",
    source: "schedbench's burnwait worker (2016)",
};

pub(crate) fn start(w: &BurnWait, vcpus: u32) -> Vec<(String, Option<u32>, Program)> {
    let threads = if w.threads == 0 { vcpus } else { w.threads };
    (0..threads)
        .map(|i| {
            let w = w.clone();
            let program: Program = Box::new(move |env| {
                let mut random = env.random(0);
                let mut time = |mean, distribution| match distribution {
                    Distribution::Fixed => mean,
                    Distribution::Exponential => random.exponential(mean),
                };
                // Threads that all began with work would queue up first; with a wait, which has no
                // memory, the run begins as it goes on. Fixed waits begin anywhere in a cycle.
                env.sleep(match w.wait_distribution {
                    Distribution::Exponential => time(w.wait, w.wait_distribution),
                    Distribution::Fixed if w.wait > 0 => env.offset(w.burn + w.wait),
                    Distribution::Fixed => 0,
                });
                let mut done = 0;
                while w.count == 0 || done < w.count {
                    env.compute(time(w.burn, w.burn_distribution), Mode::User);
                    env.item_done();
                    done += 1;
                    env.sleep(time(w.wait, w.wait_distribution));
                }
            });
            (format!("burn{i}"), Some(i % vcpus), program)
        })
        .collect()
}
