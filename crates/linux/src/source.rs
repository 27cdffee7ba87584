//! The source of a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{complete, file, is_complete, output};
use crate::{LinuxError, kernel};

/// The distribution's package with the source of the version that the changes are made for.
pub(crate) const PACKAGE: &str = "linux-source-6.1";

/// Fetches the distribution's source into a folder below `cache`, unless it is there, and returns that folder. Nothing is
/// installed.
///
/// # Errors
/// If a program of the package manager is missing or fails, or there is no space.
pub fn of_distribution(cache: &Path) -> Result<PathBuf, LinuxError> {
    let tree = cache.join(PACKAGE);
    if is_complete(&tree) {
        return Ok(tree);
    }
    let packages = cache.join("debs");
    for folder in [&packages, &tree] {
        // Left by a fetch that did not end.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|cause| file(folder, cause))?;
    }
    output(Command::new("apt-get").args(["download", PACKAGE]).current_dir(&packages))?;
    let entries = fs::read_dir(&packages).map_err(|cause| file(&packages, cause))?;
    for package in entries.flatten() {
        output(Command::new("dpkg-deb").arg("-x").arg(package.path()).arg(&packages))?;
    }
    let archive = packages.join(format!("usr/src/{PACKAGE}.tar.xz"));
    output(
        Command::new("tar")
            .args(["-xJf"])
            .arg(&archive)
            .arg("-C")
            .arg(&tree)
            .arg("--strip-components=1"),
    )?;
    let _ = fs::remove_dir_all(&packages);
    complete(&tree)?;
    Ok(tree)
}

/// Copies the source in `folder` below `cache`, unless it is there: a tree is changed before it is compiled, and that of
/// somebody else stays as it is.
///
/// # Errors
/// If the changes do not fit it, or it cannot be copied.
pub fn of_folder(folder: &Path, cache: &Path) -> Result<PathBuf, LinuxError> {
    let folder = fs::canonicalize(folder).map_err(|cause| file(folder, cause))?;
    kernel::fits(&folder)?;
    let name: String = folder.to_string_lossy().replace('/', "-");
    let tree = cache.join(format!("copy{name}"));
    if is_complete(&tree) {
        return Ok(tree);
    }
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(cache).map_err(|cause| file(cache, cause))?;
    output(Command::new("cp").args(["-a", "--reflink=auto"]).arg(&folder).arg(&tree))?;
    complete(&tree)?;
    Ok(tree)
}
