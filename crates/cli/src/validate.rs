//! `overspin validate`.

use crate::args::{EXIT_CODES, Global, RecordArgs, threads, wall};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress::RunsMeter;
use crate::show::{self, Outputs};
use crate::{signals, world};
use clap::Args;
use overspin_host::Refused;
use overspin_lab::calibrate;
use overspin_lab::measure;
use overspin_lab::validate::{
    self, Goals, Measurable, Plan, Settings, Stage, ValidateError, Validation,
};
use overspin_native::calibrate as native;
use overspin_record::environment::Environment;
use overspin_runs::catalog::AnyWorld;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ValidateArgs {
    /// Measure in this world alone: `threads` (against this kernel's scheduler) or `hv` (against the project's
    /// own schedulers); default: in all that this machine can run
    #[arg(long, value_name = "NAME")]
    world: Option<String>,
    /// The short form, for CI: a few cases in less than a minute, with wide bounds instead of the goals
    #[arg(long)]
    quick: bool,
    /// Only cases whose names contain one of these texts (`--dry-run` lists them)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    cases: Vec<String>,
    /// Only these schedulers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    schedulers: Vec<String>,
    /// The machine whose costs the simulator has: a name of `overspin list machines`, or a profile that `overspin
    /// calibrate` wrote; default: this machine, calibrated at the start
    #[arg(long, value_name = "NAME|FILE.toml")]
    machine: Option<String>,
    /// pCPUs of all cases; default: as many as this process may use, at most 8
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pcpus: Option<u32>,
    /// Measured runs of each case; default: 4, or 2 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: Option<u32>,
    /// Simulated runs of each case; default: 8, or 3 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: Option<u32>,
    /// First seed of both sides, and seed of the order of the measured runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads for the simulated runs; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    threads: usize,
    /// Stop after this much real time, for example 90s or 10min, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    max_wall: Option<Duration>,
    /// Say what there would be to do, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    record: RecordArgs,
    /// Write the report, with every figure, as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw simulated beside measured as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// End with 1 if a figure misses its goal or locks have another order, with 4 if that is unclear
    #[arg(long)]
    strict: bool,
}

pub(crate) fn validate(args: &ValidateArgs, global: &Global) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let files =
        [wanted.json.as_ref(), wanted.csv.as_ref(), args.markdown.as_ref(), args.svg.as_ref()];
    let outputs = Outputs::new(global, &files)?;
    let records = RecordFiles::open(&outputs, wanted)?;
    let (markdown, svg) = (outputs.open(args.markdown.as_ref())?, outputs.open(args.svg.as_ref())?);
    let settings = settings(args);
    // Wrong names are told before the machine is calibrated, which takes a while.
    let asked = validate::worlds(args.world.as_deref()).map_err(failure)?;
    Plan::new(&settings, &[]).map_err(failure)?;
    let (sets, told) = match args.dry_run {
        true => (Vec::new(), String::new()),
        false => machine(args, settings.pcpus, global.quiet)?,
    };
    let Worlds { usable, refused, notes } = worlds(args, &asked, &settings, &sets, told)?;
    let plan = Plan::new(&settings, &usable).map_err(failure)?;
    if plan.subjects.is_empty() {
        return Err(Failure::usage(
            "no case is left: none of these schedulers runs one of these cases",
            "leave --schedulers or --cases out",
        ));
    }
    if args.dry_run {
        return dry(&plan, &outputs);
    }
    if !global.quiet {
        eprintln!("{}", plan.words());
    }
    let runner = world::runner(None, args.max_wall)?;
    let meters = Meters::new(global);
    let tell = |stage, done, all| meters.at(stage, done, all);
    let result = validate::validate(&plan, &settings, runner.until, &tell);
    meters.end();
    let mut validation = result.map_err(failure)?;
    validation.result.refused = refused;
    validation.result.notes = notes;
    let result = &validation.result;
    records.write(|| show::made(overspin_lab::validate::record(&validation)))?;
    if let Some(svg) = svg {
        svg.finish_with(&validate::picture(result).0)?;
    }
    if let Some(markdown) = markdown {
        markdown.finish_with(&overspin_report::markdown(&validate::report(result, true)))?;
    }
    outputs.report(&validate::report(result, false))?;
    Ok(verdict(&validation, args.strict))
}

fn settings(args: &ValidateArgs) -> Settings {
    let pcpus = args.pcpus.unwrap_or_else(|| {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        u32::try_from(all).unwrap_or(MOST_PCPUS).min(MOST_PCPUS)
    });
    let usual = Settings::new(pcpus);
    let (repeats, seeds, goals) = match args.quick {
        true => (2, 3, Goals::WIDE),
        false => (usual.repeats, usual.seeds, usual.goals),
    };
    Settings {
        cases: args.cases.clone(),
        schedulers: args.schedulers.clone(),
        quick: args.quick,
        repeats: args.repeats.unwrap_or(repeats),
        seeds: args.seeds.unwrap_or(seeds),
        seed: args.seed,
        threads: args.threads,
        goals,
        ..usual
    }
}

/// The most pCPUs of cases, unless others are asked for: four vCPUs for each must fit the time of the full set.
const MOST_PCPUS: u32 = 8;

/// How long this machine is calibrated, in all and in the short form.
const CALIBRATION: [Duration; 2] = [Duration::from_secs(12), Duration::from_secs(3)];

/// The remedy if it cannot be calibrated.
const NAME_A_MACHINE: &str =
    "name a machine with --machine, or allow this process to choose its CPUs";

