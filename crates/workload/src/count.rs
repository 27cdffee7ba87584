//! A process that counts from 0 and does nothing else: what a guest loses when others take its pCPU.

use crate::{Mode, Program, WorkloadInfo};
use overspin_scenario::Count;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "count",
    brief: "a process that counts from 0, and does nothing else",
    source: "the overhead test of preemption notification, xen-devel, May 2005",
};

pub(crate) fn start(w: &Count) -> Vec<(String, Option<u32>, Program)> {
    let work = w.to.saturating_mul(w.step);
    let program: Program = Box::new(move |env| {
        env.compute(work, Mode::User);
        env.item_done();
    });
    vec![("count".into(), Some(0), program)]
}
