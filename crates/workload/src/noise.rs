//! The domains that make a host's noise. Each runs an ordinary workload.

use crate::{BurnWait, Distribution};
use alloc::vec::Vec;
use overspin_scenario::{Domain, Host, Kernel, Noise, NoiseGroup, Picos, Scenario, Varying};

/// The scenario with the domains that make its host's noise, after its own domains. A world runs these too;
/// its outcome reports their sum ([`NoiseOutcome`](overspin_scenario::NoiseOutcome)).
#[must_use]
pub fn with_noise(scenario: &Scenario) -> Scenario {
    let mut all = scenario.clone();
    if let Some(noise) = &scenario.host.noise {
        all.domains.extend(domains(noise, &scenario.host));
    }
    all
}

/// The domains that make the noise of `host`, one for each group of threads.
fn domains(noise: &Noise, host: &Host) -> Vec<Domain> {
    let domain = |every: Picos, length: Varying| {
        let (burn, burn_quantiles) = match length {
            Varying::Always(mean) => (mean, None),
            Varying::Drawn(quantiles) => (quantiles.p50, Some(quantiles)),
        };
        let work = BurnWait {
            burn,
            wait: every,
            burn_distribution: Distribution::Exponential,
            burn_quantiles,
            wait_distribution: Distribution::Exponential,
            ..BurnWait::default()
        };
        // Of its locks, only those of its run queues are used, each by one vCPU.
        let domain = Domain::new("", 1, "lock-byte", work);
        // It stands for threads of the host, which have no ticks of their own.
        let kernel = Kernel { hz: 0, ..domain.kernel };
        Domain { weight: noise.weight, kernel, ..domain }
    };
    let of = |NoiseGroup { name, pool, affinity, every, length }| Domain {
        name,
        vcpus: affinity.len() as u32,
        pool,
        affinity,
        ..domain(every, length)
    };
    noise.groups(host).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use overspin_scenario::{CpuNoise, MS, NoisePlacement, Pool, Quantiles, Settings, US};

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
        let domains = domains(&Noise::default(), &host());
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
    fn pcpus_whose_noise_differs_have_their_own() {
        let quantiles = Quantiles::new(US, MS);
        let one = CpuNoise { cpus: vec![1, 4], every: MS, length: quantiles.into() };
        let noise = Noise { each: vec![one], cpus: vec![0, 1, 4], ..Noise::default() };
        let told: Vec<_> = domains(&noise, &host())
            .iter()
            .map(|d| {
                let work = d.workload.0[0].get::<BurnWait>().unwrap();
                (d.affinity[0][0], work.wait, work.burn, work.burn_quantiles)
            })
            .collect();
        let (every, length) = (noise.every, noise.length.median());
        let own = |p| (p, MS, US, Some(quantiles));
        assert_eq!(told, [(0, every, length, None), own(1), own(4)]);
    }

    #[test]
    fn a_control_domain_may_run_on_the_chosen_pcpus_of_its_pool() {
        let noise =
            Noise { placement: NoisePlacement::Anywhere, cpus: vec![1, 2, 3], ..Noise::default() };
        let affinities = |noise: Noise| -> Vec<_> {
            domains(&noise, &host()).into_iter().map(|d| (d.pool, d.affinity)).collect()
        };
        assert_eq!(affinities(noise.clone()), [(0, vec![vec![1, 3]; 2]), (1, vec![vec![2]; 1])]);
        let three = Noise { vcpus: 3, cpus: vec![5], ..noise };
        assert_eq!(affinities(three), [(2, vec![vec![5]; 3])]);
    }
}
