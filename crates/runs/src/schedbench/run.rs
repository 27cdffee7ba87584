//! Runs in the simulated world.

use super::file::{BenchFile, Report, Run, WorkerId};
use crate::catalog::names;
use crate::runner::Runner;
use overspin_host::Observer;
use overspin_host::Refused;
use overspin_located::LocatedError;
use overspin_scenario::{
    Domain, Ending, Host, Kernel, NS, Outcome, Picos, SEC, Scenario, Settings, TaskOutcome,
};
use overspin_sched::suggestion;
use overspin_workload::Schedbench;

/// A machine for workers.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The scenario or experiment that describes it.
    pub name: String,
    /// Its pCPUs, and its scheduler for runs that do not name one. Each run replaces the number of cores by
    /// its own pCPUs.
    pub host: Host,
    /// Million operations that a worker does in a second of CPU time at full speed.
    pub rate: u32,
}

impl Machine {
    /// The machine of a scenario, with the rate of its first worker; `None` if it has no worker.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let worker = scenario.domains.iter().find_map(|d| d.workload.get::<Schedbench>())?;
        let item = worker.items.first()?;
        // Thousands of operations in a number of picoseconds: converted to millions of operations a second.
        let rate =
            u128::from(item.kops) * u128::from(SEC.0) / 1000 / u128::from(item.burn.0.max(1));
        let name = scenario.name.clone();
        Some(Self { name, host: scenario.host.clone(), rate: u32::try_from(rate).ok()?.max(1) })
    }
}

/// The reason why a run did not take place.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An error in the file.
    #[error(transparent)]
    File(#[from] Box<LocatedError>),
    /// The simulator refused it.
    #[error("run `{label}`: {cause}")]
    Sim {
        /// The run.
        label: String,
        /// The reason.
        #[source]
        cause: Refused,
    },
}

/// The scenario of a run: a domain for each worker.
///
/// # Errors
/// If the scheduler does not exist or a worker's command line is wrong.
pub fn scenario(file: &BenchFile, run: &Run, machine: &Machine) -> Result<Scenario, LocatedError> {
    let mut host = machine.host.clone();
    if let Some(name) = run.run_config.scheduler.as_deref().filter(|s| !s.is_empty()) {
        let Ok(scheduler) = names().schedulers().find(name) else {
            let known: Vec<&str> = names().schedulers().iter().map(|s| s.name).collect();
            let help = suggestion(name, "schedulers are", &known);
            let message = format!("run `{}`: there is no scheduler `{name}`", run.label);
            return Err(file.error(name, message, &help));
        };
        if scheduler.name != host.scheduler {
            // The parameters are another scheduler's.
            host.params = Settings::default();
            scheduler.name.clone_into(&mut host.scheduler);
        }
    }
    if let Some(cpus) = &run.run_config.cpus {
        // A pool takes whole cores if possible.
        let cpus = cpus.len() as u32;
        if !cpus.is_multiple_of(host.threads) {
            host.threads = 1;
        }
        (host.sockets, host.cores) = (1, cpus / host.threads);
    }
    let mut domains = Vec::new();
    for (set, workers) in run.worker_sets.iter().enumerate() {
        let workload = file.worker(&run.label, &workers.params.args)?.workload(machine.rate);
        let vcpus = workers.params.vcpus.unwrap_or(1);
        domains.extend((0..workers.count).map(|id| Domain {
            kernel: kernel(vcpus),
            ..Domain::new(format!("{set}:{id}"), vcpus, "ticket", workload.clone())
        }));
    }
    let limit = run.runtime_seconds * SEC;
    Ok(Scenario { to_the_limit: true, ..Scenario::new(run.label.clone(), host, domains, limit) })
}

/// Workers are unikernels: almost no kernel, and a tick only to spread threads over vCPUs.
fn kernel(vcpus: u32) -> Kernel {
    let hz = if vcpus > 1 { 1000 } else { 0 };
    Kernel { hz, task_switch: Picos::ZERO, tick_work: Picos::ZERO, ..Kernel::default() }
}

/// Makes a run, and returns it with its results.
///
/// # Errors
/// If the run cannot take place.
pub fn simulate(
    file: &BenchFile,
    run: &Run,
    machine: &Machine,
    seed: u64,
    trace: Option<&mut dyn Observer>,
) -> Result<(Run, Scenario, Outcome), RunError> {
    run_in(file, run, machine, seed, trace, Runner::default())
}

/// Like [`simulate`], but with this `way`; a run that was stopped is incomplete.
///
/// # Errors
/// If the run cannot take place.
pub fn run_in(
    file: &BenchFile,
    run: &Run,
    machine: &Machine,
    seed: u64,
    mut trace: Option<&mut dyn Observer>,
    runner: Runner,
) -> Result<(Run, Scenario, Outcome), RunError> {
    let scenario = scenario(file, run, machine).map_err(Box::new)?;
    let outcome = runner
        .run(&scenario, seed, &mut trace, &|_| {})
        .map_err(|cause| RunError::Sim { label: run.label.clone(), cause })?;
    Ok((done(run, &outcome), scenario, outcome))
}

/// The run with the results of this outcome.
pub fn done(run: &Run, outcome: &Outcome) -> Run {
    let mut done = run.clone();
    done.results.raw = Some(reports(run, outcome));
    done.completed = !matches!(outcome.ending, Ending::Stopped { .. });
    done.origin = None;
    done
}

/// Reports of all workers, in order of time; a worker of several vCPUs reports their sum.
fn reports(run: &Run, outcome: &Outcome) -> Vec<Report> {
    let ids =
        run.worker_sets.iter().enumerate().flat_map(|(set, workers)| {
            (0..workers.count as usize).map(move |id| WorkerId { set, id })
        });
    let mut all = Vec::new();
    for (id, domain) in ids.zip(&outcome.domains) {
        let shortest = domain.tasks.iter().map(|t| t.reports.len()).min().unwrap_or(0);
        all.extend((0..shortest).map(|i| sum(id, &domain.tasks, i)));
    }
    // The sort is stable: workers that report at once keep their order.
    all.sort_by_key(|r: &Report| r.now);
    all
}

fn sum(id: WorkerId, vcpus: &[TaskOutcome], i: usize) -> Report {
    let mut sum = Report { id, ..Report::default() };
    for r in vcpus.iter().filter_map(|t| t.reports.get(i)) {
        sum.now = sum.now.max(r.at / NS);
        sum.kops += r.kops;
        sum.max_delta = sum.max_delta.max(r.max_delta / NS);
        sum.cputime += r.cpu_time / NS;
        sum.deadlines += r.deadlines;
        sum.missed += r.missed;
    }
    sum
}
