//! `overspin fit`.

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use clap::Args;
use overspin_lab::fit::{self, Failed};
use overspin_runs::scenario_file;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct FitArgs {
    /// Recording, written by `overspin exec --record`
    file: PathBuf,
    /// Scenario to write, with `[[vary]]` tables as comments (`-`: standard output)
    #[arg(long, short, value_name = "SCENARIO.toml")]
    output: Option<PathBuf>,
    /// Number of the mutex in the list, from 0, instead of the one that threads waited for longest
    #[arg(long, value_name = "NUMBER")]
    mutex: Option<usize>,
    /// Locks to try
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', default_values = overspin_lab::fit::LOCKS)]
    locks: Vec<String>,
}

pub(crate) fn fit(args: &FitArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.output.as_ref()])?;
    let name = args.file.display().to_string();
    let others = fit::others(&args.file);
    let text = scenario_file::read_text(&args.file).map_err(|error| {
        let help = "give the file that `overspin exec --record FILE` wrote when its program ended";
        let unreadable = || Failure::usage(error.to_string(), help);
        missing(&args.file, &others).unwrap_or_else(unreadable)
    })?;
    let recording = fit::read(&name, &text, &others)?;
    let number = args.mutex.unwrap_or_else(|| recording.hottest());
    let Some(mutex) = recording.mutexes.get(number) else {
        let cause = format!("{name}: there is no mutex {number}");
        let last = recording.mutexes.len() - 1;
        return Err(Failure::usage(cause, format!("--mutex is 0 to {last}")));
    };
    let fitted = fit::scenario(&name, &recording, mutex);
    if let Some(file) = outputs.open(args.output.as_ref())? {
        file.finish_with(&fitted.text)?;
    }
    let report = fit::report(&name, &recording, number, &fitted, &args.locks);
    let report = report.map_err(|failed| match failed {
        Failed::Scenario(error) => error.into(),
        Failed::Refused(cause) => Failure::refused(&name, &cause),
    })?;
    outputs.report_as_page(&report.blocks)?;
    Ok(if report.agrees { Verdict::Fine } else { Verdict::Finding })
}

/// The failure if there is no such file, but other processes have recorded.
fn missing(file: &Path, others: &[String]) -> Option<Failure> {
    let first = others.first().filter(|_| !file.exists())?;
    let cause = format!("there is no {}: the first process recorded nothing", file.display());
    let remedy =
        format!("take a recording of another process, such as {first}: there are {}", others.len());
    Some(Failure::usage(cause, remedy))
}
