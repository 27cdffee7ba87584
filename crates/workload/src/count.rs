//! A process that counts from 0 and does nothing else. It shows what a guest loses when others take its pCPU.

use crate::parameters::parameters;
use crate::{Fault, Load, Mode, Program, Start, WorkloadInfo};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{LONGEST, Parameters, Picos};

parameters! {
    Count: pub(crate) KEYS at "[domain.workload] with kind = \"count\"",
    "A process that counts from 0, and does nothing else." {
        to: u64 = integer(1, u64::MAX), Is("4294967296"), "The number that it counts to.";
        step: Picos = time(Picos(1), SEC), Is("5ns"), "CPU time of one iteration.";
    }
}

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<Count>(
    "a process that counts from 0, and does nothing else",
    "the overhead test of preemption notification, xen-devel, May 2005",
    &KEYS,
);

impl Parameters for Count {
    const KIND: &'static str = "count";
}

impl Load for Count {
    fn check(&self) -> Result<(), Fault> {
        if self.work() <= LONGEST {
            return Ok(());
        }
        let message = format!("these steps take longer than {LONGEST}");
        Err(Fault::new("to", message, "make `to` or `step` smaller"))
    }

    fn is_endless(&self) -> bool {
        false
    }

    fn most_tasks(&self, _vcpus: u32) -> u64 {
        1
    }

    fn start(&self, _vcpus: u32) -> Vec<Start> {
        let work = self.work();
        let program: Program = Box::new(move |env| {
            env.compute(work, Mode::User);
            env.item_done();
        });
        vec![Start { name: "count".into(), vcpu: Some(0), program }]
    }
}

impl Count {
    fn work(&self) -> Picos {
        self.step.saturating_mul(self.to)
    }
}
