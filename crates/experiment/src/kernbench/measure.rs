//! The results of a run, as time(1) and the hypervisor report them.

use overspin_scenario::{Ending, Outcome, Picos, WaitCauses};
use serde::Serialize;

/// One run. Times and counts are scaled up to the published length, except `simulated_s`.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Lock.
    pub lock: String,
    /// Load.
    pub load: String,
    /// Seed.
    pub seed: u64,
    /// `finished`, `limit` or `deadlock`.
    pub ending: &'static str,
    /// Simulated seconds at the end, unscaled.
    pub simulated_s: f64,
    /// Elapsed time; null if it did not finish.
    pub elapsed_s: Option<f64>,
    /// User time that ticks charged.
    pub user_s: f64,
    /// System time that ticks charged.
    pub system_s: f64,
    /// (user + system) / elapsed in whole percent, truncated as by time(1).
    pub percent_cpu: Option<f64>,
    /// Involuntary switches.
    pub context_switches: f64,
    /// Voluntary switches.
    pub sleeps: f64,
    /// Running time of each vCPU.
    pub vcpu_time_s: Vec<f64>,
    /// Part of the vCPUs' running time spent on spinning for locks.
    pub spinning: f64,
    /// What its waits for locks were spent on, unscaled.
    pub wait_causes: WaitCauses,
    /// Part of the pCPUs' time in which they ran vCPUs.
    pub busy: f64,
    /// Hash of the run's events: equal for equal runs.
    #[serde(with = "overspin_scenario::hash_text")]
    pub trace_hash: u64,
}

impl Sample {
    /// Figures of an outcome's first domain; `scale` multiplies times and counts.
    #[must_use]
    pub fn new(lock: &str, load: &str, outcome: &Outcome, scale: f64) -> Self {
        let domain = outcome.domains.first();
        let tasks = domain.map_or(&[][..], |d| &d.tasks);
        let vcpus = domain.map_or(&[][..], |d| &d.vcpus);
        let finished = domain.filter(|d| d.finished.is_some());
        let elapsed = finished.map(|d| d.lifetime(outcome.elapsed).seconds());
        let user = tasks.iter().map(|t| t.user_ticks).sum::<Picos>().seconds();
        let system = tasks.iter().map(|t| t.system_ticks).sum::<Picos>().seconds();
        let ratio =
            |part: Picos, whole: Picos| if whole == Picos::ZERO { 0.0 } else { part.ratio(whole) };
        let busy: Picos = outcome.pcpus.iter().map(|p| p.busy).sum();
        let all: Picos = outcome.pcpus.iter().map(|p| p.busy + p.switching + p.idle).sum();
        Self {
            lock: lock.to_owned(),
            load: load.to_owned(),
            seed: outcome.seed,
            ending: match outcome.ending {
                Ending::Finished => "finished",
                Ending::Limit => "limit",
                Ending::Deadlock { .. } => "deadlock",
                Ending::Stopped { .. } => "stopped",
            },
            simulated_s: outcome.elapsed.seconds(),
            elapsed_s: elapsed.map(|e| e * scale),
            user_s: user * scale,
            system_s: system * scale,
            percent_cpu: elapsed
                .filter(|e| *e > 0.0)
                .map(|e| ((user + system) / e * 100.0).floor()),
            context_switches: tasks.iter().map(|t| t.preemptions).sum::<u64>() as f64 * scale,
            sleeps: tasks.iter().map(|t| t.sleeps).sum::<u64>() as f64 * scale,
            vcpu_time_s: vcpus.iter().map(|v| v.running.seconds() * scale).collect(),
            spinning: ratio(
                vcpus.iter().map(|v| v.spinning).sum(),
                vcpus.iter().map(|v| v.running).sum(),
            ),
            wait_causes: WaitCauses::sum(vcpus.iter().map(|v| &v.wait_causes)),
            busy: ratio(busy, all),
            trace_hash: outcome.trace_hash,
        }
    }
}
