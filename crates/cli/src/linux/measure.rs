//! `overspin linux kernbench` and `dup`: benchmarks inside guests, with one lock or another as their kernel's spinlock.

use super::xen::{self, XenArgs};
use super::{Built, KernelArgs, Teller, failure, guarded, kernel_of};
use crate::args::{EXIT_CODES, Global, cpus};
use crate::command::{self, Command};
use crate::failure::{Failure, Verdict};
use crate::measure::MeasureArgs;
use crate::measure::benchmarks::{load, seconds};
use crate::measure::real::{Prepared, RealArgs, run_with};
use clap::{Args, ValueEnum};
use overspin_linux::benchmark::{InGuests, Measured, Work};
use overspin_linux::machine::{self, Machine};
use overspin_linux::{Guard, image, init, needs, source};
use overspin_native::world::Share;
use overspin_real::kernbench::Load;
use overspin_real::preload::Locks;
use overspin_report::Block;
use overspin_runs::record::Record;
use overspin_stats::ranges;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Runs of each place, if the user does not say, as kernbench makes them.
const RUNS: u32 = 5;
/// vCPUs of a guest, as in 2008.
const VCPUS: u32 = 4;
/// MiB: what 16 compilers need.
const MEMORY: u32 = 1024;

/// Locks of guests, if the user does not say: those of 2008, the base first. The others may take ten times as long.
pub(super) const OF_2008: [&str; 3] = ["lock-byte", "xen-pv", "ticket"];

/// How large a guest is, and where it runs.
#[derive(Debug, Args)]
pub(super) struct SizeArgs {
    /// vCPUs of a guest
    #[arg(long, value_name = "N", default_value_t = VCPUS, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) vcpus: u32,
    /// CPUs of this machine on which the vCPUs run, for example 0,1 or 0-1; default: all
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(super) cpus: Option<String>,
    /// Memory of a guest in MiB; default: 1024, under Xen 256
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(256..))]
    pub(super) memory: Option<u32>,
    /// CPUs' worth of time that a guest gets in each tenth of a second, such as 1.5, by a control group; default: no limit
    #[arg(long, value_name = "CPUS", value_parser = quota)]
    pub(super) quota: Option<u32>,
    /// What time goes on with: the host's clock, or the guest's instructions, which no load of this machine changes; then one
    /// CPU runs all vCPUs in turn
    #[arg(long, value_name = "CLOCK", default_value = "host")]
    pub(super) clock: Clock,
}

/// What a guest's time goes on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Clock {
    /// The host's clock
    Host,
    /// The guest's instructions
    Instructions,
}

/// Which guests there are.
#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    /// Locks: those of `overspin linux torture`, stock (what the kernel itself chooses) or stock-fair (its queue that serves
    /// in order); default: lock-byte, xen-pv and ticket, of a stock kernel both of its own. Others may take ten times as long as
    /// the first one; then they count as never ready
    #[arg(long = "lock", value_name = "NAMES", value_delimiter = ',')]
    pub(super) locks: Vec<String>,
    #[command(flatten)]
    pub(super) size: SizeArgs,
    #[command(flatten)]
    pub(super) kernel: KernelArgs,
}

/// Guests, and what is measured of them.
#[derive(Debug, Args)]
pub(super) struct GuestArgs {
    #[command(flatten)]
    pub(super) which: WhichArgs,
    #[command(flatten)]
    pub(super) real: RealArgs,
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
    xen: XenArgs,
    #[command(flatten)]
    guest: GuestArgs,
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct MeasuredArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// A benchmark of `overspin measure` with its options, for example: pgbench --clients 1,8 --runs 3 --json out.json
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "BENCHMARK"
    )]
    benchmark: Vec<String>,
}

pub(super) fn benchmark(args: &MeasuredArgs, global: &Global) -> Result<Verdict, Failure> {
    let (inside, more) = of_host(&args.benchmark)?;
    let quiet = global.quiet || more.quiet;
    let global = &Global { quiet, no_progress: global.no_progress || more.no_progress };
    let prepared = inside.prepared(global)?;
    let work = work(&prepared, &args.benchmark)?;
    measured(work, &args.which, prepared.real, prepared.runs, &|_| Vec::new(), global)
}

/// What these words ask `overspin measure` for.
pub(super) fn of_host(words: &[String]) -> Result<(MeasureArgs, Global), Failure> {
    let all = ["overspin", "measure"].into_iter().chain(words.iter().map(String::as_str));
    let understood = command::understood(&all.map(OsString::from).collect::<Vec<_>>())?;
    match understood.command {
        Command::Measure(args) => Ok((args, understood.global)),
        // The second word is no other command.
        other => unreachable!("{other:?}"),
    }
}

/// The benchmark of these words, inside.
pub(super) fn work(prepared: &Prepared<'_>, words: &[String]) -> Result<Work, Failure> {
    // The options of all commands may stand before its name.
    let name = words.iter().position(|word| !word.starts_with('-'));
    let (before, arguments) = words.split_at(name.map_or(0, |name| name + 1));
    let command = [&[utf8(std::env::current_exe())?, "measure".into()], before].concat();
    Ok(Work::Measured(Measured {
        name: prepared.benchmark.name(),
        places: prepared.benchmark.places(),
        command,
        arguments: arguments.into(),
        folder: utf8(std::env::current_dir())?,
    }))
}

/// A path as a word of a command line.
fn utf8(path: std::io::Result<PathBuf>) -> Result<String, Failure> {
    let path = path.map(|path| path.into_os_string().into_string());
    match path {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(path)) => Err(Failure::usage(
            format!("`{}` is not UTF-8", path.display()),
            "run it in a folder whose name is",
        )),
        Err(error) => Err(Failure::environment(
            format!("this program or its folder cannot be found: {error}"),
            "run it in a folder that is there",
        )),
    }
}

