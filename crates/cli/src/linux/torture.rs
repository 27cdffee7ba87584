//! `overspin linux torture`: the kernel's own judge of its locks.

use super::xen::{self, XenArgs};
use super::{Built, SourceArgs, Teller, built, failure, known};
use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use crate::signals;
use clap::Args;
use overspin_linux::machine::{self, Accelerator, Machine};
use overspin_linux::torture::{self, Verdict as Judged};
use overspin_linux::{Guard, LOCKS, LinuxError, needs};
use overspin_report::{Block, Grid};
use std::path::Path;

/// What the kernel tortures: our lock with interrupts on and off.
const TORTURED: [&str; 2] = ["spin_lock", "spin_lock_irq"];
/// The lock of the kernel's own control, which excludes nobody.
const BUSTED: &str = "lock_busted";
/// MiB: a kernel and its file systems in memory.
const MEMORY: u32 = 512;

#[derive(Debug, Args)]
pub(super) struct TortureArgs {
    /// Locks; without any, all that fit a kernel's word
    #[arg(value_name = "LOCK")]
    locks: Vec<String>,
    /// vCPUs of the machine
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) vcpus: u32,
    /// Seconds for each lock, with interrupts on and as many with interrupts off
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(5..=86_400))]
    pub(super) seconds: u32,
    #[command(flatten)]
    pub(super) xen: XenArgs,
    #[command(flatten)]
    pub(super) source: SourceArgs,
}

pub(super) fn torture(
    args: &TortureArgs,
    global: &Global,
    guard: Guard<'_>,
    folder: &Path,
) -> Result<Verdict, Failure> {
    known(&args.locks, &[])?;
    let on_xen = args.xen.is_meant()?;
    needs::programs(&needs::TO_RUN).map_err(failure)?;
    needs::memory(MEMORY).map_err(failure)?;
    let outputs = Outputs::new(global, &[])?;
    let locks: Vec<&str> = match args.locks.is_empty() {
        true => LOCKS.to_vec(),
        false => args.locks.iter().map(String::as_str).collect(),
    };
    let stop = signals::interrupted();
    let (by, judging) = match on_xen {
        true => xen::judging(args, global, guard, folder, &stop)?,
        false => in_qemu(args, global, guard, &stop)?,
    };
    let judge = |lock: &str, kind: &str| {
        if !global.quiet && !global.no_progress {
            eprintln!("{lock}: {kind}");
        }
        judging(lock, kind)
    };
    let control = judge("stock", BUSTED).map_err(failure)?;
    let mut rows = Vec::new();
    for lock in locks {
        let mut judged = Vec::new();
        for kind in TORTURED {
            if !stop() {
                judged.push(judge(lock, kind));
            }
        }
        if judged.len() == TORTURED.len() {
            rows.push((lock, judged));
        }
    }
    outputs.report(&report(args.vcpus, &by, args.seconds, &control, &rows))?;
    let fine = |result: &Result<Judged, LinuxError>| result.as_ref().is_ok_and(|v| v.success);
    let all = rows.iter().all(|(_, judged)| judged.iter().all(fine));
    Ok(if all && !control.success { Verdict::Fine } else { Verdict::Finding })
}

/// Tortures locks of a kind in a machine with one lock as its kernel's spinlock.
pub(super) type Judging<'a> = Box<dyn Fn(&str, &str) -> Result<Judged, LinuxError> + 'a>;

/// Machines of QEMU, in words, and their judge.
fn in_qemu<'a>(
    args: &'a TortureArgs,
    global: &Global,
    guard: Guard<'a>,
    stop: &'a dyn Fn() -> bool,
) -> Result<(String, Judging<'a>), Failure> {
    let Built { kernel, cache, .. } = built(&args.source, &Teller::new(global), guard)?;
    let (accelerator, why) = machine::accelerator(&kernel, &cache, guard).map_err(failure)?;
    let machine = Machine::new(kernel, args.vcpus, MEMORY, accelerator);
    let runner = match machine.accelerator {
        Accelerator::Kvm => "KVM",
        Accelerator::Emulation => "QEMU's emulation, a thread for each vCPU",
    };
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    let judging = move |lock: &str, kind: &str| {
        torture::torture(&machine, lock, kind, args.seconds, guard, stop)
    };
    Ok((format!("{runner}{why}"), Box::new(judging)))
}

type Row<'a> = (&'a str, Vec<Result<Judged, LinuxError>>);

fn report(vcpus: u32, by: &str, seconds: u32, control: &Judged, rows: &[Row<'_>]) -> Vec<Block> {
    let passed = |judged: &[Result<Judged, LinuxError>]| {
        judged.iter().all(|result| result.as_ref().is_ok_and(|verdict| verdict.success))
    };
    let good = rows.iter().filter(|(_, judged)| passed(judged)).count();
    let answer = format!(
        "{good} of {} locks pass the kernel's locktorture as its only spinlock, {seconds} s with interrupts on and {seconds} s \
         with interrupts off. The control, a lock that excludes nobody, {}.",
        rows.len(),
        if control.success {
            "passes, too: this judge proves nothing"
        } else {
            "fails, as it must"
        }
    );
    let mut grid = Grid::new(1, &["lock", "acquisitions, interrupts on", "interrupts off"]);
    let mut faults = String::new();
    for (lock, judged) in rows {
        let cell = |number: usize| match judged.get(number) {
            Some(Ok(verdict)) if verdict.success => verdict.acquisitions.to_string(),
            Some(Ok(verdict)) => format!("FAILURE, {}", verdict.acquisitions),
            Some(Err(_)) => "no verdict".into(),
            None => String::new(),
        };
        grid.row([(*lock).to_owned(), cell(0), cell(1)]);
        for error in judged.iter().filter_map(|result| result.as_ref().err()) {
            faults += &format!("{lock}: {error}\n");
        }
    }
    let mut blocks = vec![
        Block::Title("Locks inside a Linux kernel".into()),
        Block::Text(answer),
        Block::Text(format!("{vcpus} vCPUs, {by}.")),
        Block::Grid(grid),
    ];
    if !faults.is_empty() {
        blocks.push(Block::Lines(faults));
    }
    blocks
}
