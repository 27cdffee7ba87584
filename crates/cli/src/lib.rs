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
mod built;
mod calibrate;
mod catalog;
mod check;
mod checked;
mod command;
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
mod linux;
mod list;
mod man;
mod measure;
mod merge;
mod named_output;
mod progress;
#[cfg(test)]
mod reference;
mod report;
mod reproduce;
mod run;
mod schedbench;
mod screen;
mod serve;
mod show;
mod signals;
mod terminal;
mod top;
mod validate;
mod watch;
mod world;
mod xen_emulated;

pub use built::build;
pub use catalog::Catalog;
pub use checked::Checkable;

use failure::Failure;
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
    show::set_arguments(arguments.clone());
    let args = match command::understood(&arguments) {
        Ok(args) => args,
        Err(failure) => return failure.report(),
    };
    let result = signals::watch()
        .and_then(|()| catalog.install())
        .and_then(|parts| command::run(&args, &parts));
    for sentence in overspin_real::left_behind::words() {
        eprintln!("{}", overspin_report::wrap(&format!("note: {sentence}")));
    }
    for folder in overspin_real::scratch::still_removed() {
        eprintln!("note: {} is still being removed, by a process of its own", folder.display());
    }
    match result {
        Ok(verdict) => verdict.code(),
        Err(Failure::BrokenPipe) => 0,
        Err(failure) => failure.report(),
    }
}
