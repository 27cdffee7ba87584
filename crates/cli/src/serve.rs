//! `overspin serve`: the live page.

use crate::args::{EXIT_CODES, Global, wall};
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use crate::signals;
use clap::Args;
use overspin_serve::{ServeError, Server, Settings};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ServeArgs {
    /// Scenario files, experiments and records that the page offers besides those that come with overspin; they are read again
    /// for each run
    files: Vec<PathBuf>,
    /// Port on this machine's own address, 127.0.0.1; 0 means any that is free
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Keep the results that you want to keep in this folder; the page offers what is there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Stop each run after this much real time, for example 90s or 10min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = wall)]
    max_wall: Duration,
}

pub(crate) fn serve(args: &ServeArgs, global: &Global) -> Result<Verdict, Failure> {
    let outputs = Outputs::new(global, &[])?;
    let settings = Settings {
        port: args.port,
        files: args.files.clone(),
        out: args.out.clone(),
        max_wall: args.max_wall,
        stop: signals::end(),
    };
    let server = Server::open(&settings).map_err(|error| match error {
        ServeError::File { cause, remedy } => Failure::usage(cause, remedy),
        ServeError::Listen { .. } => {
            Failure::environment(error.to_string(), "choose another --port, or leave it out")
        }
    })?;
    // Without the address nobody can see the page, so --quiet prints it, too.
    crate::show::bytes(format!("{}\n", server.address()).as_bytes())?;
    outputs.print(
        "Open this address in a browser. Anyone who has it can run the simulator, and nothing else.\n\
         Ctrl-C ends the page.\n",
    )?;
    server.serve();
    Ok(Verdict::Fine)
}
