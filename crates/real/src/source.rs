//! Where the sources that `kernbench` builds come from.

use crate::benchmark::Steps;
use crate::program::{self, free_bytes, need};
use crate::scratch::Scratch;
use crate::{Cancel, Failed};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Debian's package of a kernel's sources, which depends on the current version's.
const PACKAGE: &str = "linux-source";
/// Where that package puts its archive.
const INSTALLED: &str = "/usr/src";
/// Unpacked sources of a kernel, and its build without modules, need less than this.
const KERNEL_BYTES: u64 = 3 << 30;

/// The tree to build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOf {
    /// A tree of the user's, which is never changed: a kernel is built outside of it, and anything else is copied.
    Tree(PathBuf),
    /// Debian's sources of a kernel, if they are installed or in our cache.
    Debian {
        /// Whether they may be downloaded into the cache.
        fetch: bool,
    },
}

/// A tree that is ready to be built.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Whether it is a kernel's.
    pub(crate) kernel: bool,
    /// Its version, or its path, for people.
    pub(crate) words: String,
}

/// The folder in which this user's downloads are kept.
fn cache() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    Some(xdg.or_else(home)?.join("overspin"))
}

/// The newest archive `linux-source-*.tar.*` in a folder.
fn archive_in(dir: &Path) -> Option<PathBuf> {
    let names = std::fs::read_dir(dir).ok()?.flatten().map(|e| e.path());
    let is = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("linux-source-") && name.contains(".tar.")
    };
    names.filter(is).max()
}

impl SourceOf {
    /// Makes the tree ready in `scratch`.
    pub(crate) fn prepare(
        &self,
        scratch: &Arc<Scratch>,
        steps: &Steps,
        cancel: Cancel,
    ) -> Result<Tree, Failed> {
        match self {
            Self::Tree(path) => {
                steps.tell("copying the tree");
                given(path, scratch, cancel)
            }
            Self::Debian { fetch } => {
                steps.tell("looking for the sources");
                let archive = archive(*fetch, scratch, steps, cancel)?;
                steps.tell("unpacking the sources");
                unpack(&archive, scratch, cancel)
            }
        }
    }
}

/// The user's tree.
fn given(path: &Path, scratch: &Arc<Scratch>, cancel: Cancel) -> Result<Tree, Failed> {
    let remedy = "name the top folder of a kernel's sources, or any folder with a Makefile";
    let usage = |cause: String| Err(Failed::usage(cause, remedy));
    let path = match std::fs::canonicalize(path) {
        Ok(path) if path.is_dir() => path,
        Ok(_) => return usage(format!("`{}` is no folder", path.display())),
        Err(e) => return usage(format!("there is no tree `{}`: {e}", path.display())),
    };
    let has = |name: &str| path.join(name).exists();
    if !has("Makefile") && !has("makefile") && !has("GNUmakefile") {
        return usage(format!("`{}` has no Makefile", path.display()));
    }
    let words = path.display().to_string();
    if has("Kconfig") && has("Kbuild") {
        if has(".config") || has("include/config/auto.conf") {
            let cause = format!(
                "`{words}` was built in place, and the kernel's Makefile refuses to build it elsewhere"
            );
            return Err(Failed::usage(
                cause,
                "clean it with `make mrproper`, or name a clean copy",
            ));
        }
        room(scratch, KERNEL_BYTES)?;
        return Ok(Tree { path, kernel: true, words });
    }
    let copy = scratch.path().join("tree");
    let mut command = Command::new("cp");
    command.arg("-a").arg(&path).arg(&copy);
    program::run(command, scratch, cancel)?;
    Ok(Tree { path: copy, kernel: false, words })
}

fn room(scratch: &Arc<Scratch>, bytes: u64) -> Result<(), Failed> {
    match free_bytes(scratch.path()) {
        Some(free) if free < bytes => Err(Failed::needs(
            format!(
                "the disk of `{}` has {:.1} GiB free, and a kernel's sources and build need {:.1}",
                scratch.path().parent().unwrap_or(scratch.path()).display(),
                free as f64 / f64::from(1 << 30),
                bytes as f64 / f64::from(1 << 30),
            ),
            "free some space, or choose another disk with --scratch DIR",
        )),
        _ => Ok(()),
    }
}

