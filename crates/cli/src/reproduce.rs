//! `overspin reproduce`.

use crate::args::{EXIT_CODES, Global, PageArgs, RecordArgs, threads};
use crate::failure::{Failure, Verdict};
use crate::files::RecordFiles;
use crate::progress;
use crate::report::Page;
use crate::show::{self, Outputs};
use clap::Args;
use overspin_experiment as experiment;
use overspin_experiment::Experiment;
use overspin_experiment::report as reports;
use overspin_experiment::{
    ReproduceError, Reproduction, Settings, reproduce as run, verdict_of_all,
};
use overspin_record::output::Output;
use overspin_report::Block;
use overspin_runs::catalog::suggestion;
use overspin_runs::record;
use overspin_runs::runner::Until;
use std::path::Path;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ReproduceArgs {
    /// Name of an experiment (`overspin list experiments`), or a changed copy of its .toml file; without it,
    /// all experiments run, with a table at the end
    experiment: Option<String>,
    /// Where it runs: sim, or linux for 2008-spinlocks and 2012-pv-ticketlocks in guests of this machine (docs/linux.md)
    #[arg(long, value_name = "NAME", default_value = "sim", value_parser = ["sim", "linux"])]
    world: String,
    /// Run at the published length instead of the experiment's scale
    #[arg(long)]
    full: bool,
    /// Runs of each configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Threads; 0 means one for each CPU
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = threads)]
    threads: usize,
    #[command(flatten)]
    record: RecordArgs,
    /// Write the whole report, of all experiments one after another, as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Draw the figures of one experiment, published beside simulated, as SVG (`-`: standard output)
    #[arg(long, value_name = "FILE", requires = "experiment")]
    svg: Option<PathBuf>,
    /// Draw what one experiment measured as curves, with 95 % intervals over seeds, as SVG (`-`: standard
    /// output)
    #[arg(long, value_name = "FILE", requires = "experiment")]
    curves: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
    /// Print each claim as it was published, and every comparison that decides it, with its formula
    #[arg(long, short)]
    verbose: bool,
    /// End with 1 if a claim does not hold, with 4 if one cannot be decided
    #[arg(long)]
    strict: bool,
}

pub(crate) fn reproduce(args: &ReproduceArgs, global: &Global) -> Result<Verdict, Failure> {
    let named = args.experiment.as_deref().map(find).transpose()?;
    if args.world == "linux" {
        return in_guests(named.as_ref(), args, global);
    }
    let wanted = &args.record;
    let all = [
        wanted.json.as_ref(),
        wanted.csv.as_ref(),
        args.markdown.as_ref(),
        args.svg.as_ref(),
        args.curves.as_ref(),
        args.page.report.as_ref(),
    ];
    let outputs = Outputs::new(global, &all)?;
    let subject = named.as_ref().map_or("reproduce", |e| e.head.id.as_str()).to_owned();
    let files = Files {
        records: RecordFiles::open(&outputs, wanted)?.with_own_page(),
        markdown: outputs.open(args.markdown.as_ref())?,
        page: Page::open(&args.page, wanted.out.as_ref(), &subject)?,
    };
    let svg = outputs.open(args.svg.as_ref())?;
    if let (Some(_), Some(experiment)) = (&args.curves, &named)
        && experiment.kind.along().is_empty()
    {
        let id = &experiment.head.id;
        return Err(Failure::usage(
            format!("{id} varies nothing by steps: it has no curves"),
            "use --svg for its bars",
        ));
    }
    if let (Some(_), Some(experiment)) = (&args.svg, &named)
        && experiment.head.figures.is_empty()
    {
        let id = &experiment.head.id;
        return Err(Failure::usage(
            format!("{id} has no published figures: it has no bars"),
            "use --curves, or --svg with another experiment",
        ));
    }
    let curves = outputs.open(args.curves.as_ref())?;
    let Some(experiment) = named else {
        return every(args, global, files, &outputs);
    };
    let result = one(&experiment, files.settings(args), global)?;
    let blocks = reports::reproduction(&result);
    let page = files.write(std::slice::from_ref(&result), &blocks)?;
    if let Some(svg) = svg {
        let title = format!("{}: {}", result.experiment.id, result.experiment.title);
        svg.finish_with(&overspin_report::picture(&title, &experiment.kind.panels(&result)).0)?;
    }
    if let Some((file, svg)) = curves.zip(reports::reproduction_curves(&experiment, &result)) {
        file.finish_with(&svg.0)?;
    }
    outputs.report(&reports::reproduction_answer_first(&result, args.verbose))?;
    outputs.print(&page)?;
    Ok(verdict(result.verdict(), args.strict))
}

