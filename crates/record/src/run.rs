//! The table of runs: facts about a run besides its samples.

use super::Changes;
use overspin_scenario::{
    Disturbance, DomainOutcome, Ending, Outcome, Picos, VcpuOutcome, WaitCauses,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its number, from 0; samples refer to it.
    pub number: u32,
    /// Its configuration, as dotted words; empty if there is only one.
    #[serde(rename = "where", default, skip_serializing_if = "String::is_empty")]
    pub place: String,
    /// Its seed, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Its point of the sweep, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<u32>,
    /// How it ended; a run that was stopped from outside says so here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Simulated time at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed: Option<Picos>,
    /// The time before which nothing counts.
    #[serde(default, skip_serializing_if = "Picos::is_zero")]
    pub warmup: Picos,
    /// The domains that were not steady: the two halves of the time that counts differ, and so would the rates of a
    /// longer run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<String>,
    /// What others had of the CPUs during a measured run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    /// Why the figures of a measured run cannot be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
    /// What each domain did in the time that counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainTotals>,
    /// The time of all vCPUs, on a pCPU or not; `wait_causes` is a part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpu_time: Option<Picos>,
    /// What waits for locks were spent on, all locks together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_causes: Option<WaitCauses>,
    /// Hash of all its scheduling and lock events: equal for equal runs.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_hash")]
    pub trace_hash: Option<u64>,
    /// Everything about it; only for a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Box<Outcome>>,
}

/// What a domain did in the time that counts, all its vCPUs, tasks and locks together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainTotals {
    /// Its name.
    pub name: String,
    /// The time that counts in its life.
    pub time: Picos,
    /// Items of its tasks.
    pub items: u64,
    /// Acquisitions of its locks.
    pub acquisitions: u64,
    /// Time of its vCPUs on pCPUs.
    pub running: Picos,
    /// Part of it from the first look at a lock that was not free to its acquisition.
    pub waiting: Picos,
    /// Time in which they wanted a pCPU and had none.
    pub runnable: Picos,
    /// Time in which they slept.
    pub blocked: Picos,
}

impl DomainTotals {
    fn of(outcome: &Outcome, domain: &DomainOutcome) -> Self {
        let time = |of: fn(&VcpuOutcome) -> Picos| domain.vcpus.iter().map(of).sum();
        Self {
            name: domain.name.clone(),
            time: outcome.lifetime(domain),
            items: domain.tasks.iter().map(|t| t.items).sum(),
            acquisitions: domain.locks.iter().map(|l| l.acquisitions).sum(),
            running: time(|v| v.running),
            waiting: time(|v| v.waiting),
            runnable: time(|v| v.runnable),
            blocked: time(|v| v.blocked),
        }
    }
}

impl Run {
    /// Whether it should be made again: others disturbed it, or its figures cannot be right.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.impossible.is_some() || self.disturbance.is_some_and(Disturbance::is_loud)
    }

    /// A simulated run with this outcome; the outcome itself is not kept.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            seed: Some(outcome.seed),
            ending: Some(outcome.ending.clone()),
            elapsed: Some(outcome.elapsed),
            warmup: outcome.warmup,
            unsteady: outcome.unsteady(),
            disturbance: outcome.measurement.as_ref().and_then(|m| m.disturbance),
            impossible: outcome.measurement.as_ref().and_then(|m| m.impossible.clone()),
            domains: outcome.domains.iter().map(|d| DomainTotals::of(outcome, d)).collect(),
            vcpu_time: Some(vcpu_time(outcome)),
            wait_causes: Some(wait_causes(outcome)),
            // A measured run has no equals.
            trace_hash: outcome.measurement.is_none().then_some(outcome.trace_hash),
            ..Self::default()
        }
    }
}

/// The waits of all locks of a run.
pub fn wait_causes(outcome: &Outcome) -> WaitCauses {
    let locks = outcome.domains.iter().flat_map(|d| &d.locks);
    WaitCauses::sum(locks.map(|l| &l.wait_causes))
}

/// The time of all vCPUs of a run, on a pCPU or not.
pub fn vcpu_time(outcome: &Outcome) -> Picos {
    let of = |d: &DomainOutcome| outcome.lifetime(d).saturating_mul(d.vcpus.len() as u64);
    outcome.domains.iter().map(of).fold(Picos::ZERO, Picos::saturating_add)
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its value on each axis.
    pub at: Vec<String>,
    /// `--set` arguments that run this point alone, besides those of all runs.
    pub set: Vec<String>,
    /// The differences of its scenario from the record's.
    pub changes: Changes,
}

/// [`overspin_scenario::hash_text`] of a hash that may be missing.
mod optional_hash {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use overspin_scenario::hash_text;

    #[derive(Serialize, Deserialize)]
    struct Hash(#[serde(with = "hash_text")] u64);

    #[expect(clippy::ref_option, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(hash: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        hash.map(Hash).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Hash>::deserialize(from)?.map(|hash| hash.0))
    }
}
