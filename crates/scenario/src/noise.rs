//! Noise of a host: threads of its own, or a control domain, that wake at random for a moment.

use crate::{Fault, Host, Picos, Scenario, Varying};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

parameters! {
    /// Noise of a host. Without it, equal guests that begin together stay in step for ever, and rare coincidences
    /// persist, since nothing disturbs them.
    ///
    /// The defaults are the noise that `overspin measure noise` found in three runs on a quiet machine
    /// (`docs/measure.md`); the histograms are in `data/`.
    #[derive(Eq)]
    Noise: pub NOISE at "[host.noise]",
    "Threads of the host, or a control domain, that wake at random, work for a moment and sleep \
     again; the host's scheduler schedules them like vCPUs. `overspin measure noise` writes \
     such a table for the machine at hand." {
        placement: NoisePlacement = ChoiceOrNone(NoisePlacement::WORDS), Is("per-cpu"),
            "`per-cpu`: a thread on each pCPU, which stays there. `anywhere`: the vCPUs of a control \
             domain, which may run on any pCPU of their pool. `none`: no noise.";
        // A draw of 64 bits is at most 45 times the mean.
        every: Picos = time(US, Picos(LONGEST.0 / 45)), Is("59ms"),
            "Mean sleep of a thread (exponential).";
        length: Varying = varying(NS, Picos(LONGEST.0 / 45)), Is("350us"),
            "CPU time of a thread each time that it wakes: mean of an exponential time, or quantiles.";
        vcpus: u32 = integer(0, 65_536), Is("0"),
            "Threads in each pool with `anywhere`; 0 means as many as there are pCPUs.";
        cpus: Vec<u32> = Cpus, Means("all"), "pCPUs that have noise, such as \"0-3\".";
        weight: u32 = WEIGHT, Is("256"), "Scheduler weight, as for a domain.";
        each as cpu: Vec<CpuNoise> = Tables(&CPU_NOISE), Means("all alike"),
            "pCPUs whose noise differs; only with `per-cpu`.";
    }
}

defaults!(Noise {});

parameters! {
    #[derive(Eq)]
    CpuNoise: pub CPU_NOISE at "[[host.noise.cpu]]",
    "Noise of some pCPUs that differs." {
        cpus: Vec<u32> = Cpus, Required, "Which.";
        every: Picos = time(US, Picos(LONGEST.0 / 45)), Is("59ms"), "As above.";
        length: Varying = varying(NS, Picos(LONGEST.0 / 45)), Is("350us"), "As above.";
    }
}

words! {
    NoisePlacement, "Where the threads of a host's noise may run." {
        PerCpu = "per-cpu",
            "One on each pCPU, and only there, like per-CPU threads of a kernel. To the scheduler, each is a \
             domain of its own.";
        Anywhere = "anywhere",
            "On all pCPUs of a pool, like the vCPUs of a control domain. To the scheduler, they are one domain.";
    }
}

/// Threads of a host's noise that form one domain to its scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseGroup {
    /// Name.
    pub name: String,
    /// Pool: 0 is the host's own, `k` the `k`-th of [`Host::pools`].
    pub pool: u32,
    /// Where each thread may run.
    pub affinity: Vec<Vec<u32>>,
    /// Mean sleep of each thread.
    pub every: Picos,
    /// CPU time of a thread each time that it wakes.
    pub length: Varying,
}

impl Noise {
    /// Checks that values which are each in their range agree with each other on a host of `pcpus` pCPUs.
    ///
    /// # Errors
    /// Says which key is wrong.
    pub(crate) fn agrees(&self, pcpus: u32) -> Result<(), Fault> {
        let exist = |cpus: &[u32]| match cpus.iter().find(|p| **p >= pcpus) {
            Some(p) => Err(Fault::new(
                "cpus",
                format!("there is no pCPU {p}"),
                format!("the host has pCPUs 0 to {}", pcpus - 1),
            )),
            None => Ok(()),
        };
        exist(&self.cpus)?;
        self.length.agrees().map_err(|fault| fault.within("length"))?;
        if self.placement == NoisePlacement::Anywhere && !self.each.is_empty() {
            return Err(Fault::new(
                "cpu",
                "threads that may run anywhere have no pCPU of their own",
                "use placement \"per-cpu\", or leave [[host.noise.cpu]] out",
            ));
        }
        let mut taken = BTreeSet::new();
        for (i, of) in self.each.iter().enumerate() {
            let at = format!("cpu.{i}");
            exist(&of.cpus).map_err(|fault| fault.within(&at))?;
            of.length.agrees().map_err(|fault| fault.within("length").within(&at))?;
            if let Some(p) = of.cpus.iter().find(|p| !taken.insert(**p)) {
                let fault = Fault::new(
                    "cpus",
                    format!("pCPU {p} is in an earlier [[host.noise.cpu]], too"),
                    "name each pCPU once",
                );
                return Err(fault.within(&at));
            }
        }
        Ok(())
    }