/// Runs an experiment in guests of this machine.
fn in_guests(
    named: Option<&Experiment>,
    args: &ReproduceArgs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let of_simulator = [
        ("--full", args.full),
        ("--threads", args.threads != 0),
        ("--report", args.page.report.is_some()),
        ("--verbose", args.verbose),
        ("--markdown", args.markdown.is_some()),
        ("--svg", args.svg.is_some()),
        ("--curves", args.curves.is_some()),
        ("--strict", args.strict),
    ];
    if let Some((name, _)) = of_simulator.iter().find(|(_, is_there)| *is_there) {
        let cause = format!("{name} is for simulated experiments");
        return Err(Failure::usage(cause, "leave it out, or --world linux"));
    }
    let Some(experiment) = named else {
        let remedy = "overspin reproduce 2008-spinlocks --world linux";
        return Err(Failure::usage("--world linux needs the name of an experiment", remedy));
    };
    crate::linux::published::reproduce(experiment, args.seeds, args.record.clone(), global)
}

/// Runs all experiments, and prints each as it ends. The quickest comes first: so there is soon something to read.
fn every(
    args: &ReproduceArgs,
    global: &Global,
    files: Files,
    outputs: &Outputs,
) -> Result<Verdict, Failure> {
    let mut results = Vec::new();
    for name in experiment::quickest_first() {
        let result = one(&find(name)?, files.settings(args), global)?;
        outputs.report(&reports::reproduction_in_brief(&result))?;
        outputs.print("\n")?;
        if args.verbose {
            outputs.report(&reports::reproduction_claims(&result))?;
        }
        results.push(result);
    }
    // Records and tables list them by age, whatever the order in which they ran.
    results
        .sort_by_key(|result| experiment::names().iter().position(|n| *n == result.experiment.id));
    let whole: Vec<Block> = results.iter().flat_map(reports::reproduction).collect();
    let summary = reports::reproductions(&results);
    let page = files.write(&results, &[whole, summary.clone()].concat())?;
    outputs.report(&summary)?;
    outputs.print(&page)?;
    Ok(verdict(verdict_of_all(&results), args.strict))
}

/// Output files that both one experiment and all experiments can have.
struct Files {
    records: RecordFiles,
    markdown: Option<Output>,
    page: Option<Page>,
}

impl Files {
    fn settings(&self, args: &ReproduceArgs) -> Settings<'_> {
        Settings {
            seeds: args.seeds,
            full: args.full,
            threads: args.threads,
            outcomes: self.records.outcomes(),
            // Ctrl-C ends the process; finished runs are kept with --out.
            until: Until::default(),
        }
    }

    /// Writes all files; returns the line about the page.
    fn write(self, results: &[Reproduction], blocks: &[Block]) -> Result<String, Failure> {
        let record = || show::made(overspin_experiment::record(results));
        self.records.write(record)?;
        if let Some(markdown) = self.markdown {
            markdown.finish_with(&overspin_report::markdown(blocks))?;
        }
        self.page.map_or_else(|| Ok(String::new()), |page| page.write(record()))
    }
}

/// Runs an experiment behind a progress bar.
fn one(
    experiment: &Experiment,
    settings: Settings<'_>,
    global: &Global,
) -> Result<Reproduction, Failure> {
    let (bar, tell) = progress::of_runs(global, &format!("{{prefix}} {}", progress::RUNS));
    bar.set_prefix(experiment.head.id.clone());
    let result = run(experiment, settings, &tell);
    bar.finish_and_clear();
    result.map_err(|e| match e {
        ReproduceError::Sim { .. } => {
            Failure::usage(e.to_string(), "change the scenario in the experiment's file")
        }
        ReproduceError::Plan(e) => e.into(),
        ReproduceError::Native(_) | ReproduceError::Stopped => {
            Failure::environment(e.to_string(), "this is a fault in overspin")
        }
        ReproduceError::Parallel(_) => {
            Failure::environment(e.to_string(), "ask for fewer with --threads")
        }
    })
}

fn verdict(holds: Option<bool>, strict: bool) -> Verdict {
    match holds {
        _ if !strict => Verdict::Fine,
        Some(true) => Verdict::Fine,
        Some(false) => Verdict::Finding,
        None => Verdict::Undecided,
    }
}

/// An experiment by name, or from a changed copy of its file.
fn find(name: &str) -> Result<Experiment, Failure> {
    if let Some(experiment) = experiment::built_in(name) {
        return Ok(experiment?);
    }
    if !name.ends_with(".toml") {
        let known = suggestion(name, "experiments are", &experiment::names());
        return Err(Failure::usage(
            format!("there is no experiment `{name}`"),
            format!("{known}; or name a .toml file"),
        ));
    }
    let text = record::read_text(Path::new(name))?;
    Ok(experiment::parse(name, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_decides_the_exit_code_only_of_a_strict_user() {
        let of = |strict| [Some(true), Some(false), None].map(|holds| verdict(holds, strict));
        assert_eq!(of(true), [Verdict::Fine, Verdict::Finding, Verdict::Undecided]);
        assert_eq!(of(false), [Verdict::Fine; 3]);
    }
}
