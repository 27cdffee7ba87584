//! Debian's packages: which of them are needed, and how they come into the user's cache. Nothing is installed.

use super::{EmulatedError, Unpacked};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages whose libraries are needed, too. The version of Xen is in the names of others.
const WITH_LIBRARIES: [&str; 2] = ["qemu-system-x86", "xenstore-utils"];
/// Packages that are needed themselves, with nothing that they depend on: QEMU's accelerator, its firmware.
const ALONE: [&str; 4] = ["qemu-system-common", "qemu-system-data", "seabios", "zlib1g"];
/// Name the packages of this release's versions.
const XEN: &str = "xen-system-amd64";
const LINUX: &str = "linux-image-amd64";
/// Of the kernel's package, only these are unpacked: the kernel, and the modules for Xen.
const OF_LINUX: [&str; 2] = ["./boot/vmlinuz-*", "*/kernel/drivers/xen/*"];
/// Is written when all packages are unpacked, and lists them.
const COMPLETE: &str = "packages.txt";

/// The user's folder for the packages.
#[derive(Clone, Debug)]
pub struct Cache(PathBuf);

/// What a fetch brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Number of packages.
    pub packages: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Cache {
    /// The folder `overspin/xen` in the user's folder for cached files.
    ///
    /// # Errors
    /// If the environment names none.
    pub fn of_user() -> Result<Self, EmulatedError> {
        let named = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let folder =
            named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
        Ok(Self(folder.ok_or(EmulatedError::NoCache)?.join("overspin/xen")))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The unpacked packages; `None` if they have to be fetched.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn unpacked(&self) -> Result<Option<Unpacked>, EmulatedError> {
        match self.0.join(COMPLETE).exists() {
            true => Unpacked::at(&self.0.join("root")).map(Some),
            false => Ok(None),
        }
    }

    /// Fetches and unpacks the packages.
    ///
    /// # Errors
    /// If a program of the package manager is missing or fails.
    pub fn fetch(&self) -> Result<Fetched, EmulatedError> {
        let (packages, root) = (self.0.join("debs"), self.0.join("root"));
        for folder in [&packages, &root] {
            // Left by a fetch that did not end.
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder).map_err(|cause| file(folder, cause))?;
        }
        let names = names()?;
        output(Command::new("apt-get").arg("download").args(&names).current_dir(&packages))?;
        let mut fetched = Fetched { packages: 0, bytes: 0 };
        let mut list = String::new();
        let all = fs::read_dir(&packages).map_err(|cause| file(&packages, cause))?;
        for package in all.flatten() {
            fetched.packages += 1;
            fetched.bytes += package.metadata().map_or(0, |m| m.len());
            let name = package.file_name().to_string_lossy().into_owned();
            unpack(&package.path(), &root, name.starts_with("linux-image"))?;
            list += &format!("{name}\n");
        }
        let _ = fs::remove_dir_all(&packages);
        let complete = self.0.join(COMPLETE);
        fs::write(&complete, list).map_err(|cause| file(&complete, cause))?;
        Ok(fetched)
    }
}

fn unpack(package: &Path, root: &Path, linux: bool) -> Result<(), EmulatedError> {
    if !linux {
        return output(Command::new("dpkg-deb").arg("-x").arg(package).arg(root)).map(|_| ());
    }
    let mut contents = Command::new("dpkg-deb");
    contents.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped());
    let mut from = contents.spawn().map_err(|e| failed(&contents, e.to_string()))?;
    let mut tar = Command::new("tar");
    tar.arg("-x").arg("-C").arg(root).arg("--wildcards").args(OF_LINUX);
    let result = output(tar.stdin(from.stdout.take().map_or_else(Stdio::null, Stdio::from)));
    // What it says of a tar that ended early is tar's failure.
    let _ = from.wait();
    result.map(|_| ())
}

/// Names of all packages.
fn names() -> Result<BTreeSet<String>, EmulatedError> {
    let versions = depends(&[XEN, LINUX], false)?;
    let of = |package: &str, begin: &str| {
        let all = versions.get(package).into_iter().flatten();
        let found = all.clone().find(|n| {
            n.strip_prefix(begin).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        found.cloned().ok_or_else(|| EmulatedError::Program {
            command: format!("apt-cache depends {package}"),
            said: format!("it names no package {begin}VERSION"),
        })
    };
    let tools = of(XEN, "xen-utils-")?;
    let alone = [of(XEN, "xen-hypervisor-")?, of(LINUX, "linux-image-")?];
    let mut roots = WITH_LIBRARIES.to_vec();
    roots.push(&tools);
    let graph = depends(&roots, true)?;
    let mut names = libraries(&graph, &roots);
    names.extend(alone);
    names.extend(ALONE.map(str::to_owned));
    Ok(names)
}

/// The packages that `roots` need to run: themselves, and libraries. Whatever else they depend on serves an installed system.
fn libraries(graph: &BTreeMap<String, Vec<String>>, roots: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut left: Vec<&str> = roots.to_vec();
    while let Some(name) = left.pop() {
        if names.insert(name.to_owned()) {
            let needed = graph.get(name).into_iter().flatten();
            left.extend(needed.map(|n| &**n).filter(|n| n.starts_with("lib")));
        }
    }
    names
}

/// What each package depends on, by `apt-cache`.
fn depends(
    packages: &[&str],
    recursive: bool,
) -> Result<BTreeMap<String, Vec<String>>, EmulatedError> {
    let mut command = Command::new("apt-cache");
    command.arg("depends").args(
        ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"]
            .map(|kind| format!("--no-{kind}")),
    );
    if recursive {
        command.arg("--recurse");
    }
    Ok(graph(&output(command.args(packages))?))
}

/// Reads the output of `apt-cache depends`: a package at the beginning of a line, what it depends on behind a colon.
fn graph(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut graph: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if !line.starts_with([' ', '|', '<']) {
            line.trim().clone_into(&mut current);
        } else if let Some((_, name)) = line.split_once("Depends: ")
            // A package that exists only as others provide it.
            && !name.starts_with('<')
        {
            graph.entry(current.clone()).or_default().push(name.trim().to_owned());
        }
    }
    graph
}

/// Runs a command, and returns what it prints.
pub(super) fn output(command: &mut Command) -> Result<String, EmulatedError> {
    let output = command.output().map_err(|e| failed(command, e.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(failed(command, if said.is_empty() { output.status.to_string() } else { said }))
}

fn failed(command: &Command, said: String) -> EmulatedError {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    // The list of packages would hide the cause.
    let words: Vec<&str> = words.map(|w: &OsStr| w.to_str().unwrap_or("?")).take(4).collect();
    EmulatedError::Program { command: words.join(" "), said }
}

pub(super) fn file(path: &Path, cause: std::io::Error) -> EmulatedError {
    EmulatedError::File { path: path.display().to_string(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_are_followed() {
        let text = "xen-utils-4.17\n  Depends: libc6\n  Depends: python3\n |Depends: libfoo1\n  Depends: <libx:any>\n\
                    libc6\n  Depends: libgcc-s1\npython3\n  Depends: libsqlite3-0\n<libx:any>\n    libx\n";
        let names = libraries(&graph(text), &["xen-utils-4.17"]);
        let expected = ["libc6", "libfoo1", "libgcc-s1", "xen-utils-4.17"];
        assert_eq!(names, expected.map(str::to_owned).into());
    }
}
