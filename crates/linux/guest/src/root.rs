//! File systems.

use crate::talk::{HOST, Root};
use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// Where the file system of the disk or the host, what is written, and both together are.
const DISK: &str = "/disk";
const WRITTEN: &str = "/written";
const ROOT: &str = "/root";

/// Mounts the file systems that every program expects below `root`.
pub(crate) fn mount_usual(root: &str) -> Result<(), String> {
    for (kind, path) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount_at(kind, kind, &format!("{root}{path}"), MountFlags::empty(), "")?;
    }
    // Of the kernel's own counts; a kernel may lack them.
    let _ = mount_at(
        "debugfs",
        "debugfs",
        &format!("{root}/sys/kernel/debug"),
        MountFlags::empty(),
        "",
    );
    Ok(())
}

fn mount_at(
    source: &str,
    kind: &str,
    path: &str,
    flags: MountFlags,
    data: &str,
) -> Result<(), String> {
    let _ = fs::create_dir_all(path);
    let data = CString::new(data).map_err(|e| e.to_string())?;
    match mount(source, path, kind, flags, data.as_c_str()) {
        Ok(()) | Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(format!("cannot mount {kind} on {path}: {error}")),
    }
}

/// From now on this process and its children see this file system. What they write stays in memory.
pub(crate) fn enter(root: Root) -> Result<(), String> {
    match root {
        Root::Disk => mount_at("/dev/vda", "ext4", DISK, MountFlags::RDONLY, "")?,
        Root::Host => {
            // What was read is kept: nobody else writes what matters here.
            let data = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";
            mount_at(HOST, "9p", DISK, MountFlags::RDONLY, data)?;
        }
    }
    mount_at("tmpfs", "tmpfs", WRITTEN, MountFlags::empty(), "size=90%")?;
    let folders = ["upper", "work"].map(|name| format!("{WRITTEN}/{name}"));
    for folder in &folders {
        fs::create_dir_all(folder).map_err(|e| format!("{folder}: {e}"))?;
    }
    let data = format!("lowerdir={DISK},upperdir={},workdir={}", folders[0], folders[1]);
    mount_at("overlay", "overlay", ROOT, MountFlags::empty(), &data)?;
    mount_usual(ROOT)?;
    if root == Root::Disk {
        mount_at("tmpfs", "tmpfs", &format!("{ROOT}/tmp"), MountFlags::empty(), "")?;
    }
    rustix::process::chroot(ROOT).map_err(|e| format!("cannot enter {ROOT}: {e}"))?;
    std::env::set_current_dir("/").map_err(|e| e.to_string())
}

/// Reads all files below `folder` on this file system.
pub(crate) fn read(folder: &str) {
    read_below(Path::new(folder), &mut vec![0; 1 << 20]);
}

fn read_below(folder: &Path, buffer: &mut [u8]) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => read_below(&entry.path(), buffer),
            Ok(kind) if kind.is_file() => {
                // A file that cannot be read now is missed by the program that needs it, which says so.
                let Ok(file) = open(entry.path(), OFlags::RDONLY, Mode::empty()) else { continue };
                let mut file = fs::File::from(file);
                while file.read(buffer).unwrap_or(0) > 0 {}
            }
            _ => {}
        }
    }
}

/// The lines of a file, or none.
pub(crate) fn text(path: impl AsRef<Path>) -> String {
    let all = || -> io::Result<String> { fs::read_to_string(path) };
    all().unwrap_or_default()
}
