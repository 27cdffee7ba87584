//! The runs of both sides.

use super::cases::Case;
use super::compare::{Samples, compare, order};
use super::figure::{Figure, figures};
use super::plan::{Measurable, Plan, Schedulers, Subject, scenario};
use super::{Compared, Comparison, Disturbance, Load, Order, Settings, ValidateError, Validation};
use overspin_host::Refused;
use overspin_runs::catalog::AnyWorld;
use overspin_runs::load::watched;
use overspin_runs::parallel::{ParallelError, in_parallel};
use overspin_runs::runner::{Runner, Until};
use overspin_runs::seeds::seeds_from;
use overspin_scenario::{Picos, Stopped};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Disturbed runs are repeated for at most this part of the time of all measured runs.
const AGAIN: f64 = 1.0 / 3.0;
/// A disturbed run is repeated at most this often.
const TRIES: u32 = 3;

/// A side of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The simulator.
    Simulated,
    /// This machine.
    Measured,
}

/// A run of either side.
#[derive(Clone, Debug)]
pub struct SideRun {
    /// Its subject, as an index of the plan.
    pub subject: usize,
    /// Its side.
    pub side: Side,
    /// Its seed.
    pub seed: u64,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// What others had of the CPUs; `None` if it was simulated or the kernel does not tell.
    pub disturbance: Option<Disturbance>,
    /// Whether a measured run did more than its CPUs can do.
    pub is_impossible: bool,
    /// How often it was repeated because others disturbed it.
    pub repeated: u32,
}

/// Whether `world` can be measured on this machine: runs a case for a moment.
///
/// # Errors
/// If the world refuses it.
pub fn probe(world: AnyWorld, settings: &Settings) -> Result<Result<(), Refused>, ValidateError> {
    let Some(case) = super::cases::cases(settings.pcpus).into_iter().find(|case| case.quick) else {
        return Ok(Ok(()));
    };
    let mut scenario = scenario(&case, settings.pcpus, "eevdf", &[])?;
    scenario.limit = Picos::ms(1);
    let made = world.run(&scenario, settings.seed, &mut (), &());
    Ok(made.map(|_| ()))
}

/// The world as it is to be measured: who schedules in it, and what the simulator is told of its costs.
#[must_use]
pub fn measurable(world: AnyWorld, sets: Vec<String>) -> Measurable {
    Measurable { world, schedulers: Schedulers::of(world), sets }
}

