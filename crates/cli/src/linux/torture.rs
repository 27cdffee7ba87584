//! `overspin linux torture`: the kernel's own judges of its locks.

use super::xen::{self, XenArgs};
use super::{Built, SourceArgs, Teller, boots, built, failure, known};
use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::show::Outputs;
use crate::signals;
use clap::Args;
use overspin_linux::machine::{self, Accelerator, Machine};
use overspin_linux::torture::{self, CONTROLS, JUDGES, Judge, Verdict as Judged};
use overspin_linux::{Guard, LOCKS, LinuxError, STOCK, needs};
use overspin_report::{Block, Grid};
use std::path::Path;

/// Seconds of each judge, if the user does not say.
const OF_LOCKS: u32 = 20;
const OF_RCU: u32 = 60;
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
    /// Seconds of each judge; default: 20 of locktorture with interrupts on, 20 with interrupts off, and 60 of rcutorture
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=86_400))]
    seconds: Option<u32>,
    /// Instead of that, boot so many times with each lock and with the kernel's own, and count the boots that hang
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    boots: Option<u32>,
    #[command(flatten)]
    pub(super) xen: XenArgs,
    #[command(flatten)]
    pub(super) source: SourceArgs,
}

impl TortureArgs {
    /// How long this judge has.
    pub(super) fn seconds(&self, judge: Judge) -> u32 {
        let usual = match judge {
            Judge::Lock(_) => OF_LOCKS,
            Judge::Rcu(_) => OF_RCU,
        };
        self.seconds.unwrap_or(usual)
    }
}

pub(super) fn torture(
    args: &TortureArgs,
    global: &Global,
    guard: Guard<'_>,
    folder: &Path,
) -> Result<Verdict, Failure> {
    known(&args.locks, &[])?;
    let on_xen = args.xen.is_meant()?;
    if on_xen && args.boots.is_some() {
        let cause = "--boots counts boots of machines of QEMU";
        return Err(Failure::usage(cause, "leave out --boots, or --world xen"));
    }
    needs::programs(&needs::TO_RUN).map_err(failure)?;
    needs::memory(MEMORY).map_err(failure)?;
    let outputs = Outputs::new(global, &[])?;
    let locks: Vec<&str> = match args.locks.is_empty() {
        true => LOCKS.to_vec(),
        false => args.locks.iter().map(String::as_str).collect(),
    };
    let stop = signals::interrupted();
    if let Some(count) = args.boots {
        let (machine, by) = in_qemu(args, global, guard)?;
        return boots::boots(&machine, &by, &locks, count, global, &outputs, &stop);
    }
    let (by, judging): (String, Judging<'_>) = match on_xen {
        true => xen::judging(args, global, guard, folder, &stop)?,
        false => {
            let (machine, by) = in_qemu(args, global, guard)?;
            let stop = &stop;
            let judging = move |lock: &str, judge: Judge| {
                torture::torture(&machine, lock, judge, args.seconds(judge), guard, stop)
            };
            (by, Box::new(judging))
        }
    };
    let judge = |lock: &str, judge: Judge| {
        if !global.quiet && !global.no_progress {
            eprintln!("{lock}: {} of {}", judge.name(), judge.kind());
        }
        judging(lock, judge)
    };
    let controls = CONTROLS.map(|control| judge(STOCK, control));
    let mut rows = Vec::new();
    for lock in locks {
        let mut judged = Vec::new();
        for by in JUDGES {
            if !stop() {
                judged.push(judge(lock, by));
            }
        }
        if judged.len() == JUDGES.len() {
            rows.push((lock, judged));
        }
    }
    outputs.report(&report(args, &by, &controls, &rows))?;
    let all = rows.iter().all(|(_, judged)| judged.iter().all(passed));
    let fine = all && controls.iter().all(failed) && at_boot(&controls, &rows).is_ok();
    Ok(if fine { Verdict::Fine } else { Verdict::Finding })
}

/// What a judge said, or why it said nothing.
type Said = Result<Judged, LinuxError>;

fn passed(result: &Said) -> bool {
    result.as_ref().is_ok_and(|verdict| verdict.success)
}

