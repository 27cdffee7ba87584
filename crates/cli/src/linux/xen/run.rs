//! Measures in guests of real Xen.

use super::{GuestType, XenArgs};
use crate::args::Global;
use crate::failure::{Failure, Verdict};
use crate::linux::measure::{Clock, GuestArgs, OF_2008, SizeArgs, WhichArgs};
use crate::linux::torture::{Judging, TortureArgs};
use crate::linux::{Built, Teller, built, failure, guarded};
use crate::measure::real::run_with;
use crate::xen_emulated;
use overspin_linux::torture::Judge;
use overspin_linux::{Guard, needs};
use overspin_real::preload::Locks;
use overspin_xen::emulated::{Clock as XenClock, Machine};
use overspin_xen::guests::{DupInXen, Guests, guest_type_words, torture};
use overspin_xl::SCHEDULERS;
use std::path::Path;

/// Runs of each lock, if the user does not say: a boot of Xen and of a guest takes half a minute.
const RUNS: u32 = 3;
/// MiB of a guest: its file system has one program.
const MEMORY: u32 = 256;
/// As in 2008.
const SCHEDULER: &str = "credit";
/// An instruction takes 8 ns, as in guests without Xen: a kernel boots in time.
const SHIFT: u8 = 3;

impl From<GuestType> for overspin_xl::GuestType {
    fn from(guest_type: GuestType) -> Self {
        match guest_type {
            GuestType::Pv => Self::Pv,
            GuestType::Pvh => Self::Pvh,
        }
    }
}

pub(in crate::linux) fn dup(
    seconds: u32,
    xen: &XenArgs,
    args: &GuestArgs,
    global: &Global,
) -> Result<Verdict, Failure> {
    let GuestArgs { which: WhichArgs { locks, size, kernel }, real } = args;
    if kernel.kernel.is_some() {
        return Err(Failure::usage(
            "--kernel is not for guests of Xen: a stock kernel has Xen's devices as modules",
            "leave it out, and name the lock stock or stock-fair of the kernel that is compiled here",
        ));
    }
    if kernel.source.lock_stat {
        return Err(Failure::usage(
            "--lock-stat is not for guests of Xen: they report pairs and CPU times alone",
            "leave out --lock-stat, or --world xen",
        ));
    }
    let names = kernel.locks(locks, &OF_2008)?;
    let guests = guests(xen, size, global, |teller, guard| built(&kernel.source, teller, guard))?;
    let mut benchmark = DupInXen::new(guests, names.clone(), seconds);
    let locks = Locks { names, library: None };
    run_with(&mut benchmark, &locks, real, RUNS, &|_| Vec::new(), global)
}

/// Guests of Xen, in words, and their judge.
pub(in crate::linux) fn judging<'a>(
    args: &'a TortureArgs,
    global: &Global,
    guard: Guard<'a>,
    folder: &'a Path,
    stop: &'a dyn Fn() -> bool,
) -> Result<(String, Judging<'a>), Failure> {
    let size =
        SizeArgs { vcpus: args.vcpus, cpus: None, memory: None, quota: None, clock: Clock::Host };
    let guests =
        guests(&args.xen, &size, global, |teller, guard| built(&args.source, teller, guard))?;
    let by = format!(
        "a {} guest of Xen in QEMU's emulation, with {} pCPU{}, under the scheduler {}",
        guest_type_words(guests.machine.guest_type),
        guests.cpus,
        if guests.cpus == 1 { "" } else { "s" },
        guests.scheduler
    );
    let judging = move |lock: &str, judge: Judge| {
        torture(&guests, lock, judge, args.seconds(judge), folder, guard, stop)
    };
    Ok((by, Box::new(judging)))
}

/// Guests of this size with the kernel that `kernel` gets.
fn guests(
    xen: &XenArgs,
    size: &SizeArgs,
    global: &Global,
    kernel: impl FnOnce(&Teller<'_>, Guard<'_>) -> Result<Built, Failure>,
) -> Result<Guests, Failure> {
    let scheduler = xen.scheduler.clone().unwrap_or_else(|| SCHEDULER.into());
    if !SCHEDULERS.contains(&&*scheduler) {
        return Err(Failure::usage(
            format!("--scheduler: Xen has no scheduler `{scheduler}`"),
            format!("Xen's are: {}", SCHEDULERS.join(", ")),
        ));
    }
    if size.cpus.is_some() {
        return Err(Failure::usage(
            "--cpus names CPUs of this machine, and pCPUs of Xen are threads on all of them",
            "say how many pCPUs the guest has: --pcpus N; or run the command under taskset",
        ));
    }
    if size.quota.is_some() {
        return Err(Failure::usage(
            "--quota is of a process of QEMU, and Xen shares out its pCPUs itself",
            "leave it out, or say how many pCPUs the guest has: --pcpus N",
        ));
    }
    let guests = Guests {
        machine: Machine {
            unpacked: xen_emulated::unpacked(global)?,
            clock: match size.clock {
                Clock::Host => XenClock::Host,
                Clock::Instructions => XenClock::Instructions(SHIFT),
            },
            scheduler: scheduler.clone(),
            watch: false,
            guest_type: xen.guest_type.map_or_else(Default::default, Into::into),
            guest_kernel: None,
        },
        scheduler,
        cpus: xen.pcpus.unwrap_or(1),
        vcpus: size.vcpus,
        memory: size.memory.unwrap_or(MEMORY),
    };
    needs::memory(guests.machine_memory()).map_err(failure)?;
    let kernel = guarded(|guard| kernel(&Teller::new(global), guard).map(|built| built.kernel))?;
    Ok(Guests { machine: Machine { guest_kernel: Some(kernel), ..guests.machine }, ..guests })
}