/// What the simulator is told of this machine, as `--set` arguments, and the same in words.
fn machine(args: &ValidateArgs, pcpus: u32, quiet: bool) -> Result<(Vec<String>, String), Failure> {
    if let Some(name) = &args.machine {
        let sets = vec![format!("host.machine={name}")];
        return Ok((sets, format!("The simulator has the costs of the machine `{name}`.")));
    }
    let time = CALIBRATION[usize::from(args.quick)];
    if !quiet {
        eprintln!("calibrates this machine for {} s", time.as_secs());
    }
    let over = signals::interrupted();
    let found = native::calibrate(time, args.seed, &[], &mut |_| {}, &over).map_err(|e| {
        Failure::environment(format!("cannot calibrate this machine: {e}"), NAME_A_MACHINE)
    })?;
    let noise = overspin_native::measure::NoisePlan {
        cpus: found.cpus.clone(),
        quantum: Duration::from_micros(15),
        duration: time / 2,
    };
    let noise = overspin_native::measure::noise(&noise, None)
        .map_err(|e| Failure::environment(e.to_string(), NAME_A_MACHINE))?;
    let mut sets = calibrate::settings(&found);
    sets.extend(measure::noise_settings(&noise, pcpus));
    let words = format!(
        "The simulator has the costs and the noise of this machine, just measured: {}.",
        sets.join(", ")
    );
    Ok((sets, words))
}

/// The worlds to measure, and what there is to say about them.
#[derive(Default)]
struct Worlds {
    usable: Vec<Measurable>,
    /// Worlds that this machine cannot run, with the reasons.
    refused: Vec<[String; 2]>,
    /// What the simulator is told of the machine.
    notes: Vec<String>,
}

/// Finds the worlds that this machine can run, and measures their costs. A world that the user named must run.
fn worlds(
    args: &ValidateArgs,
    asked: &[AnyWorld],
    settings: &Settings,
    sets: &[String],
    told: String,
) -> Result<Worlds, Failure> {
    let here = format!("{}.", Environment::here().words());
    let mut worlds = Worlds { notes: vec![here, told], ..Worlds::default() };
    for &world in asked {
        match validate::probe(world, settings).map_err(failure)? {
            Ok(()) => {
                let costs = validate::costs(world, settings.pcpus)
                    .map_err(|cause| Failure::refused(world.name(), &cause))?;
                let sets = sets.iter().cloned().chain(costs.sets).collect();
                worlds.usable.push(validate::measurable(world, sets));
                worlds.notes.extend(Some(costs.words).filter(|words| !words.is_empty()));
            }
            Err(cause) if args.world.is_some() => {
                return Err(Failure::refused(&format!("--world {}", world.name()), &cause));
            }
            Err(Refused::Machine { cause, remedy }) => {
                let reason = format!("{}. Remedy: {remedy}.", cause.trim_end_matches('.'));
                worlds.refused.push([world.name().to_owned(), reason]);
            }
            Err(cause) => return Err(Failure::refused(world.name(), &cause)),
        }
    }
    if let ([], [[world, reason], ..]) = (&worlds.usable[..], &worlds.refused[..]) {
        return Err(Failure::environment(
            format!("no world can be measured here; `{world}`: {reason}"),
            "`overspin doctor` says what this machine lacks",
        ));
    }
    Ok(worlds)
}

/// Says what there would be to do.
fn dry(plan: &Plan, outputs: &Outputs) -> Result<Verdict, Failure> {
    let mut text = format!("{}\n", plan.words());
    for subject in &plan.subjects {
        let (world, scheduler) = (subject.world.name(), &subject.scheduler);
        text += &format!("{world}, {scheduler}: {}: {}\n", subject.case.name, subject.case.about);
    }
    outputs.print(&text)?;
    Ok(Verdict::Fine)
}

/// A meter for each stage; that of the second begins with it.
struct Meters<'a> {
    global: &'a Global,
    simulated: RunsMeter,
    measured: OnceLock<RunsMeter>,
}

impl<'a> Meters<'a> {
    fn new(global: &'a Global) -> Self {
        let simulated = RunsMeter::new(global, "simulated runs", 0);
        Self { global, simulated, measured: OnceLock::new() }
    }

    fn at(&self, stage: Stage, done: usize, all: usize) {
        match stage {
            Stage::Simulates => self.simulated.at(done, all),
            Stage::Measures => {
                let begin = || {
                    self.simulated.end();
                    RunsMeter::new(self.global, "measured runs", 0)
                };
                self.measured.get_or_init(begin).at(done, all);
            }
        }
    }

    fn end(&self) {
        self.simulated.end();
        self.measured.get().into_iter().for_each(RunsMeter::end);
    }
}

fn verdict(validation: &Validation, strict: bool) -> Verdict {
    match (validation.stopped, validation.result.agrees()) {
        (Some(by), _) => world::stopped(by),
        (None, Some(false)) if strict => Verdict::Finding,
        (None, None) if strict => Verdict::Undecided,
        _ => Verdict::Fine,
    }
}

fn failure(error: ValidateError) -> Failure {
    let message = error.to_string();
    match error {
        ValidateError::NoCase { names, .. } => {
            Failure::usage(message, format!("cases are: {}", names.join(", ")))
        }
        ValidateError::NoWorld { names, .. } => {
            Failure::usage(message, format!("these can: {}", names.join(", ")))
        }
        ValidateError::Case { error, .. } => error.into(),
        ValidateError::Run(error) => Failure::parallel("validate", &error),
    }
}
