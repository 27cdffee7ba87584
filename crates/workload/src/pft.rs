//! A page-fault test: processes that touch their memory page by page, for faults a second.
//!
//! A process starts where its parent runs, as in Linux before 2.6.13, which had balancing when a
//! process calls `exec`, and none when it forks. It comes to another vCPU when that pulls it.
//! Processes have memory maps of their own; what they share are the locks of the page allocator and
//! of the lists of pages.

use crate::kernel::Work;
use crate::{Env, Mode, Program, WorkloadInfo};
use overspin_scenario::Pft;
use std::rc::Rc;

pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
    name: "pft",
    brief: "a page-fault test: processes that touch their memory page by page",
    source: "Christoph Lameter's pft; a line of its output, xen-devel, May 2005",
};

pub(crate) fn start(w: &Pft) -> Vec<(String, Option<u32>, Program)> {
    let w = Rc::new(w.clone());
    vec![("pft".into(), Some(0), Box::new(move |env| parent(env, &w)))]
}

fn parent(env: &dyn Env, w: &Rc<Pft>) {
    let ended = env.semaphore(0);
    for i in 0..w.processes {
        env.compute(w.fork, Mode::Kernel);
        let w = Rc::clone(w);
        let child: Program = Box::new(move |env| {
            let mut kernel = Work::new(env, &w.locks);
            for _ in 0..w.pages {
                env.compute(w.touch, Mode::User);
                kernel.kernel(w.fault);
                env.item_done();
            }
            env.up(ended);
        });
        env.spawn(format!("touch{i}"), Some(0), child);
    }
    for _ in 0..w.processes {
        env.down(ended);
    }
}
