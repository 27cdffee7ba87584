//! The locks as an object file for a kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::LinuxError;
use crate::program::{cargo, file, output};

/// Where the crate of the locks is.
const LOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/locks");
/// The library that cargo makes of it, and the member of the library that is ours.
const LIBRARY: &str = "release/liboverspin_linux_locks.a";
const MEMBER: &str = "overspin_linux_locks";
/// What makes code of the host's target code of a kernel: interrupts write below the stack pointer, addresses are in the upper
/// two gigabytes, and vector registers belong to the interrupted program.
const FLAGS: [&str; 6] = [
    "-Cno-redzone=yes",
    "-Crelocation-model=static",
    "-Ccode-model=kernel",
    "-Cforce-frame-pointers=yes",
    "-Cno-vectorize-loops",
    "-Cno-vectorize-slp",
];
/// Functions that run once, at boot, on one CPU: they may use vector registers, whose owner is not there yet.
const AT_BOOT: [&str; 3] = ["overspin_choose", "keep", "new"];

/// Compiles the locks, with all that cargo makes in `folder`, and returns the object file, which has been checked.
///
/// # Errors
/// If cargo, `ar`, `ld`, `nm`, `objdump` or `readelf` is missing or fails; if the code has what a kernel must not have.
pub fn compile(folder: &Path) -> Result<PathBuf, LinuxError> {
    output(cargo(Path::new(LOCKS), folder)?.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f")))?;
    let library = folder.join(LIBRARY);
    let members = output(Command::new("ar").arg("t").arg(&library))?;
    let member = members.lines().find(|name| name.starts_with(MEMBER)).ok_or_else(|| {
        LinuxError::Object(format!("{} has no member {MEMBER}", library.display()))
    })?;
    output(Command::new("ar").args(["x", "--output"]).arg(folder).arg(&library).arg(member))?;
    let object = folder.join("overspin_locks.o");
    let script = Path::new(LOCKS).join("link.ld");
    output(
        Command::new("ld")
            .arg("-r")
            .arg("-T")
            .arg(script)
            .arg(folder.join(member))
            .arg("-o")
            .arg(&object),
    )?;
    fs::remove_file(folder.join(member)).map_err(|cause| file(&folder.join(member), cause))?;
    check(&object)?;
    Ok(object)
}

/// Looks for what a kernel must not have: vector registers, a table of addresses, functions that it lacks.
fn check(object: &Path) -> Result<(), LinuxError> {
    let code =
        output(Command::new("objdump").args(["-d", "-C", "--no-show-raw-insn"]).arg(object))?;
    if let Some(function) = with_vector_registers(&code) {
        return Err(LinuxError::Object(format!("`{function}` uses vector registers")));
    }
    let relocations = output(Command::new("readelf").args(["-r", "-W"]).arg(object))?;
    if let Some(line) = relocations.lines().find(|line| line.contains("GOT")) {
        return Err(LinuxError::Object(format!("an address comes from a table: {line}")));
    }
    let undefined = output(Command::new("nm").arg("-u").arg(object))?;
    let strange =
        undefined.split_whitespace().find(|name| *name != "U" && !name.starts_with("overspin_"));
    match strange {
        Some(name) => Err(LinuxError::Object(format!("it calls `{name}`"))),
        None => Ok(()),
    }
}

/// The first function, besides those of the boot, in which the text of `objdump -d -C` has a vector register.
fn with_vector_registers(code: &str) -> Option<&str> {
    let mut function = "";
    code.lines().find_map(|line| {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once('<')) {
            function = name;
        }
        let at_boot = || AT_BOOT.iter().any(|name| function.rsplit("::").next() == Some(name));
        let vector = ["%xmm", "%ymm", "%zmm"].iter().any(|register| line.contains(register));
        (vector && !at_boot()).then_some(function)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_register_is_found_in_its_function() {
        let code = "0000 <overspin_choose>:\n 0: movups %xmm0,(%rax)\n0010 <a::Shared<P>::new>:\n 10: movaps %xmm1,(%rdi)\n\
                    0020 <overspin_lock>:\n 20: lock xadd %eax,(%rdi)\n";
        assert_eq!(with_vector_registers(code), None);
        let bad = format!("{code} 24: movdqu (%rdi),%xmm0\n");
        assert_eq!(with_vector_registers(&bad), Some("overspin_lock"));
    }

    /// The locks of today pass the check, and every operation that the kernel calls is there.
    #[test]
    fn the_locks_fit_a_kernel() {
        for tool in ["ar", "ld", "objdump", "readelf", "nm"] {
            if Command::new(tool).arg("--version").output().is_err() {
                return overspin_testing::skip(&format!(
                    "no {tool}; the locks for kernels are not compiled"
                ));
            }
        }
        if !cfg!(target_arch = "x86_64") {
            return overspin_testing::skip("not x86-64; the locks for kernels are not compiled");
        }
        let folder = tempfile::tempdir().unwrap();
        let object = compile(folder.path()).unwrap();
        let defined =
            output(Command::new("nm").args(["--defined-only", "-g"]).arg(object)).unwrap();
        for name in ["lock", "trylock", "unlock", "is_locked", "is_contended", "choose"] {
            assert!(defined.contains(&format!(" T overspin_{name}\n")), "{name}: {defined}");
        }
    }
}
