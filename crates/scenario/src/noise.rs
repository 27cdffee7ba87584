//! Noise of a host: threads of its own, or a control domain, that wake at random for a moment.

use crate::{Host, MS, Picos, Scenario, US};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Threads of the host that wake at random, work for a moment and sleep again. The host's scheduler
/// schedules them as it does vCPUs: a thread that wakes preempts a guest, takes its turn, or waits, by
/// the scheduler's own rules.
///
/// A host without noise is a special case: equal guests that begin together stay in step for ever, and
/// rare coincidences persist, since nothing disturbs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// Where the threads may run.
    pub placement: NoisePlacement,
    /// Mean time that a thread sleeps (exponential).
    pub every: Picos,
    /// Mean CPU time of a thread for each wake-up (exponential).
    pub length: Picos,
    /// Threads of each pool, for [`NoisePlacement::Anywhere`]; 0 means as many as there are pCPUs.
    pub vcpus: u32,
    /// Only on these pCPUs; on all if empty.
    pub cpus: Vec<u32>,
    /// Scheduler weight.
    pub weight: u32,
}

/// Where the threads of a host's noise may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoisePlacement {
    /// One on each pCPU, and only there, like per-CPU threads of a kernel. To the scheduler, each is a
    /// domain of its own.
    PerCpu,
    /// On all pCPUs of a pool, like the vCPUs of a control domain. To the scheduler, they are one domain.
    Anywhere,
}

impl Default for Noise {
    /// The noise that `overspin measure noise` found in three runs on a quiet machine
    /// (`docs/measure.md`); the histograms are in `data/`.
    fn default() -> Self {
        Self {
            placement: NoisePlacement::PerCpu,
            every: 59 * MS,
            length: 350 * US,
            vcpus: 0,
            cpus: Vec::new(),
            weight: 256,
        }
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
    use crate::NS;

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
