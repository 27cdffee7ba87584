//! `overspin import`.

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::progress::Meter;
use crate::show::Outputs;
use crate::world;
use clap::{Args, ValueEnum};
use overspin_lab::perf_sched::{self, Part, Recording, Watch};
use overspin_lab::rt_app::{self, Imported};
use overspin_runs::record;
use overspin_runs::scenario_file;
use overspin_scenario::Ending;
use overspin_scenario::Picos;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// The format of the file
    format: Format,
    /// The file
    file: PathBuf,
    /// Scenario to write (`-`: standard output, which is the default without --compare)
    #[arg(long, short, value_name = "SCENARIO.toml")]
    output: Option<PathBuf>,
    #[command(flatten)]
    recording: RecordingArgs,
}

/// Options for recordings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options for perf-sched")]
struct RecordingArgs {
    /// Begin this long after the first event of the recording
    #[arg(long, value_name = "TIME", value_parser = overspin_scenario::parse_time)]
    from: Option<Picos>,
    /// End this long after the first event of the recording
    #[arg(long, value_name = "TIME", value_parser = overspin_scenario::parse_time)]
    to: Option<Picos>,
    /// Run the scenario, and print its figures beside those of the recording
    #[arg(long)]
    compare: bool,
    /// World to compare in, instead of `sim`
    #[arg(long, value_name = "WORLD", requires = "compare")]
    world: Option<String>,
    /// Change the scenario before it is compared, for example host.scheduler=cfs
    #[arg(long, value_name = "KEY=VALUE", requires = "compare")]
    set: Vec<String>,
}

/// Workloads that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// rt-app's JSON
    RtApp,
    /// The text of `perf sched script` or `perf script`: what a kernel scheduled
    PerfSched,
}

pub(crate) fn import(args: &ImportArgs, global: &Global) -> Result<Verdict, Failure> {
    let recording = &args.recording;
    let for_recordings = recording.from.is_some() || recording.to.is_some() || recording.compare;
    if args.format == Format::RtApp && for_recordings {
        let remedy = "rt-app's files have no times and no measured figures: leave them out";
        return Err(Failure::usage("--from, --to and --compare are for `perf-sched`", remedy));
    }
    let standard = PathBuf::from("-");
    let output = args.output.as_ref().or((!recording.compare).then_some(&standard));
    let outputs = Outputs::new(global, &[output])?;
    let text = record::read_text(&args.file)?;
    let name = args.file.display().to_string();
    match args.format {
        Format::RtApp => {
            let imported = rt_app::import(&name, &text)?;
            write(&imported, output, &outputs, global)?;
            Ok(Verdict::Fine)
        }
        Format::PerfSched => {
            let part = Part { from: recording.from.unwrap_or_default(), to: recording.to };
            let imported = perf_sched::import(&name, &text, part)?;
            write(&imported.imported, output, &outputs, global)?;
            if recording.compare {
                return compare(&imported, args, &outputs, global);
            }
            outputs.report(&perf_sched::measured(&imported.names, &imported.measured))?;
            Ok(Verdict::Fine)
        }
    }
}

fn write(
    imported: &Imported,
    output: Option<&PathBuf>,
    outputs: &Outputs,
    global: &Global,
) -> Result<(), Failure> {
    if let Some(file) = outputs.open(output)? {
        file.finish_with(&imported.scenario)?;
    }
    if !global.quiet {
        for dropped in &imported.dropped {
            eprintln!("dropped: {dropped}");
        }
    }
    Ok(())
}

fn compare(
    recording: &Recording,
    args: &ImportArgs,
    outputs: &Outputs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let wanted = &args.recording;
    let runner = world::runner(wanted.world.as_deref(), None)?;
    let name = args.file.display().to_string();
    let scenario = scenario_file::parse(&name, &name, &recording.imported.scenario, &wanted.set)?;
    world::in_world(&runner, [&scenario], global);
    let mut watch = Watch::default();
    let run = |tell: &dyn Fn(Picos)| runner.run(&scenario, scenario.seed, &mut watch, tell);
    let outcome =
        Meter::during(global, scenario.limit, run).map_err(|e| Failure::refused(&name, &e))?;
    let run = watch.finish(&outcome, scenario.host.pcpus() as usize);
    let how =
        format!("its scenario under `{}` in `{}`", scenario.host.scheduler, runner.world.name());
    outputs.report(&perf_sched::beside(&recording.names, &recording.measured, &run, &how))?;
    match outcome.ending {
        Ending::Finished => Ok(Verdict::Fine),
        Ending::Stopped { by } => Ok(Verdict::Stopped(by)),
        Ending::Limit | Ending::Deadlock { .. } => {
            eprintln!("the run did not come to its end: {:?}", outcome.ending);
            Ok(Verdict::Finding)
        }
    }
}