/// The archive of Debian's sources: installed, in the cache, or downloaded into it.
fn archive(
    fetch: bool,
    scratch: &Arc<Scratch>,
    steps: &Steps,
    cancel: Cancel,
) -> Result<PathBuf, Failed> {
    let cache = cache();
    let known = [Some(PathBuf::from(INSTALLED)), cache.clone()];
    if let Some(found) = known.iter().flatten().find_map(|dir| archive_in(dir)) {
        return Ok(found);
    }
    let nowhere = || {
        let remedy = format!(
            "name a tree with --tree DIR, install it with `apt-get install {PACKAGE}`, or give --fetch to \
             download it (140 MB, kept in the cache of this user)"
        );
        Failed::needs("there are no kernel sources to build", remedy)
    };
    if !fetch {
        return Err(nowhere());
    }
    let cache = cache.ok_or_else(nowhere)?;
    room(scratch, KERNEL_BYTES)?;
    need("apt-get", "downloads the sources", "apt")?;
    need("dpkg-deb", "unpacks them", "dpkg")?;
    let script = format!(
        "set -e\n\
         package=$(apt-cache depends {PACKAGE} | sed -n 's/^ *Depends: *\\({PACKAGE}-[0-9.]*\\)$/\\1/p' | head -n 1)\n\
         [ -n \"$package\" ] || {{ echo 'apt knows no package {PACKAGE}; try apt-get update' >&2; exit 1; }}\n\
         apt-get download --quiet \"$package\"\n\
         dpkg-deb --fsys-tarfile \"$package\"*.deb | tar -x --wildcards './usr/src/*.tar.*'\n"
    );
    steps.tell("downloading the sources");
    let folder = scratch.path().join("download");
    std::fs::create_dir_all(&folder).map_err(|e| Failed::io("make", &folder, &e))?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]).current_dir(&folder);
    program::run(command, scratch, cancel)?;
    let downloaded = archive_in(&folder.join("usr/src")).ok_or_else(nowhere)?;
    std::fs::create_dir_all(&cache).map_err(|e| Failed::io("make", &cache, &e))?;
    // First under another name: a killed copy must not look like an archive.
    let name = downloaded.file_name().unwrap_or_default();
    let (part, whole) = (cache.join("part"), cache.join(name));
    std::fs::copy(&downloaded, &part)
        .and_then(|_| std::fs::rename(&part, &whole))
        .map_err(|e| Failed::io("write", &whole, &e))?;
    // Its place is needed for the tree.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(whole)
}

/// Unpacks the archive into the scratch folder.
fn unpack(archive: &Path, scratch: &Arc<Scratch>, cancel: Cancel) -> Result<Tree, Failed> {
    room(scratch, KERNEL_BYTES)?;
    need("tar", "unpacks the sources", "tar")?;
    need("xz", "unpacks the sources", "xz-utils")?;
    let tree = scratch.path().join("tree");
    std::fs::create_dir_all(&tree).map_err(|e| Failed::io("make", &tree, &e))?;
    let mut command = Command::new("tar");
    command.args(["--strip-components=1", "-xf"]).arg(archive).arg("-C").arg(&tree);
    program::run(command, scratch, cancel)?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let words = name.split(".tar").next().unwrap_or_default().to_owned();
    Ok(Tree { path: tree, kernel: true, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_a_remedy() {
        let scratch = Arc::new(Scratch::new(None).unwrap());
        let of = |path: &Path| {
            SourceOf::Tree(path.to_owned())
                .prepare(&scratch, &Steps::default(), &|| false)
                .unwrap_err()
        };
        let error = of(Path::new("/no/such/tree"));
        assert!(
            matches!(error, Failed::Usage { .. }) && error.to_string().contains("/no/such/tree")
        );
        let error = of(Path::new("/etc/passwd"));
        assert!(error.to_string().contains("is no folder"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        assert!(of(empty.path()).to_string().contains("no Makefile"));
        for name in ["Makefile", "Kconfig", "Kbuild", ".config"] {
            std::fs::write(empty.path().join(name), "").unwrap();
        }
        assert!(of(empty.path()).remedy().contains("make mrproper"));
        let error = room(&scratch, u64::MAX).unwrap_err();
        assert!(error.to_string().contains("GiB free"), "{error}");
    }

    #[test]
    fn a_tree_that_is_no_kernel_is_copied() {
        let scratch = Arc::new(Scratch::new(None).unwrap());
        let theirs = tempfile::tempdir().unwrap();
        std::fs::write(theirs.path().join("Makefile"), "all:\n").unwrap();
        let source = SourceOf::Tree(theirs.path().into());
        let tree = source.prepare(&scratch, &Steps::default(), &|| false).unwrap();
        assert!(!tree.kernel && tree.path.starts_with(scratch.path()));
        assert!(tree.path.join("Makefile").is_file());
    }

    #[test]
    fn the_newest_archive_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(archive_in(dir.path()), None);
        for name in ["linux-source-6.1.tar.xz", "linux-source-6.12.tar.xz", "linux-source-6.1", "x"]
        {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let found = archive_in(dir.path()).unwrap();
        assert!(found.ends_with("linux-source-6.12.tar.xz"), "{}", found.display());
    }
}
