//! What guests boot.

use overspin_linux::Initramfs;
use std::fs;
use std::path::{Path, PathBuf};

/// The program that guests run as their first process, and an emulated dom0 too.
#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    any(target_env = "gnu", target_env = "musl")
))]
static PROGRAM: Option<&[u8]> = Some(include_bytes!(env!("OVERSPIN_XEN_GUEST")));
#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    any(target_env = "gnu", target_env = "musl")
)))]
static PROGRAM: Option<&[u8]> = None;

/// The module through which a guest asks Xen for CPU times.
const MODULE: &str = "xen-privcmd";

/// This program was built for another machine than guests of Xen are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this build of overspin has no program for Xen's guests: it was not built for x86-64 Linux"
)]
pub struct NoWorker;

/// The program itself.
///
/// # Errors
/// If this was not built for x86-64 Linux.
pub fn program() -> Result<&'static [u8], NoWorker> {
    PROGRAM.ok_or(NoWorker)
}

/// The initial file system of a guest, with the module `xen-privcmd` of its kernel unless that has it built in.
///
/// # Errors
/// If this was not built for x86-64 Linux, or the module cannot be read.
pub fn worker_initramfs(module: Option<&Path>) -> std::io::Result<Vec<u8>> {
    let mut archive = Initramfs::default();
    archive.file("/init", program().map_err(std::io::Error::other)?);
    for folder in ["/proc", "/sys", "/dev", "/modules"] {
        archive.folder(folder);
    }
    if let Some(module) = module {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("/modules/{name}"), &fs::read(module)?);
    }
    Ok(archive.finish())
}

/// The module that belongs to the kernel `.../vmlinuz-VERSION`, below `/lib/modules`; `None` if there is none.
#[must_use]
pub fn module_of(kernel: &Path) -> Option<PathBuf> {
    let name = kernel.file_name()?.to_str()?;
    let version = name.strip_prefix("vmlinuz-").or_else(|| name.strip_prefix("vmlinux-"))?;
    let folder = Path::new("/lib/modules").join(version).join("kernel/drivers/xen");
    ["", ".xz", ".zst", ".gz"]
        .iter()
        .map(|ending| folder.join(format!("{MODULE}.ko{ending}")))
        .find(|path| path.exists())
}
