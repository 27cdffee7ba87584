//! Figures as kernbench and `xm vcpu-list` print them, from the outcomes of runs.

use super::{Figure, Kernbench};
use crate::stats::Summary;
use overspin_scenario::{Ending, Outcome, Picos, WaitCauses};
use serde::Serialize;

/// Runs at half load in a kernbench session, with the warm-up run.
const SESSION_FIRST_LOAD: f64 = 6.0;
/// Runs at each further load.
const SESSION_OTHER_LOADS: f64 = 5.0;

/// Simulated time in seconds.
pub(crate) fn seconds(picos: Picos) -> f64 {
    picos.seconds()
}

/// One run. Times and counts are multiplied up to the published length, except `simulated_s`.
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
    /// Simulated seconds at the end, as they were.
    pub simulated_s: f64,
    /// Elapsed time; null if it did not finish.
    pub elapsed_s: Option<f64>,
    /// User time that ticks charged.
    pub user_s: f64,
    /// System time that ticks charged.
    pub system_s: f64,
    /// (user + system) / elapsed in whole percent, as time(1) cuts it.
    pub percent_cpu: Option<f64>,
    /// Involuntary switches.
    pub context_switches: f64,
    /// Voluntary switches.
    pub sleeps: f64,
    /// Running time of each vCPU.
    pub vcpu_time_s: Vec<f64>,
    /// Part of the vCPUs' running time that went into waiting for locks.
    pub spinning: f64,
    /// What its waits for locks were spent on, as simulated: not multiplied.
    pub wait_causes: WaitCauses,
    /// Part of the pCPUs' time that was not idle.
    pub host_busy: f64,
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
        let elapsed = finished.map(|d| seconds(d.lifetime(outcome.elapsed)));
        let user = seconds(tasks.iter().map(|t| t.user_ticks).sum());
        let system = seconds(tasks.iter().map(|t| t.system_ticks).sum());
        let ratio =
            |part: Picos, whole: Picos| if whole == Picos::ZERO { 0.0 } else { part.ratio(whole) };
        let busy: Picos = outcome.pcpus.iter().map(|p| p.busy + p.switching).sum();
        let idle: Picos = outcome.pcpus.iter().map(|p| p.idle).sum();
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
            simulated_s: seconds(outcome.elapsed),
            elapsed_s: elapsed.map(|e| e * scale),
            user_s: user * scale,
            system_s: system * scale,
            percent_cpu: elapsed
                .filter(|e| *e > 0.0)
                .map(|e| ((user + system) / e * 100.0).floor()),
            context_switches: tasks.iter().map(|t| t.preemptions).sum::<u64>() as f64 * scale,
            sleeps: tasks.iter().map(|t| t.sleeps).sum::<u64>() as f64 * scale,
            vcpu_time_s: vcpus.iter().map(|v| seconds(v.running) * scale).collect(),
            spinning: ratio(
                vcpus.iter().map(|v| v.spinning).sum(),
                vcpus.iter().map(|v| v.running).sum(),
            ),
            wait_causes: WaitCauses::sum(vcpus.iter().map(|v| &v.wait_causes)),
            host_busy: ratio(busy, busy + idle),
            trace_hash: outcome.trace_hash,
        }
    }

    /// A kernbench figure of this run; `None` if the run did not finish or there is no such metric.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        self.elapsed_s?;
        match name {
            "elapsed_s" => self.elapsed_s,
            "user_s" => Some(self.user_s),
            "system_s" => Some(self.system_s),
            "percent_cpu" => self.percent_cpu,
            "context_switches" => Some(self.context_switches),
            "sleeps" => Some(self.sleeps),
            _ => None,
        }
    }
}

/// How many of the runs behind a figure did not finish.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Completion {
    pub(crate) runs: usize,
    pub(crate) unfinished: usize,
}

impl Completion {
    pub(crate) fn note(self) -> Option<String> {
        match self {
            Self { runs: 0, .. } => Some("not computed: no run gives this figure".into()),
            Self { unfinished: 0, .. } => None,
            Self { runs, unfinished } => {
                Some(format!("{unfinished} of {runs} runs did not finish"))
            }
        }
    }
}

/// The runs of an experiment, ready to be asked.
#[derive(Debug)]
pub struct Measured<'a> {
    experiment: &'a Kernbench,
    runs: &'a [Sample],
}

impl<'a> Measured<'a> {
    /// Over these runs.
    #[must_use]
    pub fn new(experiment: &'a Kernbench, runs: &'a [Sample]) -> Self {
        Self { experiment, runs }
    }

    /// Runs of a lock at a load.
    pub(crate) fn runs(&self, lock: &str, load: &str) -> Vec<&'a Sample> {
        self.runs.iter().filter(|r| r.lock == lock && r.load == load).collect()
    }

    /// A figure as kernbench reports it: elapsed time over the runs of the load, everything else
    /// over all runs up to this load.
    pub(crate) fn kernbench(
        &self,
        lock: &str,
        load: &str,
        metric: &str,
    ) -> (Option<Summary>, Completion) {
        let last = self.experiment.loads.iter().position(|l| l.name == load);
        let cumulative = metric != "elapsed_s";
        let runs: Vec<&Sample> = self
            .experiment
            .loads
            .iter()
            .enumerate()
            .filter(|(i, l)| if cumulative { Some(*i) <= last } else { l.name == load })
            .flat_map(|(_, l)| self.runs(lock, &l.name))
            .collect();
        let values: Vec<f64> = runs.iter().filter_map(|r| r.metric(metric)).collect();
        let unfinished = runs.iter().filter(|r| r.elapsed_s.is_none()).count();
        (Summary::of(&values), Completion { runs: runs.len(), unfinished })
    }

    /// Time of a vCPU over a kernbench session: warm-up and five runs at the first load, five at
    /// each other.
    pub(crate) fn vcpu_time(&self, lock: &str, vcpu: usize) -> (Option<f64>, Completion) {
        let mut total = Some(0.0);
        let mut completion = Completion::default();
        for (i, load) in self.experiment.loads.iter().enumerate() {
            let runs = self.runs(lock, &load.name);
            completion.runs += runs.len();
            completion.unfinished += runs.iter().filter(|r| r.elapsed_s.is_none()).count();
            let times: Vec<f64> = runs
                .iter()
                .filter(|r| r.elapsed_s.is_some())
                .filter_map(|r| r.vcpu_time_s.get(vcpu).copied())
                .collect();
            let times_run = if i == 0 { SESSION_FIRST_LOAD } else { SESSION_OTHER_LOADS };
            total = total.zip(Summary::of(&times)).map(|(t, s)| t + times_run * s.mean);
        }
        (total, completion)
    }

    /// The simulated counterpart of a published figure.
    pub(crate) fn figure(&self, figure: &Figure) -> (Option<Summary>, Completion) {
        match (&figure.load, figure.vcpu) {
            (Some(load), _) => self.kernbench(&figure.lock, load, &figure.metric),
            (None, Some(vcpu)) if figure.metric == "vcpu_time_s" => {
                let (time, completion) = self.vcpu_time(&figure.lock, vcpu);
                (time.and_then(|t| Summary::of(&[t])), completion)
            }
            _ => (None, Completion::default()),
        }
    }
}
