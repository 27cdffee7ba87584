//! Stock kernels: those of the distribution's packages, unpacked and never installed, or any image.
//!
//! Their drivers are modules. Those that a guest needs stand in its initial file system, in the order in which its first process
//! loads them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{complete, failed, file, is_complete, output};
use crate::{Initramfs, LinuxError};

/// Modules of which guests need those that their kernel has not built in. `ext4` names the checksum only as a wish.
const WANTED: [&str; 8] = [
    "virtio_pci",
    "virtio_console",
    "virtio_blk",
    "crc32c_generic",
    "ext4",
    "overlay",
    "9pnet_virtio",
    "9p",
];
/// Parts of a kernel: one package up to 6.18, three later.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];
/// The distribution's kernel for all machines; that for clouds lacks 9p and Xen.
const FLAVOUR: &str = "-amd64";

/// A stock kernel.
#[derive(Clone, Debug)]
pub struct Stock {
    /// Its image.
    pub kernel: PathBuf,
    /// The folder of its modules; none: all is built in.
    pub modules: Option<PathBuf>,
}

/// The newest kernel of this version, for example `6.12`, in the distribution's packages, unpacked below `cache`. With a suite, for
/// example `trixie-backports`, the packages are those of that suite instead of the machine's own.
///
/// # Errors
/// If there is no such version; if a program is missing or fails.
pub fn of_distribution(
    version: &str,
    suite: Option<&str>,
    cache: &Path,
) -> Result<Stock, LinuxError> {
    let all = cache.join("stock");
    if let Some(there) = newest(unpacked(&all), version) {
        return of_tree(&all.join(there));
    }
    let lists = suite.map(|suite| Lists::of(suite, &all)).transpose()?;
    let apt = |program: &str| {
        let mut command = Command::new(program);
        lists.iter().for_each(|lists| lists.are_of(&mut command));
        command
    };
    let found = output(apt("apt-cache").args([
        "search",
        "--names-only",
        "^linux-(image|binary|modules)-",
    ]))?;
    let packages: Vec<&str> =
        found.lines().filter_map(|line| line.split_once(" - ")).map(|(name, _)| name).collect();
    let versions = |packages: &[&str]| -> Vec<String> {
        packages
            .iter()
            .filter_map(|name| name.strip_prefix(PARTS[0]))
            .filter(|rest| is_plain(rest))
            .map(str::to_owned)
            .collect()
    };
    let known = versions(&packages);
    let Some(whole) = newest(known.clone(), version) else {
        return Err(LinuxError::NoVersion { version: version.into(), there: brief(&known) });
    };
    let tree = all.join(&whole);
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).map_err(|cause| file(&tree, cause))?;
    let names = PARTS.map(|part| format!("{part}{whole}"));
    let names = names.iter().filter(|name| packages.contains(&name.as_str()));
    output(apt("apt-get").arg("download").args(names).current_dir(&tree))?;
    let entries = fs::read_dir(&tree).map_err(|cause| file(&tree, cause))?;
    for package in entries.flatten().map(|entry| entry.path()) {
        output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&tree))?;
        fs::remove_file(&package).map_err(|cause| file(&package, cause))?;
    }
    complete(&tree)?;
    of_tree(&tree)
}

/// The kernel in a file.
///
/// # Errors
/// If it is none.
pub fn of_file(kernel: &Path) -> Result<Stock, LinuxError> {
    let kernel = fs::canonicalize(kernel).map_err(|cause| file(kernel, cause))?;
    if !is_kernel(&kernel).map_err(|cause| file(&kernel, cause))? {
        return Err(LinuxError::NoKernel(kernel.display().to_string()));
    }
    let modules = modules_of(&kernel);
    Ok(Stock { kernel, modules })
}

/// Where packages have an image, below a root: up to 6.18 beside others, later with its modules.
const IMAGES: [(&str, &str); 3] =
    [("boot/vmlinuz-", ""), ("lib/modules/", "/vmlinuz"), ("usr/lib/modules/", "/vmlinuz")];

/// The kernel of unpacked packages: the folder has its version as its name.
fn of_tree(tree: &Path) -> Result<Stock, LinuxError> {
    let version = tree.file_name().map(|name| name.to_string_lossy().into_owned());
    let version = version.unwrap_or_default();
    let images = IMAGES.map(|(before, behind)| tree.join(format!("{before}{version}{behind}")));
    of_file(images.iter().find(|image| image.exists()).unwrap_or(&images[0]))
}

/// The folder of the modules of an image: the one that it is in, or the one of its version below the same root.
fn modules_of(kernel: &Path) -> Option<PathBuf> {
    let folder = kernel.parent()?;
    let is_of_modules = |folder: &PathBuf| folder.join("kernel").is_dir();
    let version = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-").unwrap_or("");
    let below = |at| folder.parent().map(|root: &Path| root.join(at).join(version));
    let found = ["lib/modules", "usr/lib/modules"].map(below);
    [Some(folder.to_owned())].into_iter().chain(found).flatten().find(is_of_modules)
}

