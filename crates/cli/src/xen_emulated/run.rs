//! Makes the machine, and the runs on it: a plan, or kernels with and without paravirtual spinlocks.

use super::{EmulatedClock, SpinlockWork, XenEmulatedArgs};
use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::schedbench::{print, read, save, say, temporary, to_run};
use crate::show::{self, Outputs};
use crate::world;
use overspin_lab::xen_spinlocks::{self, Comparison, GuestSpinlocks, KernelWork};
use overspin_runs::schedbench::{self, Origin, XenCpus, XenHost};
use overspin_scenario::Stopped;
use overspin_xen::emulated::{self, Cache, Clock, EmulatedError, Machine, Unpacked};
use overspin_xl::{GuestType, Job, Message, Reports, SCHEDULERS};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Name of the world.
const WORLD: &str = "xen-emulated";
/// The scheduler of the dom0's pool; the dom0 has a pCPU of its own, so that it matters to nobody.
const SCHEDULER: &str = "credit2";
const MB: u64 = 1_000_000;

pub(super) fn run(args: &XenEmulatedArgs, global: &Global) -> Result<Verdict, Failure> {
    match &args.file {
        Some(file) => plan(args, file, global),
        None if args.spinlocks.is_empty() => machine(args, global).map(|_| Verdict::Fine),
        None => spinlocks(args, global),
    }
}

fn plan(args: &XenEmulatedArgs, path: &PathBuf, global: &Global) -> Result<Verdict, Failure> {
    let wanted = &args.record;
    let outputs = Outputs::new(global, &[Some(path), wanted.json.as_ref(), wanted.csv.as_ref()])?;
    let mut file = read(path)?;
    let todo = to_run(&file, path, args.only.as_deref())?;
    let job = |i: &usize| schedbench::xen_job(&file, &file.runs[*i], args.seed, XenCpus::FromOne);
    let jobs: Vec<Job> = todo.iter().map(job).collect::<Result<_, _>>()?;
    let machine = machine(args, global)?;
    if args.fetch || jobs.is_empty() {
        return print(path, 0, wanted, &outputs);
    }
    let command = show::command();
    let mut saved = Ok(());
    let stopped = make(args, &machine, &jobs, global, &mut |host, job, reports| {
        let i = todo[job];
        let origin = Some(Origin::on_xen(WORLD, host, args.seed, &command));
        let done = schedbench::xen_done(&file.runs[i], &reports);
        file.runs[i] = schedbench::Run { origin, ..done };
        // Complete runs are kept, whatever happens later.
        if saved.is_ok() {
            saved = save(&file, path);
        }
    });
    saved?;
    let report = print(path, 0, wanted, &outputs)?;
    Ok(stopped?.map_or(report, world::stopped))
}

fn spinlocks(args: &XenEmulatedArgs, global: &Global) -> Result<Verdict, Failure> {
    let unknown = args.schedulers.iter().find(|name| !SCHEDULERS.contains(&&***name));
    if let Some(name) = unknown {
        return Err(Failure::usage(
            format!("--schedulers: Xen has no scheduler `{name}`"),
            format!("Xen's are: {}", SCHEDULERS.join(", ")),
        ));
    }
    let outputs = Outputs::new(global, &[args.record.json.as_ref()])?;
    if args.record.csv.is_some() || args.record.out.is_some() {
        return Err(Failure::usage(
            "--csv and --out are not for --spinlocks",
            "write the figures with --json FILE",
        ));
    }
    let json = outputs.open(args.record.json.as_ref())?;
    let comparison = Comparison {
        works: args
            .spinlocks
            .iter()
            .map(|work| match work {
                SpinlockWork::Dup => KernelWork::Dup,
                SpinlockWork::Pft => KernelWork::Pft,
            })
            .collect(),
        schedulers: args.schedulers.clone(),
        guests: args.guests,
        vcpus: args.vcpus,
        cpus: args.cpus,
        seconds: args.seconds,
        seed: args.seed,
    };
    let machine = machine(args, global)?;
    if args.fetch {
        return Ok(Verdict::Fine);
    }
    let (mut all, mut of): (Vec<GuestSpinlocks>, Option<XenHost>) = (Vec::new(), None);
    let stopped = make(args, &machine, &comparison.jobs(), global, &mut |host, job, reports| {
        all.extend(comparison.measured(job, reports));
        of = Some(host.clone());
    });
    if let Some(json) = json {
        let record = json!({
            "host": of, "comparison": comparison, "runs": all,
        });
        show::made_here(json, "overspin-xen-spinlocks/1", record)?;
    }
    outputs.report(&xen_spinlocks::report(&all))?;
    Ok(stopped?.map_or(Verdict::Fine, world::stopped))
}

