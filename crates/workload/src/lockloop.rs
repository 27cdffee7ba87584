//! Threads that take one lock again and again: the microbenchmark of every lock paper.

use crate::{LockUse, Mode, Program, WorkloadInfo};
use overspin_scenario::LockLoop;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "lock-loop",
    brief: "threads that take one lock again and again, with work inside and outside",
    source: "Mellor-Crummey and Scott 1991; lockhammer's critical and parallel sections",
};

pub(crate) fn start(w: &LockLoop, vcpus: u32) -> Vec<(String, Option<u32>, Program)> {
    let threads = if w.threads == 0 { vcpus } else { w.threads };
    (0..threads)
        .map(|i| {
            let w = w.clone();
            let program: Program = Box::new(move |env| {
                let mut random = env.random(0);
                let how = if w.irqs_off { LockUse::IrqSave } else { LockUse::Plain };
                let mut done = 0;
                while w.count == 0 || done < w.count {
                    env.section(0, how, w.section);
                    env.item_done();
                    done += 1;
                    if w.outside > 0 {
                        let outside =
                            if w.fixed { w.outside } else { random.exponential(w.outside) };
                        env.compute(outside, Mode::User);
                    }
                }
            });
            (format!("loop{i}"), Some(i % vcpus), program)
        })
        .collect()
}
