//! `overspin explain`.

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::progress::{Meter, RunsMeter};
use crate::show::Outputs;
use clap::Args;
use overspin_host::Refused;
use overspin_report::Block;
use overspin_runs::parallel::ParallelError;
use overspin_runs::record::{self, Record};
use overspin_runs::runner::Runner;
use overspin_runs::scenario_file::{self, Loaded, Sweep};
use overspin_runs::sweep::{self, Settings, SweepError};
use overspin_scenario::{Outcome, Picos, Scenario};
use overspin_watch::explain::{self, ExplainError, Repeat};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ExplainArgs {
    /// Record that --json wrote, .bench file, or scenario to run (`-`: standard input)
    result: PathBuf,
    /// Write the report as Markdown (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub(crate) fn explain(args: &ExplainArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[args.markdown.as_ref()])?;
    let text = record::read_text(&args.result)?;
    let what = Input { name: args.result.display().to_string(), global };
    // Every record begins like this, and no scenario does.
    let blocks = if text.trim_start().starts_with('{') {
        let record = record::read(&what.name, &text)?;
        what.record(&record)?
    } else {
        let loaded = scenario_file::load_text(&args.result, &text, &[], &[]);
        what.scenario(loaded?)?
    };
    if let Some(file) = outputs.open(args.markdown.as_ref())? {
        file.finish_with(&overspin_report::markdown(&blocks))?;
    }
    outputs.report_as_page(&blocks)?;
    Ok(Verdict::Fine)
}

/// The input to explain.
struct Input<'a> {
    name: String,
    global: &'a Global,
}

impl Input<'_> {
    fn record(&self, record: &Record) -> Result<Vec<Block>, Failure> {
        explain::record(record, self).map_err(|error| match error {
            ExplainError::Record { message, remedy } => {
                Failure::usage(format!("{}: {message}", self.name), remedy)
            }
            ExplainError::Refused(cause) => self.refused(&cause),
        })
    }

    /// Runs a scenario, with its own seed or the first of several, and explains it.
    fn scenario(&self, loaded: Loaded) -> Result<Vec<Block>, Failure> {
        let (seed, scenario) = match loaded {
            Loaded::One(scenario) => (scenario.seed, scenario),
            // With several seeds, the first is run; the report names it.
            Loaded::Seeds(scenario, seeds) => (*seeds.first().unwrap_or(&scenario.seed), scenario),
            Loaded::Sweep(sweep) => return self.sweep(&sweep),
        };
        let outcome = self.run(&scenario, seed).map_err(|e| self.refused(&e))?;
        let mut blocks = explain::run(&scenario, &outcome, None);
        blocks.extend(self.drawing(&scenario, &outcome).map_err(|e| self.refused(&e))?);
        Ok(blocks)
    }

    /// Runs a sweep, and explains its record.
    fn sweep(&self, sweep: &Sweep) -> Result<Vec<Block>, Failure> {
        let meter = RunsMeter::new(self.global, "", 0);
        let tell = |done: usize, all: usize| meter.at(done, all);
        let measured = sweep::run(sweep, Settings::default(), &tell);
        meter.end();
        let measured = measured.map_err(|e| match &e {
            SweepError::Run(ParallelError::Sim { cause, .. }) => {
                Failure::refused_as(&self.name, cause, &e)
            }
            _ => Failure::environment(format!("{}: {e}", self.name), "vary less"),
        })?;
        self.record(&overspin_runs::sweep::record(sweep, &measured, &[], None))
    }

    fn refused(&self, cause: &Refused) -> Failure {
        Failure::refused(&self.name, cause)
    }
}

/// Runs are repeated behind a progress bar.
impl Repeat for Input<'_> {
    fn run(&self, scenario: &Scenario, seed: u64) -> Result<Outcome, Refused> {
        let run = |tell: &dyn Fn(Picos)| Runner::default().run(scenario, seed, &mut (), tell);
        Meter::during(self.global, scenario.limit, run)
    }

    fn drawing(&self, scenario: &Scenario, outcome: &Outcome) -> Result<Vec<Block>, Refused> {
        let draw =
            |tell: &dyn Fn(Picos)| explain::drawing(scenario, outcome, Runner::default(), tell);
        Meter::during(self.global, scenario.limit, draw)
    }
}
