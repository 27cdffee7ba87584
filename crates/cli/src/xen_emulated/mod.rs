//! `overspin xen-emulated`: real Xen in an emulated machine.

#[cfg(feature = "xen")]
mod run;

use crate::args::{EXIT_CODES, Global, RecordArgs, wall};
use crate::failure::{Failure, Verdict};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// The time of the emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EmulatedClock {
    /// Each instruction takes the same time: time does not depend on the load of this machine
    Instructions,
    /// This machine's time, with a thread for each pCPU
    Host,
}

/// Time of an instruction of the emulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Instruction {
    /// A nanosecond
    #[value(name = "1ns")]
    One,
    /// Two: a CPU half as fast
    #[value(name = "2ns")]
    Two,
    /// Four
    #[value(name = "4ns")]
    Four,
}

#[cfg(feature = "xen")]
impl Instruction {
    /// The logarithm of the nanoseconds, to base 2.
    fn shift(self) -> u8 {
        self as u8
    }
}

/// Work that wants locks of the guests' kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SpinlockWork {
    /// Duplicate file descriptors and close them
    Dup,
    /// Touch fresh pages
    Pft,
}

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct XenEmulatedArgs {
    /// .bench file, to which the results are added
    #[arg(required_unless_present_any = ["spinlocks", "fetch"], conflicts_with = "spinlocks")]
    file: Option<PathBuf>,
    /// Instead of a file, run this work with and without paravirtual spinlocks in the guests' kernels
    #[arg(long, value_name = "WORK,...", value_delimiter = ',')]
    spinlocks: Vec<SpinlockWork>,
    /// Only the run of this name, even if it has been run
    #[arg(long, value_name = "LABEL", conflicts_with = "spinlocks")]
    only: Option<String>,
    /// Seed of the workers' random start
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Time of the emulated machine
    #[arg(long, value_enum, default_value_t = EmulatedClock::Instructions)]
    clock: EmulatedClock,
    /// Time of an instruction, with --clock instructions
    #[arg(long, value_enum, value_name = "TIME", default_value_t = Instruction::One)]
    instruction: Instruction,
    /// Schedulers to compare, with --spinlocks
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "credit,credit2")]
    schedulers: Vec<String>,
    /// Guests, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    guests: u32,
    /// vCPUs of each guest, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    vcpus: u32,
    /// pCPUs of the guests' pool, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    cpus: u32,
    /// Length of a run in seconds of the emulated machine, with --spinlocks
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Keep the emulated machine's files, among them Xen's console, in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Fetch the packages, if they are not there, and run nothing
    #[arg(long)]
    fetch: bool,
    #[command(flatten)]
    record: RecordArgs,
    /// Stop after this much real time, for example 90s or 10min; complete runs are kept
    #[arg(long, value_name = "TIME", value_parser = wall)]
    max_wall: Option<Duration>,
}

#[cfg(feature = "xen")]
pub(crate) use run::unpacked;

#[cfg(feature = "xen")]
pub(crate) fn xen_emulated(args: &XenEmulatedArgs, global: &Global) -> Result<Verdict, Failure> {
    run::run(args, global)
}

#[cfg(not(feature = "xen"))]
pub(crate) fn xen_emulated(_: &XenEmulatedArgs, _: &Global) -> Result<Verdict, Failure> {
    Err(crate::left_out::without_xen())
}
