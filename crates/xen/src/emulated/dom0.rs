//! The initial file system of the emulated dom0: Xen's tools, the modules they need, what guests boot, and its orders.

use super::EmulatedError;
use super::Machine;
use super::packages::file;
use super::unpacked::bytes;
use crate::{kernel_image, pauses, program, worker_initramfs};
use overspin_linux::Initramfs;
use overspin_xl::{Images, Job, Orders};
use std::path::PathBuf;

/// Programs of Xen's tools. `xl` starts the last one itself, at the path where it was installed.
const PROGRAMS: [&str; 4] = ["xl", "xenstored", "xen-init-dom0", "xenconsoled"];
const CONSOLE: &str = "xenconsole";
/// Modules of the dom0.
const MODULES: [&str; 5] =
    ["xen-evtchn", "xen-privcmd", "xenfs/xenfs", "xen-gntdev", "xen-gntalloc"];
const KERNEL: &str = "/boot/vmlinux";
const WORKER: &str = "/boot/worker.cpio";
/// The emulated CPU does not promise a steady time stamp counter, so Xen would emulate each reading of it in the guest.
/// The counter is steady all the same.
const GUESTS: &str = "tsc_mode = \"native\"";

/// The archive for a dom0 that makes these runs, in guests whose kernel has no `pause` if that is wanted.
pub(super) fn initramfs(
    machine: &Machine,
    jobs: &[Job],
    without_pauses: bool,
) -> Result<Vec<u8>, EmulatedError> {
    let unpacked = &machine.unpacked;
    let mut archive = Initramfs::default();
    archive.file("/init", program()?);
    for folder in [
        "/proc",
        "/sys",
        "/dev",
        "/tmp",
        "/run",
        "/var/lib/xen",
        "/var/lib/xenstored",
        "/var/log/xen",
    ] {
        archive.folder(folder);
    }
    archive.link("/var/run", "../run");
    archive.link("/var/lock", "../run/lock");
    archive.file("/etc/xen/xl.conf", b"");
    let mut programs: Vec<PathBuf> = Vec::new();
    for name in PROGRAMS {
        let path = unpacked.xen_programs.join(name);
        archive.file(&format!("/bin/{name}"), &bytes(&path)?);
        programs.push(path);
    }
    let console = unpacked.xen_programs.join(CONSOLE);
    // The path of the package, from its root on: usr/lib/xen-VERSION/bin.
    let version = unpacked.xen_programs.parent().and_then(|p| p.file_name()).unwrap_or_default();
    archive
        .file(&format!("/usr/lib/{}/bin/{CONSOLE}", version.to_string_lossy()), &bytes(&console)?);
    programs.push(console);
    for library in unpacked.libraries_of(&programs)? {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        archive.file(&format!("/lib/{name}"), &bytes(&library)?);
    }
    archive.link("/lib64", "lib");
    for module in MODULES {
        let name = module.rsplit('/').next().unwrap_or(module);
        let found = ["", ".xz", ".zst", ".gz"]
            .map(|ending| format!("{module}.ko{ending}"))
            .into_iter()
            .find(|path| unpacked.modules.join(path).exists());
        // A kernel may have it built in.
        if let Some(path) = found {
            let ending = path.strip_prefix(module).unwrap_or_default();
            archive
                .file(&format!("/modules/{name}{ending}"), &bytes(&unpacked.modules.join(&path))?);
        }
    }
    let path = machine.guest_kernel.as_ref().unwrap_or(&unpacked.linux);
    let mut kernel = bytes(path)?;
    if let Some(elf) = kernel_image::unpacked(&kernel) {
        kernel = elf;
    }
    if without_pauses && pauses::replace(&mut kernel).is_none() {
        return Err(EmulatedError::Pauses { kernel: path.display().to_string() });
    }
    archive.file(KERNEL, &kernel);
    let module = ["", ".xz", ".zst", ".gz"]
        .map(|ending| unpacked.modules.join(format!("xen-privcmd.ko{ending}")))
        .into_iter()
        // It is of the dom0's kernel, and no other takes it.
        .find(|path| machine.guest_kernel.is_none() && path.exists());
    let worker = worker_initramfs(module.as_deref())
        .map_err(|cause| file(module.as_deref().unwrap_or(&unpacked.modules), cause))?;
    archive.file(WORKER, &worker);
    let images = Images {
        kernel: KERNEL.into(),
        initramfs: WORKER.into(),
        guest_type: machine.guest_type,
        more: GUESTS.into(),
    };
    let orders = Orders { jobs: jobs.to_vec(), images, watch: machine.watch };
    archive.file("/orders.json", &serde_json::to_vec(&orders).unwrap_or_default());
    Ok(archive.finish())
}

#[cfg(test)]
mod tests {
    use super::super::Cache;
    use super::*;

    #[test]
    fn the_pauses_of_the_fetched_kernel_are_found() {
        let cache = Cache::of_user().unwrap();
        let Some(unpacked) = cache.unpacked().unwrap() else {
            println!(
                "skipped: the packages of emulated Xen are not in {}",
                cache.folder().display()
            );
            return;
        };
        let mut kernel = kernel_image::unpacked(&bytes(&unpacked.linux).unwrap()).unwrap();
        let pairs = |file: &[u8]| file.windows(2).filter(|pair| *pair == [0xf3, 0x90]).count();
        let before = pairs(&kernel);
        let found = pauses::replace(&mut kernel).unwrap();
        println!("{found:?}; {before} pairs of bytes like a pause in the whole file");
        // Each `pause` was such a pair. Linux has hundreds: one in each loop that waits for another CPU.
        assert_eq!(before - pairs(&kernel), found.pauses);
        assert!(found.pauses > 100, "{found:?}");
        assert_eq!(pauses::replace(&mut kernel).unwrap().pauses, 0);
    }
}
