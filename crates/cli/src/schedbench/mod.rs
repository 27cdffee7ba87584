//! `overspin schedbench`: plan, run, report.

mod plan;
mod report;
mod run;
#[cfg(feature = "xen")]
mod xen;

#[cfg(feature = "xen")]
pub(crate) use plan::{read, save, to_run};
#[cfg(feature = "xen")]
pub(crate) use report::print;
#[cfg(feature = "xen")]
pub(crate) use xen::{say, temporary};

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use crate::world::XEN;
use clap::{Args, Subcommand};
use plan::PlanArgs;
use report::ReportArgs;
use run::RunArgs;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct SchedbenchArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Fill in the runs that a file's Input expands to
    Plan(PlanArgs),
    /// Run the remaining runs on a simulated machine; each run is saved when it is complete
    Run(RunArgs),
    /// Print the results: throughput in kops/s, utilisation in CPUs, lateness
    Report(ReportArgs),
}

pub(crate) fn schedbench(args: &SchedbenchArgs, global: &Global) -> Result<Verdict, Failure> {
    match &args.verb {
        Verb::Plan(args) => plan::plan(args, global),
        Verb::Run(args) => begin(args, global),
        Verb::Report(args) => report::report(args, global),
    }
}

/// Opens what a run needs, and runs it in its world.
fn begin(args: &RunArgs, global: &Global) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let all = [Some(&args.file), args.trace.as_ref(), wanted.json.as_ref(), wanted.csv.as_ref()];
    let outputs = Outputs::new(global, &all)?;
    let file = plan::read(&args.file)?;
    if args.world.as_deref() != Some(XEN) {
        return run::run(args, file, &outputs, global);
    }
    #[cfg(feature = "xen")]
    return xen::run(args, file, &outputs, global);
    #[cfg(not(feature = "xen"))]
    Err(crate::left_out::left_out("Xen's guests", "xen"))
}
