//! `overspin schedbench`: plan, run, report.

use crate::args::{Global, RecordArgs, SchedbenchArgs, SchedbenchRunArgs, SchedbenchVerb};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress;
use crate::show::{self, Outputs};
use crate::world::{self, XEN};
use overspin_host::{Observer, Refused};
use overspin_lab::experiment;
use overspin_lab::output::{Output, OutputError};
use overspin_lab::perfetto::PerfettoSink;
use overspin_lab::record;
use overspin_lab::scenario_file::{self, Loaded};
use overspin_lab::schedbench::{self, BenchFile, Machine, Origin, RunError};
use overspin_lab::way::Way;
use overspin_scenario::Scenario;
use std::path::{Path, PathBuf};

pub(crate) fn schedbench(args: &SchedbenchArgs, global: &Global) -> Result<Verdict, Failure> {
    match &args.verb {
        SchedbenchVerb::Plan { file, template } => {
            plan(file, template.as_deref().unwrap_or(file), global)
        }
        SchedbenchVerb::Run(args) => run(args, global),
        SchedbenchVerb::Report { file, verbosity, record } => {
            let outputs = Outputs::new(global, &[record.json.as_ref(), record.csv.as_ref()])?;
            print(file, *verbosity, record, &outputs)
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<BenchFile, Failure> {
    let text = record::read_text(path)?;
    Ok(BenchFile::parse(&path.display().to_string(), &text)?)
}

pub(crate) fn save(file: &BenchFile, path: &Path) -> Result<(), Failure> {
    Ok(Output::create(path)?.finish_with(&file.to_json())?)
}

fn plan(path: &Path, template: &Path, global: &Global) -> Result<Verdict, Failure> {
    let mut file = read(template)?;
    let runs = file.plan()?;
    save(&file, path)?;
    if !global.quiet {
        let seconds: u64 = file.runs.iter().map(|r| r.runtime_seconds).sum();
        let list: String = file.runs.iter().map(|r| format!("  {}\n", r.label)).collect();
        show::bytes(format!("{runs} runs, {seconds} simulated seconds:\n{list}").as_bytes())?;
    }
    Ok(Verdict::Fine)
}

/// The machine that a scenario describes, or that of the 2016 experiment.
fn machine(scenario: Option<&PathBuf>) -> Result<Machine, Failure> {
    let Some(path) = scenario else {
        return Ok(experiment::schedbench_machine()?);
    };
    let no_worker = || {
        Failure::usage(
            format!("{}: no domain runs schedbench, which would define the rate", path.display()),
            "add a domain whose workload has kind = \"schedbench\" and a rate",
        )
    };
    match scenario_file::load(path, &[])? {
        Loaded::One(scenario) | Loaded::Seeds(scenario, _) => {
            let machine = Machine::of(&scenario).ok_or_else(no_worker)?;
            Ok(Machine { name: path.display().to_string(), ..machine })
        }
        Loaded::Sweep(_) => Err(Failure::usage(
            format!("{}: this is a sweep of machines", path.display()),
            "remove the [[vary]] tables",
        )),
    }
}

fn refused(path: &Path, error: RunError) -> Failure {
    let said = format!("{}: {error}", path.display());
    match error {
        RunError::File(error) => error.into(),
        RunError::Sim { cause: Refused::Machine { remedy, .. }, .. } => {
            Failure::environment(said, remedy)
        }
        RunError::Sim { .. } => {
            Failure::usage(said, "change the run, or the machine with --machine")
        }
    }
}

fn run(args: &SchedbenchRunArgs, global: &Global) -> Result<Verdict, Failure> {
    let path = &args.file;
    let wanted = &args.record;
    let all = [Some(path), args.trace.as_ref(), wanted.json.as_ref(), wanted.csv.as_ref()];
    let outputs = Outputs::new(global, &all)?;
    let mut file = read(path)?;
    if args.world.as_deref() == Some(XEN) {
        #[cfg(feature = "xen")]
        return crate::xen::run(args, file, &outputs, global);
        #[cfg(not(feature = "xen"))]
        return Err(crate::left_out::left_out("Xen's guests", "xen"));
    }
    if args.kernel.is_some() {
        return Err(Failure::usage(
            "--kernel names the kernel of Xen's guests",
            "leave it out, or add --world xen",
        ));
    }
    let machine = machine(args.machine.as_ref())?;
    let todo = to_run(&file, path, args.only.as_deref())?;
    // All of them are checked before the first one takes any time.
    let scenario = |i: &usize| schedbench::scenario(&file, &file.runs[*i], &machine);
    let scenarios: Vec<Scenario> = todo.iter().map(scenario).collect::<Result<_, _>>()?;
    if args.dry_run {
        return list(&file, &todo);
    }
    let (way, command) = (world::way(args.world.as_deref(), args.max_wall)?, show::command());
    let world = world::in_world(&way, &scenarios, global);
    let bar = progress::progress(
        global,
        todo.len() as u64,
        "{bar:40} {pos} of {len} runs, {elapsed} elapsed, {eta} left",
    );
    let mut stopped = None;
    for i in todo {
        let run = &file.runs[i];
        let done = match &args.trace {
            Some(trace) => traced(&file, i, &machine, args, trace, way)?,
            None => {
                schedbench::run_in(&file, run, &machine, args.seed, None, way)
                    .map_err(|e| refused(path, e))?
                    .0
            }
        };
        if !done.completed {
            stopped = way.until.over();
            break;
        }
        let origin = Some(Origin::now(&machine, &world, args.seed, &command));
        file.runs[i] = schedbench::Run { origin, ..done };
        // Complete runs are kept, whatever happens later.
        save(&file, path)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = print(path, 0, wanted, &outputs)?;
    Ok(stopped.map_or(report, world::stopped))
}

/// The runs to make: the one of this name, or those that have not been run.
pub(crate) fn to_run(
    file: &BenchFile,
    path: &Path,
    only: Option<&str>,
) -> Result<Vec<usize>, Failure> {
    if file.runs.is_empty() {
        return Err(Failure::usage(
            format!("{}: there are no runs", path.display()),
            "fill them in with `overspin schedbench plan`",
        ));
    }
    let mut todo: Vec<usize> = (0..file.runs.len()).collect();
    if let Some(label) = only {
        todo.retain(|i| file.runs[*i].label == *label);
        if todo.is_empty() {
            let labels: Vec<&str> = file.runs.iter().map(|r| r.label.as_str()).collect();
            return Err(Failure::usage(
                format!("{}: there is no run `{label}`", path.display()),
                format!("runs are: {}", labels.join(", ")),
            ));
        }
    } else {
        todo.retain(|i| !file.runs[*i].completed);
    }
    Ok(todo)
}

/// Prints the names of runs that would be made.
pub(crate) fn list(file: &BenchFile, todo: &[usize]) -> Result<Verdict, Failure> {
    let list: String = todo.iter().map(|i| format!("{}\n", file.runs[*i].label)).collect();
    show::bytes(list.as_bytes())?;
    Ok(Verdict::Fine)
}

fn traced(
    file: &BenchFile,
    run: usize,
    machine: &Machine,
    args: &SchedbenchRunArgs,
    trace: &Path,
    way: Way,
) -> Result<schedbench::Run, Failure> {
    let (path, seed) = (&args.file, args.seed);
    let run = &file.runs[run];
    let scenario = schedbench::scenario(file, run, machine)?;
    let error = |cause| {
        Failure::from(OutputError { action: "write to", path: trace.display().to_string(), cause })
    };
    let mut sink = PerfettoSink::new(&scenario, seed, Output::create(trace)?).map_err(error)?;
    let sink_ref: &mut dyn Observer = &mut sink;
    let (done, _, outcome) = schedbench::run_in(file, run, machine, seed, Some(sink_ref), way)
        .map_err(|e| refused(path, e))?;
    sink.finish(outcome.elapsed).map_err(error)?.commit()?;
    Ok(done)
}

/// Prints the results, and writes their record.
pub(crate) fn print(
    path: &Path,
    verbosity: u8,
    wanted: &RecordArgs,
    outputs: &Outputs,
) -> Result<Verdict, Failure> {
    let file = read(path)?;
    let files = RecordFiles::open(outputs, wanted)?;
    files.write(|| overspin_lab::schedbench::record(&file, &path.display().to_string()))?;
    outputs.print(&schedbench::report(&file, verbosity))?;
    Ok(Verdict::Fine)
}
