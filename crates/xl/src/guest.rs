//! A guest's configuration file.

use crate::{Guest, WORK};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What carries out a guest's privileged instructions, by the names of a guest's configuration file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestType {
    /// Paravirtual: its kernel calls Xen for them, and Xen enters it in ring 3.
    #[default]
    Pv,
    /// The processor's virtualisation, with a kernel that knows Xen: it calls Xen only for events, timers and to sleep.
    Pvh,
}

/// What guests boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    /// Linux kernel for paravirtual guests.
    pub kernel: PathBuf,
    /// Initial file system with the worker.
    pub initramfs: PathBuf,
    /// The type of each guest.
    pub guest_type: GuestType,
    /// More lines of each guest's configuration file.
    pub more: String,
}

/// The configuration file of a guest in a pool.
pub(crate) fn config(guest: &Guest, pool: &str, images: &Images) -> String {
    let Guest { name, vcpus, memory, work, seed, kernel_options } = guest;
    let (kernel, ramdisk) = (images.kernel.display(), images.initramfs.display());
    let work = work.join(",");
    let guest_type = match images.guest_type {
        GuestType::Pv => "pv",
        GuestType::Pvh => "pvh",
    };
    format!(
        "name = \"{name}\"\ntype = \"{guest_type}\"\nkernel = \"{kernel}\"\nramdisk = \"{ramdisk}\"\nmemory = {memory}\n\
         vcpus = {vcpus}\npool = \"{pool}\"\non_poweroff = \"destroy\"\non_crash = \"destroy\"\n\
         on_reboot = \"destroy\"\nextra = \"console=hvc0 quiet loglevel=1 {WORK}={work} overspin.seed={seed} \
         {kernel_options}\"\n{}\n",
        images.more
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_the_file() {
        let guest = Guest {
            name: "overspin-0".into(),
            vcpus: 2,
            memory: 96,
            work: ["burnwait", "70", "200000"].map(str::to_owned).to_vec(),
            seed: 7,
            kernel_options: "nopvspin".into(),
        };
        let images = Images {
            kernel: "/boot/vmlinuz".into(),
            initramfs: "/tmp/worker.cpio".into(),
            guest_type: GuestType::Pvh,
            more: "tsc_mode = \"native\"".into(),
        };
        let text = config(&guest, "bench", &images);
        for line in [
            "type = \"pvh\"",
            "vcpus = 2",
            "memory = 96",
            "pool = \"bench\"",
            "kernel = \"/boot/vmlinuz\"",
            "ramdisk = \"/tmp/worker.cpio\"",
            "tsc_mode = \"native\"",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
        assert!(
            text.contains("overspin.work=burnwait,70,200000 overspin.seed=7 nopvspin\""),
            "{text}"
        );
    }
}
