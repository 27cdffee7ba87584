//! A page-fault test: processes that touch their memory page by page, to measure faults per second.
//!
//! A process starts where its parent runs, as in Linux before 2.6.13, which balanced when a process called
//! `exec` but not when it forked. It moves to another vCPU when that vCPU pulls it. Processes have their own
//! memory maps; they share the locks of the page allocator and of the page lists.

use crate::kernel_work::{KERNEL_LOCK, KernelLock, Work, distinct, names};
use crate::parameters::parameters;
use crate::{Env, Fault, Load, Mode, Program, Start, WorkloadInfo};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{Parameters, Picos};

parameters! {
    Pft: pub(crate) KEYS at "[domain.workload] with kind = \"pft\"",
    "A page-fault test: processes, all started on vCPU 0, that touch their memory page by page." {
        processes: u32 = integer(1, 10_000), Is("2"), "Processes.";
        pages: u64 = integer(1, u64::MAX), Is("32768"), "Pages that each process touches.";
        touch: Picos = COST, Is("100ns"), "User CPU time for a page.";
        fault: Picos = COST, Is("5us"), "Kernel CPU time of a fault, including time under locks.";
        fork: Picos = COST, Is("500us"),
            "Kernel CPU time that a parent spends to start a process.";
        locks: Vec<KernelLock> = Tables(&KERNEL_LOCK), Means("no locks"),
            "Kernel locks, one `[[domain.workload.locks]]` each.";
    }
}

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Pft>(
    "a page-fault test: processes that touch their memory page by page",
    "Christoph Lameter's pft; a line of its output, xen-devel, May 2005",
    &KEYS,
);

impl Parameters for Pft {
    const KIND: &'static str = "pft";
}

impl Load for Pft {
    fn check(&self) -> Result<(), Fault> {
        distinct(&self.locks)
    }

    fn lock_names(&self) -> Vec<String> {
        names(&self.locks)
    }

    fn is_endless(&self) -> bool {
        false
    }

    fn touches_memory(&self) -> bool {
        true
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        1 + u64::from(self.processes)
    }

    fn start(&self, _vcpus: u32) -> Vec<Start> {
        let w = Arc::new(self.clone());
        let program: Program = Box::new(move |env| parent(env, &w));
        vec![Start { name: "pft".into(), vcpu: Some(0), program }]
    }
}

fn parent(env: &dyn Env, w: &Arc<Pft>) {
    let ended = env.semaphore(0);
    for i in 0..w.processes {
        env.compute(w.fork, Mode::Kernel);
        let w = Arc::clone(w);
        let child: Program = Box::new(move |env| {
            let mut kernel = Work::new(env, &w.locks);
            for _ in 0..w.pages {
                env.compute(w.touch, Mode::User);
                env.touch_page();
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
