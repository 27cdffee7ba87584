//! `overspin linux`: real Linux kernels whose spinlock is one of our locks.

mod boots;
mod exec;
mod measure;
pub(crate) mod published;
mod pv_ticket_2012;
mod spinlocks_2008;
mod torture;
mod xen;

use crate::args::{EXIT_CODES, Global};
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use clap::{Args, Subcommand};
use exec::ExecArgs;
use measure::{DupArgs, KernbenchArgs, MeasuredArgs};
use overspin_linux::kernel::Variant;
use overspin_linux::stock::{self, Stock};
use overspin_linux::{
    Guard, LOCKS, LinuxError, STOCK, STOCK_FAIR, guard_of, kernel, needs, object, source,
};
use overspin_real::scratch::Scratch;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use torture::TortureArgs;

#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct LinuxArgs {
    #[command(subcommand)]
    command: LinuxCommand,
}

#[derive(Debug, Subcommand)]
enum LinuxCommand {
    /// Compile a Linux kernel whose spinlock is chosen at boot: overspin_lock=NAME
    Build(SourceArgs),
    /// Let the kernel's own locktorture and rcutorture judge locks, in a machine of QEMU
    Torture(TortureArgs),
    /// Build a tree inside guests, with one lock or another as their kernel's spinlock
    Kernbench(KernbenchArgs),
    /// Let threads inside guests duplicate and close a file descriptor: the shortest way to a contended spinlock
    Dup(DupArgs),
    /// Run a benchmark of `overspin measure` inside guests, with one lock or another as their kernel's spinlock
    Measure(MeasuredArgs),
    /// Run a program of this machine in a guest, with one lock or another as its kernel's spinlock
    Exec(ExecArgs),
}

#[derive(Debug, Default, Args)]
struct SourceArgs {
    /// Source of a Linux 6.1, which is copied; without it, the distribution's package linux-source-6.1
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// A kernel that keeps account of its locks, in a tree of its own: records then tell which of them were waited for. It is slower
    #[arg(long)]
    lock_stat: bool,
}

/// Which kernel guests have.
#[derive(Debug, Default, Args)]
struct KernelArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Instead of a kernel with our locks: a stock one of the distribution's packages, which is unpacked and not installed, for
    /// example 6.12; or the path of any
    #[arg(long, value_name = "VERSION|FILE", conflicts_with_all = ["source", "lock_stat"])]
    kernel: Option<String>,
    /// Suite of the distribution whose packages have that version, for example trixie-backports; default: this machine's
    #[arg(long, value_name = "NAME", requires = "kernel")]
    suite: Option<String>,
}

pub(crate) fn linux(args: &LinuxArgs, global: &Global) -> Result<Verdict, Failure> {
    match &args.command {
        LinuxCommand::Build(args) => {
            let outputs = Outputs::new(global, &[])?;
            let built = guarded(|guard| built(args, &Teller::new(global), guard))?;
            outputs.print(&format!("The kernel is {}\n", built.kernel.display()))?;
            Ok(Verdict::Fine)
        }
        LinuxCommand::Torture(args) => {
            in_scratch(|scratch| torture::torture(args, global, &guard_of(scratch), scratch.path()))
        }
        LinuxCommand::Kernbench(args) => measure::kernbench(args, global),
        LinuxCommand::Dup(args) => measure::dup(args, global),
        LinuxCommand::Measure(args) => measure::benchmark(args, global),
        LinuxCommand::Exec(args) => exec::exec(args, global),
    }
}

/// Calls `what` with a guard of the programs that it starts: they end with this process, however that ends.
fn guarded<T>(what: impl FnOnce(Guard<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
    in_scratch(|scratch| what(&guard_of(scratch)))
}

/// As [`guarded`], with the folder that ends with them.
fn in_scratch<T>(what: impl FnOnce(&Scratch) -> Result<T, Failure>) -> Result<T, Failure> {
    let scratch = Scratch::new(None).map_err(|f| crate::measure::real::failure(&f))?;
    what(&scratch)
}

/// A kernel, and where it and all that is made with it are.
struct Built {
    kernel: PathBuf,
    /// Its source; none of a stock kernel.
    tree: Option<PathBuf>,
    stock: Option<Stock>,
    cache: PathBuf,
    /// As long as it is open, no other command changes any of them.
    _alone: File,
}

/// Tells what takes long, with the time so far.
struct Teller<'a> {
    global: &'a Global,
    begun: Instant,
}

