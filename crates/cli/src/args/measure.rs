//! The options of `overspin measure`.

use super::{EXIT_CODES, RecordArgs, cpus, some_time, time, wall};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use overspin_real::kernbench::Load;
use overspin_real::packets::FASTEST;
use overspin_real::pft::{MOST, Workers};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, ClapArgs)]
pub(crate) struct MeasureArgs {
    /// What to measure
    #[command(subcommand)]
    pub(crate) what: Measurement,
}

/// Things to measure on a machine.
#[derive(Debug, Subcommand)]
pub(crate) enum Measurement {
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
    Noise(MeasureNoiseArgs),
}

/// How often to run, and what to keep: options of all real benchmarks.
#[derive(Debug, ClapArgs)]
pub(crate) struct RealArgs {
    /// Runs of each place; default: 10 for pgbench, else 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// Instead of a number of runs: begin no new round after this long, for example 10min; one round is always made
    #[arg(long, value_name = "TIME", value_parser = wall, conflicts_with = "runs")]
    pub(crate) time: Option<Duration>,
    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stop after this much real time, for example 90s or 10min, and keep the results so far
    #[arg(long, value_name = "TIME", value_parser = wall)]
    pub(crate) max_wall: Option<Duration>,
    /// Folder for working files, which are removed at the end; default: that for temporary files
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,
    /// Write what the machine did in each second of each run as CSV (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) seconds: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

/// Locks for programs.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct LockArgs {
    /// Compare these locks in place of the pthread mutexes of the programs; `none` is the program as it is, and the
    /// first name is the base: for example none,mutex,mcs-tp (`overspin list locks`)
    #[arg(long = "lock", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) locks: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct KernbenchArgs {
    /// Tree to build: a kernel's (tinyconfig, built outside of the tree), or any with a Makefile (a copy is built);
    /// default: Debian's sources of a kernel
    #[arg(long, value_name = "DIR")]
    pub(crate) tree: Option<PathBuf>,
    /// Download Debian's sources with apt-get if they are not there (140 MB, kept in the cache of this user)
    #[arg(long, conflicts_with = "tree")]
    pub(crate) fetch: bool,
    /// Target of make; default: vmlinux of a kernel, the first of any other tree
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Loads: half (half of the CPUs, at least 3), optimal (four times the CPUs), maximal (no limit), or numbers of jobs
    #[arg(long, value_name = "LOADS", value_delimiter = ',', value_parser = load, default_value = "half,optimal,maximal")]
    pub(crate) loads: Vec<Load>,
    /// Leave out the half load, as in kernbench
    #[arg(short = 'H')]
    pub(crate) no_half: bool,
    /// Leave out the optimal load, as in kernbench
    #[arg(short = 'O')]
    pub(crate) no_optimal: bool,
    /// Leave out the maximal load, as in kernbench
    #[arg(short = 'M')]
    pub(crate) no_maximal: bool,
    #[command(flatten)]
    pub(crate) locks: LockArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct DbenchArgs {
    /// Numbers of clients
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "22",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) clients: Vec<u32>,
    /// Length of a run in whole seconds
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "10s")]
    pub(crate) length: Duration,
    /// File of operations in dbench's format, instead of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) loadfile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) locks: LockArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transaction {
    /// Read one row
    Select,
    /// Update a row and append one
    Update,
    /// The whole transaction of TPC-B, with its two hot tables
    TpcB,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct PgbenchArgs {
    /// Numbers of clients
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8,16,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) clients: Vec<u32>,
    /// Length of a run in whole seconds
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "5s")]
    pub(crate) length: Duration,
    /// Scale of the database: a hundred thousand rows each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) scale: u32,
    /// Transaction
    #[arg(long, default_value = "select")]
    pub(crate) script: Transaction,
    /// shared_buffers of the server
    #[arg(long, value_name = "SIZE", default_value = "32MB")]
    pub(crate) buffers: String,
    /// Time every transaction, for p50, p99 and maximum; this costs some throughput
    #[arg(long)]
    pub(crate) latencies: bool,
    /// User that the server runs as, for root, whom it refuses; default: postgres, or else nobody
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    #[command(flatten)]
    pub(crate) locks: LockArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct PftArgs {
    /// Workers: processes-N (no memory in common) or threads-N (one address space)
    #[arg(long, value_name = "WORKERS", value_delimiter = ',', default_value = "processes-2", value_parser = workers)]
    pub(crate) workers: Vec<(Workers, u32)>,
    /// Memory of all workers together, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) memory: u32,
    /// How often each worker touches all of its memory
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repeats: u32,
    #[command(flatten)]
    pub(crate) packets: PacketArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
}

/// Packets beside a benchmark.
#[derive(Debug, ClapArgs)]
pub(crate) struct PacketArgs {
    /// Packets a second beside the runs, from a process's own network namespaces; needs root. 0 is none: for example
    /// 0,100,1000,10000
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(FASTEST)))]
    pub(crate) packets: Vec<u32>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CountArgs {
    /// Last number of the count
    #[arg(long, value_name = "N", default_value_t = 1 << 32)]
    pub(crate) to: u64,
    #[command(flatten)]
    pub(crate) packets: PacketArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CommandArgs {
    #[command(flatten)]
    pub(crate) locks: LockArgs,
    #[command(flatten)]
    pub(crate) real: RealArgs,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct MeasureNoiseArgs {
    /// Time to measure, on all CPUs at once, after a warm-up of a tenth of it
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "10s")]
    pub(crate) duration: Duration,
    /// Length of a quantum of work, 1us to 1ms
    #[arg(long, value_name = "TIME", value_parser = quantum, default_value = "15us")]
    pub(crate) quantum: Duration,
    /// CPUs to measure, for example 0,2-3; default: all that this process may use
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = cpus)]
    pub(crate) cpus: Vec<RangeInclusive<usize>>,
    /// Write the [host.noise] table of a scenario (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) toml: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
    /// Write the counts of all gaps by CPU, kind and length as CSV (`-`: standard output)
    #[arg(long, value_name = "FILE")]
    pub(crate) raw: Option<PathBuf>,
}

/// A quantum that is long compared with the clock's cost, and short compared with the gaps to distinguish.
fn quantum(text: &str) -> Result<Duration, String> {
    let quantum = time(text)?;
    if (Duration::from_micros(1)..=Duration::from_millis(1)).contains(&quantum) {
        Ok(quantum)
    } else {
        Err("a time from 1us to 1ms".into())
    }
}

/// A load of kernbench.
fn load(text: &str) -> Result<Load, String> {
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

/// Workers of pft.
fn workers(text: &str) -> Result<(Workers, u32), String> {
    let kinds = [("processes", Workers::Processes), ("threads", Workers::Threads)];
    let known = |word: &str| kinds.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
    match text.split_once('-').map(|(kind, n)| (known(kind), n.parse())) {
        Some((Some(kind), Ok(n))) if (1..=MOST).contains(&n) => Ok((kind, n)),
        _ => Err(format!("processes-N or threads-N, with N from 1 to {MOST}")),
    }
}

/// A length in whole seconds: the programs count in nothing shorter.
fn seconds(text: &str) -> Result<Duration, String> {
    match wall(text)? {
        length if length >= Duration::from_secs(1) && length.subsec_nanos() == 0 => Ok(length),
        _ => Err("whole seconds, at least one: for example 10s".into()),
    }
}
