//! What a first process does before anything else: file systems and modules.

use rustix::mount::{MountFlags, mount};
use rustix::system::finit_module;
use std::ffi::CString;
use std::fs;

/// `finit_module` unpacks the module itself.
const COMPRESSED: i32 = 4;

/// Mounts the usual file systems, and returns the kernel's command line.
///
/// # Errors
/// If there is no proc, so that the command line is unknown.
pub(crate) fn start() -> Result<String, String> {
    for (kind, path) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount_at(kind, path)?;
    }
    fs::read_to_string("/proc/cmdline").map_err(|e| format!("no kernel command line: {e}"))
}

/// Mounts a file system that needs no device.
pub(crate) fn mount_at(kind: &str, path: &str) -> Result<(), String> {
    // A kernel may have mounted devtmpfs itself; what matters is whether the files are there.
    let _ = fs::create_dir_all(path);
    match mount(kind, path, kind, MountFlags::empty(), None::<&std::ffi::CStr>) {
        Ok(()) | Err(rustix::io::Errno::BUSY) => Ok(()),
        Err(error) => Err(format!("cannot mount {kind} on {path}: {error}")),
    }
}

/// Loads `/modules/NAME.ko`, plain or compressed. Without that file the kernel has it built in, or whoever needs it
/// will say what is missing.
pub(crate) fn load_module(name: &str, parameters: &str) -> Result<(), String> {
    for (ending, flags) in [("", 0), (".xz", COMPRESSED), (".zst", COMPRESSED), (".gz", COMPRESSED)]
    {
        let Ok(file) = fs::File::open(format!("/modules/{name}.ko{ending}")) else { continue };
        let parameters = CString::new(parameters).unwrap_or_default();
        return match finit_module(&file, &parameters, flags) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(format!("cannot load the module {name}: {error}")),
        };
    }
    Ok(())
}
