//! `overspin linux kernbench` and `dup`: benchmarks inside guests, with one lock or another as their kernel's spinlock.

use super::{Built, SourceArgs, Teller, built, failure, guarded, known};
use crate::args::{EXIT_CODES, Global, cpus};
use crate::failure::{Failure, Verdict};
use crate::measure::benchmarks::{load, seconds};
use crate::measure::real::{RealArgs, run_with};
use clap::{Args, ValueEnum};
use overspin_linux::benchmark::{InGuests, Work};
use overspin_linux::machine::{self, Machine};
use overspin_linux::{Guard, STOCK, STOCK_FAIR, image, init, needs};
use overspin_real::kernbench::Load;
use overspin_real::preload::Locks;
use overspin_report::Block;
use overspin_runs::record::Record;
use std::path::PathBuf;
use std::time::Duration;

/// Runs of each place, if the user does not say, as kernbench makes them.
const RUNS: u32 = 5;
/// vCPUs of a guest, as in 2008.
const VCPUS: u32 = 4;
/// MiB: what 16 compilers need.
const MEMORY: u32 = 1024;

/// How large a guest is, and where it runs.
#[derive(Debug, Args)]
pub(super) struct SizeArgs {
    /// vCPUs of a guest
    #[arg(long, value_name = "N", default_value_t = VCPUS, value_parser = clap::value_parser!(u32).range(1..=64))]
    vcpus: u32,
    /// CPUs of this machine on which the vCPUs run, for example 0,1 or 0-1; default: all
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    cpus: Option<String>,
    /// Memory of a guest in MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = clap::value_parser!(u32).range(256..))]
    memory: u32,
    /// What time goes on with: the host's clock, or the guest's instructions, which no load of this machine changes; then one
    /// CPU runs all vCPUs in turn
    #[arg(long, value_name = "CLOCK", default_value = "host")]
    clock: Clock,
}

/// What a guest's time goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Clock {
    /// The host's clock
    Host,
    /// The guest's instructions
    Instructions,
}

/// Guests, and what is measured of them.
#[derive(Debug, Args)]
pub(super) struct GuestArgs {
    /// Locks: those of `overspin linux torture`, stock (what the kernel itself chooses) or stock-fair (its queue that serves
    /// in order). Others may take ten times as long as the first one; then they count as never ready
    #[arg(
        long = "lock",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "lock-byte,xen-pv,ticket"
    )]
    locks: Vec<String>,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    real: RealArgs,
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct KernbenchArgs {
    /// Loads: half (half of the vCPUs, at least 3), optimal (four times the vCPUs), maximal (no limit), or numbers of jobs
    #[arg(long, value_name = "LOADS", value_delimiter = ',', value_parser = load, default_value = "half,optimal")]
    loads: Vec<Load>,
    #[command(flatten)]
    guest: GuestArgs,
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct DupArgs {
    /// Length of a run in whole seconds, at least two
    #[arg(long, value_name = "TIME", value_parser = seconds, default_value = "6s")]
    length: Duration,
    #[command(flatten)]
    guest: GuestArgs,
}

pub(super) fn kernbench(args: &KernbenchArgs, global: &Global) -> Result<Verdict, Failure> {
    measured(Work::Kernbench(args.loads.clone()), &args.guest, &|_| Vec::new(), global)
}

pub(super) fn dup(args: &DupArgs, global: &Global) -> Result<Verdict, Failure> {
    // The first second does not count.
    let length = u32::try_from(args.length.as_secs()).unwrap_or(u32::MAX).max(2);
    measured(Work::Dup(length), &args.guest, &|_| Vec::new(), global)
}

impl GuestArgs {
    /// Guests of these locks; all else is what it is if the user says nothing.
    pub(super) fn of(locks: &[&str], real: RealArgs) -> Self {
        Self {
            locks: locks.iter().map(|name| (*name).to_owned()).collect(),
            size: SizeArgs { vcpus: VCPUS, cpus: None, memory: MEMORY, clock: Clock::Host },
            source: SourceArgs { source: None },
            real,
        }
    }
}

/// Measures `work` in guests; the report begins with `first`.
pub(super) fn measured(
    work: Work,
    args: &GuestArgs,
    first: &dyn Fn(&Record) -> Vec<Block>,
    global: &Global,
) -> Result<Verdict, Failure> {
    known(&args.locks, &[STOCK, STOCK_FAIR])?;
    for needed in [&needs::TO_RUN[..], &needs::FOR_DISKS] {
        needs::programs(needed).map_err(failure)?;
    }
    let mut benchmark = guarded(|guard| {
        let teller = Teller::new(global);
        let built = built(&args.source, &teller, guard)?;
        let (machine, init, why) = machine_of(&built, &args.size, &teller, guard)?;
        teller.tell("the disk of guests: made once");
        let disk = image::make(&built.cache, &built.tree, guard).map_err(failure)?;
        let mut benchmark = InGuests::new(machine, init, disk, args.locks.clone(), work);
        benchmark.why_emulated = why;
        Ok(benchmark)
    })?;
    let locks = Locks { names: args.locks.clone(), library: None };
    run_with(&mut benchmark, &locks, &args.real, RUNS, first, global)
}

/// A machine of this size, the first process of its guests, and why it is emulated if it is.
pub(super) fn machine_of(
    built: &Built,
    size: &SizeArgs,
    teller: &Teller<'_>,
    guard: Guard<'_>,
) -> Result<(Machine, PathBuf, Option<String>), Failure> {
    needs::memory(size.memory).map_err(failure)?;
    teller.tell("the first process of guests");
    let init = init::compile(&built.cache.join("init")).map_err(failure)?;
    teller.tell("what carries a kernel here: KVM is tried");
    let (accelerator, why) =
        machine::accelerator(&built.kernel, &built.cache, guard).map_err(failure)?;
    let machine = Machine {
        cpus: size.cpus.clone(),
        by_instructions: size.clock == Clock::Instructions,
        ..Machine::new(built.kernel.clone(), size.vcpus, size.memory, accelerator)
    };
    Ok((machine, init, why))
}

/// A list of CPUs, as `taskset -c` reads it.
fn cpu_list(text: &str) -> Result<String, String> {
    match text.split(',').all(|part| cpus(part).is_ok()) {
        true => Ok(text.to_owned()),
        false => Err("numbers and ranges of CPUs, for example 0,1 or 0-3".into()),
    }
}
