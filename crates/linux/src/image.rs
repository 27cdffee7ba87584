//! The disk of guests: a compiler, what it needs, and a tree to build. It is made once of the host's own packages, and guests
//! only read it.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{failed, file, output, succeeds};
use crate::{Guard, LinuxError, kernel, program};

/// Programs that a build needs; those that they depend on come with them.
const PACKAGES: [&str; 12] = [
    "make",
    "gcc",
    "libc6-dev",
    "bash",
    "dash",
    "coreutils",
    "findutils",
    "grep",
    "sed",
    "mawk",
    "diffutils",
    "bc",
];
/// What no program reads.
const LEFT_OUT: [&str; 6] = [
    "/usr/share/doc/",
    "/usr/share/man/",
    "/usr/share/info/",
    "/usr/share/locale/",
    "/usr/share/lintian/",
    "/usr/share/bash-completion/",
];
/// What the package manager does not list: names that it chooses, and links to folders.
const CHOSEN: &str = "/etc/alternatives";
const LINKS: [&str; 5] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64"];
const FILES: [&str; 3] = ["/etc/passwd", "/etc/group", "/etc/ld.so.cache"];

/// Where the tree is on the disk.
pub const TREE: &str = "/tree";
/// What of the tree a run builds: some thirty files, which takes half a minute to a minute in emulation.
pub const TARGETS: [&str; 3] = ["kernel/locking/", "lib/math/", "lib/crypto/"];
/// What a run reads of the disk: it is read before.
pub const READ: [&str; 6] = [
    "/tree/include",
    "/tree/arch/x86/include",
    "/tree/kernel/locking",
    "/tree/lib",
    "/tree/scripts",
    "/usr/lib/gcc",
];
/// Folders of the source that it reads. Of all others it reads `Kconfig` and `Makefile`.
const SOURCES: [&str; 6] = ["arch/x86", "include", "kernel", "lib", "scripts", "tools"];

/// Makes the disk below `cache`, with a tree of this kernel's source, unless it is there.
///
/// # Errors
/// If a package or a program is missing; if there is no space.
pub fn make(cache: &Path, source: &Path, guard: Guard<'_>) -> Result<PathBuf, LinuxError> {
    let packages = closure()?;
    let mut key = DefaultHasher::new();
    (packages.versions, source, SOURCES, env!("CARGO_PKG_VERSION")).hash(&mut key);
    let image = cache.join(format!("disk-{:016x}.ext4", key.finish()));
    if image.exists() {
        return Ok(image);
    }
    let stage = cache.join("stage");
    let _ = fs::remove_dir_all(&stage);
    fs::create_dir_all(stage.join("tree")).map_err(|cause| file(&stage, cause))?;
    copy(Path::new("/"), &stage, &files_of(&packages.names)?)?;
    let tree = stage.join("tree");
    copy(source, &tree, &files_of_tree(source))?;
    kernel::take_back(&tree)?;
    let log = cache.join("disk.log");
    for targets in [&["mrproper"][..], &["tinyconfig"], &["prepare", "scripts"]] {
        program::make(&tree, targets, &log, guard)?;
    }
    let unfinished = cache.join("disk.part");
    let bytes: u64 = output(Command::new("du").args(["-sb"]).arg(&stage))?
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(1 << 30);
    // Blocks that are not full, and tables.
    let mib = (bytes >> 20) * 3 / 2 + 64;
    let mut format = Command::new("mke2fs");
    format.args(["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d"]);
    succeeds(format.arg(&stage).arg(&unfinished).arg(format!("{mib}M")), &log, guard)?;
    let _ = fs::remove_dir_all(&stage);
    fs::rename(&unfinished, &image).map_err(|cause| file(&image, cause))?;
    Ok(image)
}

/// Packages of this host.
struct Packages {
    names: Vec<String>,
    versions: String,
}

