//! What paravirtual spinlocks of a guest's own kernel are worth on real Xen: guests whose vCPUs want the same kernel
//! locks, with more vCPUs than pCPUs, with these spinlocks and without.

use overspin_report::{Block, Grid};
use overspin_xl::{Guest, Job, Pool, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// Option of Linux that leaves spinlocks as they are on bare metal.
const WITHOUT: &str = "nopvspin";
/// Memory of a guest in MiB: a kernel of a distribution, and 4 MiB of fresh pages for each vCPU.
const MEMORY: (u32, u32) = (96, 12);

/// Work that wants kernel locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelWork {
    /// Duplicates file descriptors and closes them: a spinlock of the process.
    Dup,
    /// Touches fresh pages.
    Pft,
}

impl KernelWork {
    /// Its name, which is also the worker's word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dup => "dup",
            Self::Pft => "pft",
        }
    }
}

/// What to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Kinds of work.
    pub works: Vec<KernelWork>,
    /// Schedulers.
    pub schedulers: Vec<String>,
    /// Number of guests.
    pub guests: u32,
    /// vCPUs of each, with a thread on each.
    pub vcpus: u32,
    /// pCPUs.
    pub cpus: u32,
    /// Length of a run in seconds.
    pub seconds: u64,
    /// Decides when each thread starts.
    pub seed: u64,
}

/// A run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuestSpinlocks {
    /// Work.
    pub work: KernelWork,
    /// Scheduler.
    pub scheduler: String,
    /// Whether the guests had paravirtual spinlocks.
    pub paravirtual: bool,
    /// Operations of all guests in a second.
    pub per_second: f64,
    /// CPU time of all guests in a second, in seconds.
    pub cpus: f64,
    /// Reports of each guest.
    pub guests: Vec<Vec<Sample>>,
}

impl Comparison {
    /// The runs: for each work and scheduler one with paravirtual spinlocks, then one without.
    #[must_use]
    pub fn jobs(&self) -> Vec<Job> {
        self.points().map(|(work, scheduler, pv)| self.job(work, scheduler, pv)).collect()
    }

    fn points(&self) -> impl Iterator<Item = (KernelWork, &String, bool)> {
        self.works.iter().flat_map(move |work| {
            self.schedulers.iter().flat_map(move |s| [(*work, s, true), (*work, s, false)])
        })
    }

    fn job(&self, work: KernelWork, scheduler: &str, paravirtual: bool) -> Job {
        let options = if paravirtual { "" } else { WITHOUT };
        let spinlocks = if paravirtual { "paravirtual" } else { "native" };
        Job {
            name: format!("{} {scheduler} {spinlocks}", work.name()),
            pool: Pool {
                name: "overspin".into(),
                scheduler: Some(scheduler.to_owned()),
                cpus: (1..=self.cpus).collect(),
            },
            guests: (0..self.guests)
                .map(|number| Guest {
                    name: format!("overspin-{number}"),
                    vcpus: self.vcpus,
                    memory: MEMORY.0 + MEMORY.1 * self.vcpus,
                    work: vec![work.name().into()],
                    // Threads of a run differ, and so do runs of different seeds.
                    seed: self.seed.wrapping_mul(1_000_003).wrapping_add(number.into()),
                    kernel_options: options.into(),
                })
                .collect(),
            seconds: self.seconds,
        }
    }

    /// The figures of run number `job`.
    #[must_use]
    pub fn measured(&self, job: usize, guests: Vec<Vec<Sample>>) -> Option<GuestSpinlocks> {
        let (work, scheduler, paravirtual) = self.points().nth(job)?;
        let total = |of| guests.iter().map(|guest| gained(guest, of) as f64).sum::<f64>();
        let reports = || guests.iter().flatten().map(|sample| sample.at);
        let first_to_last = reports().max()?.saturating_sub(reports().min()?).max(1);
        Some(GuestSpinlocks {
            work,
            scheduler: scheduler.clone(),
            paravirtual,
            // Threads stop at the end of the run, even if their last reports come later.
            per_second: total(|s| s.operations) / self.seconds.max(1) as f64,
            cpus: total(|s| s.cpu_time) / first_to_last as f64,
            guests,
        })
    }
}