pub(super) fn kernbench(args: &KernbenchArgs, global: &Global) -> Result<Verdict, Failure> {
    let GuestArgs { which, real } = &args.guest;
    let work = Work::Kernbench(args.loads.clone());
    measured(work, which, real, RUNS, &|_| Vec::new(), global)
}

pub(super) fn dup(args: &DupArgs, global: &Global) -> Result<Verdict, Failure> {
    // The first second does not count.
    let length = u32::try_from(args.length.as_secs()).unwrap_or(u32::MAX).max(2);
    if args.xen.is_meant()? {
        return xen::dup(length, &args.xen, &args.guest, global);
    }
    let GuestArgs { which, real } = &args.guest;
    measured(Work::Dup(length), which, real, RUNS, &|_| Vec::new(), global)
}

impl WhichArgs {
    /// Guests of these locks; all else is what it is if the user says nothing.
    pub(super) fn of(locks: &[&str]) -> Self {
        Self {
            locks: locks.iter().map(|name| (*name).to_owned()).collect(),
            size: SizeArgs {
                vcpus: VCPUS,
                cpus: None,
                memory: None,
                quota: None,
                clock: Clock::Host,
            },
            kernel: KernelArgs::default(),
        }
    }
}

/// Measures `work` in guests, each place so many times if the user does not say; the report begins with `first`.
pub(super) fn measured(
    work: Work,
    args: &WhichArgs,
    real: &RealArgs,
    runs: u32,
    first: &dyn Fn(&Record) -> Vec<Block>,
    global: &Global,
) -> Result<Verdict, Failure> {
    let names = args.kernel.locks(&args.locks, &OF_2008)?;
    let with_disk = matches!(work, Work::Kernbench(_));
    let for_disk: &[_] = if with_disk { &needs::FOR_DISKS } else { &[] };
    for needed in [&needs::TO_RUN[..], &needs::TO_PIN, for_disk] {
        needs::programs(needed).map_err(failure)?;
    }
    let mut benchmark = guarded(|guard| {
        let teller = Teller::new(global);
        let built = kernel_of(&args.kernel, &teller, guard)?;
        let (machine, init, why) = machine_of(&built, &args.size, &teller, guard)?;
        let disk = match with_disk {
            true => {
                teller.tell("the disk of guests: made once");
                let tree = match &built.tree {
                    Some(tree) => tree.clone(),
                    None => source::of_distribution(&built.cache).map_err(failure)?,
                };
                Some(image::make(&built.cache, &tree, guard).map_err(failure)?)
            }
            false => None,
        };
        let mut benchmark = InGuests::new(machine, init, disk, names.clone(), work);
        benchmark.why_emulated = why;
        Ok(benchmark)
    })?;
    let locks = Locks { names, library: None };
    run_with(&mut benchmark, &locks, real, runs, first, global)
}

/// A machine of this size, the first process of its guests, and why it is emulated if it is.
pub(super) fn machine_of(
    built: &Built,
    size: &SizeArgs,
    teller: &Teller<'_>,
    guard: Guard<'_>,
) -> Result<(Machine, PathBuf, Option<String>), Failure> {
    let memory = size.memory.unwrap_or(MEMORY);
    needs::memory(memory).map_err(failure)?;
    teller.tell("the first process of guests");
    let folder = built.cache.join("init");
    let mut init = init::compile(&folder).map_err(failure)?;
    if let Some(stock) = &built.stock {
        init = stock.with_modules(&init, &folder).map_err(failure)?;
    }
    teller.tell("what carries a kernel here: KVM is tried");
    let (accelerator, why) =
        machine::accelerator(&built.kernel, &built.cache, guard).map_err(failure)?;
    if let Some(why) = &why {
        teller.tell(&format!("QEMU emulates: {why}"));
    }
    let machine = Machine {
        cpus: size.cpus.clone(),
        by_instructions: size.clock == Clock::Instructions,
        share: size.quota.map(|cap| Share { cap, weight: None }),
        ..Machine::new(built.kernel.clone(), size.vcpus, memory, accelerator)
    };
    Ok((machine, init, why))
}

/// CPUs' worth of time, as percent of a CPU.
fn quota(text: &str) -> Result<u32, String> {
    let percent = text.parse::<f64>().map_or(0.0, |cpus| (cpus * 100.0).round());
    match (1.0..=1e6).contains(&percent) {
        true => Ok(percent as u32),
        false => Err("a number of CPUs from 0.01 on, for example 1.5".into()),
    }
}

/// A list of CPUs, as `taskset -c` reads it.
fn cpu_list(text: &str) -> Result<String, String> {
    let parts: Result<Vec<_>, _> = text.split(',').map(cpus).collect();
    let Ok(parts) = parts else {
        return Err("numbers and ranges of CPUs, for example 0,1 or 0-3".into());
    };
    // Where the kernel does not tell, `taskset` does.
    let allowed = overspin_native::measure::allowed_cpus().unwrap_or_default();
    let strange = parts.into_iter().flatten().find(|cpu| !allowed.contains(cpu));
    match strange.filter(|_| !allowed.is_empty()) {
        None => Ok(text.to_owned()),
        Some(cpu) => {
            let allowed: Vec<u64> = allowed.iter().map(|cpu| *cpu as u64).collect();
            Err(format!("there is no CPU {cpu} to use here: there are {}", ranges(&allowed)))
        }
    }
}
