//! What a machine must have, looked at before anything starts.

use std::fs;
use std::path::Path;

use overspin_real::program::{find, free_bytes};

use crate::LinuxError;

/// A program, and the package that has it.
type Needed = (&'static str, &'static str);

/// To compile a kernel.
pub const TO_BUILD: [Needed; 8] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];
/// To start guests.
pub const TO_RUN: [Needed; 1] = [("qemu-system-x86_64", "qemu-system-x86")];
/// To keep them on some CPUs.
pub const TO_PIN: [Needed; 1] = [("taskset", "util-linux")];
/// To make their disk.
pub const FOR_DISKS: [Needed; 2] = [("mke2fs", "e2fsprogs"), ("dpkg-query", "dpkg")];

/// Unpacked sources, what is compiled of them, and a disk.
const SPACE: u64 = 4 << 30;

/// An error that names all programs that are missing, and their packages.
///
/// # Errors
/// If one is missing.
pub fn programs(needed: &[Needed]) -> Result<(), LinuxError> {
    let missing: Vec<&Needed> = needed.iter().filter(|(name, _)| !is_there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let words = |of: fn(&Needed) -> &'static str| {
        missing.iter().map(|needed| of(needed)).collect::<Vec<_>>().join(" ")
    };
    Err(LinuxError::Missing { programs: words(|n| n.0), packages: words(|n| n.1) })
}

/// Some are only in the path of root.
fn is_there(name: &str) -> bool {
    find(name).is_some()
        || ["/usr/sbin", "/sbin"].iter().any(|at| Path::new(at).join(name).exists())
}

/// An error if this machine has less memory than guests need.
///
/// # Errors
/// If it is so.
pub fn memory(mib: u32) -> Result<(), LinuxError> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match available(&text) {
        Some(there) if there < u64::from(mib) => Err(LinuxError::Memory { mib, there }),
        _ => Ok(()),
    }
}

/// MiB that `/proc/meminfo` says can be had.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? >> 10)
}

/// An error if there is too little space below `folder` for a kernel that is not there yet.
///
/// # Errors
/// If it is so, or the folder cannot be made.
pub fn space(folder: &Path) -> Result<(), LinuxError> {
    fs::create_dir_all(folder).map_err(|cause| crate::program::file(folder, cause))?;
    match free_bytes(folder) {
        Some(free) if free < SPACE => Err(LinuxError::Space {
            folder: folder.display().to_string(),
            needed: SPACE >> 20,
            free: free >> 20,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_programs_are_named_with_their_packages() {
        assert!(programs(&[("sh", "dash")]).is_ok());
        let error =
            programs(&[("sh", "dash"), ("no-such-a", "a"), ("no-such-b", "b")]).unwrap_err();
        assert_eq!(error.to_string(), "there is no `no-such-a no-such-b`");
        assert_eq!(error.remedy(), "as root, apt-get install a b");
    }

    #[test]
    fn memory_is_what_the_kernel_says_can_be_had() {
        let text = "MemTotal:       24675464 kB\nMemFree: 1 kB\nMemAvailable:   20480000 kB\n";
        assert_eq!(available(text), Some(20_000));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        let error = memory(u32::MAX).unwrap_err();
        assert!(error.to_string().contains("4294967295 MiB"), "{error}");
        assert!(error.remedy().contains("--memory"));
    }
}
