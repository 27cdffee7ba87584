//! The real benchmarks: what each takes, and what it makes of it.

use super::real::{LockArgs, PacketArgs, Prepared, RealArgs, locks};
use crate::args::{EXIT_CODES, Global, wall};
use crate::exec::warned;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use overspin_real::SourceOf;
use overspin_real::command::AnyCommand;
use overspin_real::count::Count;
use overspin_real::dbench::Dbench;
use overspin_real::kernbench::{Kernbench, Load};
use overspin_real::pft::{MOST, Pft, Workers};
use overspin_real::pgbench::{Pgbench, Script};
use overspin_real::preload::{Locks, NONE};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Runs of each place, if the user does not say.
const RUNS: u32 = 5;
/// Runs of pgbench, as published.
const RUNS_OF_PGBENCH: u32 = 10;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct KernbenchArgs {
    /// Tree to build: a kernel's (tinyconfig, built outside of the tree), or any with a Makefile (a copy is built);
    /// default: Debian's sources of a kernel
    #[arg(long, value_name = "DIR")]
    tree: Option<PathBuf>,
    /// Download Debian's sources with apt-get if they are not there (140 MB, kept in the cache of this user)
    #[arg(long, conflicts_with = "tree")]
    fetch: bool,
    /// Target of make; default: vmlinux of a kernel, the first of any other tree
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Loads: half (half of the CPUs, at least 3), optimal (four times the CPUs), maximal (no limit), or numbers of jobs
    #[arg(long, value_name = "LOADS", value_delimiter = ',', value_parser = load, default_value = "half,optimal,maximal")]
    loads: Vec<Load>,
    /// Leave out the half load, as in kernbench
    #[arg(short = 'H')]
    no_half: bool,
    /// Leave out the optimal load, as in kernbench
    #[arg(short = 'O')]
    no_optimal: bool,
    /// Leave out the maximal load, as in kernbench
    #[arg(short = 'M')]
    no_maximal: bool,
    #[command(flatten)]
    locks: LockArgs,
    #[command(flatten)]
    real: RealArgs,
}

pub(super) fn kernbench(args: &KernbenchArgs) -> Result<Prepared<'_>, Failure> {
    let source = match &args.tree {
        Some(tree) => SourceOf::Tree(tree.clone()),
        None => SourceOf::Debian { fetch: args.fetch },
    };
    let left_out = |load: &Load| match load {
        Load::Half => args.no_half,
        Load::Optimal => args.no_optimal,
        Load::Maximal => args.no_maximal,
        Load::Jobs(_) => false,
    };
    let loads: Vec<Load> = args.loads.iter().filter(|load| !left_out(load)).copied().collect();
    if loads.is_empty() {
        return Err(Failure::usage("no load is left to measure", "leave out fewer of -H, -O, -M"));
    }
    let locks = locks(&args.locks)?;
    let mut kernbench = Kernbench::new(source, loads);
    kernbench.target.clone_from(&args.target);
    kernbench.locks = locks.clone();
    kernbench.scratch.clone_from(&args.real.scratch);
    Ok(Prepared { benchmark: Box::new(kernbench), locks, real: &args.real, runs: RUNS })
}