fn failed(control: &Said) -> bool {
    control.as_ref().is_ok_and(|verdict| !verdict.success)
}

/// Lets a judge torture one lock as the spinlock of a machine's kernel.
pub(super) type Judging<'a> = Box<dyn Fn(&str, Judge) -> Said + 'a>;

/// A machine of QEMU, and what it is in words.
fn in_qemu(
    args: &TortureArgs,
    global: &Global,
    guard: Guard<'_>,
) -> Result<(Machine, String), Failure> {
    let Built { kernel, cache, .. } = built(&args.source, &Teller::new(global), guard)?;
    let (accelerator, why) = machine::accelerator(&kernel, &cache, guard).map_err(failure)?;
    let machine = Machine::new(kernel, args.vcpus, MEMORY, accelerator);
    let runner = match machine.accelerator {
        Accelerator::Kvm => "KVM",
        Accelerator::Emulation => "QEMU's emulation, a thread for each vCPU",
    };
    let why = why.map_or(String::new(), |why| format!(" ({why})"));
    Ok((machine, format!("{runner}{why}")))
}

type Row<'a> = (&'a str, Vec<Said>);

/// What the kernel's tests at boot say with every lock and with its own; an error names the first lock with another result.
fn at_boot<'a>(controls: &'a [Said], rows: &'a [Row<'_>]) -> Result<&'a str, &'a str> {
    let said = |judged: &'a Said| judged.as_ref().ok().map(|v| v.at_boot.as_deref());
    let stock = controls.iter().find_map(said).flatten().unwrap_or("nothing");
    let differs = |(_, judged): &&Row<'_>| {
        judged
            .iter()
            .filter_map(|one| one.as_ref().ok())
            .any(|v| v.at_boot.as_deref() != Some(stock))
    };
    rows.iter().find(differs).map_or(Ok(stock), |(lock, _)| Err(*lock))
}

fn report(args: &TortureArgs, by: &str, controls: &[Said], rows: &[Row<'_>]) -> Vec<Block> {
    let good = rows.iter().filter(|(_, judged)| judged.iter().all(passed)).count();
    let [of_lock, _, of_rcu] = JUDGES.map(|judge| args.seconds(judge));
    let answer = format!(
        "{good} of {} locks pass the kernel's judges as its only spinlock: locktorture, {of_lock} s with interrupts on and \
         {of_lock} s with interrupts off, and {of_rcu} s of rcutorture. The controls, a lock that excludes nobody and an RCU \
         that waits for nobody, {}. {}",
        rows.len(),
        if controls.iter().all(failed) {
            "fail, as they must"
        } else {
            "do not both fail: these judges prove nothing"
        },
        match at_boot(controls, rows) {
            Ok(said) => format!(
                "The kernel's tests of its locks at boot say the same with each of them as with its own lock: {said}"
            ),
            Err(lock) =>
                format!("The kernel's tests of its locks at boot say something else with {lock}."),
        }
    );
    let mut grid = Grid::new(1, &["lock", "acquired, irqs on", "irqs off", "reads under RCU"]);
    let mut faults = String::new();
    for (lock, judged) in rows {
        let cell = |number: usize| match judged.get(number) {
            Some(Ok(verdict)) if verdict.success => verdict.count.to_string(),
            Some(Ok(verdict)) => format!("FAILURE, {}", verdict.count),
            Some(Err(_)) => "no verdict".into(),
            None => String::new(),
        };
        grid.row([(*lock).to_owned(), cell(0), cell(1), cell(2)]);
        for error in judged.iter().filter_map(|result| result.as_ref().err()) {
            faults += &format!("{lock}: {error}\n");
        }
    }
    for error in controls.iter().filter_map(|result| result.as_ref().err()) {
        faults += &format!("control: {error}\n");
    }
    let mut blocks = vec![
        Block::Title("Locks inside a Linux kernel".into()),
        Block::Text(answer),
        Block::Text(format!("{} vCPUs, {by}.", args.vcpus)),
        Block::Grid(grid),
    ];
    if !faults.is_empty() {
        blocks.push(Block::Lines(faults));
    }
    blocks
}