/// An image for `-kernel`: the boot protocol's mark of x86, or an ELF file.
fn is_kernel(path: &Path) -> std::io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(0x210).read_to_end(&mut head)?;
    Ok(head.get(0x202..0x206) == Some(b"HdrS") || head.starts_with(b"\x7fELF"))
}

impl Stock {
    /// The initial file system `init` with the modules of this kernel, in a file in `folder`.
    ///
    /// # Errors
    /// If a module or a program that unpacks it is missing.
    pub fn with_modules(&self, init: &Path, folder: &Path) -> Result<PathBuf, LinuxError> {
        let mut archive = fs::read(init).map_err(|cause| file(init, cause))?;
        let mut modules = Initramfs::default();
        modules.folder("/modules");
        for (i, path) in self.modules()?.iter().enumerate() {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.unwrap_or_default();
            let data = unpack(path)?;
            modules.file(&format!("/modules/{i:03}-{name}"), &data);
        }
        // Linux reads archives that stand one behind the other.
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend(modules.finish());
        let path = folder.join("stock.cpio");
        fs::write(&path, archive).map_err(|cause| file(&path, cause))?;
        Ok(path)
    }

    /// Modules in the order in which they can be loaded.
    fn modules(&self) -> Result<Vec<PathBuf>, LinuxError> {
        let Some(folder) = &self.modules else { return Ok(Vec::new()) };
        // `/lib/modules/VERSION` below it.
        let base = folder.ancestors().nth(3).unwrap_or(folder);
        let version = folder.file_name().unwrap_or_default();
        // It prints what it would write.
        let depmod =
            Command::new("/sbin/depmod").args(["-n", "-b"]).arg(base).arg(version).output();
        let depmod = depmod.map_err(|_| LinuxError::Missing {
            programs: "depmod".into(),
            packages: "kmod".into(),
        })?;
        let text = String::from_utf8_lossy(&depmod.stdout).into_owned();
        Ok(order(&text, &WANTED).iter().map(|name| folder.join(name)).collect())
    }
}

/// The wanted modules and those that they need, each behind what it needs, of the lines `MODULE: NEEDED ...` in what depmod prints.
fn order(text: &str, wanted: &[&str]) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let needs: BTreeMap<String, (&str, &str)> = lines
        .filter(|(path, _)| path.contains(".ko"))
        .map(|(path, needs)| (named(path), (path, needs)))
        .collect();
    let mut all: Vec<String> = Vec::new();
    for (path, needed) in wanted.iter().filter_map(|name| needs.get(*name)) {
        // The last needs nothing of the others.
        for path in needed.split_whitespace().rev().chain([*path]) {
            if !all.iter().any(|there| there == path) {
                all.push(path.to_owned());
            }
        }
    }
    all
}

/// A module's name by its file's: `-` and `_` mean the same.
fn named(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split(".ko").next().unwrap_or(name).replace('-', "_")
}

/// The content of a module, whose file may be compressed.
fn unpack(path: &Path) -> Result<Vec<u8>, LinuxError> {
    let by = match path.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return fs::read(path).map_err(|cause| file(path, cause)),
    };
    let mut command = Command::new(by);
    let done = command.arg("-dc").arg(path).output();
    let done = done.map_err(|e| failed(&command, e.to_string()))?;
    match done.status.success() {
        true => Ok(done.stdout),
        false => Err(failed(&command, String::from_utf8_lossy(&done.stderr).into_owned())),
    }
}

/// Whether the rest of a package's name is a version of the usual kernel: `6.12` alone is a package that names another.
fn is_plain(rest: &str) -> bool {
    let version = rest.strip_suffix(FLAVOUR).unwrap_or("");
    numbers(version).len() > 2 && !["-cloud", "-rt"].iter().any(|of| version.ends_with(of))
}