/// The packages and all that they depend on, as far as they are installed.
fn closure() -> Result<Packages, LinuxError> {
    let mut depends = Command::new("apt-cache");
    depends.args(["depends", "--recurse", "--installed"]);
    for kind in ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"] {
        depends.arg(format!("--no-{kind}"));
    }
    let listed = output(depends.args(PACKAGES))?;
    // A name in pointed brackets is of no package of its own.
    let mut names: Vec<String> = (listed.lines())
        .filter(|line| line.starts_with(|c: char| c.is_ascii_alphanumeric()))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    let versions = output(
        Command::new("dpkg-query").args(["-W", "-f", "${Package} ${Version}\n"]).args(&names),
    )?;
    Ok(Packages { names, versions })
}

/// Files of these packages, relative to the root.
fn files_of(packages: &[String]) -> Result<Vec<PathBuf>, LinuxError> {
    let listed = output(Command::new("dpkg-query").arg("-L").args(packages))?;
    let mut files = BTreeSet::new();
    for line in listed.lines().filter(|line| line.starts_with('/')) {
        if !LEFT_OUT.iter().any(|folder| line.starts_with(folder)) {
            files.extend(place(Path::new(line)));
        }
    }
    files.extend(LINKS.iter().chain(&FILES).map(PathBuf::from));
    // Names such as `awk`, which are links to links.
    for entry in fs::read_dir(CHOSEN).into_iter().flatten().flatten() {
        let name = Path::new("/usr/bin").join(entry.file_name());
        files.extend([entry.path(), name]);
    }
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    let relative = |path: PathBuf| path.strip_prefix("/").ok().map(Path::to_owned);
    Ok(files.into_iter().filter(is_there).filter_map(relative).collect())
}

/// Where a file of a package is: packages still say `/bin/x`, and `/bin` may be a link.
fn place(listed: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(listed.parent()?).ok()?;
    Some(folder.join(listed.file_name()?))
}

/// Files of a kernel's source that the tree needs, relative to it.
fn files_of_tree(source: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    below(source, Path::new(""), &mut files);
    files
}

fn below(source: &Path, folder: &Path, files: &mut Vec<PathBuf>) {
    let whole = folder == Path::new("") || SOURCES.iter().any(|name| folder.starts_with(name));
    for entry in fs::read_dir(source.join(folder)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let path = folder.join(&name);
        let name = name.to_string_lossy();
        let made = [".o", ".a", ".cmd", ".o_shipped"].iter().any(|ending| name.ends_with(ending));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(source, &path, files),
            Ok(_) if made || name.starts_with("vmlinux") && folder == Path::new("") => {}
            Ok(_)
                if whole
                    || name.starts_with("Kconfig")
                    || name.starts_with("Makefile")
                    || name == "Kbuild" =>
            {
                files.push(path);
            }
            _ => {}
        }
    }
}

/// Copies these files below `from`, with their times.
fn copy(from: &Path, to: &Path, files: &[PathBuf]) -> Result<(), LinuxError> {
    let names: Vec<&str> = files.iter().filter_map(|path| path.to_str()).collect();
    let list = to.join(".overspin-list");
    fs::write(&list, names.join("\n")).map_err(|cause| file(&list, cause))?;
    let mut pack = Command::new("tar");
    pack.args(["--no-recursion", "-cf", "-", "-C"]).arg(from).arg("-T").arg(&list);
    let mut packing =
        pack.stdout(Stdio::piped()).spawn().map_err(|e| failed(&pack, e.to_string()))?;
    let mut unpack = Command::new("tar");
    unpack.args(["-xpf", "-", "-C"]).arg(to);
    if let Some(packed) = packing.stdout.take() {
        unpack.stdin(packed);
    }
    let unpacked = output(&mut unpack);
    let packed = packing.wait().map_err(|e| failed(&pack, e.to_string()))?;
    let _ = fs::remove_file(&list);
    unpacked?;
    match packed.success() {
        true => Ok(()),
        false => Err(failed(&pack, packed.to_string())),
    }
}
