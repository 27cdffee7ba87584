//! What else a host does: threads of its own, or a control domain, that wake at random for a moment.

use crate::{
    BurnWait, Distribution, Domain, Host, Kernel, MS, Picos, Scenario, Settings, US, Workload,
};
use serde::{Deserialize, Serialize};

/// Threads of the host that wake at random, work for a moment and sleep again. The host's scheduler
/// schedules them as it does vCPUs: a thread that wakes preempts a guest, takes its turn, or waits, by
/// the scheduler's own rules.
///
/// A host without any is a special case: equal guests that begin together stay in step for ever, and
/// rare accidents last, since nothing ever disturbs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// Where the threads may run.
    pub placement: NoisePlacement,
    /// Mean time that a thread sleeps (exponential).
    pub every: Picos,
    /// Mean CPU time of a thread each time that it wakes (exponential).
    pub length: Picos,
    /// Threads of each pool, for [`NoisePlacement::Anywhere`]; 0 is as many as there are pCPUs.
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
    /// One on each pCPU, and only there, as a kernel's threads for each CPU. Each is a domain of its own
    /// to the scheduler.
    PerCpu,
    /// On all pCPUs of a pool, as the vCPUs of a control domain. They are one domain to the scheduler.
    Anywhere,
}

impl Default for Noise {
    /// As `overspin measure noise` found it in three runs on a quiet machine (`docs/measure.md`); their
    /// histograms are in `data/`.
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

impl Noise {
    /// The domains that make the noise of `host`: for each pool those of its pCPUs.
    fn domains(&self, host: &Host) -> Vec<Domain> {
        let chosen = |p: &u32| self.cpus.is_empty() || self.cpus.contains(p);
        let in_a_pool = |p: &u32| host.pools.iter().any(|pool| pool.cpus.contains(p));
        let own: Vec<u32> = (0..host.pcpus()).filter(|p| !in_a_pool(p)).collect();
        let pools = std::iter::once(&own).chain(host.pools.iter().map(|pool| &pool.cpus));
        let mut domains = Vec::new();
        for (pool, cpus) in (0..).zip(pools) {
            let cpus: Vec<u32> = cpus.iter().copied().filter(chosen).collect();
            match self.placement {
                _ if cpus.is_empty() => {}
                NoisePlacement::PerCpu => domains.extend(
                    cpus.iter().map(|p| self.domain(format!("noise/{p}"), pool, vec![vec![*p]])),
                ),
                NoisePlacement::Anywhere => {
                    let vcpus = if self.vcpus == 0 { cpus.len() } else { self.vcpus as usize };
                    domains.push(self.domain("noise".into(), pool, vec![cpus; vcpus]));
                }
            }
        }
        domains
    }

    /// A domain with a thread for each entry of `affinity`.
    fn domain(&self, name: String, pool: u32, affinity: Vec<Vec<u32>>) -> Domain {
        Domain {
            name,
            vcpus: affinity.len() as u32,
            weight: self.weight,
            cap: 0,
            params: Settings::new(),
            pool,
            affinity,
            // Of its locks only those of its runqueues are used, each by one vCPU.
            lock: "lock-byte".into(),
            spin_budget: None,
            nopvspin: false,
            // It stands for threads of the host, which have no ticks of their own.
            kernel: Kernel { hz: 0, ..Kernel::default() },
            workload: Workload::BurnWait(BurnWait {
                burn: self.length,
                wait: self.every,
                burn_distribution: Distribution::Exponential,
                wait_distribution: Distribution::Exponential,
                ..BurnWait::default()
            }),
        }
    }
}

impl Scenario {
    /// The scenario with the domains that make its host's noise, after its own. A world runs these too; its
    /// outcome tells of them in sum ([`NoiseOutcome`](crate::NoiseOutcome)).
    #[must_use]
    pub fn with_noise(&self) -> Self {
        let mut all = self.clone();
        if let Some(noise) = &self.host.noise {
            all.domains.extend(noise.domains(&self.host));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NS, Pool};

    fn host() -> Host {
        let pool = |name: &str, cpus: Vec<u32>| Pool {
            name: name.into(),
            cpus,
            scheduler: "credit".into(),
            params: Settings::new(),
        };
        Host { cores: 6, pools: vec![pool("a", vec![2, 4]), pool("b", vec![5])], ..Host::default() }
    }

    #[test]
    fn a_thread_for_each_pcpu_stays_there_in_its_pool() {
        let domains = Noise::default().domains(&host());
        let told: Vec<_> =
            domains.iter().map(|d| (d.name.as_str(), d.pool, d.affinity.as_slice())).collect();
        let on = |p: u32| vec![vec![p]];
        let all = [on(0), on(1), on(3), on(2), on(4), on(5)];
        assert_eq!(
            told,
            [
                ("noise/0", 0, &all[0][..]),
                ("noise/1", 0, &all[1][..]),
                ("noise/3", 0, &all[2][..]),
                ("noise/2", 1, &all[3][..]),
                ("noise/4", 1, &all[4][..]),
                ("noise/5", 2, &all[5][..]),
            ]
        );
    }

    #[test]
    fn a_control_domain_may_run_on_the_chosen_pcpus_of_its_pool() {
        let noise =
            Noise { placement: NoisePlacement::Anywhere, cpus: vec![1, 2, 3], ..Noise::default() };
        let affinities = |noise: Noise| -> Vec<_> {
            noise.domains(&host()).into_iter().map(|d| (d.pool, d.affinity)).collect()
        };
        assert_eq!(affinities(noise.clone()), [(0, vec![vec![1, 3]; 2]), (1, vec![vec![2]; 1])]);
        let three = Noise { vcpus: 3, cpus: vec![5], ..noise };
        assert_eq!(affinities(three), [(2, vec![vec![5]; 3])]);
    }

    /// The default is the mean of the committed histograms, to two digits, and not a figure of anybody's.
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
            (total_ns as f64 * NS as f64 / gaps as f64 / step as f64).round() as Picos * step
        };
        assert_eq!(gaps, 11_988);
        assert_eq!(every, mean(watched_ns - inside_ns, MS));
        assert_eq!(length, mean(inside_ns, 10 * US));
    }
}
