//! Threads that take one lock again and again: the microbenchmark of every lock paper.

use crate::parameters::parameters;
use crate::{Env, Load, LockUse, Mode, Program, Start, WorkloadInfo, threads};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use overspin_scenario::{Parameters, Picos};

parameters! {
    LockLoop: pub(crate) KEYS at "[domain.workload] with kind = \"lock-loop\"",
    "Threads that take one lock again and again." {
        threads: u32 = integer(0, 100_000), Is("0"), "Threads; 0 means one on each vCPU.";
        section: Picos = ANY, Is("2us"), "Time in the section.";
        outside: Picos = ANY, Is("10us"), "Mean time between sections.";
        fixed: bool = Boolean, Is("false"),
            "The time outside is fixed instead of exponential.";
        irqs_off: bool = Boolean, Is("true"),
            "Interrupts are off in the section and while waiting for it.";
        count: u64 = integer(0, u64::MAX), Is("0"),
            "Sections of each thread; 0 means until the limit.";
    }
}

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<LockLoop>(
    "threads that take one lock again and again, with work inside and outside",
    "Mellor-Crummey and Scott 1991; lockhammer's critical and parallel sections",
    &KEYS,
);

impl Parameters for LockLoop {
    const KIND: &'static str = "lock-loop";
}

impl Load for LockLoop {
    fn lock_names(&self) -> Vec<String> {
        vec!["section".into()]
    }

    fn is_endless(&self) -> bool {
        self.count == 0
    }

    fn most_tasks(&self, vcpus: u32) -> u64 {
        threads::number(self.threads, vcpus).into()
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        threads::start("loop", self.threads, vcpus, |_| {
            let w = self.clone();
            let program: Program = Box::new(move |env| w.run(env));
            program
        })
    }
}

impl LockLoop {
    fn run(&self, env: &dyn Env) {
        let mut random = env.random(0);
        let how = if self.irqs_off { LockUse::IrqSave } else { LockUse::Plain };
        let mut done = 0;
        while self.count == 0 || done < self.count {
            env.section(0, how, self.section);
            env.item_done();
            done += 1;
            if self.outside > Picos::ZERO {
                let outside =
                    if self.fixed { self.outside } else { random.exponential(self.outside) };
                env.compute(outside, Mode::User);
            }
        }
    }
}
