//! The `overspin` command: argument parsing and printing. `overspin-lab` computes what it prints.
//!
//! A `main` of a few lines gives all commands to a lock, a scheduler or a workload of your own:
//!
//! ```no_run
//! use overspin_cli::{Catalog, main_with};
//!
//! overspin_locks::lock_family!(Mine => overspin_locks::Ticket);
//!
//! fn main() -> std::process::ExitCode {
//!     main_with(Catalog::builtin().with_lock::<Mine>())
//! }
//! ```
//!
//! `examples/own-parts` is a complete example.
#![forbid(unsafe_code)]

mod advise;
mod args;
mod bench;
mod bench_world;
mod built;
mod calibrate;
mod catalog;
#[cfg(feature = "check")]
mod check;
mod checked;
mod compare;
mod doctor;
mod exec;
mod explain;
mod failure;
mod files;
mod fit;
mod import;
#[cfg(not(all(feature = "check", feature = "xen")))]
mod left_out;
mod list;
mod man;
mod measure;
mod merge;
mod progress;
#[cfg(test)]
mod reference;
mod report;
mod reproduce;
mod run;
mod schedbench;
mod screen;
mod show;
mod signals;
mod top;
mod validate;
mod world;
#[cfg(feature = "xen")]
mod xen;
#[cfg(feature = "xen")]
mod xen_emulated;

pub use built::build;
pub use catalog::Catalog;
pub use checked::Checkable;

use args::{Args, Command};
use clap::{CommandFactory, Parser};
use failure::{Failure, Verdict};
use std::ffi::OsString;
use std::process::ExitCode;

/// The command `overspin` with the parts of `catalog`: parses the arguments of this process, runs the
/// command, prints the results, and returns the exit code. Call it once in a process.
#[must_use]
pub fn main_with(catalog: Catalog) -> ExitCode {
    ExitCode::from(main_of(catalog, std::env::args_os().collect()))
}

/// Runs the command for these arguments, the first of which is the name of the program; returns the number of the exit code.
/// For programs whose own arguments are others, such as an interpreter.
#[must_use]
pub fn main_of(catalog: Catalog, arguments: Vec<OsString>) -> u8 {
    build().is_of_this_program();
    let parsed = Args::try_parse_from(&arguments);
    show::set_arguments(arguments);
    let args = match parsed {
        Ok(args) => args,
        Err(error) => {
            // This is also the path of --help and --version. A failure to print is ignored: nobody reads the
            // message.
            let _ = error.print();
            return if error.use_stderr() { failure::USAGE } else { 0 };
        }
    };
    let result =
        signals::watch().and_then(|()| catalog.install()).and_then(|parts| command(&args, &parts));
    match result {
        Ok(verdict) => verdict.code(),
        Err(Failure::BrokenPipe) => 0,
        Err(failure) => failure.report(),
    }
}

fn command(args: &Args, parts: &catalog::Parts) -> Result<Verdict, Failure> {
    match &args.command {
        Command::Reproduce(command) => reproduce::reproduce(command, &args.global),
        Command::Run(command) => run::run(command, &args.global),
        Command::Sweep(command) => run::sweep(command, &args.global),
        Command::Merge(command) => merge::merge(command, &args.global),
        Command::Explain(command) => explain::explain(command, &args.global),
        #[cfg(feature = "xen")]
        Command::XenEmulated(command) => xen_emulated::xen_emulated(command, &args.global),
        #[cfg(not(feature = "xen"))]
        Command::XenEmulated(_) => {
            Err(left_out::left_out("Xen's guests and its emulated host", "xen"))
        }
        Command::Schedbench(command) => schedbench::schedbench(command, &args.global),
        Command::Import(command) => import::import(command, &args.global),
        Command::Report(command) => report::report(command, &args.global),
        Command::Compare(command) => compare::compare(command, &args.global),
        Command::Exec(command) => exec::exec(command),
        Command::Fit(command) => fit::fit(command, &args.global),
        Command::List(command) => list::list(command, &args.global),
        #[cfg(feature = "check")]
        Command::Check(command) => check::check(command, &args.global, parts),
        #[cfg(not(feature = "check"))]
        Command::Check(_) => Err(left_out::left_out("the model checker", "check")),
        Command::Bench(command) => bench::bench(command, &args.global, parts),
        Command::Measure(command) => measure::measure(command, &args.global),
        Command::Calibrate(command) => calibrate::calibrate(command, &args.global),
        Command::Advise(command) => advise::advise(command, &args.global),
        Command::Validate(command) => validate::validate(command, &args.global),
        Command::Top(command) => top::top(command, &args.global),
        Command::Doctor(command) => doctor::doctor(command, &args.global),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "overspin", &mut text);
            show::bytes(&text).map(|()| Verdict::Fine)
        }
        Command::Man(command) => man::man(command),
    }
}