/// A load of kernbench.
pub(crate) fn load(text: &str) -> Result<Load, String> {
    match text {
        "half" => Ok(Load::Half),
        "optimal" => Ok(Load::Optimal),
        "maximal" => Ok(Load::Maximal),
        _ => match text.parse() {
            Ok(jobs @ 1..=100_000) => Ok(Load::Jobs(jobs)),
            _ => Err("half, optimal, maximal, or a number of jobs".into()),
        },
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct DbenchArgs {
    /// Numbers of clients
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "22",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: Vec<u32>,
    /// Length of a run in whole seconds
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    length: Duration,
    /// File of operations in dbench's format, instead of its own
    #[arg(long, value_name = "FILE")]
    loadfile: Option<PathBuf>,
    #[command(flatten)]
    locks: LockArgs,
    #[command(flatten)]
    real: RealArgs,
}

pub(super) fn dbench(args: &DbenchArgs) -> Result<Prepared<'_>, Failure> {
    let locks = locks(&args.locks)?;
    let mut dbench = Dbench::new(args.clients.clone(), args.length);
    dbench.loadfile.clone_from(&args.loadfile);
    dbench.locks = locks.clone();
    dbench.scratch.clone_from(&args.real.scratch);
    Ok(Prepared { benchmark: Box::new(dbench), locks, real: &args.real, runs: RUNS })
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PgbenchArgs {
    /// Numbers of clients
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8,16,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: Vec<u32>,
    /// Length of a run in whole seconds
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "5s")]
    length: Duration,
    /// Scale of the database: a hundred thousand rows each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    scale: u32,
    /// Transaction
    #[arg(long, default_value = "select")]
    script: Transaction,
    /// shared_buffers of the server
    #[arg(long, value_name = "SIZE", default_value = "32MB")]
    buffers: String,
    /// Time every transaction, not some 20,000 of a run, for p50, p99 and the maximum; this costs some throughput
    #[arg(long)]
    latencies: bool,
    /// User that the server runs as, for root, whom it refuses; default: postgres, or else nobody
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    #[command(flatten)]
    locks: LockArgs,
    #[command(flatten)]
    real: RealArgs,
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transaction {
    /// Read one row
    Select,
    /// Update a row and append one
    Update,
    /// The whole transaction of TPC-B, with its two hot tables
    TpcB,
}

pub(super) fn pgbench(args: &PgbenchArgs) -> Result<Prepared<'_>, Failure> {
    let locks = locks(&args.locks)?;
    let mut pgbench = Pgbench::new(args.clients.clone(), args.length);
    pgbench.scale = args.scale;
    pgbench.script = match args.script {
        Transaction::Select => Script::Select,
        Transaction::Update => Script::Update,
        Transaction::TpcB => Script::TpcB,
    };
    pgbench.buffers.clone_from(&args.buffers);
    pgbench.latencies = args.latencies;
    pgbench.user.clone_from(&args.user);
    pgbench.locks = locks.clone();
    pgbench.scratch.clone_from(&args.real.scratch);
    Ok(Prepared { benchmark: Box::new(pgbench), locks, real: &args.real, runs: RUNS_OF_PGBENCH })
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PftArgs {
    /// Workers: processes-N (no memory in common) or threads-N (one address space)
    #[arg(long, value_name = "WORKERS", value_delimiter = ',', default_value = "processes-2", value_parser = workers)]
    workers: Vec<(Workers, u32)>,
    /// Memory of all workers together, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    memory: u32,
    /// How often each worker touches all of its memory
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeats: u32,
    #[command(flatten)]
    packets: PacketArgs,
    #[command(flatten)]
    real: RealArgs,
}

pub(super) fn pft(args: &PftArgs) -> Result<Prepared<'_>, Failure> {
    let mut pft = Pft::new(args.workers.clone());
    pft.bytes = (args.memory as usize) << 20;
    pft.repeats = args.repeats;
    pft.rates.clone_from(&args.packets.packets);
    let locks = Locks::default();
    Ok(Prepared { benchmark: Box::new(pft), locks, real: &args.real, runs: RUNS })
}

/// Workers of pft.
fn workers(text: &str) -> Result<(Workers, u32), String> {
    let kinds = [("processes", Workers::Processes), ("threads", Workers::Threads)];
    let known = |word: &str| kinds.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
    match text.split_once('-').map(|(kind, n)| (known(kind), n.parse())) {
        Some((Some(kind), Ok(n))) if (1..=MOST).contains(&n) => Ok((kind, n)),
        _ => Err(format!("processes-N or threads-N, with N from 1 to {MOST}")),
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CountArgs {
    /// Last number of the count
    #[arg(long, value_name = "N", default_value_t = 1 << 32)]
    to: u64,
    #[command(flatten)]
    packets: PacketArgs,
    #[command(flatten)]
    real: RealArgs,
}

pub(super) fn count(args: &CountArgs) -> Result<Prepared<'_>, Failure> {
    let count = Count::new(args.to, args.packets.packets.clone());
    let locks = Locks::default();
    Ok(Prepared { benchmark: Box::new(count), locks, real: &args.real, runs: RUNS })
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CommandArgs {
    #[command(flatten)]
    locks: LockArgs,
    #[command(flatten)]
    real: RealArgs,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub(super) fn command<'a>(args: &'a CommandArgs, global: &Global) -> Result<Prepared<'a>, Failure> {
    let locks = locks(&args.locks)?;
    let names: Vec<&str> = locks.names.iter().map(String::as_str).filter(|n| *n != NONE).collect();
    if let Some(program) = args.command.first().filter(|_| !names.is_empty() && !global.quiet) {
        warned(program, &names.join("`, `"));
    }
    let scratch = args.real.scratch.clone();
    let command = AnyCommand::new(args.command.clone(), locks.clone(), scratch);
    Ok(Prepared { benchmark: Box::new(command), locks, real: &args.real, runs: RUNS })
}

/// A length in whole seconds: the programs count in nothing shorter.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match wall(text)? {
        length if length >= Duration::from_secs(1) && length.subsec_nanos() == 0 => Ok(length),
        _ => Err("whole seconds, at least one: for example 10s".into()),
    }
}
