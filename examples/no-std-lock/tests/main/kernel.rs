//! Builds the static library of `kernel/` and links it with a program in C that has nothing else: no standard library and
//! no C library. Then it runs the program, up to where a user may not do what a kernel does.

use overspin_testing::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target of kernels, without an operating system.
const BARE: &str = "x86_64-unknown-none";

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
}

/// Builds the library with `arguments` of cargo and these flags of the compiler.
fn build(target_dir: &Path, arguments: &[&str], flags: &[&str]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(here().join("kernel/Cargo.toml"))
        .arg("--target-dir")
        .arg(target_dir)
        .args(arguments)
        // Of the build of this test, and not meant for a kernel.
        .env_remove("CARGO_BUILD_TARGET")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    succeeds(&mut cargo);
}

#[test]
fn the_library_needs_nothing_of_an_operating_system() {
    let target_dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernel");
    build(&target_dir, &[], &["-Dwarnings", "-Cno-redzone=yes", "-Crelocation-model=static"]);
    if Command::new("cc").arg("--version").output().is_err() {
        return skip("no C compiler; nothing is linked with the library for kernels");
    }
    let program = target_dir.join("start");
    let mut link = Command::new("cc");
    link.args(["-Wall", "-Wextra", "-Werror", "-ffreestanding", "-nostdlib", "-static", "-no-pie"])
        .arg(here().join("tests/start.c"))
        .arg(target_dir.join("release/liboverspin_kernel.a"))
        .arg("-o")
        .arg(&program);
    succeeds(&mut link);
    succeeds(&mut Command::new(program));
}

#[test]
fn the_library_is_built_for_the_bare_target_where_that_is_installed() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).args(["--print", "target-libdir", "--target", BARE]).output();
    let folder = String::from_utf8(asked.expect("the compiler runs").stdout).expect("a path");
    if !Path::new(folder.trim()).is_dir() {
        return skip(&format!("no target {BARE}; the library for kernels is built for this one"));
    }
    let target_dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("kernel-bare");
    build(&target_dir, &["--target", BARE], &["-Dwarnings"]);
}
