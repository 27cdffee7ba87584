//! The source of a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LinuxError;
use crate::kernel::{self, Variant};
use crate::program::{complete, file, is_complete, output};

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

/// The tree beside `tree` for a kernel of this variant: a copy, which is made once.
///
/// # Errors
/// If it cannot be copied.
pub fn of_variant(tree: PathBuf, variant: Variant) -> Result<PathBuf, LinuxError> {
    let suffix = match variant {
        Variant::Plain => return Ok(tree),
        Variant::LockStat => "-lock-stat",
    };
    let beside = |suffix: &str| {
        let mut name = tree.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    let copy = beside(suffix);
    if is_complete(&copy) {
        return Ok(copy);
    }
    // The mark of the tree is copied, too, and perhaps first: only a whole copy gets the name.
    let part = beside(".part");
    for folder in [&part, &copy] {
        let _ = fs::remove_dir_all(folder);
    }
    output(Command::new("cp").args(["-a", "--reflink=auto"]).arg(&tree).arg(&part))?;
    fs::rename(&part, &copy).map_err(|cause| file(&copy, cause))?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_has_a_tree_of_its_own_that_is_copied_once() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("linux");
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("Makefile"), "all:").unwrap();
        complete(&tree).unwrap();
        assert_eq!(of_variant(tree.clone(), Variant::Plain).unwrap(), tree);
        // What an interrupted copy left is no tree.
        fs::create_dir(folder.path().join("linux.part")).unwrap();
        let copy = of_variant(tree.clone(), Variant::LockStat).unwrap();
        assert_eq!(copy, folder.path().join("linux-lock-stat"));
        assert_eq!(fs::read_to_string(copy.join("Makefile")).unwrap(), "all:");
        fs::write(copy.join("Makefile"), "changed:").unwrap();
        of_variant(tree, Variant::LockStat).unwrap();
        assert_eq!(fs::read_to_string(copy.join("Makefile")).unwrap(), "changed:");
    }
}
