//! What guests of a scenario do, what they cannot do, and what they report.

use overspin_host::{Ignored, Refused};
use overspin_scenario::{Domain, DomainOutcome, Outcome, Picos, Scenario};
use overspin_workload::{Kinds, Loads};

use super::kernel::{KernelJob, KernelReport};
use super::{NAME, programs};
use crate::LOCKS;
use crate::talk::Ask;

/// CPUs that the kernel is compiled for.
const MOST_VCPUS: u32 = 64;

/// What a guest does.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// Threads of its kernel take spinlocks.
    Kernel {
        /// What they do.
        job: KernelJob,
        /// The number of acquisitions that they note one by one.
        notes: u64,
    },
    /// Programs work that take no lock of the scenario; whether they have no end of their own.
    Programs { endless: bool },
}

/// The jobs of all domains, with the number of acquisitions that their guests note together.
///
/// # Errors
/// If a domain asks for what no guest can do.
pub(super) fn jobs(scenario: &Scenario, notes: u64) -> Result<Vec<Job>, Refused> {
    if scenario.domains.is_empty() {
        return Err(Refused::Invalid("there is no domain".into()));
    }
    let notes = notes / scenario.domains.len() as u64;
    scenario.domains.iter().map(|domain| job(domain, notes)).collect()
}

fn job(domain: &Domain, notes: u64) -> Result<Job, Refused> {
    let bad = |what: String| Refused::Invalid(format!("domain `{}`: {what}", domain.name));
    if !LOCKS.contains(&domain.lock.as_str()) {
        return Err(bad(format!(
            "`{}` is no lock of a kernel's word of 4 bytes; those are: {}",
            domain.lock,
            LOCKS.join(", ")
        )));
    }
    if let Some(why) = domain.kernel.only_simulated() {
        return Err(bad(why.into()));
    }
    if domain.vcpus > MOST_VCPUS {
        let vcpus = domain.vcpus;
        return Err(bad(format!(
            "a guest of `{NAME}` has up to {MOST_VCPUS} vCPUs, and not {vcpus}"
        )));
    }
    let loads = Loads::of(domain, &Kinds::builtin()).map_err(|fault| bad(fault.to_string()))?;
    if programs::can(&loads, domain.vcpus) {
        return Ok(Job::Programs { endless: loads.is_endless() });
    }
    KernelJob::of(domain, &loads).map(|job| Job::Kernel { job, notes }).map_err(bad)
}

impl Job {
    pub(super) fn is_endless(&self) -> bool {
        match self {
            Self::Kernel { job, .. } => job.is_endless(),
            Self::Programs { endless } => *endless,
        }
    }

    /// The number of acquisitions that it notes one by one.
    pub(super) fn notes(&self) -> u64 {
        match self {
            Self::Kernel { notes, .. } => *notes,
            Self::Programs { .. } => 0,
        }
    }

    /// What the guest of this domain is asked for.
    pub(super) fn ask(
        &self,
        scenario: &Scenario,
        domain: &Domain,
        warmup: Picos,
        seed: u64,
    ) -> Ask {
        match self {
            Self::Kernel { job, notes } => Ask::Work(job.line(scenario, warmup, (seed, *notes))),
            Self::Programs { .. } => {
                let inside = programs::inside(scenario, domain, warmup);
                Ask::Programs { scenario: serde_json::to_string(&inside).unwrap_or_default(), seed }
            }
        }
    }

    /// Reads what the guest says at the end; nothing if it makes no sense.
    pub(super) fn report(&self, text: &str) -> Option<Report> {
        match self {
            Self::Kernel { .. } => KernelReport::parse(text).map(Report::Kernel),
            Self::Programs { .. } => {
                let outcome = Outcome::from_json(text).ok()?;
                Some(Report::Programs(Box::new(outcome)))
            }
        }
    }
}

/// What a guest did.
#[derive(Clone, Debug)]
pub(super) enum Report {
    Kernel(KernelReport),
    /// By the world `threads`, inside.
    Programs(Box<Outcome>),
}

impl Report {
    /// Parts of the limit in which items are counted.
    pub(super) const SLOTS: u64 = 64;

    pub(super) fn end(&self) -> Picos {
        match self {
            Self::Kernel(report) => report.end(),
            Self::Programs(outcome) => outcome.elapsed,
        }
    }

    pub(super) fn steps_per_us(&self) -> f64 {
        match self {
            Self::Kernel(report) => report.steps_per_us(),
            Self::Programs(outcome) => outcome.measurement.as_ref().map_or(0.0, |m| m.steps_per_us),
        }
    }

    /// The guest's counter when it began, if it tells it.
    pub(super) fn begun(&self) -> Option<u64> {
        match self {
            Self::Kernel(report) => Some(report.begun),
            Self::Programs(_) => None,
        }
    }

    /// Whether each acquisition was noted.
    pub(super) fn is_noted(&self) -> bool {
        matches!(self, Self::Kernel(report) if report.noted)
    }

    pub(super) fn has_finished(&self) -> bool {
        match self {
            Self::Kernel(report) => report.has_finished(),
            Self::Programs(outcome) => outcome.domains.iter().all(|d| d.finished.is_some()),
        }
    }

    /// Completes the outcome of a domain with `steps` values of its curve, one for each `step`.
    pub(super) fn of_domain(
        &self,
        job: &Job,
        (steps, step): (usize, Picos),
        outcome: DomainOutcome,
    ) -> DomainOutcome {
        match (self, job) {
            (Self::Kernel(report), Job::Kernel { job, .. }) => {
                report.of_domain(job, steps, outcome)
            }
            (Self::Programs(inside), _) => programs::of_domain(inside, (steps, step), outcome),
            (Self::Kernel(_), Job::Programs { .. }) => outcome,
        }
    }
}

/// The keys that have no effect here.
pub(super) const IGNORED: [Ignored; 13] = [
    Ignored::always("host.scheduler", "the kernel of this machine schedules"),
    Ignored::MACHINE,
    Ignored::THREADS,
    Ignored::NOISE,
    Ignored::GOVERNOR,
    Ignored::PAUSE_LOOPS,
    Ignored::PV,
    Ignored::halt_polling("KVM decides"),
    Ignored::new(
        "host.preemption_notification",
        |s| s.host.preemption_notification.is_some(),
        "neither KVM nor QEMU asks",
    ),
    Ignored::new("event", |s| !s.events.is_empty(), "nobody administers these guests"),
    Ignored::PARAMS,
    Ignored::new(
        "domain.nopvspin",
        |s| s.domains.iter().any(|d| d.nopvspin),
        "waiters of these kernels sleep",
    ),
    Ignored::always("domain.kernel", "the guest has a kernel of its own, Linux 6.1"),
];
