//! Builds the program of guests, which the crate embeds.
//!
//! It is compiled for the host's own target and linked statically: a guest has no library.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a static program that any CPU of the architecture runs: an emulated one has no extensions.
const FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Ctarget-cpu=x86-64"];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    for crate_of_guest in ["guest", "../xl", "../scenario", "../workload"] {
        for part in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", here.join(crate_of_guest).join(part).display());
        }
    }
    println!("cargo::rerun-if-changed={}", here.join("guest/Cargo.lock").display());
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET").expect("cargo sets it");
    // Guests are x86-64 Linux. A host with another C library might link the program dynamically all the same.
    if target == "x86_64-unknown-linux-gnu" || target == "x86_64-unknown-linux-musl" {
        build(&here.join("guest/Cargo.toml"), &target);
    }
}

fn build(manifest: &Path, target: &str) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let target_dir = out.join("guest");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    // What is set for the host's crates is not meant for the guest: flags, wrappers (clippy's, for one), profiles.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let of_host = ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_ENCODED_", "CARGO_TARGET_"];
        if of_host.iter().any(|prefix| text.starts_with(prefix))
            || ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER"].contains(&&*text)
        {
            cargo.env_remove(name);
        }
    }
    cargo
        .args(["build", "--release", "--quiet", "--target", target])
        .arg("--manifest-path")
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    let status = cargo.status().expect("cargo, which runs this script, can be started");
    assert!(status.success(), "the program of Xen's guests was not built: see the messages above");
    let program = target_dir.join(target).join("release/overspin-xen-guest");
    println!("cargo::rustc-env=OVERSPIN_XEN_GUEST={}", program.display());
}