    /// The groups of threads that make up the noise of `host`, pool by pool.
    #[must_use]
    pub fn groups(&self, host: &Host) -> Vec<NoiseGroup> {
        let chosen = |p: &u32| self.cpus.is_empty() || self.cpus.contains(p);
        let in_a_pool = |p: &u32| host.pools.iter().any(|pool| pool.cpus.contains(p));
        let own: Vec<u32> = (0..host.pcpus()).filter(|p| !in_a_pool(p)).collect();
        let pools = core::iter::once(&own).chain(host.pools.iter().map(|pool| &pool.cpus));
        let mut groups = Vec::new();
        for (pool, cpus) in (0..).zip(pools) {
            let cpus: Vec<u32> = cpus.iter().copied().filter(chosen).collect();
            match self.placement {
                _ if cpus.is_empty() => {}
                NoisePlacement::PerCpu => groups.extend(cpus.iter().map(|p| {
                    let of = self.each.iter().find(|of| of.cpus.contains(p));
                    let (every, length) =
                        of.map_or((self.every, self.length), |of| (of.every, of.length));
                    let affinity = vec![vec![*p]];
                    NoiseGroup { name: format!("noise/{p}"), pool, affinity, every, length }
                })),
                NoisePlacement::Anywhere => {
                    let threads = if self.vcpus == 0 { cpus.len() } else { self.vcpus as usize };
                    let affinity = vec![cpus; threads];
                    let (every, length) = (self.every, self.length);
                    groups.push(NoiseGroup { name: "noise".into(), pool, affinity, every, length });
                }
            }
        }
        groups
    }
}

impl Scenario {
    /// The number of vCPUs of all domains, without those of the host's noise.
    #[must_use]
    pub fn vcpus(&self) -> u32 {
        self.domains.iter().map(|d| d.vcpus).sum()
    }

    /// The number of vCPUs of each domain, followed by that of each group of the host's noise.
    #[must_use]
    pub fn domain_sizes(&self) -> Vec<u32> {
        let own = self.domains.iter().map(|d| d.vcpus);
        let noise = self.host.noise.iter().flat_map(|n| n.groups(&self.host));
        own.chain(noise.map(|group| group.affinity.len() as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MS, NS, US};

    /// The default is the mean of the committed histograms, rounded to two digits.
    #[test]
    fn the_default_is_what_was_measured() {
        let runs = [
            include_str!("../data/noise-1.csv"),
            include_str!("../data/noise-2.csv"),
            include_str!("../data/noise-3.csv"),
        ];
        let (mut gaps, mut inside_ns, mut watched_ns) = (0, 0, 0);
        for run in runs {
            let mut cpu = "";
            for line in run.lines().skip(1) {
                let field: Vec<&str> = line.split(',').collect();
                let number = |i: usize| field[i].parse::<u64>().unwrap();
                if field[1] == "thread" {
                    gaps += number(4);
                    inside_ns += number(5);
                }
                if cpu != field[0] {
                    cpu = field[0];
                    watched_ns += number(6);
                }
            }
        }
        let Noise { every, length, .. } = Noise::default();
        let length = length.median();
        let mean = |total_ns: u64, step: Picos| {
            (total_ns as f64 * NS.ratio(step) / gaps as f64).round() as u64 * step
        };
        assert_eq!(gaps, 11_988);
        assert_eq!(every, mean(watched_ns - inside_ns, MS));
        assert_eq!(length, mean(inside_ns, 10 * US));
    }
}
