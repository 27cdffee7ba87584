//! `overspin check`.

#[cfg(feature = "check")]
mod run;

use crate::args::{EXIT_CODES, Global};
use crate::catalog::Parts;
use crate::failure::{Failure, Verdict};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_long_help = EXIT_CODES,
    override_usage = "overspin check [OPTIONS] <LOCK>\n       overspin check [OPTIONS] --all"
)]
pub(crate) struct CheckArgs {
    /// Name of a lock (`overspin list locks`); `--all` checks all locks instead
    #[arg(required_unless_present = "all")]
    lock: Option<String>,
    /// Check all locks
    #[arg(long, conflicts_with = "lock")]
    all: bool,
    /// CPUs of one model, instead of the usual three models
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    cpus: Option<u8>,
    /// Acquisitions of each CPU in that model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pairs: Option<u8>,
    /// Most times that, in one execution of that model, a CPU may be stopped although it could go on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    preemptions: Option<u8>,
    /// Random schedules of each kind for 4 CPUs; fewer for more CPUs
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    schedules: u32,
    /// Seed of the random schedules
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Most seconds that one model may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    time_limit: u32,
    /// Write as JSON (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[cfg(feature = "check")]
pub(crate) fn check(args: &CheckArgs, global: &Global, parts: &Parts) -> Result<Verdict, Failure> {
    run::run(args, global, parts)
}

#[cfg(not(feature = "check"))]
pub(crate) fn check(_: &CheckArgs, _: &Global, _: &Parts) -> Result<Verdict, Failure> {
    Err(crate::left_out::left_out("the model checker", "check"))
}