/// Folders with kernels that were unpacked to their end.
fn unpacked(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let whole = entries.filter(|entry| is_complete(&entry.path()));
    whole.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The newest of these that is `version` or begins with it and a dot.
fn newest(all: Vec<String>, version: &str) -> Option<String> {
    let is_of = |name: &String| {
        name.strip_prefix(version)
            .is_some_and(|rest| rest.starts_with(['.', '-', '+']) || rest.is_empty())
    };
    all.into_iter().filter(is_of).max_by_key(|name| numbers(name))
}

fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// The first two numbers of each, once.
fn brief(versions: &[String]) -> String {
    let mut all: Vec<Vec<u64>> =
        versions.iter().map(|name| numbers(name).into_iter().take(2).collect()).collect();
    all.sort();
    all.dedup();
    let words: Vec<String> =
        all.iter().map(|v| v.iter().map(u64::to_string).collect::<Vec<_>>().join(".")).collect();
    words.join(", ")
}

/// Lists of another suite's packages, beside the machine's own.
struct Lists {
    folder: PathBuf,
}

impl Lists {
    /// Fetches them from where the machine's own packages come from.
    fn of(suite: &str, all: &Path) -> Result<Self, LinuxError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if !suite.chars().all(plain) {
            return Err(LinuxError::NoSuite(suite.into()));
        }
        let folder = all.join(format!("lists-{suite}"));
        for part in ["lists/partial", "cache/archives/partial"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(|cause| file(&path, cause))?;
        }
        let sites = output(Command::new("apt-get").args([
            "indextargets",
            "--format",
            "$(SITE)",
            "Identifier: Packages",
        ]))?;
        let site = sites.lines().next().ok_or_else(|| LinuxError::NoSuite(suite.into()))?;
        let sources = folder.join("sources.list");
        fs::write(&sources, format!("deb {site} {suite} main\n"))
            .map_err(|cause| file(&sources, cause))?;
        let lists = Self { folder };
        let mut update = Command::new("apt-get");
        lists.are_of(&mut update);
        // Without the suite, it warns and succeeds.
        output(update.args(["update", "-o", "APT::Update::Error-Mode=any"]))
            .map_err(|_| LinuxError::NoSuite(suite.into()))?;
        Ok(lists)
    }

    /// Lets a program of the package manager use these lists.
    fn are_of(&self, apt: &mut Command) {
        let at = |key: &str, name: &str| format!("Dir::{key}={}", self.folder.join(name).display());
        for option in [
            at("Etc::sourcelist", "sources.list"),
            "Dir::Etc::sourceparts=-".into(),
            at("State::lists", "lists"),
            at("Cache", "cache"),
        ] {
            apt.args(["-o", &option]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_stand_behind_what_they_need() {
        // As depmod of kmod 30 prints them.
        let text = "kernel/fs/ext4/ext4.ko.xz: kernel/lib/crc16.ko.xz kernel/fs/mbcache.ko.xz kernel/fs/jbd2/jbd2.ko.xz\n\
                    kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n\
                    kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n\
                    kernel/drivers/block/virtio_blk.ko.xz:\n\
                    alias fs-ext4 ext4\nalias of:N*T*Cx,y ext4\n";
        let all = order(text, &["virtio_blk", "ext4", "9pnet_virtio", "9p", "built_in"]);
        let names: Vec<String> = all.iter().map(|path| named(path)).collect();
        let expected = [
            "virtio_blk",
            "jbd2",
            "mbcache",
            "crc16",
            "ext4",
            "netfs",
            "9pnet",
            "9pnet_virtio",
            "9p",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_newest_of_a_version_is_taken() {
        let all =
            ["6.1.0-50-amd64", "6.1.0-9-amd64", "6.12.117+deb12-amd64", "6.12.90+deb12-amd64"];
        let of = |version: &str| newest(all.map(str::to_owned).to_vec(), version);
        assert_eq!(of("6.1").as_deref(), Some(all[0]));
        assert_eq!(of("6.12").as_deref(), Some(all[2]));
        assert_eq!(of("6.12.90").as_deref(), Some(all[3]));
        assert_eq!(of("7.3"), None);
        assert_eq!(brief(&all.map(str::to_owned)), "6.1, 6.12");
    }

    #[test]
    fn packages_of_other_flavours_are_none() {
        assert!(is_plain("6.12.117+deb12-amd64"));
        for other in [
            "6.12.117+deb12-cloud-amd64",
            "6.1.0-50-rt-amd64",
            "6.1.0-50-amd64-dbg",
            "amd64",
            "6.12-arm64",
            "cloud-amd64",
            "6.12-amd64",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinuz-1.2");
        fs::write(&path, "text").unwrap();
        let error = of_file(&path).unwrap_err();
        assert!(error.to_string().contains("vmlinuz-1.2 is no Linux kernel"), "{error}");
        let mut image = vec![0; 0x202];
        image.extend(b"HdrS");
        fs::write(&path, image).unwrap();
        assert_eq!(of_file(&path).unwrap().modules, None);
    }

    #[test]
    fn the_modules_of_an_image_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap().join("7.3-amd64");
        let modules = root.join("usr/lib/modules/7.3-amd64");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(root.join("boot")).unwrap();
        fs::create_dir(modules.join("kernel")).unwrap();
        let mut image = vec![0; 0x202];
        image.extend(b"HdrS");
        // As packages since 6.19 have it, and before.
        for at in ["usr/lib/modules/7.3-amd64/vmlinuz", "boot/vmlinuz-7.3-amd64"] {
            fs::write(root.join(at), &image).unwrap();
            let stock = of_tree(&root).unwrap();
            assert_eq!(stock.kernel, root.join(at));
            assert_eq!(stock.modules.as_ref(), Some(&modules));
        }
    }
}
