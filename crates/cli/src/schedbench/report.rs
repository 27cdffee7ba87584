//! `overspin schedbench report`.

use super::plan::read;
use crate::args::{Global, RecordArgs};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::show::Outputs;
use clap::Args;
use overspin_runs::schedbench;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// .bench file
    file: PathBuf,
    /// 0: a line for each set of workers, 1: also for each worker, 2: also for each report
    #[arg(long, short, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    verbosity: u8,
    #[command(flatten)]
    record: RecordArgs,
}

pub(super) fn report(args: &ReportArgs, global: &Global) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let outputs = Outputs::new(global, &[wanted.json.as_ref(), wanted.csv.as_ref()])?;
    print(&args.file, args.verbosity, wanted, &outputs)
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
    files.write(|| schedbench::record(&file, &path.display().to_string()))?;
    outputs.print(&schedbench::report(&file, verbosity))?;
    Ok(Verdict::Fine)
}
