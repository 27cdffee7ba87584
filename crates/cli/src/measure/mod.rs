//! `overspin measure`: real benchmarks, and what interrupts threads.

pub(crate) mod benchmarks;
mod noise;
pub(crate) mod real;

use crate::args::Global;
use crate::failure::{Failure, Verdict};
use benchmarks::{CommandArgs, CountArgs, DbenchArgs, KernbenchArgs, PftArgs, PgbenchArgs};
use clap::{Args, Subcommand};
use noise::NoiseArgs;
use real::Prepared;

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// What to measure
    #[command(subcommand)]
    what: Measurement,
}

/// Things to measure on a machine.
#[derive(Debug, Subcommand)]
enum Measurement {
    /// How long a kernel, or any tree with a Makefile, takes to build with few jobs, enough and as many as there are
    Kernbench(KernbenchArgs),
    /// File operations of many clients of a file server, by Debian's dbench
    Dbench(DbenchArgs),
    /// Transactions of many clients against a throw-away PostgreSQL
    Pgbench(PgbenchArgs),
    /// Page faults a second of processes or threads that touch fresh memory
    Pft(PftArgs),
    /// A loop that counts, beside packets at several rates
    Count(CountArgs),
    /// Time and resource usage of any program, with one lock or another in place of its mutexes
    Command(CommandArgs),
    /// Interruptions of threads that only compute: how often, how long, and by what
    Noise(NoiseArgs),
}

impl MeasureArgs {
    /// The real benchmark that is asked for.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn prepared(&self, global: &Global) -> Result<Prepared<'_>, Failure> {
        match &self.what {
            Measurement::Kernbench(args) => benchmarks::kernbench(args),
            Measurement::Dbench(args) => benchmarks::dbench(args),
            Measurement::Pgbench(args) => benchmarks::pgbench(args),
            Measurement::Pft(args) => benchmarks::pft(args),
            Measurement::Count(args) => benchmarks::count(args),
            Measurement::Command(args) => benchmarks::command(args, global),
            Measurement::Noise(_) => Err(Failure::usage(
                "`noise` is no benchmark",
                "these are: kernbench, dbench, pgbench, pft, count, command",
            )),
        }
    }
}

pub(crate) fn measure(args: &MeasureArgs, global: &Global) -> Result<Verdict, Failure> {
    match &args.what {
        Measurement::Noise(args) => noise::noise(args, global),
        _ => real::run(args.prepared(global)?, global),
    }
}
