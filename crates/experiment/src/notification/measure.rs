//! The results of one run, and means over the seeds.

use super::{Case, Help, Load, Notification, Test};
use overspin_runs::record::{vcpu_time, wait_causes};
use overspin_scenario::{Outcome, Picos, WaitCauses, WindowOutcome};
use overspin_stats::Summary;
use serde::Serialize;

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct NotificationSample {
    /// The guest's work.
    pub test: Test,
    /// The host's scheduler.
    pub host: String,
    /// The host's help for lock holders.
    pub help: Help,
    /// The load that preempts the guest.
    pub load: Load,
    /// Seed.
    pub seed: u64,
    /// Time until the guest was done, in s, scaled up to the published length; null if it did not finish.
    pub elapsed_s: Option<f64>,
    /// CPU time of the guest's tasks, in s, scaled likewise.
    pub cpu_s: f64,
    /// Items that the guest's tasks have done; for `pft`, these are faults.
    pub items: u64,
    /// Requests answered per second.
    pub requests_per_s: f64,
    /// Holds of a guest lock during which the holder was descheduled.
    pub holders_preempted: u64,
    /// The uses of the windows of the guest's vCPUs.
    pub windows: WindowOutcome,
    /// What the waits for locks were spent on.
    pub wait_causes: WaitCauses,
    /// The time of all vCPUs, which includes these waits.
    pub vcpu_time: Picos,
    /// Hash of the run's events: equal for equal runs.
    #[serde(with = "overspin_scenario::hash_text")]
    pub trace_hash: u64,
}

impl NotificationSample {
    pub(super) fn of(case: &Case, seed: u64, scale: u32, outcome: &Outcome) -> Self {
        // The domain that preempts comes last.
        let (guest, other) = (&outcome.domains[0], &outcome.domains[1]);
        let scale = if case.test == Test::Count { f64::from(scale) } else { 1.0 };
        let mut windows = WindowOutcome::default();
        for w in guest.vcpus.iter().filter_map(|v| v.windows) {
            windows.offered += w.offered;
            windows.used += w.used;
            windows.expired += w.expired;
            windows.left += w.left;
            windows.refused += w.refused;
            windows.time += w.time;
        }
        let answered: u64 = other.tasks.iter().map(|t| t.items).sum();
        Self {
            test: case.test,
            host: case.host.clone(),
            help: case.help,
            load: case.load,
            seed,
            elapsed_s: guest.finished.map(|t| (t - guest.started).seconds() * scale),
            cpu_s: guest.tasks.iter().map(|t| t.cpu.seconds()).sum::<f64>() * scale,
            items: guest.tasks.iter().map(|t| t.items).sum(),
            requests_per_s: answered as f64 / other.lifetime(outcome.elapsed).seconds(),
            holders_preempted: guest.locks.iter().map(|l| l.holder_preempted).sum(),
            windows,
            wait_causes: wait_causes(outcome),
            vcpu_time: vcpu_time(outcome),
            trace_hash: outcome.trace_hash,
        }
    }
}

/// The runs, ready for queries. Queries without a scheduler refer to the published one.
pub(super) struct Measured<'a> {
    pub(super) experiment: &'a Notification,
    pub(super) runs: &'a [NotificationSample],
}

impl<'a> Measured<'a> {
    /// Runs of one configuration, one for each seed.
    pub(super) fn of(
        &self,
        test: Test,
        host: &str,
        help: Help,
        load: Load,
    ) -> impl Iterator<Item = &'a NotificationSample> {
        self.runs
            .iter()
            .filter(move |r| r.test == test && r.help == help && r.load == load && r.host == host)
    }

    /// A value over the seeds; `None` if a run has no value.
    pub(super) fn over_seeds(
        &self,
        (test, host, help, load): (Test, &str, Help, Load),
        value: impl Fn(&NotificationSample) -> Option<f64>,
    ) -> Option<Summary> {
        let all: Option<Vec<f64>> = self.of(test, host, help, load).map(value).collect();
        Summary::of(&all?)
    }

    fn mean(
        &self,
        case: (Test, &str, Help, Load),
        value: impl Fn(&NotificationSample) -> Option<f64>,
    ) -> Option<f64> {
        self.over_seeds(case, value).map(|s| s.mean)
    }

    /// Seconds that `count` takes.
    pub(super) fn count(&self, help: Help, load: Load) -> Option<f64> {
        let host = self.experiment.published_host();
        self.mean((Test::Count, host, help, load), |r| r.elapsed_s)
    }

    /// Faults per wall second of `pft` on a host.
    pub(super) fn faults_on(&self, host: &str, help: Help, load: Load) -> Option<Summary> {
        self.over_seeds((Test::Pft, host, help, load), |r| r.elapsed_s.map(|t| r.items as f64 / t))
    }

    /// Faults per second on the published host.
    pub(super) fn faults(&self, help: Help, load: Load) -> Option<f64> {
        self.faults_on(self.experiment.published_host(), help, load).map(|s| s.mean)
    }

    /// The relative change that `help` makes to the faults of a load on a host: the median over the seeds.
    /// Each run is compared with the run of the same seed without help; ticks have the same phases in both.
    /// In a few runs one of the two processes moves to the other vCPU a tick earlier. That matters several times as
    /// much as the change, so these few runs would decide the mean.
    pub(super) fn change_of_faults(&self, host: &str, help: Help, load: Load) -> Option<f64> {
        let of = |help| self.of(Test::Pft, host, help, load);
        let pairs = of(help).zip(of(Help::None));
        let changes: Option<Vec<f64>> =
            pairs.map(|(with, without)| Some(without.elapsed_s? / with.elapsed_s? - 1.0)).collect();
        Summary::of(&changes?).map(|s| s.median)
    }

    /// Requests answered per second beside a test.
    pub(super) fn requests(&self, test: Test, help: Help, load: Load) -> Option<f64> {
        let host = self.experiment.published_host();
        self.mean((test, host, help, load), |r| Some(r.requests_per_s))
    }
}