/// The machine's software; its packages are fetched if they are not there.
pub(crate) fn unpacked(global: &Global) -> Result<Unpacked, Failure> {
    let cache = Cache::of_user().map_err(|e| failure(&e))?;
    let mut unpacked = cache.unpacked().map_err(|e| failure(&e))?;
    if unpacked.is_none() {
        say(global, &format!("fetching Debian's packages into {}", cache.folder().display()));
        let fetched = cache.fetch().map_err(|e| failure(&e))?;
        say(global, &format!("{} packages, {} MB", fetched.packages, fetched.bytes / MB));
        unpacked = cache.unpacked().map_err(|e| failure(&e))?;
    }
    unpacked.ok_or_else(|| failure(&EmulatedError::NoCache))
}

fn machine(args: &XenEmulatedArgs, global: &Global) -> Result<Machine, Failure> {
    let unpacked = unpacked(global)?;
    let clock = match args.clock {
        EmulatedClock::Instructions => Clock::Instructions(args.instruction.shift()),
        EmulatedClock::Host => Clock::Host,
    };
    Ok(Machine {
        unpacked,
        clock,
        scheduler: SCHEDULER.into(),
        watch: false,
        guest_type: GuestType::Pv,
        guest_kernel: None,
    })
}

/// Makes the runs; `done` takes what each of them reported. Says why it stopped early, if it did.
fn make(
    args: &XenEmulatedArgs,
    machine: &Machine,
    jobs: &[Job],
    global: &Global,
    done: &mut dyn FnMut(&XenHost, usize, Vec<Reports>),
) -> Result<Option<Stopped>, Failure> {
    let temporary = temporary()?;
    let folder: &Path = args.keep.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder).map_err(|e| {
        let remedy = "name a folder that you may write";
        Failure::environment(format!("--keep {}: {e}", folder.display()), remedy)
    })?;
    let time = match machine.clock {
        Clock::Instructions(shift) => format!("{} ns for each instruction", 1_u32 << shift),
        Clock::Host => "the emulator's own time".into(),
    };
    let qemu = machine.unpacked.qemu_version().map_err(|e| failure(&e))?;
    let mut host = XenHost {
        xen: "unknown".into(),
        kernel: machine.unpacked.linux_name(),
        emulator: Some(format!("QEMU {qemu} (TCG), {time}")),
    };
    let until = world::until(args.max_wall);
    let mut failed = Vec::new();
    say(global, "Xen boots");
    let name = |job: usize| jobs.get(job).map_or("?", |job| &*job.name);
    let result = emulated::run(
        machine,
        jobs,
        folder,
        &|qemu| temporary.guard(qemu).map_err(|e| e.to_string()),
        &mut |message| match message {
            Message::Up { xen } => host.xen = xen,
            Message::Step { job, step } => say(global, &format!("{}: {step}", name(job))),
            Message::Done { job, reports } if job < jobs.len() => done(&host, job, reports),
            Message::Failed { job, message } => {
                failed.push(format!("{}: {message}", name(job.unwrap_or(usize::MAX))));
            }
            Message::Done { .. } | Message::Watched { .. } | Message::End => {}
        },
        &|| until.over().is_some(),
    );
    result.map_err(|e| failure(&e))?;
    match until.over() {
        Some(by) => Ok(Some(by)),
        None if failed.is_empty() => Ok(None),
        None => Err(Failure::environment(
            format!("runs failed: {}", failed.join("; ")),
            "run them again with --keep DIR: Xen's console is then in DIR/console.txt",
        )),
    }
}

fn failure(error: &EmulatedError) -> Failure {
    Failure::environment(error.to_string(), error.remedy())
}
