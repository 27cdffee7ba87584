//! `overspin schedbench plan`, and the plans of .bench files.

use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::show;
use clap::Args;
use overspin_record::output::Output;
use overspin_runs::record;
use overspin_runs::schedbench::BenchFile;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// .bench file, which is written
    file: PathBuf,
    /// File to read the Input from instead
    #[arg(long, short, value_name = "FILE")]
    template: Option<PathBuf>,
}

pub(super) fn plan(args: &PlanArgs, global: &Global) -> Result<Verdict, Failure> {
    let mut file = read(args.template.as_ref().unwrap_or(&args.file))?;
    let runs = file.plan()?;
    save(&file, &args.file)?;
    if !global.quiet {
        let seconds: u64 = file.runs.iter().map(|r| r.runtime_seconds).sum();
        let list: String = file.runs.iter().map(|r| format!("  {}\n", r.label)).collect();
        show::bytes(format!("{runs} runs, {seconds} simulated seconds:\n{list}").as_bytes())?;
    }
    Ok(Verdict::Fine)
}

pub(crate) fn read(path: &Path) -> Result<BenchFile, Failure> {
    let text = record::read_text(path)?;
    Ok(BenchFile::parse(&path.display().to_string(), &text)?)
}

pub(crate) fn save(file: &BenchFile, path: &Path) -> Result<(), Failure> {
    Ok(Output::create(path)?.finish_with(&file.to_json())?)
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
pub(super) fn list(file: &BenchFile, todo: &[usize]) -> Result<Verdict, Failure> {
    let list: String = todo.iter().map(|i| format!("{}\n", file.runs[*i].label)).collect();
    show::bytes(list.as_bytes())?;
    Ok(Verdict::Fine)
}