/// How much of a total all vCPUs of a guest gain, each from its first report to its last.
fn gained(samples: &[Sample], of: fn(&Sample) -> u64) -> u64 {
    // What a guest says is any number.
    let mut vcpus: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for sample in samples {
        let total = of(sample);
        vcpus.entry(sample.vcpu).or_insert((total, total)).1 = total;
    }
    let gains = vcpus.into_values().map(|(first, last)| last.saturating_sub(first));
    gains.fold(0, u64::saturating_add)
}

/// A table with a row for each work and scheduler.
#[must_use]
pub fn report(all: &[GuestSpinlocks]) -> Vec<Block> {
    let header = [
        "work",
        "scheduler",
        "paravirtual [1/s]",
        "native [1/s]",
        "paravirtual / native",
        "CPUs, paravirtual",
        "CPUs, native",
    ];
    let mut grid = Grid::new(2, &header);
    for with in all.iter().filter(|m| m.paravirtual) {
        let without = all
            .iter()
            .find(|m| !m.paravirtual && m.work == with.work && m.scheduler == with.scheduler);
        let of = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
        };
        grid.row([
            with.work.name().to_owned(),
            with.scheduler.clone(),
            of(Some(with.per_second), 0),
            of(without.map(|m| m.per_second), 0),
            of(without.map(|m| with.per_second / m.per_second.max(f64::MIN_POSITIVE)), 2),
            of(Some(with.cpus), 2),
            of(without.map(|m| m.cpus), 2),
        ]);
    }
    vec![Block::Grid(grid)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        Comparison {
            works: vec![KernelWork::Dup, KernelWork::Pft],
            schedulers: vec!["credit".into(), "credit2".into()],
            guests: 2,
            vcpus: 4,
            cpus: 2,
            seconds: 5,
            seed: 1,
        }
    }

    #[test]
    fn every_run_has_its_counterpart_without() {
        let jobs = comparison().jobs();
        assert_eq!(jobs.len(), 8);
        for pair in jobs.chunks(2) {
            assert_eq!(pair[0].pool.scheduler, pair[1].pool.scheduler);
            assert_eq!(pair[0].guests[0].work, pair[1].guests[0].work);
            assert_eq!(pair[0].guests[0].kernel_options, "");
            assert_eq!(pair[1].guests[0].kernel_options, "nopvspin");
            assert_eq!(pair[0].guests[1].seed, pair[1].guests[1].seed);
            assert_ne!(pair[0].guests[0].seed, pair[0].guests[1].seed);
        }
        let other = Comparison { seed: 2, ..comparison() }.jobs();
        assert_ne!(other[0].guests[0].seed, jobs[0].guests[0].seed);
        assert_eq!(jobs[0].pool.cpus, [1, 2]);
    }

    #[test]
    fn operations_are_of_the_run_and_cpu_time_is_of_the_reports() {
        let sample = |vcpu, at: u64, operations, cpu_time| Sample {
            vcpu,
            at: at * 1_000_000_000,
            operations,
            cpu_time,
            ..Sample::default()
        };
        // In a run of 5 s, vCPU 0 does 100 and vCPU 1 does 30; they take a second of CPU time each. The last report is late,
        // after 8 s. One report alone says nothing.
        let guest = vec![
            sample(0, 0, 0, 0),
            sample(1, 0, 10, 0),
            sample(0, 1, 100, 1_000_000_000),
            sample(1, 8, 40, 1_000_000_000),
            sample(2, 0, 7, 7),
        ];
        let measured = comparison().measured(1, vec![guest.clone(), guest]).unwrap();
        // 2 guests x 130 in 5 s; 2 x 2 s in 8 s.
        assert!((measured.per_second - 52.0).abs() < 1e-9, "{}", measured.per_second);
        assert!((measured.cpus - 0.5).abs() < 1e-9, "{}", measured.cpus);
        assert!(!measured.paravirtual);
        assert_eq!(comparison().measured(8, Vec::new()), None);
        // Whatever a guest says is summed up at once.
        let all = [0, u64::MAX].map(|n| sample(u32::MAX, n / 1_000_000_000, n, n)).to_vec();
        let others = [0, u64::MAX].map(|n| sample(7, 0, n, n)).to_vec();
        let guest = [all, others].concat();
        let measured = comparison().measured(0, vec![guest.clone(), guest]).unwrap();
        assert!(measured.per_second > 1e18 && measured.per_second.is_finite());
    }
}
