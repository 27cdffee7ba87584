//! The results of a simulated run: how fast it worked, and where its vCPUs' time went.

use super::{Load, PvTicket, Variant};
use overspin_scenario::{DomainOutcome, Ending, Outcome, Picos};
use overspin_stats::Summary;

/// One simulated run.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Lock, by its label.
    pub(super) lock: String,
    /// Load.
    pub(super) load: String,
    /// pCPUs.
    pub(super) pcpus: u32,
    /// Seed.
    pub(super) seed: u64,
    /// `limit`, as the loads have no end, or `deadlock`.
    pub(super) ending: &'static str,
    /// Transactions, or processes of the compile, in a simulated second.
    pub(super) rate: f64,
    /// Part of the vCPUs' running time spent on waiting for locks.
    pub(super) spinning: f64,
    /// 99.9 % of the acquisitions of the worst lock waited at most this long, in seconds.
    pub(super) wait_p999_s: f64,
    /// How often a waiter slept, and how often a holder was descheduled, for all locks of the kernel.
    pub(super) slow_paths: u64,
    pub(super) holder_preempted: u64,
}

impl Sample {
    pub(super) fn new(lock: &str, load: &str, pcpus: u32, outcome: &Outcome) -> Self {
        let domains = || outcome.domains.iter();
        let seconds = Picos::seconds;
        let sum = |of: fn(&overspin_scenario::VcpuOutcome) -> Picos| -> f64 {
            seconds(domains().flat_map(|d| &d.vcpus).map(of).sum())
        };
        let (running, locks) = (sum(|v| v.running), || domains().flat_map(|d| &d.locks));
        let part = |time: f64, of: f64| if of > 0.0 { time / of } else { 0.0 };
        let rate = |d: &DomainOutcome| {
            let items: u64 = d.tasks.iter().map(|t| t.items).sum();
            part(items as f64, seconds(outcome.lifetime(d)))
        };
        Self {
            lock: lock.to_owned(),
            load: load.to_owned(),
            pcpus,
            seed: outcome.seed,
            ending: match outcome.ending {
                Ending::Finished => "finished",
                Ending::Limit => "limit",
                Ending::Deadlock { .. } => "deadlock",
                Ending::Stopped { .. } => "stopped",
            },
            rate: domains().map(rate).sum(),
            spinning: part(sum(|v| v.spinning), running),
            wait_p999_s: seconds(locks().map(|l| l.wait_p999).max().unwrap_or_default()),
            slow_paths: locks().map(|l| l.slow_paths).sum(),
            holder_preempted: locks().map(|l| l.holder_preempted).sum(),
        }
    }
}

/// The runs of an experiment, ready for queries.
#[derive(Debug)]
pub(super) struct Measured<'a> {
    pub(super) experiment: &'a PvTicket,
    samples: &'a [Sample],
}

impl<'a> Measured<'a> {
    pub(super) fn new(experiment: &'a PvTicket, samples: &'a [Sample]) -> Self {
        Self { experiment, samples }
    }

    /// A metric over the runs of a configuration; `None` if there are no runs, or if one of them deadlocked.
    pub(super) fn summary(
        &self,
        lock: &Variant,
        load: &Load,
        pcpus: u32,
        metric: fn(&Sample) -> f64,
    ) -> Option<Summary> {
        let runs = self
            .samples
            .iter()
            .filter(|s| s.lock == lock.label && s.load == load.name && s.pcpus == pcpus);
        let values: Option<Vec<f64>> =
            runs.map(|s| (s.ending != "deadlock").then(|| metric(s))).collect();
        Summary::of(&values?)
    }

    /// Mean rate of the best lock of a column.
    pub(super) fn best(&self, load: &Load, pcpus: u32) -> Option<f64> {
        let rate = |lock| self.summary(lock, load, pcpus, |s| s.rate).map(|s| s.mean);
        let rates: Option<Vec<f64>> = self.experiment.locks.iter().map(rate).collect();
        rates?.into_iter().max_by(f64::total_cmp).filter(|best| *best > 0.0)
    }

    /// vCPUs of a load's domain for each pCPU.
    pub(super) fn overcommit(&self, load: &Load, pcpus: u32) -> f64 {
        let domains = &self.experiment.scenario.domains;
        let vcpus = domains.iter().find(|d| d.name == load.domain).map_or(0, |d| d.vcpus);
        f64::from(vcpus) / f64::from(pcpus)
    }
}
