//! Guests of real Xen for `overspin linux`: their options, and the way to them.

#[cfg(feature = "xen")]
mod run;

use crate::failure::Failure;
use clap::{Args, ValueEnum};

#[cfg(feature = "xen")]
pub(super) use run::{dup, judging};

/// What runs a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum World {
    /// QEMU, on this machine
    Host,
    /// Real Xen, in an emulated machine
    Xen,
}

/// What carries out a guest's privileged instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GuestType {
    /// Xen, which the kernel calls for each, as in 2008
    Pv,
    /// The processor's virtualisation, which QEMU emulates; the kernel knows Xen
    Pvh,
}

/// What runs guests. Without anything said, QEMU does.
#[derive(Debug, Args)]
pub(super) struct XenArgs {
    /// What runs a guest
    #[arg(long, value_name = "WORLD", default_value = "host")]
    world: World,
    /// pCPUs of a guest of Xen; default: 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    pcpus: Option<u32>,
    /// Type of a guest of Xen; default: pv
    #[arg(long, value_name = "TYPE")]
    guest_type: Option<GuestType>,
    /// Xen's scheduler; default: credit
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
}

impl XenArgs {
    /// Whether guests run on Xen; an error if only what is said of Xen would mean that.
    pub(super) fn is_meant(&self) -> Result<bool, Failure> {
        let given = [
            ("--pcpus", self.pcpus.is_some()),
            ("--guest-type", self.guest_type.is_some()),
            ("--scheduler", self.scheduler.is_some()),
        ];
        match (self.world, given.iter().find(|(_, is)| *is)) {
            (World::Xen, _) => Ok(true),
            (World::Host, None) => Ok(false),
            (World::Host, Some((option, _))) => {
                let cause = format!("{option} is of guests of Xen");
                Err(Failure::usage(cause, "add --world xen, or leave it out"))
            }
        }
    }
}

#[cfg(not(feature = "xen"))]
pub(super) fn dup(
    _: u32,
    _: &XenArgs,
    _: &super::measure::GuestArgs,
    _: &crate::args::Global,
) -> Result<crate::failure::Verdict, Failure> {
    Err(crate::left_out::without_xen())
}

#[cfg(not(feature = "xen"))]
pub(super) fn judging<'a>(
    _: &'a super::torture::TortureArgs,
    _: &crate::args::Global,
    _: overspin_linux::Guard<'a>,
    _: &'a std::path::Path,
    _: &'a dyn Fn() -> bool,
) -> Result<(String, super::torture::Judging<'a>), Failure> {
    Err(crate::left_out::without_xen())
}