/// Makes all simulated runs on as many threads as asked for. `None` for those that were stopped.
pub(super) fn simulate(
    plan: &Plan,
    settings: &Settings,
    until: Until,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<SideRun>, ParallelError> {
    let runner = Runner { until, ..Runner::default() };
    let seeds = seeds_from(settings.seed, plan.seeds);
    let jobs: Vec<(usize, u64)> =
        (0..plan.subjects.len()).flat_map(|s| seeds.iter().map(move |seed| (s, *seed))).collect();
    let runs = in_parallel(settings.threads, &jobs, progress, |(s, seed)| {
        one(&plan.subjects[*s], *s, Side::Simulated, *seed, runner)
    })?;
    Ok(runs.into_iter().flatten().collect())
}

/// One run; `None` if it was stopped or went wrong.
fn one(
    subject: &Subject,
    index: usize,
    side: Side,
    seed: u64,
    Runner { world, until }: Runner,
) -> Result<Option<SideRun>, ParallelError> {
    // Nobody observes: what observers want would cost time in the measured worlds.
    let cancel = |_: Picos| until.over();
    let make = || world.run(&subject.scenario, seed, &mut (), &cancel);
    let made = if side == Side::Measured { watched(&subject.scenario, make) } else { make() };
    let outcome = made.map_err(|cause| ParallelError::Sim {
        set: vec![format!("case {}", subject.case.name)],
        cause,
    })?;
    if !outcome.ending.is_sound() {
        return Ok(None);
    }
    Ok(Some(SideRun {
        subject: index,
        side,
        seed,
        figures: figures(&subject.case, &outcome),
        disturbance: outcome.measurement.as_ref().and_then(|m| m.disturbance),
        is_impossible: outcome.measurement.is_some_and(|m| m.impossible.is_some()),
        repeated: 0,
    }))
}

/// Makes all measured runs, one at a time; then repeats those that others disturbed, the worst first, for as long
/// as the limit allows.
pub(super) fn measure(
    plan: &Plan,
    settings: &Settings,
    until: Until,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<SideRun>, ParallelError> {
    let order = plan.order(settings.seed);
    let mut runs: Vec<SideRun> = Vec::new();
    for (i, (s, repetition)) in order.iter().enumerate() {
        let subject = &plan.subjects[*s];
        let runner = Runner { world: subject.world, until };
        let seed = settings.seed.wrapping_add(u64::from(*repetition));
        runs.extend(one(subject, *s, Side::Measured, seed, runner)?);
        progress(i + 1, order.len());
        if until.over().is_some() {
            return Ok(runs);
        }
    }
    let deadline = Instant::now() + Duration::from_secs_f64(plan.measured_s() * AGAIN);
    let mut disturbed = worst_first(&runs);
    while let Some(i) = disturbed.pop() {
        if Instant::now() >= deadline || until.over().is_some() {
            break;
        }
        let subject = &plan.subjects[runs[i].subject];
        let runner = Runner { world: subject.world, until };
        let again = one(subject, runs[i].subject, Side::Measured, runs[i].seed, runner)?;
        let repeated = runs[i].repeated + 1;
        runs[i].repeated = repeated;
        if let Some(again) = again
            && by(&again) < by(&runs[i])
        {
            runs[i] = SideRun { repeated, ..again };
        }
        if disturbed.is_empty() {
            disturbed = worst_first(&runs);
        }
    }
    Ok(runs)
}

/// By how much others disturbed a run. One that cannot be right is the worst.
fn by(run: &SideRun) -> f64 {
    let disturbance = run.disturbance.map_or(0.0, Disturbance::sum);
    if run.is_impossible { f64::INFINITY } else { disturbance }
}

/// The disturbed runs that may be repeated; the worst is the last.
fn worst_first(runs: &[SideRun]) -> Vec<usize> {
    let may = |run: &SideRun| by(run) > Disturbance::QUIET && run.repeated < TRIES;
    let mut all: Vec<usize> = (0..runs.len()).filter(|i| may(&runs[*i])).collect();
    all.sort_by(|a, b| by(&runs[*a]).total_cmp(&by(&runs[*b])));
    all
}

/// Puts both sides of every figure together.
pub(super) fn judge(
    plan: &Plan,
    settings: &Settings,
    runs: Vec<SideRun>,
    stopped: Option<Stopped>,
) -> Validation {
    let subjects = plan.subjects.iter().enumerate();
    let compared: Vec<Compared> =
        subjects.flat_map(|(i, subject)| of_subject(i, subject, &runs, settings)).collect();
    let result = Comparison {
        goals: settings.goals,
        notes: Vec::new(),
        refused: Vec::new(),
        load: load(&runs),
        orders: orders(plan, &compared),
        compared,
    };
    Validation { plan: plan.clone(), runs, result, stopped }
}

fn load(runs: &[SideRun]) -> Load {
    let measured: Vec<&SideRun> = runs.iter().filter(|run| run.side == Side::Measured).collect();
    let told: Vec<Disturbance> = measured.iter().filter_map(|run| run.disturbance).collect();
    let mean = |of: fn(&Disturbance) -> f64| match told.len() {
        0 => 0.0,
        n => told.iter().map(of).sum::<f64>() / n as f64,
    };
    Load {
        runs: measured.len(),
        told: told.len(),
        mean: Disturbance { steal: mean(|d| d.steal), others: mean(|d| d.others) },
        repeated: measured.iter().filter(|run| run.repeated > 0).count(),
        impossible: measured.iter().filter(|run| run.is_impossible).count(),
        disturbed: told.iter().filter(|d| d.is_loud()).count(),
    }
}

fn of_subject(i: usize, subject: &Subject, runs: &[SideRun], settings: &Settings) -> Vec<Compared> {
    // Figures are told apart by domain and metric; the first run has them all in their order.
    let mut samples: BTreeMap<(Option<&str>, &str), (Samples, &Figure, usize)> = BTreeMap::new();
    let mut disturbed = false;
    for run in runs.iter().filter(|run| run.subject == i && !run.is_impossible) {
        disturbed |= by(run) > Disturbance::QUIET;
        for figure in &run.figures {
            let place = samples.len();
            let key = (figure.domain.as_deref(), figure.metric.name);
            let entry = samples.entry(key).or_insert_with(|| (Samples::default(), figure, place));
            match run.side {
                Side::Simulated => entry.0.simulated.push((run.seed, figure.value)),
                Side::Measured => entry.0.measured.push((run.seed, figure.value)),
            }
        }
    }
    let mut all: Vec<(Samples, &Figure, usize)> = samples.into_values().collect();
    all.sort_by_key(|(.., place)| *place);
    let one = |(samples, figure, _): &(Samples, &Figure, usize)| {
        let of = compare(samples, figure.kind, &settings.goals)?;
        Some(Compared {
            case: subject.case.name.clone(),
            world: subject.world.name().into(),
            scheduler: subject.scheduler.clone(),
            domain: figure.domain.clone(),
            metric: figure.metric.name.into(),
            unit: figure.metric.unit.into(),
            kind: of.kind,
            simulated: of.simulated,
            measured: of.measured,
            difference: of.difference,
            margin: of.margin,
            goal: of.goal,
            agreement: of.agreement,
            disturbed,
        })
    };
    all.iter().filter_map(one).collect()
}

/// World, scheduler and ratio of a comparison of locks.
type Among<'a> = (&'a str, &'a str, u32);
/// What was measured of one of these locks.
type Measured<'a> = (&'a Case, &'a Compared);

/// The order of the locks in each world, under each scheduler, at each ratio.
fn orders(plan: &Plan, compared: &[Compared]) -> Vec<Order> {
    let case = |name: &str| plan.subjects.iter().map(|s| &s.case).find(|case| case.name == name);
    let mut groups: BTreeMap<Among<'_>, Vec<Measured<'_>>> = BTreeMap::new();
    for of in compared.iter().filter(|c| c.metric == "throughput") {
        if let Some(case) = case(&of.case).filter(|case| case.lock.is_some()) {
            groups.entry((&of.world, &of.scheduler, case.ratio)).or_default().push((case, of));
        }
    }
    let one = |((world, scheduler, ratio), locks): (Among<'_>, Vec<Measured<'_>>)| {
        let locks: Vec<_> = locks
            .iter()
            .map(|(case, of)| (case.lock.unwrap_or_default(), &of.simulated, &of.measured))
            .collect();
        let (decided, wrong) = order(&locks);
        Order {
            world: world.into(),
            scheduler: scheduler.into(),
            ratio,
            decided,
            wrong: wrong.iter().map(|pair| pair.map(str::to_owned)).collect(),
        }
    };
    groups.into_iter().map(one).collect()
}
