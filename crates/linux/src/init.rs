//! The first process of guests, and the file system from which it starts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{cargo, file, output};
use crate::{Initramfs, LinuxError};

/// Where its crate is.
const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/guest");
/// A static program: a guest has no library. An emulated processor has no extensions.
const FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Ctarget-cpu=x86-64"];
/// With a target, the flags are not those of build scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Compiles it, with all that cargo makes in `folder`, and returns an archive for `-initrd`.
///
/// # Errors
/// If cargo fails, or the archive cannot be written.
pub fn compile(folder: &Path) -> Result<PathBuf, LinuxError> {
    let mut cargo = cargo(Path::new(GUEST), folder)?;
    output(cargo.args(["--target", TARGET]).env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f")))?;
    let program = folder.join(TARGET).join("release/overspin-linux-guest");
    let program = fs::read(&program).map_err(|cause| file(&program, cause))?;
    let mut archive = Initramfs::default();
    archive.file("/init", &program);
    for name in ["/proc", "/sys", "/dev", "/tmp"] {
        archive.folder(name);
    }
    let path = folder.join("init.cpio");
    fs::write(&path, archive.finish()).map_err(|cause| file(&path, cause))?;
    Ok(path)
}
