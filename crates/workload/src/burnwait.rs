//! Threads that compute and sleep in turn: hogs, batch jobs, and tasks that wake like I/O.

use crate::parameters::parameters;
use crate::{Env, Fault, Load, Mode, Program, Random, Start, WorkloadInfo, threads};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use overspin_scenario::{
    LONGEST, Parameters, Picos, QUANTILES, Quantiles, Varying, defaults, words,
};

words! {
    Distribution, "How a time varies around its mean." {
        Fixed = "fixed", "Not at all.";
        Exponential = "exponential", "Exponentially.";
    }
}

impl Distribution {
    fn time(self, mean: Picos, random: &mut Random) -> Picos {
        match self {
            Self::Fixed => mean,
            Self::Exponential => random.exponential(mean),
        }
    }
}

parameters! {
    BurnWait: pub(crate) KEYS at "[domain.workload] with kind = \"burn-wait\"",
    "Threads that compute and sleep in turn." {
        threads: u32 = integer(0, 100_000), Is("0"), "Threads; 0 means one on each vCPU.";
        burn: Picos = time(NS, LONGEST), Is("10ms"), "CPU time of one item.";
        wait: Picos = ANY, Is("0"), "Sleep after each item; 0 means no sleep.";
        count: u64 = integer(0, u64::MAX), Is("0"), "Items of each thread; 0 means until the limit.";
        burn_distribution: Distribution = Choice(Distribution::WORDS), Is("fixed"),
            "How the time varies around its mean, `burn`.";
        burn_quantiles: Option<Quantiles> = Table(&QUANTILES), Means("none"),
            "CPU time of one item, in place of `burn` and its distribution.";
        wait_distribution: Distribution = Choice(Distribution::WORDS), Is("fixed"),
            "How the time varies around its mean, `wait`. With `exponential`, threads begin with a wait.";
    }
}

defaults!(BurnWait {});

pub(crate) const INFO: WorkloadInfo = WorkloadInfo::of::<BurnWait>(
    "threads that compute and sleep in turn; a wait of 0 makes them hogs",
    "schedbench's burnwait worker (2016)",
    &KEYS,
);

impl Parameters for BurnWait {
    const KIND: &'static str = "burn-wait";
}

impl Load for BurnWait {
    fn check(&self) -> Result<(), Fault> {
        // A draw of 64 bits is at most 45 times the mean.
        let most = LONGEST / 45;
        let times = [
            ("burn", self.burn, self.burn_distribution),
            ("wait", self.wait, self.wait_distribution),
        ];
        if let Some(quantiles) = self.burn_quantiles {
            Varying::from(quantiles).agrees().map_err(|fault| fault.within("burn_quantiles"))?;
        }
        match times.iter().find(|(_, time, d)| *d == Distribution::Exponential && *time > most) {
            Some((key, time, _)) => Err(Fault::new(
                *key,
                format!("an exponential time with mean {time} may be too long"),
                format!("make it at most {most}, or fixed"),
            )),
            None => Ok(()),
        }
    }

    fn is_endless(&self) -> bool {
        self.count == 0
    }

    fn work_per_item(&self) -> Option<Picos> {
        self.burn_quantiles.is_none().then_some(self.burn)
    }

    fn most_tasks(&self, vcpus: u32) -> u64 {
        threads::number(self.threads, vcpus).into()
    }

    fn start(&self, vcpus: u32) -> Vec<Start> {
        threads::start("burn", self.threads, vcpus, |_| {
            let w = self.clone();
            let program: Program = Box::new(move |env| w.run(env));
            program
        })
    }
}

impl BurnWait {
    fn run(&self, env: &dyn Env) {
        let mut random = env.random(0);
        let burn = |random: &mut Random| match &self.burn_quantiles {
            Some(quantiles) => random.from_quantiles(quantiles),
            None => self.burn_distribution.time(self.burn, random),
        };
        let wait = |random: &mut Random| self.wait_distribution.time(self.wait, random);
        // Threads that all began with work would queue up at first. An exponential wait has no memory, so the
        // run begins in its steady state. Fixed waits begin anywhere in a cycle.
        env.sleep(match self.wait_distribution {
            Distribution::Exponential => wait(&mut random),
            Distribution::Fixed if self.wait > Picos::ZERO => env.offset(self.burn + self.wait),
            Distribution::Fixed => Picos::ZERO,
        });
        let mut done = 0;
        while self.count == 0 || done < self.count {
            env.compute(burn(&mut random), Mode::User);
            env.item_done();
            done += 1;
            env.sleep(wait(&mut random));
        }
    }
}