impl<'a> Teller<'a> {
    fn new(global: &'a Global) -> Self {
        Self { global, begun: Instant::now() }
    }

    fn tell(&self, what: &str) {
        if !self.global.quiet && !self.global.no_progress {
            eprintln!("{what} ({} s elapsed)", self.begun.elapsed().as_secs());
        }
    }
}

/// The kernel, compiled as far as it is not up to date.
fn built(args: &SourceArgs, teller: &Teller<'_>, guard: Guard<'_>) -> Result<Built, Failure> {
    let cache = overspin_linux::cache().map_err(failure)?;
    needs::programs(&needs::TO_BUILD).map_err(failure)?;
    if !cache.join("locks").exists() {
        needs::space(&cache).map_err(failure)?;
    }
    // Two commands would compile the same files at once.
    let alone = overspin_linux::alone(&cache).map_err(failure)?;
    teller.tell("the source of the kernel: fetched and unpacked once");
    let tree = match &args.source {
        Some(folder) => source::of_folder(folder, &cache),
        None => source::of_distribution(&cache),
    };
    let variant = if args.lock_stat { Variant::LockStat } else { Variant::Plain };
    let tree = tree.map_err(failure)?;
    let of_variant = source::of_variant(tree.clone(), variant).map_err(failure)?;
    teller.tell("the locks");
    let object = object::compile(&cache.join("locks")).map_err(failure)?;
    teller.tell("the kernel: the first time takes minutes, later ones seconds");
    let kernel = kernel::build(&of_variant, &object, variant, guard).map_err(failure)?;
    Ok(Built { kernel, tree: Some(tree), stock: None, cache, _alone: alone })
}

/// The kernel that guests have.
fn kernel_of(args: &KernelArgs, teller: &Teller<'_>, guard: Guard<'_>) -> Result<Built, Failure> {
    let Some(which) = &args.kernel else { return built(&args.source, teller, guard) };
    let cache = overspin_linux::cache().map_err(failure)?;
    let alone = overspin_linux::alone(&cache).map_err(failure)?;
    teller.tell("the stock kernel: fetched and unpacked once");
    let is_version = which.starts_with(|c: char| c.is_ascii_digit()) && !which.contains('/');
    let stock = match is_version {
        true => stock::of_distribution(which, args.suite.as_deref(), &cache),
        false => stock::of_file(Path::new(which)),
    };
    let stock = stock.map_err(failure)?;
    let kernel = stock.kernel.clone();
    Ok(Built { kernel, tree: None, stock: Some(stock), cache, _alone: alone })
}

impl KernelArgs {
    /// The locks that are meant where nobody names any, and an error if one is named that the kernel does not have.
    fn locks<'a>(&self, named: &'a [String], ours: &[&'a str]) -> Result<Vec<String>, Failure> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let own = [STOCK, STOCK_FAIR];
        if self.kernel.is_none() {
            known(named, &own)?;
            return Ok(if named.is_empty() { owned(ours) } else { named.to_vec() });
        }
        match named.iter().find(|name| !own.contains(&name.as_str())) {
            None if named.is_empty() => Ok(owned(&own)),
            None => Ok(named.to_vec()),
            Some(name) => Err(Failure::usage(
                format!("a stock kernel does not have the lock `{name}`"),
                format!("leave --kernel out, or name {} or {}", own[0], own[1]),
            )),
        }
    }
}

/// An error if one of these is no lock of a kernel's word, or none of `besides`.
fn known(names: &[String], besides: &[&str]) -> Result<(), Failure> {
    let is_known = |name: &str| LOCKS.contains(&name) || besides.contains(&name);
    match names.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => Err(Failure::usage(
            format!("`{name}` is no lock of a kernel's word"),
            format!("these are: {}", [&LOCKS, besides].concat().join(", ")),
        )),
    }
}

fn failure(error: LinuxError) -> Failure {
    let remedy = error.remedy();
    Failure::environment(error.to_string(), remedy)
}
