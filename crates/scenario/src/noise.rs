//! Noise of a host: threads of its own, or a control domain, that wake at random for a moment.

use crate::{Host, Picos, Scenario};
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
     such a table for the machine at hand. Without the table, its defaults apply." {
        placement: NoisePlacement = ChoiceOrNone(NoisePlacement::WORDS), Is("per-cpu"),
            "`per-cpu`: a thread on each pCPU, which stays there. `anywhere`: the vCPUs of a control \
             domain, which may run on any pCPU of their pool. `none`: no noise.";
        // A draw of 64 bits is at most 45 times the mean.
        every: Picos = time(US, Picos(LONGEST.0 / 45)), Is("59ms"),
            "Mean sleep of a thread (exponential).";
        length: Picos = time(NS, Picos(LONGEST.0 / 45)), Is("350us"),
            "Mean CPU time of a thread each time that it wakes (exponential).";
        vcpus: u32 = integer(0, 65_536), Is("0"),
            "Threads in each pool with `anywhere`; 0 means as many as there are pCPUs.";
        cpus: Vec<u32> = Cpus, Means("all"), "pCPUs that have noise, such as \"0-3\".";
        weight: u32 = WEIGHT, Is("256"), "Scheduler weight, as for a domain.";
    }
}

defaults!(Noise {});

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
}

impl Noise {
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
                NoisePlacement::PerCpu => groups.extend(cpus.iter().map(|p| NoiseGroup {
                    name: format!("noise/{p}"),
                    pool,
                    affinity: vec![vec![*p]],
                })),
                NoisePlacement::Anywhere => {
                    let threads = if self.vcpus == 0 { cpus.len() } else { self.vcpus as usize };
                    let affinity = vec![cpus; threads];
                    groups.push(NoiseGroup { name: "noise".into(), pool, affinity });
                }
            }
        }
        groups
    }
}

impl Scenario {
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
        let mean = |total_ns: u64, step: Picos| {
            (total_ns as f64 * NS.ratio(step) / gaps as f64).round() as u64 * step
        };
        assert_eq!(gaps, 11_988);
        assert_eq!(every, mean(watched_ns - inside_ns, MS));
        assert_eq!(length, mean(inside_ns, 10 * US));
    }
}
