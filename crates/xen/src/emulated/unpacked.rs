//! The files of the unpacked packages that are needed.

use super::EmulatedError;
use super::packages::{file, output};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the loader of programs is, by the ABI of x86-64.
const LOADER: &str = "ld-linux-x86-64.so.2";

/// Unpacked packages.
#[derive(Clone, Debug)]
pub struct Unpacked {
    root: PathBuf,
    libraries: Vec<PathBuf>,
    loader: PathBuf,
    /// Xen, packed with gzip.
    pub(super) xen: PathBuf,
    /// Linux.
    pub(super) linux: PathBuf,
    /// Folder of Linux's modules for Xen.
    pub(super) modules: PathBuf,
    /// Folder of Xen's programs.
    pub(super) xen_programs: PathBuf,
}

impl Unpacked {
    /// Finds the files below `root`.
    pub(super) fn at(root: &Path) -> Result<Self, EmulatedError> {
        let missing = |what| EmulatedError::Missing { what, folder: root.display().to_string() };
        let boot = |begin: &str, end: &str, what| {
            let named = |p: &PathBuf| {
                let name = p.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with(begin) && name.ends_with(end)
            };
            entries(&root.join("boot")).into_iter().find(named).ok_or_else(|| missing(what))
        };
        let libraries: Vec<PathBuf> = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
            .iter()
            .map(|folder| root.join(folder))
            .filter(|folder| folder.is_dir())
            .collect();
        let loader = libraries.iter().map(|folder| folder.join(LOADER)).find(|path| path.exists());
        let below = |folder: PathBuf, part: &str| {
            entries(&folder).into_iter().map(|path| path.join(part)).find(|path| path.is_dir())
        };
        let modules = ["lib/modules", "usr/lib/modules"]
            .iter()
            .find_map(|folder| below(root.join(folder), "kernel/drivers/xen"));
        // The folder has Xen's version in its name.
        let programs = entries(&root.join("usr/lib")).into_iter().map(|path| path.join("bin"));
        Ok(Self {
            xen: boot("xen-", ".gz", "hypervisor")?,
            linux: boot("vmlinuz-", "", "kernel")?,
            loader: loader.ok_or_else(|| missing("C library"))?,
            modules: modules.ok_or_else(|| missing("module for Xen"))?,
            xen_programs: programs
                .into_iter()
                .find(|path| path.join("xl").exists())
                .ok_or_else(|| missing("xl"))?,
            root: root.to_owned(),
            libraries,
        })
    }

    /// Of tests that start nothing.
    #[cfg(test)]
    pub(crate) fn at_nothing() -> Self {
        let none = PathBuf::new;
        Self {
            root: none(),
            libraries: Vec::new(),
            loader: none(),
            xen: none(),
            linux: none(),
            modules: none(),
            xen_programs: none(),
        }
    }

    /// A command that starts this program with the unpacked libraries, whatever this machine has.
    fn start(&self, program: &Path) -> Command {
        let path: Vec<String> = self.libraries.iter().map(|l| l.display().to_string()).collect();
        let mut command = Command::new(&self.loader);
        command.arg("--library-path").arg(path.join(":")).arg(program);
        command
    }

    /// QEMU.
    pub(super) fn qemu(&self) -> Command {
        let mut command = self.start(&self.root.join("usr/bin/qemu-system-x86_64"));
        for folder in ["usr/share/qemu", "usr/share/seabios"] {
            command.arg("-L").arg(self.root.join(folder));
        }
        if let Some(libraries) = self.libraries.first() {
            command.env("QEMU_MODULE_DIR", libraries.join("qemu"));
        }
        command
    }

    /// File name of the guests' kernel.
    #[must_use]
    pub fn linux_name(&self) -> String {
        self.linux.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// QEMU's version.
    ///
    /// # Errors
    /// If it does not start.
    pub fn qemu_version(&self) -> Result<String, EmulatedError> {
        let said = output(self.qemu().arg("--version"))?;
        let version = said.split_whitespace().skip_while(|word| *word != "version").nth(1);
        Ok(version.unwrap_or("unknown").to_owned())
    }

    /// The libraries that these programs load, with the loader, by their names.
    pub(super) fn libraries_of(
        &self,
        programs: &[PathBuf],
    ) -> Result<BTreeSet<PathBuf>, EmulatedError> {
        // The C library loads it at run time, when a thread is cancelled.
        let mut all: BTreeSet<PathBuf> = self
            .libraries
            .iter()
            .map(|folder| folder.join("libgcc_s.so.1"))
            .filter(|path| path.exists())
            .collect();
        all.insert(self.loader.clone());
        for program in programs {
            let path: Vec<String> =
                self.libraries.iter().map(|l| l.display().to_string()).collect();
            let mut list = Command::new(&self.loader);
            list.arg("--library-path").arg(path.join(":")).arg("--list").arg(program);
            // "libx.so.1 => /root/lib/libx.so.1 (0x7f...)"
            let said = output(&mut list)?;
            let found = said.lines().filter_map(|line| line.split_once("=> "));
            all.extend(
                found
                    .filter_map(|(_, rest)| rest.split(" (").next())
                    .map(PathBuf::from)
                    .filter(|path| path.starts_with(&self.root)),
            );
        }
        Ok(all)
    }
}

/// The files in a folder, in the order of their names; none if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// Reads a file of the packages.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, EmulatedError> {
    fs::read(path).map_err(|cause| file(path, cause))
}
